//! A kind of your own: the type that `#[derive(CustomResource)]` makes is reflected as it is.
//!
//! Run with `cargo run --example custom_resource`. It needs no cluster: the server is told of the kind, as it would be
//! by a `CustomResourceDefinition`.

use actix::{Actor, Context, Handler};
use kubeflect::embedded::ApiServer;
use kubeflect::object::{Resource as _, StaticKind as _};
use kubeflect::{ObjectKey, Options, ResourceEvent, Runtime};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::mpsc;

/// How large a widget is wanted. `Widget` is made of this.
#[derive(kube::CustomResource, Clone, Debug, Deserialize, Serialize, schemars::JsonSchema)]
#[kube(group = "example.com", version = "v1", kind = "Widget", namespaced)]
struct WidgetSpec {
    size: u32,
}

/// Passes on what happened to widgets, in words.
struct Narrator(mpsc::UnboundedSender<String>);

impl Actor for Narrator {
    type Context = Context<Self>;
}

impl Handler<ResourceEvent<Widget>> for Narrator {
    type Result = ();

    fn handle(&mut self, event: ResourceEvent<Widget>, _: &mut Context<Self>) {
        let line = match event {
            ResourceEvent::Added { object, .. } => {
                format!("{} has size {}", object.key(), object.spec.size)
            }
            ResourceEvent::Updated { old, new, .. } => {
                format!("{} went from size {} to {}", new.key(), old.spec.size, new.spec.size)
            }
            ResourceEvent::Deleted { last_known, .. } => format!("{} is gone", last_known.key()),
            ResourceEvent::Synced => "that is all for now".to_owned(),
        };
        // The receiver is gone when the program is about to end.
        self.0.send(line).ok();
    }
}

fn widget(name: &str, size: u32) -> Value {
    json!({
        "apiVersion": "example.com/v1", "kind": "Widget",
        "metadata": { "namespace": "default", "name": name }, "spec": { "size": size },
    })
}

#[actix::main]
async fn main() -> kubeflect::Result<()> {
    let cluster = ApiServer::new();
    cluster.register(Widget::static_kind());
    for (name, size) in [("small", 1), ("large", 9)] {
        cluster.create(widget(name, size)).expect("the kind is served and the name is free");
    }

    let runtime = Runtime::new(cluster.clone());
    let widgets = runtime.reflect::<Widget>(Options::all()).await?;
    let (sender, mut lines) = mpsc::unbounded_channel();
    let narrator = widgets.subscribe(Narrator(sender).start()).await?;
    narrator.synced().await;

    let large = ObjectKey::new("default", "large");
    cluster.update(widget("large", 12)).expect("it is there");
    cluster.delete(&Widget::static_kind(), &large).expect("it is there");
    while let Some(line) = lines.recv().await {
        println!("{line}");
        if line.ends_with("is gone") {
            break;
        }
    }
    assert!(widgets.store().get(&large).is_none(), "the cache shows it before the event");
    println!("{} widget is left", widgets.store().len());
    runtime.stop().await;
    Ok(())
}
