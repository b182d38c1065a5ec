//! Many kinds in one runtime: one actor for three of them, and every kind the cluster has, found by asking it.
//!
//! Run with `cargo run --example many_kinds`. It needs no cluster.

use std::any::type_name;
use std::collections::BTreeMap;

use actix::{Actor, Context, Handler, Message};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Node, Pod};
use kubeflect::client::{Cluster as _, Discovery};
use kubeflect::embedded::ApiServer;
use kubeflect::object::{DynamicObject, Resource};
use kubeflect::{Options, ResourceEvent, Runtime};

/// Counts what it is told, whatever the kind.
#[derive(Default)]
struct Tally(BTreeMap<&'static str, usize>);

impl Actor for Tally {
    type Context = Context<Self>;
}

impl<K: Resource> Handler<ResourceEvent<K>> for Tally {
    type Result = ();

    fn handle(&mut self, event: ResourceEvent<K>, _: &mut Context<Self>) {
        let name = type_name::<K>().rsplit("::").next().unwrap_or_default();
        if let ResourceEvent::Added { .. } = event {
            *self.0.entry(name).or_default() += 1;
        }
    }
}

#[derive(Message)]
#[rtype(result = "BTreeMap<&'static str, usize>")]
struct Report;

impl Handler<Report> for Tally {
    type Result = actix::MessageResult<Report>;

    fn handle(&mut self, _: Report, _: &mut Context<Self>) -> Self::Result {
        actix::MessageResult(self.0.clone())
    }
}

#[actix::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let cluster = ApiServer::demo_cluster(1);
    let runtime = Runtime::new(cluster.clone());

    let tally = Tally::default().start();
    let nodes = runtime.reflect::<Node>(Options::all()).await?.subscribe(tally.clone()).await?;
    let pods = runtime.reflect::<Pod>(Options::all().namespace("shop")).await?;
    let pods = pods.subscribe(tally.clone()).await?;
    let deployments = runtime.reflect::<Deployment>(Options::all()).await?;
    let deployments = deployments.subscribe(tally.clone()).await?;
    futures::join!(nodes.synced(), pods.synced(), deployments.synced());
    for (kind, objects) in tally.send(Report).await? {
        println!("one actor was told of {objects:>2} {kind}s");
    }

    let discovery = Discovery::run(&*cluster.connect()?).await?;
    let mut reflectors = Vec::new();
    for served in discovery.kinds().iter().filter(|it| it.preferred && it.can_be_watched()) {
        let kind = served.kind.clone();
        reflectors.push(runtime.reflect_kind::<DynamicObject>(kind, Options::all()).await?);
    }
    runtime.synced().await?;
    println!("the cluster has {} kinds, with objects of:", reflectors.len());
    for reflector in reflectors.iter().filter(|it| !it.store().is_empty()) {
        println!("  {}: {}", reflector.kind(), reflector.store().len());
    }
    runtime.stop().await;
    Ok(())
}
