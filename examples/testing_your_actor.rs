//! Testing an actor of yours against the embedded server: in process, on a clock that is paused, with a network that
//! fails when you say so.
//!
//! Run with `cargo run --example testing_your_actor`. In your crate each of the two functions is a `#[test]`.

use std::collections::BTreeSet;
use std::time::Duration;

use actix::{Actor, Context, Handler};
use k8s_openapi::api::core::v1::Pod;
use kubeflect::embedded::ApiServer;
use kubeflect::object::{Resource as _, StaticKind as _};
use kubeflect::{ObjectKey, Options, ResourceEvent, Runtime, RuntimeOptions, Threads};
use serde_json::{Value, json};
use tokio::sync::watch;

/// The actor under test: shows which pods have failed.
struct Alarm(watch::Sender<BTreeSet<String>>);

impl Actor for Alarm {
    type Context = Context<Self>;
}

impl Handler<ResourceEvent<Pod>> for Alarm {
    type Result = ();

    fn handle(&mut self, event: ResourceEvent<Pod>, _: &mut Context<Self>) {
        self.0.send_if_modified(|failed| match event {
            ResourceEvent::Added { object: pod, .. } | ResourceEvent::Updated { new: pod, .. } => {
                let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
                phase == Some("Failed") && failed.insert(pod.key().to_string())
            }
            ResourceEvent::Deleted { last_known, .. } => {
                failed.remove(&last_known.key().to_string())
            }
            ResourceEvent::Synced => false,
        });
    }
}

fn a_failed_pod_is_shown_until_it_is_deleted() {
    on_a_paused_clock(async {
        let cluster = ApiServer::seeded(1);
        let (runtime, mut failed) = alarm_over(&cluster).await;
        cluster.apply(pod("worker", "Running")).unwrap();
        cluster.apply(pod("worker", "Failed")).unwrap();
        failed.wait_for(|failed| failed.contains("default/worker")).await.unwrap();
        cluster.delete(&Pod::static_kind(), &ObjectKey::new("default", "worker")).unwrap();
        failed.wait_for(BTreeSet::is_empty).await.unwrap();
        runtime.stop().await;
    });
}

fn a_pod_that_fails_during_an_outage_is_shown_after_it() {
    on_a_paused_clock(async {
        let cluster = ApiServer::seeded(1);
        let (runtime, mut failed) = alarm_over(&cluster).await;
        cluster.refuse_connections(true);
        cluster.break_watches();
        cluster.apply(pod("worker", "Failed")).unwrap();
        cluster.forget_history(); // No watch can go on: only a list tells.
        tokio::time::sleep(Duration::from_secs(3600)).await; // An hour that takes no time.
        assert!(failed.borrow().is_empty());
        cluster.heal();
        failed.wait_for(|failed| failed.contains("default/worker")).await.unwrap();
        runtime.stop().await;
    });
}

/// Everything on the one thread whose clock is paused, and with the same jitter each time.
async fn alarm_over(cluster: &ApiServer) -> (Runtime, watch::Receiver<BTreeSet<String>>) {
    let options =
        RuntimeOptions { threads: Threads::Callers, seed: Some(1), ..RuntimeOptions::default() };
    let runtime = Runtime::with_options(cluster.clone(), options);
    let pods = runtime.reflect::<Pod>(Options::all()).await.unwrap();
    let (show, failed) = watch::channel(BTreeSet::new());
    pods.subscribe(Alarm(show).start()).await.unwrap().synced().await;
    (runtime, failed)
}

fn on_a_paused_clock(test: impl Future<Output = ()>) {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let paused = move || builder.enable_all().start_paused(true).build().unwrap();
    actix_rt::System::with_tokio_rt(paused).block_on(test);
}

fn pod(name: &str, phase: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": name },
        "spec": { "containers": [{ "name": "main" }] }, "status": { "phase": phase } })
}

fn main() {
    a_failed_pod_is_shown_until_it_is_deleted();
    println!("a failed pod is shown until it is deleted: ok");
    a_pod_that_fails_during_an_outage_is_shown_after_it();
    println!("a pod that fails during an outage of an hour is shown after it: ok");
}
