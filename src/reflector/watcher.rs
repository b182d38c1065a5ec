use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use actix::{
    Actor, ActorContext as _, ActorFutureExt as _, Addr, AsyncContext as _, Context, MailboxError,
    WrapFuture as _,
};
use futures::StreamExt as _;
use tokio::time::Instant;

use super::delta_fifo_store::DeltaFifoStore;
use super::machine::WatchEnd;
use super::messages::{Apply, Commit, Epoch, InitialEventsEnded, Stage, WatchOpened};
use super::supervisor::{Outcome, Supervisor};
use crate::api::{ApiError, ListerWatcher, WatchEvent, WatchRequest, WatchStart};
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
    pub(super) epoch: Epoch,
    pub(super) request: WatchRequest,
    pub(super) source: Rc<dyn ListerWatcher<K>>,
    pub(super) store: Addr<DeltaFifoStore<K>>,
    pub(super) supervisor: Addr<Supervisor<K>>,
    pub(super) outcome: Rc<Cell<Option<Outcome>>>,
    pub(super) faults: Faults,
}

impl<K: Resource> Actor for Watcher<K> {
    type Context = Context<Self>;

    fn started(&mut self, context: &mut Context<Self>) {
        self.faults.hit("watcher", "started");
        let watch = Watch {
            epoch: self.epoch,
            source: Rc::clone(&self.source),
            store: self.store.clone(),
            supervisor: self.supervisor.clone(),
            faults: self.faults.clone(),
        };
        let work = watch.run(self.request.clone());
        context.spawn(work.into_actor(self).map(|outcome, watcher, context| {
            watcher.outcome.set(Some(outcome));
            context.stop();
        }));
    }
}

/// What the work of a watcher needs.
struct Watch<K: Resource> {
    epoch: Epoch,
    source: Rc<dyn ListerWatcher<K>>,
    store: Addr<DeltaFifoStore<K>>,
    supervisor: Addr<Supervisor<K>>,
    faults: Faults,
}

/// Whether the events are those of a list, or changes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Telling {
    InitialEvents,
    Changes,
}

type Batch<K> = Vec<Result<WatchEvent<K>, ApiError>>;

impl<K: Resource> Watch<K> {
    async fn run(self, request: WatchRequest) -> Outcome {
        let mut telling = match &request.start {
            WatchStart::After(_) => Telling::Changes,
            WatchStart::InitialEvents { .. } => Telling::InitialEvents,
        };
        let complete_by = Instant::now() + INITIAL_EVENTS;
        let open = self.source.watch(request);
        let opened = match telling {
            Telling::Changes => Ok(open.await),
            Telling::InitialEvents => tokio::time::timeout(INITIAL_SILENCE, open).await,
        };
        let stream = match opened {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => return Outcome::WatchEnded(WatchEnd::Failed(error)),
            Err(_elapsed) => return Outcome::WatchEnded(WatchEnd::NoEndOfInitialEvents),
        };
        if self.supervisor.send(WatchOpened(self.epoch)).await.is_err() {
            return Outcome::Interrupted;
        }
        self.faults.hit("watcher", "opened");
        let mut batches = stream.ready_chunks(BATCH);
        loop {
            let batch = match telling {
                Telling::Changes => batches.next().await,
                Telling::InitialEvents => {
                    let limit = complete_by.min(Instant::now() + INITIAL_SILENCE);
                    match tokio::time::timeout_at(limit, batches.next()).await {
                        Ok(batch) => batch,
                        Err(_elapsed) => {
                            return Outcome::WatchEnded(WatchEnd::NoEndOfInitialEvents);
                        }
                    }
                }
            };
            let Some(batch) = batch else { return Outcome::WatchEnded(WatchEnd::Closed) };
            self.faults.hit("watcher", "batch");
            match self.hand_over(batch, &mut telling).await {
                Ok(None) => {}
                Ok(Some(error)) => return Outcome::WatchEnded(WatchEnd::Failed(error)),
                // The store crashed over it: the supervisor knows what follows.
                Err(_gone) => return Outcome::Interrupted,
            }
        }
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
                    self.store
                        .send(Commit { epoch, resource_version: resource_version.clone() })
                        .await?;
                    self.supervisor.send(InitialEventsEnded { epoch, resource_version }).await?;
                    *telling = Telling::Changes;
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
