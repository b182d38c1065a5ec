//! A slow subscriber beside a fast one: neither waits for the other, and both come to know the same.
//!
//! Ten pods change a hundred times each. The fast one is told of every change; what waits for the slow one is joined per
//! object, so that never more waits than there are pods.
//!
//! Run with `cargo run --example two_subscribers`. It needs no cluster.

use std::collections::BTreeMap;
use std::time::Duration;

use actix::{Actor, ActorFutureExt as _, AtomicResponse, Context, Handler, WrapFuture as _};
use futures::future::OptionFuture;
use k8s_openapi::api::core::v1::Pod;
use kubeflect::embedded::ApiServer;
use kubeflect::object::Resource as _;
use kubeflect::reflector::Delivery;
use kubeflect::{Options, ResourceEvent, Runtime, SubscribeOptions};
use serde_json::{Value, json};
use tokio::sync::watch;

/// Takes its time with every event, and shows what it knows.
struct Reader {
    pause: Option<Duration>,
    shown: watch::Sender<Known>,
}

#[derive(Default)]
struct Known {
    told: usize,
    /// The last round of each pod.
    rounds: BTreeMap<String, String>,
}

impl Actor for Reader {
    type Context = Context<Self>;
}

impl Handler<ResourceEvent<Pod>> for Reader {
    type Result = AtomicResponse<Self, ()>;

    fn handle(&mut self, event: ResourceEvent<Pod>, _: &mut Context<Self>) -> Self::Result {
        let pause = self.pause.map(tokio::time::sleep);
        let work = async move { OptionFuture::from(pause).await };
        AtomicResponse::new(Box::pin(work.into_actor(self).map(move |_, reader, _| {
            reader.shown.send_modify(|known| known.learn(&event));
        })))
    }
}

impl Known {
    fn learn(&mut self, event: &ResourceEvent<Pod>) {
        self.told += 1;
        if let ResourceEvent::Added { object: pod, .. } | ResourceEvent::Updated { new: pod, .. } =
            event
        {
            let round = pod.metadata.annotations.as_ref().map(|all| all["round"].clone());
            self.rounds.insert(pod.key().to_string(), round.unwrap_or_default());
        }
    }
}

fn pod(number: usize, round: usize) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": { "name": format!("pod-{number}"), "annotations": { "round": round.to_string() } },
        "spec": { "containers": [{ "name": "main" }] },
    })
}

#[actix::main]
async fn main() -> kubeflect::Result<()> {
    let cluster = ApiServer::new();
    let runtime = Runtime::new(cluster.clone());
    let pods = runtime.reflect::<Pod>(Options::all()).await?;
    let mut readers = Vec::new();
    for (name, pause, delivery) in [
        ("fast", None, Delivery::default()),
        ("slow", Some(Duration::from_millis(20)), Delivery::Latest),
    ] {
        let (shown, known) = watch::channel(Known::default());
        let options = SubscribeOptions::default().name(name).delivery(delivery);
        let subscription = pods.subscribe_with(Reader { pause, shown }.start(), options).await?;
        readers.push((name, known, subscription));
    }

    for round in 1..=100 {
        (0..10)
            .for_each(|number| drop(cluster.apply(pod(number, round)).expect("pods are served")));
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    for (name, known, subscription) in &mut readers {
        let is_last = |known: &Known| known.rounds.values().filter(|it| *it == "100").count() == 10;
        let told = known.wait_for(is_last).await.expect("the reader lives").told;
        let joined = subscription.status().coalesced;
        println!("{name}: told {told} times, {joined} changes joined, knows how all pods ended");
    }
    runtime.stop().await;
    Ok(())
}
