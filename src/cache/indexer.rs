use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::Arc;

use super::snapshot::{Cached, Index};
use super::tree::Tree;
use super::{Change, Delta, IndexConflict, IndexFn, Snapshot};
use crate::object::{ObjectKey, Resource, ResourceVersion, is_same_object};

/// The cache, seen by its one writer. Reads like a [`Snapshot`]; everybody else holds one.
#[derive(Debug)]
pub struct Indexer<K> {
    current: Snapshot<K>,
    sameness: Sameness,
}

/// What two states of an object with the same uid and version are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Sameness {
    /// The same.
    #[default]
    ByVersion,
    /// Possibly others: the server gave the version out a second time, after its history had gone back.
    Unknown,
}

/// What a change did to the cache.
#[derive(Debug)]
pub enum Transition<K> {
    /// The object was not cached before.
    Added(Arc<K>),
    /// A cached state was replaced.
    Updated {
        /// The state before.
        old: Arc<K>,
        /// The state now.
        new: Arc<K>,
    },
    /// Another object of the same name took the place of the cached one.
    Recreated {
        /// The object that is gone.
        old: Arc<K>,
        /// The one that has its name now.
        new: Arc<K>,
    },
    /// The object is cached no more.
    Deleted(Arc<K>),
    /// Nothing changed; the object was to be looked at again.
    Resynced(Arc<K>),
    /// Nothing changed.
    Unchanged,
}

impl<K> Default for Indexer<K> {
    fn default() -> Self {
        Self { current: Snapshot::default(), sameness: Sameness::default() }
    }
}

impl<K> Deref for Indexer<K> {
    type Target = Snapshot<K>;

    fn deref(&self) -> &Snapshot<K> {
        &self.current
    }
}

impl<K> From<Snapshot<K>> for Indexer<K> {
    fn from(current: Snapshot<K>) -> Self {
        Self { current, sameness: Sameness::default() }
    }
}

impl<K: Resource> Indexer<K> {
    /// The cache as it is now.
    pub fn snapshot(&self) -> Snapshot<K> {
        self.current.clone()
    }

    /// Files every object, cached or to come, under the values that `function` returns for it.
    ///
    /// # Errors
    /// When there is another index of this name; nothing changes then.
    pub fn add_index(&mut self, name: &str, function: IndexFn<K>) -> Result<(), IndexConflict> {
        if let Some(index) = self.current.indices.get(name) {
            let is_same = Arc::ptr_eq(&index.function, &function);
            return if is_same { Ok(()) } else { Err(IndexConflict(name.to_owned())) };
        }
        let mut index = Index { function, entries: Tree::default() };
        for (key, object) in self.current.iter() {
            index.insert(key, object);
        }
        self.current.indices.insert(name.into(), index);
        self.current.generation += 1;
        Ok(())
    }

    /// Applies one change. Whether the object is cached decides what it is, not the change itself: a watch may call
    /// an object new that a list brought before.
    pub fn apply(&mut self, delta: Delta<K>) -> Transition<K> {
        let Delta { change, object } = delta;
        let key = object.key();
        let cached = self.current.get(&key).map(Arc::clone);
        match change {
            Change::Vanished => self.remove(&key, object),
            Change::Deleted if !is_older(&object, cached.as_ref()) => {
                self.advance(object.resource_version().and_then(ResourceVersion::new));
                self.remove(&key, object)
            }
            Change::Added | Change::Updated if !is_older(&object, cached.as_ref()) => {
                let version = object.resource_version().and_then(ResourceVersion::new);
                let transition = self.insert(key, cached, object);
                // A repeated event tells nothing of how far the server is.
                if !matches!(transition, Transition::Unchanged) {
                    self.advance(version);
                }
                transition
            }
            // News that the cache is past already, as a stream repeats them that began a little earlier.
            Change::Added | Change::Updated | Change::Deleted => Transition::Unchanged,
            Change::Replaced => self.insert(key, cached, object),
            Change::Resync => cached.map_or(Transition::Unchanged, Transition::Resynced),
        }
    }

    /// Replaces everything in one step, except the objects in `unreadable`, and says what that did: deletions first.
    pub fn replace_all(
        &mut self,
        objects: Vec<Arc<K>>,
        unreadable: &std::collections::BTreeSet<ObjectKey>,
        resource_version: Option<ResourceVersion>,
    ) -> Vec<Transition<K>> {
        let listed: BTreeMap<ObjectKey, Arc<K>> =
            objects.into_iter().map(|object| (object.key(), object)).collect();
        let vanished: Vec<Arc<K>> = self
            .current
            .iter()
            .filter(|(key, _)| !listed.contains_key(*key) && !unreadable.contains(*key))
            .map(|(_, object)| Arc::clone(object))
            .collect();
        let deletions = vanished.into_iter().map(|object| Delta::new(Change::Vanished, object));
        let replacements = listed.into_values().map(|object| Delta::new(Change::Replaced, object));
        let transitions = deletions.chain(replacements).map(|delta| self.apply(delta)).collect();
        self.set_resource_version(resource_version);
        transitions
    }

    /// Says what the same version of an object means from now on.
    pub fn set_sameness(&mut self, sameness: Sameness) {
        self.sameness = sameness;
    }

    /// Says which of the server's versions this state is.
    pub fn set_resource_version(&mut self, resource_version: Option<ResourceVersion>) {
        self.current.resource_version = resource_version;
        self.current.generation += 1;
    }

    /// Forgets every object and the version, and keeps the indices.
    pub fn clear(&mut self) {
        self.current.objects = Tree::default();
        for index in self.current.indices.values_mut() {
            index.entries = Tree::default();
        }
        self.set_resource_version(None);
    }

    fn insert(&mut self, key: ObjectKey, cached: Option<Arc<K>>, new: Arc<K>) -> Transition<K> {
        if let Some(old) = &cached
            && self.sameness == Sameness::ByVersion
            && is_same_state(old, &new)
        {
            return Transition::Unchanged;
        }
        self.reindex(&key, cached.as_deref(), Some(&new));
        self.current.objects.insert(key, Cached(Arc::clone(&new)));
        self.current.generation += 1;
        match cached {
            None => Transition::Added(new),
            Some(old) if is_same_object(&*old, &*new) => Transition::Updated { old, new },
            Some(old) => Transition::Recreated { old, new },
        }
    }

    fn remove(&mut self, key: &ObjectKey, last_known: Arc<K>) -> Transition<K> {
        let Some(Cached(cached)) = self.current.objects.remove(key) else {
            return Transition::Unchanged;
        };
        self.reindex(key, Some(&cached), None);
        self.current.generation += 1;
        Transition::Deleted(last_known)
    }

    fn reindex(&mut self, key: &ObjectKey, old: Option<&K>, new: Option<&K>) {
        for index in self.current.indices.values_mut() {
            let before = old.map(|old| index.values_of(old)).unwrap_or_default();
            let after = new.map(|new| index.values_of(new)).unwrap_or_default();
            if before == after {
                continue;
            }
            for value in before {
                index.entries.remove(&(value, key.clone()));
            }
            for value in after {
                index.entries.insert((value, key.clone()), ());
            }
        }
    }

    /// The version of the cache is that of the last event applied. Events without one leave it alone.
    fn advance(&mut self, version: Option<ResourceVersion>) {
        if version.is_some() {
            self.set_resource_version(version);
        }
    }
}

impl<K> Index<K> {
    fn insert(&mut self, key: &ObjectKey, object: &K) {
        for value in self.values_of(object) {
            self.entries.insert((value, key.clone()), ());
        }
    }
}

/// Whether an event tells of a state before the cached one, of this object or an earlier one of its name.
fn is_older<K: Resource>(event: &Arc<K>, cached: Option<&Arc<K>>) -> bool {
    let versions = event.resource_version().zip(cached.and_then(|it| it.resource_version()));
    versions.is_some_and(|(event, cached)| {
        ResourceVersion::compare(event, cached) == Some(Ordering::Less)
    })
}

/// Objects without a version can not be compared: they count as changed.
fn is_same_state<K: Resource>(old: &Arc<K>, new: &Arc<K>) -> bool {
    let version = old.resource_version();
    version.is_some() && version == new.resource_version() && is_same_object(&**old, &**new)
}
