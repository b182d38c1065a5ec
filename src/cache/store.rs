use std::fmt;
use std::sync::Arc;

use arc_swap::ArcSwap;

use super::{Snapshot, UnknownIndex};
use crate::api::Known;
use crate::object::{LabelSelector, ObjectKey, Resource, ResourceVersion};

/// The cache, for reading: from any thread, at any time, without waiting for anybody.
///
/// Every answer is of one moment. For several answers of the same moment take a [`snapshot`](Self::snapshot).
///
/// ```
/// use k8s_openapi::api::core::v1::Pod;
/// use kubeflect::embedded::ApiServer;
/// use kubeflect::{Options, Runtime};
///
/// # actix_rt::System::new().block_on(async {
/// # let runtime = Runtime::new(ApiServer::demo_cluster(1));
/// let by_node = Options::<Pod>::all()
///     .index("node", |pod| pod.spec.iter().filter_map(|spec| spec.node_name.clone()).collect());
/// let pods = runtime.reflect(by_node).await?;
/// pods.synced().await?;
/// let store = pods.store();
/// let web = "app=web".parse().expect("it is a label selector");
/// assert_eq!(store.list_namespace("shop").len(), 15);
/// assert_eq!(store.select(&web).len(), 5);
///
/// let snapshot = store.snapshot(); // what is counted twice is counted at one moment
/// let mut placed = 0;
/// for node in snapshot.index_values("node") {
///     placed += snapshot.by_index("node", &node)?.len();
/// }
/// assert_eq!(placed, snapshot.len());
/// # runtime.stop().await;
/// # Ok::<(), kubeflect::Error>(())
/// # }).unwrap();
/// ```
#[doc(alias("ThreadSafeStore", "Lister"))]
pub struct Store<K>(Arc<ArcSwap<Snapshot<K>>>);

/// The one right to change what a [`Store`] shows.
#[derive(Debug)]
pub struct StoreWriter<K>(Store<K>);

impl<K> StoreWriter<K> {
    /// Shows another state, all of it at once.
    pub fn publish(&self, snapshot: Snapshot<K>) {
        self.0.0.store(Arc::new(snapshot));
    }

    /// What everybody sees.
    pub fn store(&self) -> &Store<K> {
        &self.0
    }
}

impl<K> Default for StoreWriter<K> {
    fn default() -> Self {
        Self(Store(Arc::new(ArcSwap::from_pointee(Snapshot::default()))))
    }
}

impl<K> Store<K> {
    /// Everything, as it is now.
    pub fn snapshot(&self) -> Arc<Snapshot<K>> {
        self.0.load_full()
    }

    /// The object of this key.
    pub fn get(&self, key: &ObjectKey) -> Option<Arc<K>> {
        self.0.load().get(key).map(Arc::clone)
    }

    /// All objects, by key.
    pub fn list(&self) -> Vec<Arc<K>> {
        self.0.load().iter().map(|(_, object)| Arc::clone(object)).collect()
    }

    /// All keys, sorted.
    pub fn keys(&self) -> Vec<ObjectKey> {
        self.0.load().iter().map(|(key, _)| key.clone()).collect()
    }

    /// The objects of one namespace, by name.
    pub fn list_namespace(&self, namespace: &str) -> Vec<Arc<K>> {
        self.0.load().namespace(namespace).map(Arc::clone).collect()
    }

    /// The objects that an index files under a value, by key.
    ///
    /// # Errors
    /// When there is no such index.
    pub fn by_index(&self, index: &str, value: &str) -> Result<Vec<Arc<K>>, UnknownIndex> {
        self.0.load().by_index(index, value)
    }

    /// How many objects there are.
    pub fn len(&self) -> usize {
        self.0.load().len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The server's version of what is shown; none before the first list.
    pub fn resource_version(&self) -> Option<ResourceVersion> {
        self.0.load().resource_version().cloned()
    }
}

impl<K> Known<K> for Store<K> {
    fn cached(&self, key: &ObjectKey) -> Option<Arc<K>> {
        self.get(key)
    }
}

impl<K: Resource> Store<K> {
    /// The objects that a label selector selects, by key.
    pub fn select(&self, selector: &LabelSelector) -> Vec<Arc<K>> {
        self.0.load().select(selector).map(Arc::clone).collect()
    }
}

impl<K> Clone for Store<K> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<K> fmt::Debug for Store<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.load().fmt(f)
    }
}
