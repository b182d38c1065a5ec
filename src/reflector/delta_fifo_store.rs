use std::collections::{BTreeSet, VecDeque};
use std::mem;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use actix::{Actor, ActorFutureExt as _, Addr, Context, Handler, ResponseActFuture, Supervised};

use super::drain::{Applied, Drain, apply};
use super::gate::Gate;
use super::history::{Course, History, Turn};
use super::messages::{
    AddIndex, Apply, BeginEpoch, Commit, Committed, Epoch, Flush, Forget, Publish, Resync, Stage,
    SubscriptionId,
};
use super::publisher::Publisher;
use super::staged::{Comparison, Differences, Staged};
use super::status::{Oddities, Quarantined, Shared, lock};
use super::{Cause, ResourceEvents};
use crate::api::{Item, Undecodable, WatchEvent};
use crate::cache::{
    Delta, DeltaFifo, Discipline, IndexConflict, Indexer, Refusal, Sameness, StoreWriter, Transform,
};
use crate::object::{Resource, ResourceVersion};
use crate::supervision::Faults;

/// So many changes are applied before others on the arbiter get a turn.
const SLICE: usize = 512;
/// So many objects of a list are compared.
const COMPARED: usize = 2048;

/// The one writer of the cache: queues what is reported, applies it, shows it, and tells the publisher.
///
/// Readers see the state after everything that waited has been applied, never one in between.
pub(super) struct DeltaFifoStore<K: Resource> {
    shared: Arc<Shared<K>>,
    writer: StoreWriter<K>,
    indexer: Indexer<K>,
    fifo: DeltaFifo<K>,
    intake: Intake<K>,
    publisher: Addr<Publisher<K>>,
    /// Who may speak; nobody after a crash, until the next epoch.
    epoch: Option<Epoch>,
    staged: Staged<K>,
    /// The list that is being compared with the cache, and then its changes that are not queued yet: all at once would
    /// keep the thread too long.
    comparison: Option<Comparison<K>>,
    listed: VecDeque<Delta<K>>,
    /// Of everything that was queued.
    history: History,
    /// Why the last list was made.
    listing: Cause,
    /// What has been applied and is not shown yet, in parts of up to a slice.
    outbox: Vec<ResourceEvents<K>>,
    resync_due: BTreeSet<SubscriptionId>,
    /// The generation that is shown.
    shown: u64,
    faults: Faults,
}

/// What is taken in, and how.
pub(super) struct Intake<K> {
    pub(super) gate: Gate,
    pub(super) discipline: Discipline,
    pub(super) transform: Option<Transform<K>>,
}

impl<K: Resource> Intake<K> {
    fn queue(&self) -> DeltaFifo<K> {
        DeltaFifo::new(self.discipline, self.transform.clone())
    }
}

impl<K: Resource> DeltaFifoStore<K> {
    pub(super) fn new(
        shared: Arc<Shared<K>>,
        writer: StoreWriter<K>,
        indexer: Indexer<K>,
        intake: Intake<K>,
        publisher: Addr<Publisher<K>>,
        faults: Faults,
    ) -> Self {
        Self {
            shown: indexer.generation(),
            shared,
            writer,
            indexer,
            fifo: intake.queue(),
            intake,
            publisher,
            epoch: None,
            staged: Staged::default(),
            comparison: None,
            listed: VecDeque::new(),
            history: History::default(),
            listing: Cause::InitialList,
            outbox: Vec::new(),
            resync_due: BTreeSet::new(),
            faults,
        }
    }

    pub(super) fn hit(&self, point: &'static str) {
        self.faults.hit("delta_fifo_store", point);
    }

    pub(super) fn publisher(&self) -> &Addr<Publisher<K>> {
        &self.publisher
    }

    fn take_event(&mut self, event: WatchEvent<K>) {
        let is_bookmark = matches!(event, WatchEvent::Bookmark { .. });
        match self.history.follow(&event) {
            Turn::News => self.queue_event(event),
            Turn::Late if is_bookmark => self.odd(|odd| odd.late_bookmarks += 1),
            Turn::Late => {
                self.odd(|odd| odd.late_events += 1);
                if self.is_news(&event) {
                    self.queue_event(event);
                }
            }
            Turn::Listed => self.odd(|odd| odd.late_events += 1),
            Turn::Risen => self.odd(|odd| odd.resurrections += 1),
        }
    }

    /// Whether a late event tells something new of its object. Where a transform left no version it can not be told.
    fn is_news(&self, event: &WatchEvent<K>) -> bool {
        let cached = event.item().and_then(Item::key).and_then(|key| self.indexer.get(&key));
        let Some(cached) = cached else { return true };
        let cached = cached.resource_version().and_then(ResourceVersion::new);
        event.resource_version().zip(cached).is_some_and(|(told, cached)| told >= cached)
    }

    fn odd(&self, count: impl FnOnce(&mut Oddities)) {
        count(&mut lock(&self.shared.oddities));
    }

    fn queue_event(&mut self, event: WatchEvent<K>) {
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
                self.odd(|odd| odd.unknown_events += 1);
                tracing::warn!(kind = %self.shared.kind, event_type, "ignored an event of unknown type");
                Ok(())
            }
        };
        if let Err(refusal) = queued {
            self.quarantine(&refusal.into());
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

    /// What could not be read before may be readable, or gone, by now.
    fn quarantine_anew(&self, unreadable: &[Undecodable]) {
        *lock(&self.shared.quarantine) = Quarantined::default();
        unreadable.iter().for_each(|report| self.quarantine(report));
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

    fn commit(&mut self, commit: Commit) -> Committed {
        let Commit { epoch, resource_version, older } = commit;
        if self.epoch != Some(epoch) {
            return Committed::Outdated;
        }
        let staged = mem::take(&mut self.staged);
        let course = match self.history.begin_anew(resource_version.clone(), older) {
            Ok(course) => course,
            Err(error) => {
                self.odd(|odd| odd.older_lists += 1);
                return Committed::Refused(error);
            }
        };
        self.listing = match course {
            Course::Rewound => Cause::Rewind,
            Course::GoesOn if self.shared.progress.borrow().synced => Cause::Relist,
            Course::GoesOn => Cause::InitialList,
        };
        if course == Course::Rewound {
            self.indexer.set_sameness(Sameness::Unknown);
            self.odd(|odd| odd.rewinds += 1);
            tracing::warn!(kind = %self.shared.kind, version = %resource_version, "the server's history went back");
        }
        self.replace(staged, Some(resource_version));
        Committed::Applied
    }

    fn replace(&mut self, staged: Staged<K>, resource_version: Option<ResourceVersion>) {
        self.finish_list();
        if self.can_compare() {
            self.comparison = Some(staged.compared());
            return;
        }
        let (objects, unreadable) = staged.complete();
        self.quarantine_anew(&unreadable);
        // What was cached of them stays, unless that is of another history.
        let kept = unreadable.into_iter().filter_map(|report| report.key);
        let kept = kept.filter(|_| self.listing != Cause::Rewind).collect();
        let refusals = self.fifo.replace(objects, kept, resource_version, &self.indexer);
        refusals.into_iter().for_each(|refusal| self.quarantine(&refusal.into()));
    }

    /// Whether a list can be compared with the cache as it is: objects have the names they came with, each is one change,
    /// nothing else waits, and what is cached is of the same history.
    fn can_compare(&self) -> bool {
        self.intake.transform.is_none()
            && self.intake.discipline == Discipline::PerObject
            && self.fifo.is_empty()
            && self.listing != Cause::Rewind
    }

    fn compare(&mut self, comparison: Comparison<K>, most: usize) {
        match comparison.walk(&self.indexer, most) {
            ControlFlow::Continue(comparison) => self.comparison = Some(comparison),
            ControlFlow::Break(Differences { deltas, unreadable }) => {
                self.quarantine_anew(&unreadable);
                self.fifo.begin_listed(deltas.len());
                self.listed = deltas.into();
            }
        }
    }

    /// Queues all of a list that is still on its way in, since something is to come after it.
    fn finish_list(&mut self) {
        if let Some(comparison) = self.comparison.take() {
            self.compare(comparison, usize::MAX);
        }
        for delta in self.listed.drain(..) {
            self.fifo.queue_listed(delta);
        }
    }

    /// Applies up to a slice of what waits; tells whether that was all.
    pub(super) fn apply_slice(&mut self) -> Applied {
        if let Some(comparison) = self.comparison.take() {
            self.shared.queue.store(comparison.len(), Ordering::Relaxed);
            self.compare(comparison, COMPARED);
            if self.comparison.is_some() {
                return Applied::Some;
            }
        }
        let listed = self.listing;
        let (indexer, mut events) = (&mut self.indexer, Vec::new());
        let mut applied = 0;
        let deltas = self.listed.drain(..SLICE.min(self.listed.len()));
        if self.fifo.is_empty() {
            applied = self.fifo.pass_listed(deltas.collect(), |popped, _| {
                apply(popped, listed, indexer, &mut events)
            });
        } else {
            deltas.for_each(|delta| self.fifo.queue_listed(delta));
        }
        while applied < SLICE {
            let popped =
                self.fifo.pop_batch(SLICE, |popped, _| apply(popped, listed, indexer, &mut events));
            let Some(count) = popped else { break };
            applied += count;
        }
        self.outbox.append(&mut ResourceEvents::in_parts(events, SLICE));
        let waiting = self.fifo.len() + self.listed.len();
        self.shared.queue.store(waiting, Ordering::Relaxed);
        if waiting == 0 { Applied::All } else { Applied::Some }
    }

    /// Shows what has been applied; gives what the publisher is to be told, if anything.
    pub(super) fn show(&mut self) -> Option<Publish<K>> {
        if self.indexer.resource_version() != self.history.position() {
            self.indexer.set_resource_version(self.history.position().cloned());
        }
        let events = mem::take(&mut self.outbox);
        if events.is_empty() && self.indexer.generation() == self.shown {
            return None;
        }
        self.indexer.set_sameness(Sameness::ByVersion);
        self.listing = Cause::Relist;
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
        Box::pin(Drain::default())
    }
}

impl<K: Resource> Actor for DeltaFifoStore<K> {
    type Context = Context<Self>;

    fn started(&mut self, _: &mut Context<Self>) {
        self.hit("started");
    }
}

impl<K: Resource> Supervised for DeltaFifoStore<K> {
    /// Begins again from what everybody sees. The supervisor lists again: what was queued is lost.
    fn restarting(&mut self, _: &mut Context<Self>) {
        let shown = self.shared.store.snapshot();
        self.shown = shown.generation();
        let position = shown.resource_version().cloned();
        self.history = History::from_position(position.clone());
        self.indexer = Indexer::from((*shown).clone());
        // Whatever was on its way to the publisher is lost: the next thing shown must be another state, so that it is
        // told of it, even if nothing changes.
        self.indexer.set_resource_version(position);
        self.fifo = self.intake.queue();
        self.epoch = None;
        self.staged = Staged::default();
        self.comparison = None;
        self.listed.clear();
        self.outbox.clear();
        self.resync_due.clear();
    }
}

impl<K: Resource> Handler<BeginEpoch> for DeltaFifoStore<K> {
    type Result = Option<ResourceVersion>;

    fn handle(&mut self, BeginEpoch(epoch): BeginEpoch, _: &mut Context<Self>) -> Self::Result {
        self.hit("BeginEpoch");
        self.epoch = Some(epoch);
        self.staged = Staged::default();
        self.history.position().cloned()
    }
}

impl<K: Resource> Handler<Stage<K>> for DeltaFifoStore<K> {
    type Result = ();

    fn handle(&mut self, Stage { epoch, events }: Stage<K>, _: &mut Context<Self>) {
        self.hit("Stage");
        if self.epoch == Some(epoch) {
            for event in events {
                self.staged.take(self.intake.gate.pass(event));
            }
        }
    }
}

impl<K: Resource> Handler<Commit> for DeltaFifoStore<K> {
    type Result = ResponseActFuture<Self, Committed>;

    fn handle(&mut self, commit: Commit, _: &mut Context<Self>) -> Self::Result {
        self.hit("Commit");
        let committed = self.commit(commit);
        self.hit("Commit/end");
        Box::pin(self.drain().map(|(), _, _| committed))
    }
}

impl<K: Resource> Handler<Forget> for DeltaFifoStore<K> {
    type Result = ResponseActFuture<Self, ()>;

    fn handle(&mut self, _: Forget, _: &mut Context<Self>) -> Self::Result {
        self.hit("Forget");
        if !self.indexer.is_empty() || self.history.position().is_some() {
            self.history = History::default();
            self.replace(Staged::default(), None);
        }
        self.drain()
    }
}

impl<K: Resource> Handler<Apply<K>> for DeltaFifoStore<K> {
    type Result = ResponseActFuture<Self, ()>;

    fn handle(&mut self, Apply { epoch, events }: Apply<K>, _: &mut Context<Self>) -> Self::Result {
        self.hit("Apply");
        if self.epoch == Some(epoch) {
            self.finish_list();
            for event in events {
                self.take_event(self.intake.gate.pass(event));
            }
        }
        self.hit("Apply/end");
        self.drain()
    }
}

impl<K: Resource> Handler<Resync> for DeltaFifoStore<K> {
    type Result = ResponseActFuture<Self, ()>;

    fn handle(&mut self, Resync { due }: Resync, _: &mut Context<Self>) -> Self::Result {
        self.hit("Resync");
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
        self.hit("Flush");
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
        self.hit("AddIndex");
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
