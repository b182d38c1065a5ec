use std::error::Error;
use std::rc::Rc;

use futures::{StreamExt as _, TryStreamExt as _, stream};
use k8s_openapi::api::core::v1::{Namespace, Pod};
use kubeflect::api::ApiError;
use kubeflect::client::{
    BudgetOptions, Cluster as _, Connection, HttpCluster, HttpOptions, Objects, Patch, Transport,
};
use serde_json::{Value, json};

use crate::pods::{self, Shape};

/// So many requests are under way at a time.
const AT_ONCE: usize = 8;

/// Changes jump about: a prime, so that all pods get theirs.
const STRIDE: usize = 7919;

/// Who makes the pods and changes them.
pub(crate) struct Writer {
    transport: Rc<dyn Transport>,
    /// The namespace and the name of each pod.
    pods: Vec<(String, String)>,
    /// How many changes there were.
    changes: usize,
}

impl Writer {
    pub(crate) fn new(connection: Connection) -> Result<Self, ApiError> {
        let budget = BudgetOptions { rate: 1e6, burst: 1_000, lists: 1 };
        let options = HttpOptions { budget, ..HttpOptions::default() };
        let transport = HttpCluster::with_options(connection, options).connect()?;
        Ok(Self { transport, pods: Vec::new(), changes: 0 })
    }

    /// Makes the pods of a cluster; gives how many bytes one has.
    pub(crate) async fn create(
        &mut self,
        objects: usize,
        shape: Shape,
        seed: u64,
    ) -> Result<usize, Box<dyn Error>> {
        let mut namespaces: Vec<String> = (0..objects).map(pods::namespace_of).collect();
        namespaces.sort();
        namespaces.dedup();
        for name in namespaces {
            let namespace = serde_json::from_value(json!({ "metadata": { "name": name } }))?;
            Objects::<Namespace>::of(Rc::clone(&self.transport)).create(&namespace).await?;
        }
        let made = stream::iter(0..objects)
            .map(|number| self.create_pod(pods::pod(seed, number, shape).bytes))
            .buffered(AT_ONCE)
            .try_collect::<Vec<_>>()
            .await?;
        let bytes: usize = made.iter().map(|(_, bytes)| bytes).sum();
        self.pods = made.into_iter().map(|(name, _)| name).collect();
        Ok(bytes / objects.max(1))
    }

    /// What an API server takes from nobody is left to it: identity, versions, and who manages which field.
    async fn create_pod(&self, text: Vec<u8>) -> Result<((String, String), usize), Box<dyn Error>> {
        let mut pod: Pod = serde_json::from_slice(&text)?;
        let metadata = &mut pod.metadata;
        metadata.uid = None;
        metadata.resource_version = None;
        metadata.managed_fields = None;
        metadata.annotations.get_or_insert_default().insert(TURN.to_owned(), turn(0));
        let namespace = metadata.namespace.clone().ok_or("a pod is in a namespace")?;
        let name = metadata.name.clone().ok_or("a pod has a name")?;
        let objects = self.pods_of(&namespace);
        objects.create(&pod).await?;
        // A new pod has no status, whatever it says.
        let status = Patch::Merge(json!({ "status": pod.status }));
        let made = objects.patch_status(&name, &status).await?;
        Ok(((namespace, name), serde_json::to_vec(&made)?.len()))
    }

    /// Makes changes; gives the version of the last.
    pub(crate) async fn push(&mut self, count: usize) -> Result<u64, Box<dyn Error>> {
        let first = self.changes;
        self.changes += count;
        let versions = stream::iter(first..first + count).map(|number| self.change(number));
        let versions: Vec<u64> = versions.buffer_unordered(AT_ONCE).try_collect().await?;
        versions.into_iter().max().ok_or_else(|| "there was nothing to change".into())
    }

    async fn change(&self, number: usize) -> Result<u64, Box<dyn Error>> {
        let (namespace, name) = &self.pods[number.wrapping_mul(STRIDE) % self.pods.len()];
        let patch: Value = json!({ "metadata": { "annotations": { TURN: turn(number + 1) } } });
        let changed = self.pods_of(namespace).patch(name, &Patch::Merge(patch)).await?;
        Ok(changed.metadata.resource_version.ok_or("what is stored has a version")?.parse()?)
    }

    fn pods_of(&self, namespace: &str) -> Objects<Pod> {
        Objects::of(Rc::clone(&self.transport)).in_namespace(namespace)
    }
}

/// The annotation that changes.
const TURN: &str = "bench.example.com/turn";

/// Always as wide.
fn turn(number: usize) -> String {
    format!("{number:012}")
}
