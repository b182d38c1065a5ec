use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use super::{Change, Delta, Popped, Snapshot};
use crate::object::{ObjectKey, Resource, ResourceVersion};

/// client-go's RealFIFO: changes in the order they were reported.
#[derive(Debug)]
pub(super) struct InOrder<K> {
    waiting: VecDeque<Waiting<K>>,
    relist: Relist,
}

/// What a list becomes in the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Relist {
    /// A change of each object, deletions first.
    PerObject,
    /// One change of the whole cache.
    Atomic,
}

#[derive(Debug)]
enum Waiting<K> {
    Delta(Delta<K>),
    /// Leaves the queue alone.
    Whole(Popped<K>),
}

impl<K: Resource> InOrder<K> {
    pub(super) fn new(relist: Relist) -> Self {
        Self { waiting: VecDeque::new(), relist }
    }

    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    pub(super) fn last_state(&self, key: &ObjectKey) -> Option<Arc<K>> {
        self.waiting.iter().rev().find_map(|waiting| match waiting {
            Waiting::Delta(delta) => {
                (delta.object.key() == *key).then(|| Arc::clone(&delta.object))
            }
            Waiting::Whole(_) => None,
        })
    }

    pub(super) fn push(&mut self, delta: Delta<K>) {
        self.waiting.push_back(Waiting::Delta(delta));
    }

    /// Returns how many changes wait after it: they all count to the first list if this was the first.
    pub(super) fn replace(
        &mut self,
        objects: Vec<Arc<K>>,
        unreadable: BTreeSet<ObjectKey>,
        resource_version: Option<ResourceVersion>,
        known: &Snapshot<K>,
    ) -> usize {
        match self.relist {
            Relist::Atomic => {
                let whole = Popped::ReplacedAll { objects, unreadable, resource_version };
                self.waiting.push_back(Waiting::Whole(whole));
            }
            Relist::PerObject => {
                let mut kept = unreadable;
                kept.extend(objects.iter().map(|object| object.key()));
                for object in self.last_states_missing_from(&kept, known) {
                    self.push(Delta::new(Change::Vanished, object));
                }
                for object in objects {
                    self.push(Delta::new(Change::Replaced, object));
                }
            }
        }
        self.waiting.len()
    }

    pub(super) fn resync(&mut self, known: &Snapshot<K>) {
        match self.relist {
            Relist::Atomic => self.waiting.push_back(Waiting::Whole(Popped::ResyncAll)),
            Relist::PerObject => {
                let queued = self.queued();
                let idle = known.iter().filter(|(key, _)| !queued.contains_key(*key));
                let idle: Vec<Arc<K>> = idle.map(|(_, object)| Arc::clone(object)).collect();
                for object in idle {
                    self.push(Delta::new(Change::Resync, object));
                }
            }
        }
    }

    pub(super) fn bookmark(&mut self, resource_version: ResourceVersion) {
        if self.relist == Relist::Atomic {
            self.waiting.push_back(Waiting::Whole(Popped::Bookmark(resource_version)));
        }
    }

    /// Takes up to `most` changes of distinct objects, or one change of the whole cache; and how many they were.
    pub(super) fn pop(&mut self, most: usize) -> Option<(Popped<K>, usize)> {
        let mut batch = match self.waiting.pop_front()? {
            Waiting::Whole(whole) => return Some((whole, 1)),
            Waiting::Delta(delta) => vec![delta],
        };
        let mut taken = BTreeSet::from([batch[0].object.key()]);
        while batch.len() < most {
            let Some(Waiting::Delta(next)) = self.waiting.front() else { break };
            if !taken.insert(next.object.key()) {
                break;
            }
            let Some(Waiting::Delta(next)) = self.waiting.pop_front() else { break };
            batch.push(next);
        }
        let count = batch.len();
        Some((Popped::Deltas(batch), count))
    }

    /// The last queued change of each object, with the place of its first.
    fn queued(&self) -> BTreeMap<ObjectKey, (usize, &Delta<K>)> {
        let mut queued = BTreeMap::new();
        for (place, waiting) in self.waiting.iter().enumerate() {
            if let Waiting::Delta(delta) = waiting {
                let last = queued.entry(delta.object.key()).or_insert((place, delta));
                last.1 = delta;
            }
        }
        queued
    }

    fn last_states_missing_from(
        &self,
        kept: &BTreeSet<ObjectKey>,
        known: &Snapshot<K>,
    ) -> Vec<Arc<K>> {
        let queued = self.queued();
        let mut by_place: Vec<(usize, Arc<K>)> = queued
            .iter()
            .filter(|(key, (_, last))| !kept.contains(*key) && !last.change.is_deletion())
            .map(|(_, (place, last))| (*place, Arc::clone(&last.object)))
            .collect();
        by_place.sort_by_key(|(place, _)| *place);
        let cached_only = known
            .iter()
            .filter(|(key, _)| !queued.contains_key(*key) && !kept.contains(*key))
            .map(|(_, object)| Arc::clone(object));
        by_place.into_iter().map(|(_, object)| object).chain(cached_only).collect()
    }
}
