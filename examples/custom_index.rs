//! Indices of your own: objects filed under the values of a function, found without looking at the others.
//!
//! Run with `cargo run --example custom_index`. It needs no cluster.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Pod;
use kubeflect::embedded::ApiServer;
use kubeflect::object::Resource as _;
use kubeflect::{Options, Runtime};

fn node(pod: &Pod) -> Vec<String> {
    pod.spec.iter().filter_map(|spec| spec.node_name.clone()).collect()
}

/// An object may be filed under several values, or under none.
fn images(pod: &Pod) -> Vec<String> {
    let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
    containers.filter_map(|container| container.image.clone()).collect()
}

#[actix::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let runtime = Runtime::new(ApiServer::demo_cluster(1));
    let pods = runtime.reflect(Options::all().index("node", node)).await?;
    pods.synced().await?;

    println!("on node-1:");
    for pod in pods.store().by_index("node", "node-1")? {
        println!("  {}", pod.key());
    }

    // Also while it runs; what is cached is filed too.
    pods.add_index("image", images).await?;

    // One snapshot answers all questions from the same moment, however many.
    let snapshot = pods.store().snapshot();
    for image in snapshot.index_values("image") {
        let mut nodes = BTreeMap::new();
        for pod in snapshot.by_index("image", &image)? {
            *nodes.entry(node(&pod).concat()).or_insert(0) += 1;
        }
        let pods: Vec<String> =
            nodes.iter().map(|(node, pods)| format!("{pods} on {node}")).collect();
        println!("{image}: {}", pods.join(", "));
    }

    if let Err(error) = pods.store().by_index("colour", "blue") {
        println!("{error}");
    }
    runtime.stop().await;
    Ok(())
}
