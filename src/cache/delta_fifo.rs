use std::collections::BTreeSet;
use std::sync::Arc;

use super::in_order::{InOrder, Relist};
use super::per_object::PerObject;
use super::{Change, Delta, Deltas, Refusal, Snapshot, Transform};
use crate::object::{ObjectKey, Resource, ResourceVersion};

/// Changes that wait to be applied to the cache.
///
/// Takes what lists and watches report, hands it over in the order of its [`Discipline`], and knows when the first
/// list has gone through. `known` is always the cache this queue feeds.
#[doc(alias("DeltaFIFO", "RealFIFO"))]
#[derive(Debug)]
pub struct DeltaFifo<K> {
    queue: Queue<K>,
    initial_list: InitialList,
    transform: Option<Transform<K>>,
    closed: bool,
}

/// In which order changes leave the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Discipline {
    /// client-go's DeltaFIFO: an object waits once, and leaves with all that happened to it.
    #[default]
    PerObject,
    /// client-go's RealFIFO: changes leave one by one, in the server's order; a list is a change of each object.
    InOrder,
    /// The same, and a list or a resync is one change of the whole cache.
    InOrderAtomic,
}

/// What left the queue.
#[derive(Debug)]
pub enum Popped<K> {
    /// All changes of one object, or changes of distinct objects.
    Deltas(Deltas<K>),
    /// A whole list, at this version.
    ReplacedAll {
        /// All that is left.
        objects: Vec<Arc<K>>,
        /// Objects the list names but that could not be read: their cached state stays.
        unreadable: BTreeSet<ObjectKey>,
        /// The version of the list.
        resource_version: Option<ResourceVersion>,
    },
    /// Every cached object is to be looked at again.
    ResyncAll,
    /// Nothing changed up to this version.
    Bookmark(ResourceVersion),
}

/// Whether what left the queue belongs to the first list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Position {
    /// It does.
    InitialList,
    /// The first list went before.
    Later,
}

#[derive(Debug)]
enum Queue<K> {
    PerObject(PerObject<K>),
    InOrder(InOrder<K>),
}

/// How far the first list has come through the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum InitialList {
    Awaited,
    Draining { remaining: usize },
    Drained,
}

impl<K: Resource> DeltaFifo<K> {
    /// An empty queue.
    pub fn new(discipline: Discipline, transform: Option<Transform<K>>) -> Self {
        let queue = match discipline {
            Discipline::PerObject => Queue::PerObject(PerObject::default()),
            Discipline::InOrder => Queue::InOrder(InOrder::new(Relist::PerObject)),
            Discipline::InOrderAtomic => Queue::InOrder(InOrder::new(Relist::Atomic)),
        };
        Self { queue, initial_list: InitialList::Awaited, transform, closed: false }
    }

    /// Queues a new object.
    ///
    /// # Errors
    /// When the transform refuses it; nothing is queued then.
    pub fn add(&mut self, object: Arc<K>) -> Result<(), Refusal> {
        self.report(Change::Added, object)
    }

    /// Queues a new version of an object.
    ///
    /// # Errors
    /// When the transform refuses it; nothing is queued then.
    pub fn update(&mut self, object: Arc<K>) -> Result<(), Refusal> {
        self.report(Change::Updated, object)
    }

    /// Queues a deletion. An object neither queued nor known is gone already; only the in-order disciplines pass its
    /// deletion on.
    ///
    /// # Errors
    /// When the transform refuses the last state; nothing is queued then.
    pub fn delete(&mut self, object: Arc<K>, known: &Snapshot<K>) -> Result<(), Refusal> {
        self.populate(0);
        // The transform may have given it another name, under which it is known.
        let object = self.transformed(object)?;
        if let Queue::PerObject(queue) = &self.queue {
            let key = object.key();
            if !queue.contains(&key) && known.get(&key).is_none() {
                return Ok(());
            }
        }
        self.push(Delta::new(Change::Deleted, object));
        Ok(())
    }

    /// Queues the deletion of an object of which nothing but that it is gone can be told.
    pub fn forget(&mut self, key: &ObjectKey, known: &Snapshot<K>) {
        self.populate(0);
        let queued = match &self.queue {
            Queue::PerObject(queue) => queue.last_state(key),
            Queue::InOrder(queue) => queue.last_state(key),
        };
        let Some(object) = queued.or_else(|| known.get(key).map(Arc::clone)) else { return };
        self.push(Delta::new(Change::Vanished, object));
    }

    /// Queues a list: all it contains, and the deletion of what it no longer contains.
    ///
    /// Objects it names in `unreadable` exist but could not be read; they are left as they are. So are those that
    /// the transform refuses, which are returned.
    pub fn replace(
        &mut self,
        listed: Vec<Arc<K>>,
        mut unreadable: BTreeSet<ObjectKey>,
        resource_version: Option<ResourceVersion>,
        known: &Snapshot<K>,
    ) -> Vec<Refusal> {
        let mut refusals = Vec::new();
        let mut objects = Vec::with_capacity(listed.len());
        for object in listed {
            // What is cached has been transformed.
            let is_cached = self.transform.is_some()
                && known.get(&object.key()).is_some_and(|cached| Arc::ptr_eq(cached, &object));
            if is_cached {
                objects.push(object);
                continue;
            }
            match self.transformed(object) {
                Ok(object) => objects.push(object),
                Err(refusal) => {
                    unreadable.insert(refusal.key.clone());
                    refusals.push(refusal);
                }
            }
        }
        let initial = match &mut self.queue {
            Queue::PerObject(queue) => queue.replace(objects, &unreadable, known),
            Queue::InOrder(queue) => queue.replace(objects, unreadable, resource_version, known),
        };
        self.populate(initial);
        refusals
    }

    /// Says that the changes of a list are about to be [queued](Self::queue_listed), so many of them. To be used instead of
    /// [`replace`](Self::replace) by who has compared the list with the cache while nothing waited.
    pub fn begin_listed(&mut self, changes: usize) {
        self.populate(changes);
    }

    /// Queues one change that a list made known. Its object is not transformed.
    pub fn queue_listed(&mut self, delta: Delta<K>) {
        self.push(delta);
    }

    /// Hands changes of distinct objects that a list made known to `process`, as if they had been queued and had left the
    /// queue at once. To be used while nothing waits.
    pub fn pass_listed<R>(
        &mut self,
        deltas: Deltas<K>,
        process: impl FnOnce(Popped<K>, Position) -> R,
    ) -> R {
        debug_assert!(self.is_empty(), "what waits comes first");
        let (position, count) = (self.position(), deltas.len());
        let result = process(Popped::Deltas(deltas), position);
        self.gone_through(count);
        result
    }

    /// Queues every known object again, except those that wait already: they carry newer news.
    pub fn resync(&mut self, known: &Snapshot<K>) {
        match &mut self.queue {
            Queue::PerObject(queue) => queue.resync(known),
            Queue::InOrder(queue) => queue.resync(known),
        }
    }

    /// Queues a version at which nothing changed, if the discipline keeps them.
    pub fn bookmark(&mut self, resource_version: ResourceVersion) {
        match &mut self.queue {
            Queue::PerObject(_) => {}
            Queue::InOrder(queue) => queue.bookmark(resource_version),
        }
    }

    /// Hands what has waited longest to `process`; none when nothing waits.
    ///
    /// It counts as gone through once `process` is done with it.
    pub fn pop<R>(&mut self, process: impl FnOnce(Popped<K>, Position) -> R) -> Option<R> {
        self.pop_batch(1, process)
    }

    /// Hands up to `most` changes of distinct objects to `process`, none of the first list mixed with later ones.
    ///
    /// The per-object discipline always hands over one object.
    pub fn pop_batch<R>(
        &mut self,
        most: usize,
        process: impl FnOnce(Popped<K>, Position) -> R,
    ) -> Option<R> {
        let position = self.position();
        let (popped, count) = match &mut self.queue {
            Queue::PerObject(queue) => (Popped::Deltas(queue.pop()?), 1),
            Queue::InOrder(queue) => {
                let most = match self.initial_list {
                    InitialList::Draining { remaining } => most.min(remaining),
                    InitialList::Awaited | InitialList::Drained => most,
                };
                queue.pop(most)?
            }
        };
        let result = process(popped, position);
        self.gone_through(count);
        Some(result)
    }

    fn position(&self) -> Position {
        match self.initial_list {
            InitialList::Drained => Position::Later,
            InitialList::Awaited | InitialList::Draining { .. } => Position::InitialList,
        }
    }

    fn gone_through(&mut self, count: usize) {
        if let InitialList::Draining { remaining } = self.initial_list {
            self.initial_list = InitialList::after(remaining.saturating_sub(count));
        }
    }

    /// Whether the first list has gone through entirely. Never turns false again.
    pub fn has_synced(&self) -> bool {
        self.initial_list == InitialList::Drained
    }

    /// How many objects (per-object) or changes (in-order) wait.
    pub fn len(&self) -> usize {
        match &self.queue {
            Queue::PerObject(queue) => queue.len(),
            Queue::InOrder(queue) => queue.len(),
        }
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Says that no more is to come. What waits can still be popped.
    pub fn close(&mut self) {
        self.closed = true;
    }

    /// Whether [`close`](Self::close) was called.
    pub fn is_closed(&self) -> bool {
        self.closed
    }

    fn report(&mut self, change: Change, object: Arc<K>) -> Result<(), Refusal> {
        self.populate(0);
        let delta = Delta::new(change, self.transformed(object)?);
        self.push(delta);
        Ok(())
    }

    fn push(&mut self, delta: Delta<K>) {
        match &mut self.queue {
            Queue::PerObject(queue) => queue.push(delta),
            Queue::InOrder(queue) => queue.push(delta),
        }
    }

    fn transformed(&self, object: Arc<K>) -> Result<Arc<K>, Refusal> {
        match &self.transform {
            Some(transform) => transform.apply(object),
            None => Ok(object),
        }
    }

    /// Whatever comes first settles what the first list is.
    fn populate(&mut self, initial: usize) {
        if self.initial_list == InitialList::Awaited {
            self.initial_list = InitialList::after(initial);
        }
    }
}

impl InitialList {
    fn after(remaining: usize) -> Self {
        match remaining {
            0 => Self::Drained,
            remaining => Self::Draining { remaining },
        }
    }
}
