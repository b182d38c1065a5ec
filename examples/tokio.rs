//! In a plain tokio program: the actors live in a system and on threads of their own.
//!
//! Run with `cargo run --example tokio`. It needs no cluster.

use actix::{Actor, Context, Handler};
use k8s_openapi::api::core::v1::Node;
use kubeflect::embedded::ApiServer;
use kubeflect::{Options, ResourceEvent, Runtime, RuntimeOptions, Threads};
use tokio::sync::mpsc;

/// Passes events on to the tokio side.
struct Bridge(mpsc::UnboundedSender<String>);

impl Actor for Bridge {
    type Context = Context<Self>;
}

impl Handler<ResourceEvent<Node>> for Bridge {
    type Result = ();

    fn handle(&mut self, event: ResourceEvent<Node>, _: &mut Context<Self>) {
        // The receiver is gone when the program is about to end.
        self.0.send(event.to_string()).ok();
    }
}

#[tokio::main]
async fn main() -> kubeflect::Result<()> {
    let options =
        RuntimeOptions { threads: Threads::OwnSystem { count: 1 }, ..RuntimeOptions::default() };
    let runtime = Runtime::with_options(ApiServer::demo_cluster(1), options);
    let nodes = runtime.reflect::<Node>(Options::all()).await?;

    let (sender, mut events) = mpsc::unbounded_channel();
    let bridge = runtime.start_actor(move || Bridge(sender)).await?;
    nodes.subscribe(bridge).await?;
    while let Some(event) = events.recv().await {
        println!("{event}");
        if event == "synced" {
            break;
        }
    }
    println!("{} nodes", nodes.store().len());
    runtime.stop().await;
    Ok(())
}
