//! Kinds of your own: derived, dynamic, and reduced to the fields you need.
//!
//! Run with `cargo run --example custom_resource`. It needs no cluster.

use kubeflect::embedded::ApiServer;
use kubeflect::object::{DecodeError, DynamicObject, Resource, StaticKind};
use kubeflect::{Kind, ObjectKey, Options, Runtime};
use serde::{Deserialize, Serialize};
use serde_json::json;

/// The type that `#[derive(CustomResource)]` makes of this is reflected as it is.
#[derive(kube::CustomResource, Clone, Debug, Deserialize, Serialize, schemars::JsonSchema)]
#[kube(group = "example.com", version = "v1", kind = "Widget", namespaced)]
struct WidgetSpec {
    size: u32,
}

/// Keeps one field of a widget.
#[derive(Deserialize)]
struct WidgetSize {
    metadata: Metadata,
    spec: WidgetSpec,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    namespace: String,
    name: String,
    uid: String,
    resource_version: String,
}

impl Resource for WidgetSize {
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
        Ok(serde_json::from_slice(json)?)
    }
}

#[actix::main]
async fn main() -> kubeflect::Result<()> {
    let cluster = ApiServer::new();
    cluster.register(Widget::static_kind());
    for (name, size) in [("small", 1), ("large", 9)] {
        let widget = json!({
            "apiVersion": "example.com/v1", "kind": "Widget",
            "metadata": { "namespace": "default", "name": name }, "spec": { "size": size },
        });
        cluster.create(widget).expect("the kind is served and the name is free");
    }
    let runtime = Runtime::new(cluster);

    let typed = runtime.reflect::<Widget>(Options::all()).await?;
    let dynamic =
        runtime.reflect_kind::<DynamicObject>(Widget::static_kind(), Options::all()).await?;
    let reduced = runtime.reflect_kind::<WidgetSize>(Widget::static_kind(), Options::all()).await?;
    runtime.synced().await?;

    for widget in typed.store().list() {
        println!("typed: {} has size {}", widget.key(), widget.spec.size);
    }
    for widget in dynamic.store().list() {
        println!("dynamic: {} has size {}", widget.key(), widget.data["spec"]["size"]);
    }
    for widget in reduced.store().list() {
        println!("reduced: {} has size {}", widget.key(), widget.spec.size);
    }
    runtime.stop().await;
    Ok(())
}
