//! Kills every actor of a reflector in turn while pods change, and shows that nothing is lost.
//!
//! Run with `cargo run --example chaos`. It needs no cluster. The panics it prints are the point.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use actix::{Actor, Context, Handler};
use k8s_openapi::api::core::v1::Pod;
use kubeflect::embedded::ApiServer;
use kubeflect::object::{Resource as _, StaticKind as _};
use kubeflect::supervision::Faults;
use kubeflect::{Options, ResourceEvent, Runtime};

/// Knows which pods there are, from events alone.
struct Census(Arc<Mutex<BTreeSet<String>>>);

impl Actor for Census {
    type Context = Context<Self>;
}

impl Handler<ResourceEvent<Pod>> for Census {
    type Result = ();

    fn handle(&mut self, event: ResourceEvent<Pod>, _: &mut Context<Self>) {
        let mut pods = self.0.lock().expect("no other handler panics");
        match event {
            ResourceEvent::Added { object, .. } => {
                pods.insert(object.key().to_string());
            }
            ResourceEvent::Deleted { last_known, .. } => {
                pods.remove(&last_known.key().to_string());
            }
            ResourceEvent::Updated { .. } | ResourceEvent::Synced => {}
        }
    }
}

#[actix::main]
async fn main() -> kubeflect::Result<()> {
    let cluster = ApiServer::demo_cluster(7);
    let changes = actix_rt::spawn(cluster.clone().run_demo(200.0));
    let faults = Faults::panic_at("watcher", "batch", 2)
        .and_panic_at("delta_fifo_store", "Apply", 20)
        .and_panic_at("publisher", "Publish", 40)
        .and_panic_at("supervisor", "WatchOpened", 3);

    let runtime = Runtime::new(cluster.clone());
    let pods = runtime.reflect::<Pod>(Options::all().faults(faults.clone())).await?;
    let census = Arc::new(Mutex::new(BTreeSet::new()));
    pods.subscribe(Census(Arc::clone(&census)).start()).await?;

    while faults.fired() < 4 {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    changes.abort();
    let truth: BTreeSet<String> =
        cluster.objects(&Pod::static_kind()).keys().map(ToString::to_string).collect();
    while *census.lock().expect("no handler panics") != truth {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    for actor in pods.status().actors {
        println!("{:<17} restarted {} times", actor.name, actor.restarts);
    }
    println!("the subscriber knows all {} pods", truth.len());
    runtime.stop().await;
    Ok(())
}
