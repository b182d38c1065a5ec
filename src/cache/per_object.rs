use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use super::{Change, Delta, Deltas, Snapshot};
use crate::object::{ObjectKey, Resource};

/// client-go's DeltaFIFO: longest-waiting object first, with all that happened to it.
#[derive(Debug)]
pub(super) struct PerObject<K> {
    /// Never holds empty deltas.
    pending: BTreeMap<ObjectKey, Deltas<K>>,
    /// The keys of `pending`, each once, by first change.
    order: VecDeque<ObjectKey>,
}

impl<K> Default for PerObject<K> {
    fn default() -> Self {
        Self { pending: BTreeMap::new(), order: VecDeque::new() }
    }
}

impl<K: Resource> PerObject<K> {
    pub(super) fn len(&self) -> usize {
        self.pending.len()
    }

    pub(super) fn contains(&self, key: &ObjectKey) -> bool {
        self.pending.contains_key(key)
    }

    pub(super) fn last_state(&self, key: &ObjectKey) -> Option<Arc<K>> {
        self.pending.get(key)?.last().map(|delta| Arc::clone(&delta.object))
    }

    pub(super) fn push(&mut self, delta: Delta<K>) {
        let key = delta.object.key();
        let Some(deltas) = self.pending.get_mut(&key) else {
            self.order.push_back(key.clone());
            self.pending.insert(key, vec![delta]);
            return;
        };
        match deltas.last_mut() {
            Some(last) if last.change.is_deletion() && delta.change.is_deletion() => {
                // The same deletion twice: keep the one we know more about.
                if last.change == Change::Vanished {
                    *last = delta;
                }
            }
            _ => deltas.push(delta),
        }
    }

    /// Returns how many objects the list touches.
    pub(super) fn replace(
        &mut self,
        listed: Vec<Arc<K>>,
        unreadable: &BTreeSet<ObjectKey>,
        known: &Snapshot<K>,
    ) -> usize {
        let mut kept: BTreeSet<ObjectKey> = listed.iter().map(|object| object.key()).collect();
        let unchanged = listed.iter().filter(|object| self.is_cached(object, known)).count();
        let touched = kept.len() - unchanged;
        kept.extend(unreadable.iter().cloned());
        let vanished = self.last_states_missing_from(&kept, known);
        let touched = touched + vanished.len();

        for object in listed {
            if !self.is_cached(&object, known) {
                self.push(Delta::new(Change::Replaced, object));
            }
        }
        for object in vanished {
            self.push(Delta::new(Change::Vanished, object));
        }
        touched
    }

    /// Whether a listed object is the very state that is cached, and nothing else waits for it.
    fn is_cached(&self, object: &Arc<K>, known: &Snapshot<K>) -> bool {
        let key = object.key();
        known.get(&key).is_some_and(|cached| Arc::ptr_eq(cached, object)) && !self.contains(&key)
    }

    pub(super) fn resync(&mut self, known: &Snapshot<K>) {
        for (key, object) in known.iter() {
            if !self.pending.contains_key(key) {
                self.push(Delta::new(Change::Resync, Arc::clone(object)));
            }
        }
    }

    pub(super) fn pop(&mut self) -> Option<Deltas<K>> {
        let key = self.order.pop_front()?;
        let deltas = self.pending.remove(&key);
        debug_assert!(deltas.is_some(), "queued key {key} has no deltas");
        deltas
    }

    fn last_states_missing_from(
        &self,
        kept: &BTreeSet<ObjectKey>,
        known: &Snapshot<K>,
    ) -> Vec<Arc<K>> {
        let queued = self.order.iter().filter_map(|key| {
            let last = self.pending.get(key)?.last()?;
            (!kept.contains(key)).then(|| Arc::clone(&last.object))
        });
        let cached_only = known
            .iter()
            .filter(|(key, _)| !self.pending.contains_key(*key) && !kept.contains(*key))
            .map(|(_, object)| Arc::clone(object));
        queued.chain(cached_only).collect()
    }
}
