//! Kills every actor of a reflector in turn while pods change, and shows that nothing is lost.
//!
//! Run with `cargo run --example crash_and_recover`. It needs no cluster.

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
    // One line for each panic, instead of a backtrace.
    std::panic::set_hook(Box::new(|panic| {
        println!("panic: {}", panic.payload().downcast_ref::<String>().map_or("", String::as_str));
    }));
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

    let moment = Duration::from_millis(100);
    for crashes in 1..=4 {
        while faults.fired() < crashes {
            tokio::time::sleep(moment).await;
        }
        println!("{crashes} of 4 crashes; readers still see {} pods", pods.store().len());
    }
    changes.abort();
    let truth: BTreeSet<String> =
        cluster.objects(&Pod::static_kind()).keys().map(ToString::to_string).collect();
    while *census.lock().expect("no handler panics") != truth {
        tokio::time::sleep(moment).await;
    }
    let status = pods.status();
    for actor in status.actors {
        println!("{:<17} restarts: {}", actor.name, actor.restarts);
    }
    println!("{:<17} started:  {}", "watcher", status.requests.watches);
    println!("the subscriber knows all {} pods", truth.len());
    runtime.stop().await;
    Ok(())
}
