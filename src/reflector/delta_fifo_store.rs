use std::collections::BTreeSet;
use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context as TaskContext, Poll};
use std::time::Duration;

use actix::dev::Request;
use actix::fut::ActorFuture;
use actix::{Actor, ActorFutureExt as _, Addr, Context, Handler, ResponseActFuture, Supervised};
use tokio::time::{Timeout, timeout};

use super::messages::{
    AddIndex, Apply, BeginEpoch, Commit, Epoch, Flush, Publish, Resync, Stage, SubscriptionId,
};
use super::publisher::Publisher;
use super::staged::Staged;
use super::status::{Quarantined, Shared, lock};
use super::{Cause, ResourceEvent};
use crate::api::{Item, Undecodable, WatchEvent};
use crate::cache::{
    Change, Delta, DeltaFifo, Discipline, IndexConflict, Indexer, Popped, Refusal, StoreWriter,
    Transform, Transition,
};
use crate::object::{Resource, ResourceVersion};
use crate::supervision::Faults;

/// So many changes are applied before others on the arbiter get a turn.
const SLICE: usize = 512;

/// For so long the publisher is waited for.
const PATIENCE: Duration = Duration::from_secs(1);

/// The one writer of the cache: queues what is reported, applies it, shows it, and tells the publisher.
///
/// Readers see the state after everything that waited has been applied, never one in between.
pub(super) struct DeltaFifoStore<K: Resource> {
    shared: Arc<Shared<K>>,
    writer: StoreWriter<K>,
    indexer: Indexer<K>,
    fifo: DeltaFifo<K>,
    discipline: Discipline,
    transform: Option<Transform<K>>,
    publisher: Addr<Publisher<K>>,
    /// Who may speak; nobody after a crash, until the next epoch.
    epoch: Option<Epoch>,
    staged: Staged<K>,
    /// The version after everything that was queued.
    position: Option<ResourceVersion>,
    /// What has been applied and is not shown yet.
    outbox: Vec<ResourceEvent<K>>,
    resync_due: BTreeSet<SubscriptionId>,
    /// The generation that is shown.
    shown: u64,
    faults: Faults,
}

impl<K: Resource> DeltaFifoStore<K> {
    pub(super) fn new(
        shared: Arc<Shared<K>>,
        writer: StoreWriter<K>,
        indexer: Indexer<K>,
        discipline: Discipline,
        transform: Option<Transform<K>>,
        publisher: Addr<Publisher<K>>,
        faults: Faults,
    ) -> Self {
        Self {
            shown: indexer.generation(),
            shared,
            writer,
            indexer,
            fifo: DeltaFifo::new(discipline, transform.clone()),
            discipline,
            transform,
            publisher,
            epoch: None,
            staged: Staged::default(),
            position: None,
            outbox: Vec::new(),
            resync_due: BTreeSet::new(),
            faults,
        }
    }

    fn queue_event(&mut self, event: WatchEvent<K>) {
        let version = event.resource_version();
        let queued = match event {
            WatchEvent::Added(Item::Object(object)) => {
                self.readable(&object);
                self.fifo.add(object)
            }
            WatchEvent::Modified(Item::Object(object)) => {
                self.readable(&object);
                self.fifo.update(object)
            }
            WatchEvent::Deleted(Item::Object(object)) => {
                let key = object.key();
                self.readable(&object);
                let refused = self.fifo.delete(object, &self.indexer);
                // Its last state is refused, but not that it is gone.
                refused.or_else(|_refusal| {
                    self.fifo.forget(&key, &self.indexer);
                    Ok(())
                })
            }
            WatchEvent::Added(Item::Undecodable(report))
            | WatchEvent::Modified(Item::Undecodable(report)) => {
                self.quarantine(&report);
                Ok(())
            }
            WatchEvent::Deleted(Item::Undecodable(report)) => {
                self.delete_unreadable(&report);
                Ok(())
            }
            WatchEvent::Bookmark { resource_version, .. } => {
                self.fifo.bookmark(resource_version);
                Ok(())
            }
            WatchEvent::Unknown { event_type } => {
                tracing::warn!(kind = %self.shared.kind, event_type, "ignored an event of unknown type");
                Ok(())
            }
        };
        if let Err(refusal) = queued {
            self.quarantine(&refusal.into());
        }
        if version.is_some() {
            self.position = version;
        }
    }

    /// Its last state can not be read, but we know which object it was.
    fn delete_unreadable(&mut self, report: &Undecodable) {
        let Some(key) = &report.key else {
            self.quarantine(report);
            return;
        };
        lock(&self.shared.quarantine).objects.remove(key);
        self.fifo.forget(key, &self.indexer);
    }

    fn quarantine(&self, report: &Undecodable) {
        tracing::warn!(kind = %self.shared.kind, %report, "quarantined an object");
        lock(&self.shared.quarantine).report(report);
    }

    fn readable(&self, object: &Arc<K>) {
        let mut quarantine = lock(&self.shared.quarantine);
        if !quarantine.objects.is_empty() {
            quarantine.objects.remove(&object.key());
        }
    }

    fn commit(&mut self, resource_version: ResourceVersion) {
        let (objects, unreadable) = mem::take(&mut self.staged).complete();
        // What could not be read before may be readable, or gone, by now.
        *lock(&self.shared.quarantine) = Quarantined::default();
        unreadable.iter().for_each(|report| self.quarantine(report));
        let kept = unreadable.into_iter().filter_map(|report| report.key).collect();
        let refusals =
            self.fifo.replace(objects, kept, Some(resource_version.clone()), &self.indexer);
        refusals.into_iter().for_each(|refusal| self.quarantine(&refusal.into()));
        self.position = Some(resource_version);
    }

    /// Applies up to a slice of what waits; tells whether that was all.
    fn apply_slice(&mut self) -> Applied {
        let listed =
            if self.shared.progress.borrow().synced { Cause::Relist } else { Cause::InitialList };
        let (indexer, outbox) = (&mut self.indexer, &mut self.outbox);
        let mut applied = 0;
        while applied < SLICE {
            let popped =
                self.fifo.pop_batch(SLICE, |popped, _| apply(popped, listed, indexer, outbox));
            let Some(count) = popped else { break };
            applied += count;
        }
        self.shared.queue.store(self.fifo.len(), Ordering::Relaxed);
        if self.fifo.is_empty() { Applied::All } else { Applied::Some }
    }

    /// Shows what has been applied; gives what the publisher is to be told, if anything.
    fn show(&mut self) -> Option<Publish<K>> {
        if self.indexer.resource_version() != self.position.as_ref() {
            self.indexer.set_resource_version(self.position.clone());
        }
        let events = mem::take(&mut self.outbox);
        if events.is_empty() && self.indexer.generation() == self.shown {
            return None;
        }
        let before = mem::replace(&mut self.shown, self.indexer.generation());
        self.writer.publish(self.indexer.snapshot());
        if self.fifo.has_synced() {
            self.shared
                .progress
                .send_if_modified(|progress| !mem::replace(&mut progress.synced, true));
        }
        let resync_due = mem::take(&mut self.resync_due);
        let synced = self.shared.progress.borrow().synced;
        Some(Publish { before, after: self.shared.store.snapshot(), events, resync_due, synced })
    }

    fn drain(&self) -> ResponseActFuture<Self, ()> {
        Box::pin(Drain::<K> { publishing: None })
    }
}

enum Applied {
    All,
    Some,
}

/// Returns how many changes it was.
fn apply<K: Resource>(
    popped: Popped<K>,
    listed: Cause,
    indexer: &mut Indexer<K>,
    outbox: &mut Vec<ResourceEvent<K>>,
) -> usize {
    let mut tell = |transition: Transition<K>, cause: Cause| {
        outbox.extend(ResourceEvent::from_transition(transition, cause).into_iter().flatten());
    };
    match popped {
        Popped::Deltas(deltas) => {
            let count = deltas.len();
            for delta in deltas {
                let cause = match delta.change {
                    Change::Added | Change::Updated | Change::Deleted => Cause::Watch,
                    Change::Replaced | Change::Vanished => listed,
                    Change::Resync => Cause::Resync,
                };
                tell(indexer.apply(delta), cause);
            }
            count
        }
        Popped::ReplacedAll { objects, unreadable, resource_version } => {
            let count = objects.len();
            for transition in indexer.replace_all(objects, &unreadable, resource_version) {
                tell(transition, listed);
            }
            count
        }
        Popped::ResyncAll => {
            let objects: Vec<Arc<K>> =
                indexer.iter().map(|(_, object)| Arc::clone(object)).collect();
            let count = objects.len();
            for object in objects {
                tell(indexer.apply(Delta::new(Change::Resync, object)), Cause::Resync);
            }
            count
        }
        Popped::Bookmark(resource_version) => {
            indexer.set_resource_version(Some(resource_version));
            1
        }
    }
}

type Publishing<K> = Timeout<Request<Publisher<K>, Publish<K>>>;

/// Applies everything that waits, slice by slice, then shows it, and ends when the publisher has it.
struct Drain<K: Resource> {
    publishing: Option<Pin<Box<Publishing<K>>>>,
}

impl<K: Resource> ActorFuture<DeltaFifoStore<K>> for Drain<K> {
    type Output = ();

    fn poll(
        mut self: Pin<&mut Self>,
        store: &mut DeltaFifoStore<K>,
        _: &mut Context<DeltaFifoStore<K>>,
        task: &mut TaskContext<'_>,
    ) -> Poll<()> {
        loop {
            if let Some(publishing) = &mut self.publishing {
                // A publisher that crashed over it catches up with the cache when it starts, however late that is: the
                // cache does not wait for it.
                return publishing.as_mut().poll(task).map(drop);
            }
            store.faults.hit("delta_fifo_store", "Drain");
            match store.apply_slice() {
                Applied::Some => {
                    task.waker().wake_by_ref();
                    return Poll::Pending;
                }
                Applied::All => match store.show() {
                    None => return Poll::Ready(()),
                    Some(publish) => {
                        store.faults.hit("delta_fifo_store", "Drain/shown");
                        let publishing = store.publisher.send(publish);
                        self.publishing = Some(Box::pin(timeout(PATIENCE, publishing)));
                    }
                },
            }
        }
    }
}

impl<K: Resource> Actor for DeltaFifoStore<K> {
    type Context = Context<Self>;

    fn started(&mut self, _: &mut Context<Self>) {
        self.faults.hit("delta_fifo_store", "started");
    }
}

impl<K: Resource> Supervised for DeltaFifoStore<K> {
    /// Begins again from what everybody sees. The supervisor lists again: what was queued is lost.
    fn restarting(&mut self, _: &mut Context<Self>) {
        let shown = self.shared.store.snapshot();
        self.shown = shown.generation();
        self.position = shown.resource_version().cloned();
        self.indexer = Indexer::from((*shown).clone());
        // Whatever was on its way to the publisher is lost: the next thing shown must be another state, so that it is
        // told of it, even if nothing changes.
        self.indexer.set_resource_version(self.position.clone());
        self.fifo = DeltaFifo::new(self.discipline, self.transform.clone());
        self.epoch = None;
        self.staged = Staged::default();
        self.outbox.clear();
        self.resync_due.clear();
    }
}

impl<K: Resource> Handler<BeginEpoch> for DeltaFifoStore<K> {
    type Result = Option<ResourceVersion>;

    fn handle(&mut self, BeginEpoch(epoch): BeginEpoch, _: &mut Context<Self>) -> Self::Result {
        self.faults.hit("delta_fifo_store", "BeginEpoch");
        self.epoch = Some(epoch);
        self.staged = Staged::default();
        self.position.clone()
    }
}

impl<K: Resource> Handler<Stage<K>> for DeltaFifoStore<K> {
    type Result = ();

    fn handle(&mut self, Stage { epoch, events }: Stage<K>, _: &mut Context<Self>) {
        self.faults.hit("delta_fifo_store", "Stage");
        if self.epoch == Some(epoch) {
            for event in events {
                self.staged.take(event.checked(&self.shared.kind));
            }
        }
    }
}

impl<K: Resource> Handler<Commit> for DeltaFifoStore<K> {
    type Result = ResponseActFuture<Self, ()>;

    fn handle(&mut self, commit: Commit, _: &mut Context<Self>) -> Self::Result {
        self.faults.hit("delta_fifo_store", "Commit");
        if self.epoch == Some(commit.epoch) {
            self.commit(commit.resource_version);
        }
        self.faults.hit("delta_fifo_store", "Commit/end");
        self.drain()
    }
}

impl<K: Resource> Handler<Apply<K>> for DeltaFifoStore<K> {
    type Result = ResponseActFuture<Self, ()>;

    fn handle(&mut self, Apply { epoch, events }: Apply<K>, _: &mut Context<Self>) -> Self::Result {
        self.faults.hit("delta_fifo_store", "Apply");
        if self.epoch == Some(epoch) {
            for event in events {
                self.queue_event(event.checked(&self.shared.kind));
            }
        }
        self.faults.hit("delta_fifo_store", "Apply/end");
        self.drain()
    }
}

impl<K: Resource> Handler<Resync> for DeltaFifoStore<K> {
    type Result = ResponseActFuture<Self, ()>;

    fn handle(&mut self, Resync { due }: Resync, _: &mut Context<Self>) -> Self::Result {
        self.faults.hit("delta_fifo_store", "Resync");
        // Before the first list there is nothing to look at again, and the queue would take it for the list.
        if self.fifo.has_synced() {
            self.resync_due.extend(due);
            self.fifo.resync(&self.indexer);
        }
        self.drain()
    }
}

impl<K: Resource> Handler<Flush> for DeltaFifoStore<K> {
    type Result = ResponseActFuture<Self, ()>;

    fn handle(&mut self, _: Flush, _: &mut Context<Self>) -> Self::Result {
        self.faults.hit("delta_fifo_store", "Flush");
        self.drain()
    }
}

impl<K: Resource> Handler<AddIndex<K>> for DeltaFifoStore<K> {
    type Result = ResponseActFuture<Self, Result<(), IndexConflict>>;

    fn handle(
        &mut self,
        AddIndex { name, function }: AddIndex<K>,
        _: &mut Context<Self>,
    ) -> Self::Result {
        self.faults.hit("delta_fifo_store", "AddIndex");
        let added = self.indexer.add_index(&name, function);
        Box::pin(self.drain().map(|(), _, _| added))
    }
}

impl From<Refusal> for Undecodable {
    fn from(refusal: Refusal) -> Self {
        let reason = format!("the transform refused it: {}", refusal.error);
        Self { key: Some(refusal.key), resource_version: None, reason }
    }
}
