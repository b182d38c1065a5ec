//! Objects that are kept as the server wrote them, and read when somebody asks: a sixth of the memory of decoded pods,
//! and next to no work for those nobody looks at.
//!
//! Run with `cargo run --example lazy`. It needs no cluster.

use k8s_openapi::api::core::v1::Pod;
use kubeflect::embedded::ApiServer;
use kubeflect::object::{Lazy, Prune, Resource as _};
use kubeflect::{Options, Runtime};
use serde::Deserialize;

/// A few fields, borrowed from the JSON.
#[derive(Deserialize)]
struct Glance<'a> {
    #[serde(borrow)]
    status: Status<'a>,
}

#[derive(Deserialize)]
struct Status<'a> {
    phase: &'a str,
}

#[actix::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let runtime = Runtime::new(ApiServer::demo_cluster(1));
    let options = Options::all().prune(Prune::ManagedFields);
    let pods = runtime.reflect::<Lazy<Pod>>(options).await?;
    pods.synced().await?;
    let all = pods.store().list();

    // Name, namespace, uid, version and labels are known without reading.
    let bytes: usize = all.iter().map(|pod| pod.json().len()).sum();
    println!("{} pods in {bytes} bytes of JSON, the first is {}", all.len(), all[0].key());

    // Some of each, into a struct that borrows.
    let mut running = 0;
    for pod in &all {
        running += usize::from(pod.read::<Glance<'_>>()?.status.phase == "Running");
    }
    println!("{running} of them run");

    // All of one. Who asks while another holds it gets the same.
    let pod = all[0].get()?;
    let spec = pod.spec.as_ref().ok_or("a pod has a spec")?;
    println!("{} runs {:?}", all[0].key(), spec.containers[0].image.as_deref().unwrap_or_default());
    println!("read twice, kept once: {}", std::sync::Arc::ptr_eq(&pod, &all[0].get()?));
    runtime.stop().await;
    Ok(())
}
