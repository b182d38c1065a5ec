//! How long a reader waits while 100 000 objects are listed again and every one of them has changed.
//!
//! Run with `cargo bench --bench relist`. A reader on a thread of its own reads without a pause, and remembers its
//! longest reads; the same reader on an idle cache is the yardstick.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::core::PartialObjectMeta;
use kubeflect::cache::Store;
use kubeflect::embedded::ApiServer;
use kubeflect::{ObjectKey, Options, Runtime};
use serde_json::json;
use tokio::time::Instant;

const OBJECTS: usize = 100_000;

/// A config map without its data.
type Named = PartialObjectMeta<ConfigMap>;

fn change_all(server: &ApiServer, round: usize) {
    for number in 0..OBJECTS {
        let object = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": { "namespace": "default", "name": format!("object-{number}") },
            "data": { "round": round.to_string() },
        });
        server.apply(object).expect("config maps are served");
    }
}

/// Reads until told to stop; gives how often, and its longest reads.
fn read(store: &Store<Named>, stop: &AtomicBool) -> (usize, Vec<Duration>) {
    let keys: Vec<ObjectKey> =
        (0..1000).map(|n| ObjectKey::new("default", &format!("object-{}", n * 97))).collect();
    let (mut reads, mut longest) = (0, vec![Duration::ZERO; 5]);
    while !stop.load(Ordering::Relaxed) {
        let before = Instant::now();
        assert!(store.get(&keys[reads % keys.len()]).is_some());
        let took = before.elapsed();
        reads += 1;
        if took > longest[0] {
            longest[0] = took;
            longest.sort();
        }
    }
    longest.reverse();
    (reads, longest)
}

async fn measure(store: &Store<Named>, during: impl Future<Output = ()>) -> (usize, Vec<Duration>) {
    let stop = Arc::new(AtomicBool::new(false));
    let reader = {
        let (store, stop) = (store.clone(), Arc::clone(&stop));
        std::thread::spawn(move || read(&store, &stop))
    };
    during.await;
    stop.store(true, Ordering::Relaxed);
    reader.join().expect("the reader does not panic")
}

#[actix::main]
async fn main() -> kubeflect::Result<()> {
    let server = ApiServer::new();
    change_all(&server, 0);
    let runtime = Runtime::new(server.clone());
    let objects = runtime.reflect::<Named>(Options::all()).await?;
    objects.synced().await?;

    let (reads, longest) =
        measure(objects.store(), tokio::time::sleep(Duration::from_secs(5))).await;
    println!("idle      {reads} reads in 5 s, longest {longest:?}");

    server.refuse_connections(true);
    server.break_watches();
    change_all(&server, 1);
    server.forget_history();
    server.refuse_connections(false);
    let before = Instant::now();
    let relisted = async {
        let newest = server.resource_version();
        while objects.store().resource_version().is_none_or(|version| version.as_str() != newest) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    let (reads, longest) = measure(objects.store(), relisted).await;
    println!(
        "relisted  {reads} reads in {:?} (backoff included), longest {longest:?}",
        before.elapsed()
    );
    runtime.stop().await;
    Ok(())
}
