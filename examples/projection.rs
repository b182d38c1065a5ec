//! A struct of your own with the few fields you need. What it does not name is skipped, not kept; `Options::prune`
//! takes out `managedFields` and what `kubectl apply` notes down before it is even read.
//!
//! Run with `cargo run --example projection`. It needs no cluster.

use k8s_openapi::api::core::v1::Pod;
use kubeflect::embedded::ApiServer;
use kubeflect::object::{DecodeError, Prune, Resource, StaticKind, read};
use kubeflect::{Kind, ObjectKey, Options, Runtime};
use serde::Deserialize;
use serde_json::json;

/// Where a pod is.
#[derive(Deserialize)]
struct Placement {
    metadata: Metadata,
    spec: Spec,
    /// How much there was to read.
    #[serde(skip)]
    json_bytes: usize,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    namespace: String,
    name: String,
    uid: String,
    resource_version: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Spec {
    node_name: Option<String>,
}

impl Resource for Placement {
    fn key(&self) -> ObjectKey {
        ObjectKey::new(&self.metadata.namespace, &self.metadata.name)
    }

    fn uid(&self) -> Option<&str> {
        Some(&self.metadata.uid)
    }

    fn resource_version(&self) -> Option<&str> {
        Some(&self.metadata.resource_version)
    }

    fn decode(json: &[u8], _: &Kind) -> Result<Self, DecodeError> {
        Ok(Self { json_bytes: json.len(), ..read(json)? })
    }
}

impl StaticKind for Placement {
    fn static_kind() -> Kind {
        Pod::static_kind()
    }
}

#[actix::main]
async fn main() -> kubeflect::Result<()> {
    let cluster = ApiServer::new();
    for (name, node) in [("web-1", "node-1"), ("web-2", "node-3")] {
        let managed = json!({ "manager": "kubelet", "operation": "Update", "apiVersion": "v1",
            "fieldsType": "FieldsV1", "fieldsV1": { "f:status": { "f:phase": {}, "f:podIP": {} } } });
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": { "namespace": "shop", "name": name, "managedFields": [managed] },
            "spec": { "nodeName": node, "containers": [{ "name": "main", "image": "web:1" }] },
        });
        cluster.create(pod).expect("the kind is served and the name is free");
    }

    let runtime = Runtime::new(cluster);
    let whole = runtime.reflect::<Placement>(Options::all()).await?;
    let pruned = runtime.reflect::<Placement>(Options::all().prune(Prune::LastApplied)).await?;
    runtime.synced().await?;
    for pod in pruned.store().list() {
        let node = pod.spec.node_name.as_deref().unwrap_or("no node yet");
        let unpruned = whole.store().get(&pod.key()).map_or(0, |pod| pod.json_bytes);
        println!("{} is on {node}: read {} of {unpruned} bytes", pod.key(), pod.json_bytes);
    }
    runtime.stop().await;
    Ok(())
}
