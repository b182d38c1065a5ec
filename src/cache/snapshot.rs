use std::collections::BTreeMap;
use std::fmt;
use std::ops::Bound;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::tree::{Tree, TreeKey};
use crate::object::{LabelSelector, ObjectKey, Resource, ResourceVersion};

/// The whole cache at one moment.
///
/// Never changes, costs a few reference counts to take and to keep, and answers everything from the same moment: two
/// reads of one snapshot never contradict each other.
pub struct Snapshot<K> {
    pub(super) objects: Tree<ObjectKey, Cached<K>>,
    pub(super) indices: BTreeMap<Arc<str>, Index<K>>,
    pub(super) resource_version: Option<ResourceVersion>,
    pub(super) generation: u64,
}

/// Says under which values an object is found in an index.
pub type IndexFn<K> = Arc<dyn Fn(&K) -> Vec<String> + Send + Sync>;

/// One difference between two snapshots.
#[derive(Debug)]
pub struct Difference<K> {
    /// Which object.
    pub key: ObjectKey,
    /// In the earlier snapshot.
    pub old: Option<Arc<K>>,
    /// In the later one.
    pub new: Option<Arc<K>>,
}

/// There is no index of this name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no index {0:?}: add it with Options::index or Reflector::add_index")]
pub struct UnknownIndex(pub String);

/// There is an index of this name already.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is an index {0:?} already: choose another name")]
pub struct IndexConflict(pub String);

/// A cached object. Two are equal when they are the same allocation: states are never compared by content.
pub(super) struct Cached<K>(pub(super) Arc<K>);

/// A value, and an object that is filed under it.
pub(super) type Filed = (Arc<str>, ObjectKey);

pub(super) struct Index<K> {
    pub(super) function: IndexFn<K>,
    /// Sorted by value: one value is one contiguous range, and a value without objects is not there at all.
    pub(super) entries: Tree<Filed, ()>,
}

impl<K> Snapshot<K> {
    /// The object of this key.
    pub fn get(&self, key: &ObjectKey) -> Option<&Arc<K>> {
        self.objects.get(key).map(|cached| &cached.0)
    }

    /// All objects, by key.
    pub fn iter(&self) -> impl Iterator<Item = (&ObjectKey, &Arc<K>)> {
        self.objects.iter().map(|(key, cached)| (key, &cached.0))
    }

    /// All objects after this key, by key; all there are after none.
    pub(crate) fn iter_after<'a>(
        &'a self,
        key: Option<&ObjectKey>,
    ) -> impl Iterator<Item = (&'a ObjectKey, &'a Arc<K>)> + use<'a, K> {
        let from = key.map_or(Bound::Unbounded, Bound::Excluded);
        self.objects.iter_from(from).map(|(key, cached)| (key, &cached.0))
    }

    /// The objects of one namespace, by name; an empty namespace holds those of the cluster.
    pub fn namespace<'a>(
        &'a self,
        namespace: &str,
    ) -> impl Iterator<Item = &'a Arc<K>> + use<'a, K> {
        let (from, to) = ObjectKey::bounds_of(namespace);
        let later = self.objects.iter_from(Bound::Included(&from));
        later.take_while(move |(key, _)| **key < to).map(|(_, cached)| &cached.0)
    }

    /// How many objects there are.
    pub fn len(&self) -> usize {
        self.objects.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }

    /// The server's version of this state; none before the first list.
    pub fn resource_version(&self) -> Option<&ResourceVersion> {
        self.resource_version.as_ref()
    }

    /// Counts the states of this cache.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// The objects that an index files under a value, by key.
    ///
    /// # Errors
    /// When there is no such index. An unknown value is an empty answer.
    pub fn by_index(&self, index: &str, value: &str) -> Result<Vec<Arc<K>>, UnknownIndex> {
        let keys = self.index(index)?.keys(value);
        Ok(keys.filter_map(|key| self.get(key).map(Arc::clone)).collect())
    }

    /// The keys that an index files under a value, sorted.
    ///
    /// # Errors
    /// When there is no such index.
    pub fn index_keys(&self, index: &str, value: &str) -> Result<Vec<ObjectKey>, UnknownIndex> {
        Ok(self.index(index)?.keys(value).cloned().collect())
    }

    /// The objects that share at least one value of an index with `object`, which need not be cached, by key.
    ///
    /// # Errors
    /// When there is no such index.
    pub fn sharing_index(&self, index: &str, object: &K) -> Result<Vec<Arc<K>>, UnknownIndex> {
        let index = self.index(index)?;
        let keys: std::collections::BTreeSet<&ObjectKey> =
            index.values_of(object).iter().flat_map(|value| index.keys(value)).collect();
        Ok(keys.into_iter().filter_map(|key| self.get(key).map(Arc::clone)).collect())
    }

    /// The values an index has objects for, sorted; none for an unknown index.
    pub fn index_values(&self, index: &str) -> Vec<Arc<str>> {
        let mut values: Vec<Arc<str>> = Vec::new();
        if let Some(index) = self.indices.get(index) {
            for ((value, _), ()) in index.entries.iter() {
                if values.last() != Some(value) {
                    values.push(Arc::clone(value));
                }
            }
        }
        values
    }

    /// What changed from this snapshot to a later one. What they share costs nothing.
    pub fn differences(&self, later: &Self) -> Vec<Difference<K>> {
        let object = |cached: &Cached<K>| Arc::clone(&cached.0);
        let differences = self.objects.differences(&later.objects).into_iter();
        differences
            .map(|it| Difference {
                key: it.key.clone(),
                old: it.old.map(object),
                new: it.new.map(object),
            })
            .collect()
    }

    fn index(&self, name: &str) -> Result<&Index<K>, UnknownIndex> {
        self.indices.get(name).ok_or_else(|| UnknownIndex(name.to_owned()))
    }
}

impl<K: Resource> Snapshot<K> {
    /// The objects that a label selector selects, by key.
    pub fn select<'a>(&'a self, selector: &'a LabelSelector) -> impl Iterator<Item = &'a Arc<K>> {
        let all = selector.selects_all();
        self.iter()
            .map(|(_, object)| object)
            .filter(move |object| all || selector.matches(object.labels().as_deref()))
    }
}

impl<K> Index<K> {
    fn keys(&self, value: &str) -> impl Iterator<Item = &ObjectKey> + use<'_, K> {
        let from: Filed = (value.into(), ObjectKey::new("", ""));
        let later = self.entries.iter_from(Bound::Included(&from));
        let value = from.0;
        later.map_while(move |((other, key), ())| (*other == value).then_some(key))
    }

    /// A function that panics files the object nowhere; it must not cost the cache.
    pub(super) fn values_of(&self, object: &K) -> Vec<Arc<str>> {
        let values = catch_unwind(AssertUnwindSafe(|| (self.function)(object)));
        values.unwrap_or_default().into_iter().map(Arc::from).collect()
    }
}

impl TreeKey for ObjectKey {
    fn bytes(&self) -> &[u8] {
        self.as_bytes()
    }
}

/// Which of the objects of a value comes first, the keys say.
impl TreeKey for Filed {
    fn bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

impl<K> PartialEq for Cached<K> {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl<K> Clone for Cached<K> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<K> Clone for Snapshot<K> {
    fn clone(&self) -> Self {
        Self {
            objects: self.objects.clone(),
            indices: self.indices.clone(),
            resource_version: self.resource_version.clone(),
            generation: self.generation,
        }
    }
}

impl<K> Clone for Index<K> {
    fn clone(&self) -> Self {
        Self { function: Arc::clone(&self.function), entries: self.entries.clone() }
    }
}

impl<K> Default for Snapshot<K> {
    fn default() -> Self {
        Self {
            objects: Tree::default(),
            indices: BTreeMap::new(),
            resource_version: None,
            generation: 0,
        }
    }
}

impl<K> fmt::Debug for Snapshot<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Snapshot")
            .field("objects", &self.objects.len())
            .field("resource_version", &self.resource_version)
            .field("generation", &self.generation)
            .finish_non_exhaustive()
    }
}
