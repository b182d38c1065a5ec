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
use super::messages::{Apply, Commit, Committed, Epoch, InitialEventsEnded, Stage, WatchOpened};
use super::status::Shared;
use super::supervisor::{Outcome, Supervisor};
use super::vigil::{Vigil, Vigilance};
use crate::api::{ApiError, Item, ListerWatcher, WatchEvent, WatchRequest, WatchStart};
use crate::object::Resource;
use crate::supervision::Faults;

/// So many events at most go to the store at once: all that are there, none is waited for.
const BATCH: usize = 256;
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
        let work = watch(Rc::clone(&self.route), self.request.clone(), self.vigilance);
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

async fn watch<K: Resource>(
    route: Rc<Route<K>>,
    request: WatchRequest,
    vigilance: Vigilance,
) -> Outcome {
    let mut telling = match &request.start {
        WatchStart::After(_) => Telling::Changes,
        WatchStart::InitialEvents { .. } => Telling::InitialEvents,
    };
    let begun = Instant::now();
    let mut care = Care::new(
        Vigil::new(vigilance, begun),
        Rc::clone(&route.source),
        Arc::clone(&request.selection),
        route.shared.store.clone(),
    );
    let open = route.source.watch(request);
    let opened = match telling {
        Telling::Changes => care.attend(open).await,
        Telling::InitialEvents => {
            timeout(INITIAL_SILENCE, open).await.map_err(|_elapsed| WatchEnd::NoEndOfInitialEvents)
        }
    };
    let stream = match opened {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => return Outcome::WatchEnded(WatchEnd::Failed(error)),
        Err(end) => return Outcome::WatchEnded(end),
    };
    care.vigil.opened(Instant::now());
    if route.supervisor.send(WatchOpened(route.epoch)).await.is_err() {
        return Outcome::Interrupted;
    }
    route.faults.hit("watcher", "opened");
    let mut batches = stream.ready_chunks(BATCH);
    loop {
        let batch = match telling {
            Telling::Changes => care.attend(batches.next()).await,
            Telling::InitialEvents => {
                let limit = (begun + INITIAL_EVENTS).min(Instant::now() + INITIAL_SILENCE);
                let batch = timeout_at(limit, batches.next()).await;
                batch.map_err(|_elapsed| WatchEnd::NoEndOfInitialEvents)
            }
        };
        let batch = match batch {
            Ok(Some(batch)) => batch,
            Ok(None) => return Outcome::WatchEnded(WatchEnd::Closed),
            Err(end) => return Outcome::WatchEnded(end),
        };
        route.faults.hit("watcher", "batch");
        note(&mut care.vigil, &batch);
        match route.hand_over(batch, &mut telling).await {
            Ok(None) => {}
            Ok(Some(error)) => return Outcome::WatchEnded(WatchEnd::Failed(error)),
            // The store crashed over it: the supervisor knows what follows.
            Err(_gone) => return Outcome::Interrupted,
        }
    }
}

fn note<K>(vigil: &mut Vigil, batch: &Batch<K>) {
    let is_bookmark = |event: &Result<WatchEvent<K>, ApiError>| {
        matches!(event, Ok(WatchEvent::Bookmark { ends_initial_events: false, .. }))
    };
    match batch.iter().any(is_bookmark) {
        true => vigil.heard_bookmark(Instant::now()),
        false => vigil.heard(Instant::now()),
    }
}

impl<K: Resource> Route<K> {
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
