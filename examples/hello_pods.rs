//! The smallest program: an actor that prints what happens to pods, here until ten things have happened.
//!
//! Run with `cargo run --example hello_pods`. It needs no cluster; with `Runtime::connect().await?` it shows yours.

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
    let runtime = Runtime::new(cluster.clone());
    let pods = runtime.reflect::<Pod>(Options::all()).await?;
    let changes = Arc::new(Semaphore::new(0));
    let printer = Printer { changes: Arc::clone(&changes) }.start();
    let subscription = pods.subscribe(printer).await?;

    subscription.synced().await;
    println!("{} pods; now what happens to them:", pods.store().len());
    actix_rt::spawn(cluster.run_demo(20.0));
    let ten_changes = changes.acquire_many(10).await;
    drop(ten_changes);
    runtime.stop().await;
    Ok(())
}
