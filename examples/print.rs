//! The smallest program: prints what happens to pods, until three changes have been seen.
//!
//! Run with `cargo run --example print`. It needs no cluster.

use std::sync::Arc;

use actix::{Actor, Context, Handler};
use k8s_openapi::api::core::v1::Pod;
use kubeflect::embedded::ApiServer;
use kubeflect::{Cause, Options, ResourceEvent, Runtime};
use tokio::sync::Semaphore;

/// Prints what it is told, and counts changes.
struct Printer {
    changes: Arc<Semaphore>,
}

impl Actor for Printer {
    type Context = Context<Self>;
}

impl Handler<ResourceEvent<Pod>> for Printer {
    type Result = ();

    fn handle(&mut self, event: ResourceEvent<Pod>, _: &mut Context<Self>) {
        println!("{event}");
        if event.cause() == Some(Cause::Watch) {
            self.changes.add_permits(1);
        }
    }
}

#[actix::main]
async fn main() -> kubeflect::Result<()> {
    let cluster = ApiServer::demo_cluster(1);
    actix_rt::spawn(cluster.clone().run_demo(20.0));

    let runtime = Runtime::new(cluster);
    let pods = runtime.reflect::<Pod>(Options::all()).await?;
    let changes = Arc::new(Semaphore::new(0));
    pods.subscribe(Printer { changes: Arc::clone(&changes) }.start()).await?;
    pods.synced().await?;
    println!("{} pods", pods.store().len());

    let three_changes = changes.acquire_many(3).await;
    drop(three_changes);
    runtime.stop().await;
    Ok(())
}
