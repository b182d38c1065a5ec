use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use actix::{
    Actor, ActorContext as _, ActorFutureExt as _, Addr, AsyncContext as _, Context, MailboxError,
    WrapFuture as _,
};
use futures::StreamExt as _;
use tokio::time::{Instant, timeout, timeout_at};

use super::care::Care;
use super::delta_fifo_store::DeltaFifoStore;
use super::history::Older;
use super::machine::WatchEnd;
use super::messages::{
    Apply, Commit, Committed, Epoch, Heard, InitialEventsEnded, Overdue, Stage, WatchOpened,
};
use super::status::Shared;
use super::supervisor::{Outcome, Supervisor};
use super::vigil::{Vigil, Vigilance};
use crate::api::{ApiError, Item, ListerWatcher, WatchEvent, WatchRequest, WatchStart};
use crate::object::Resource;
use crate::supervision::Faults;

/// So many events at most go to the store at once: all that are there, none is waited for.
const BATCH: usize = 256;
/// A streamed list has to begin within this. Part of it may be spent on waiting for our own turn.
const LONGEST_OPENING: Duration = Duration::from_secs(120);
/// While a list is streamed, no longer silence than this is believed.
const INITIAL_SILENCE: Duration = Duration::from_secs(30);
/// Nor does it take longer than this. What is larger is listed in pages.
const INITIAL_EVENTS: Duration = Duration::from_secs(180);

/// Watches once, and hands what it is told to the store. Then it is done.
pub(super) struct Watcher<K: Resource> {
    pub(super) request: WatchRequest,
    pub(super) vigilance: Vigilance,
    pub(super) route: Rc<Route<K>>,
    pub(super) outcome: Rc<Cell<Option<Outcome>>>,
}

impl<K: Resource> Actor for Watcher<K> {
    type Context = Context<Self>;

    fn started(&mut self, context: &mut Context<Self>) {
        self.route.faults.hit("watcher", "started");
        let vigil = Vigil::new(self.vigilance, Instant::now());
        let selection = Arc::clone(&self.request.selection);
        let mut care = Care::new(vigil, Rc::clone(&self.route), selection);
        let (route, request) = (Rc::clone(&self.route), self.request.clone());
        let work = async move {
            let end = watch(&route, request, &mut care).await;
            end.map_or(Outcome::Interrupted, |end| Outcome::WatchEnded(end, care.vigil.record()))
        };
        context.spawn(work.into_actor(self).map(|outcome, watcher, context| {
            watcher.outcome.set(Some(outcome));
            context.stop();
        }));
    }
}

/// From where to where a watcher brings its events.
pub(super) struct Route<K: Resource> {
    pub(super) epoch: Epoch,
    pub(super) older: Older,
    pub(super) source: Rc<dyn ListerWatcher<K>>,
    pub(super) shared: Arc<Shared<K>>,
    pub(super) store: Addr<DeltaFifoStore<K>>,
    pub(super) supervisor: Addr<Supervisor<K>>,
    pub(super) faults: Faults,
}

/// Whether the events are those of a list, or changes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Telling {
    InitialEvents,
    Changes,
}

type Batch<K> = Vec<Result<WatchEvent<K>, ApiError>>;

/// Watches to the end, and gives it.
///
/// # Errors
/// When another actor is gone meanwhile: that is what counts then.
async fn watch<K: Resource>(
    route: &Route<K>,
    request: WatchRequest,
    care: &mut Care<K>,
) -> Result<WatchEnd, MailboxError> {
    let mut telling = match &request.start {
        WatchStart::After(_) => Telling::Changes,
        WatchStart::InitialEvents { .. } => Telling::InitialEvents,
    };
    let open = match (telling, route.older) {
        // A server that went back may give out a version for the second time.
        (Telling::InitialEvents, Older::Refused) => {
            route.source.restream(request, Rc::new(route.shared.store.clone()))
        }
        (Telling::InitialEvents, Older::Accepted) | (Telling::Changes, _) => {
            route.source.watch(request)
        }
    };
    let opened = match telling {
        Telling::Changes => care.attend(open).await,
        Telling::InitialEvents => Ok(timeout(LONGEST_OPENING, open)
            .await
            .unwrap_or(Err(ApiError::Timeout { waited: LONGEST_OPENING }))),
    };
    let stream = match opened {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => return Ok(WatchEnd::Failed(error)),
        Err(end) => return Ok(end),
    };
    let opened_at = Instant::now();
    care.vigil.opened(opened_at);
    route.supervisor.send(WatchOpened(route.epoch)).await?;
    route.faults.hit("watcher", "opened");
    let mut batches = stream.ready_chunks(BATCH);
    loop {
        let batch = match telling {
            Telling::Changes => care.attend(batches.next()).await,
            Telling::InitialEvents => {
                let limit = (opened_at + INITIAL_EVENTS).min(Instant::now() + INITIAL_SILENCE);
                let batch = timeout_at(limit, batches.next()).await;
                batch.map_err(|_elapsed| WatchEnd::NoEndOfInitialEvents)
            }
        };
        let batch = match batch {
            Ok(Some(batch)) => batch,
            Ok(None) => return Ok(WatchEnd::Closed),
            Err(end) => return Ok(end),
        };
        route.faults.hit("watcher", "batch");
        if telling == Telling::Changes && is_new_proof(&mut care.vigil, &batch) {
            route.tell_heard().await;
        }
        let was_listing = telling == Telling::InitialEvents;
        if let Some(error) = route.hand_over(batch, &mut telling).await? {
            return Ok(WatchEnd::Failed(error));
        }
        if was_listing && telling == Telling::Changes {
            care.vigil.listed(Instant::now());
        }
    }
}

/// Takes note of a batch, and tells whether the supervisor is to know of it. An error proves nothing.
fn is_new_proof<K>(vigil: &mut Vigil, batch: &Batch<K>) -> bool {
    let is_bookmark =
        |event: &Result<WatchEvent<K>, ApiError>| matches!(event, Ok(WatchEvent::Bookmark { .. }));
    if batch.iter().any(is_bookmark) {
        vigil.heard_bookmark(Instant::now())
    } else if batch.iter().any(Result::is_ok) {
        vigil.heard(Instant::now())
    } else {
        false
    }
}

impl<K: Resource> Route<K> {
    /// Tells the supervisor that the cache keeps up. One that is gone will ask for all of it anew.
    pub(super) async fn tell_heard(&self) {
        self.supervisor.send(Heard(self.epoch)).await.ok();
    }

    /// Tells the supervisor that nothing has proved for too long that the cache keeps up.
    pub(super) async fn tell_overdue(&self) {
        self.supervisor.send(Overdue(self.epoch)).await.ok();
    }

    /// Hands over what came before an error, and gives the error.
    async fn hand_over(
        &self,
        batch: Batch<K>,
        telling: &mut Telling,
    ) -> Result<Option<ApiError>, MailboxError> {
        let epoch = self.epoch;
        let mut events = Vec::with_capacity(batch.len());
        let mut failure = None;
        for event in batch {
            match event {
                Err(error) => {
                    failure = Some(error);
                    break;
                }
                Ok(WatchEvent::Bookmark { resource_version, ends_initial_events: true })
                    if *telling == Telling::InitialEvents =>
                {
                    self.store.send(Stage { epoch, events: std::mem::take(&mut events) }).await?;
                    let older = self.older;
                    let commit =
                        Commit { epoch, resource_version: resource_version.clone(), older };
                    if let Committed::Refused(error) = self.store.send(commit).await? {
                        return Ok(Some(error));
                    }
                    self.supervisor.send(InitialEventsEnded { epoch, resource_version }).await?;
                    *telling = Telling::Changes;
                }
                Ok(event) if *telling == Telling::Changes && lacks_version(&event) => {
                    failure = Some(ApiError::malformed("an event has no resourceVersion"));
                    break;
                }
                Ok(event) => events.push(event),
            }
        }
        if !events.is_empty() {
            match telling {
                Telling::InitialEvents => self.store.send(Stage { epoch, events }).await?,
                Telling::Changes => self.store.send(Apply { epoch, events }).await?,
            }
        }
        Ok(failure)
    }
}

/// Without a version it could not be said from where to watch on. What can not be read is reported all the same.
fn lacks_version<K: Resource>(event: &WatchEvent<K>) -> bool {
    event
        .item()
        .is_some_and(|item| matches!(item, Item::Object(_)) && item.resource_version().is_none())
}
