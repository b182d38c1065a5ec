//! Reflects the pods of a server with kubeflect, as its users do: `bench-kubeflect PLACE MODE`. The place is a URL, or a
//! kubeconfig.
//!
//! `bench-kubeflect modes` says which are run unless somebody picks. With `-list` at its end a mode lists in pages; without, it takes what
//! is the default, a streaming list.

#[path = "../../../placement.rs"]
mod placement;

use std::env;
use std::error::Error;

use actix::{Actor, Context, Handler};
use k8s_openapi::api::core::v1::Pod;
use kube_core::PartialObjectMeta;
use kubeflect::client::{ConfigOptions, Connection, HttpCluster};
use kubeflect::object::{DynamicObject, Lazy, Prune, Resource, StaticKind as _};
use kubeflect::reflector::StreamingLists;
use kubeflect::{Options, ResourceEvent, Runtime};
use probe::{Probe, read_cost};

use placement::Placement;

/// What is kept of each pod. Another representation is another line here and in `run`.
#[derive(Debug, Clone, Copy)]
enum Mode {
    Typed,
    TypedPruned,
    Lazy,
    LazyPruned,
    Projection,
    Dynamic,
    Metadata,
}

const MODES: [(&str, Mode); 7] = [
    ("typed", Mode::Typed),
    ("typed-pruned", Mode::TypedPruned),
    ("lazy", Mode::Lazy),
    ("lazy-pruned", Mode::LazyPruned),
    ("projection", Mode::Projection),
    ("dynamic", Mode::Dynamic),
    ("metadata", Mode::Metadata),
];

/// The modes that are run both ways unless somebody asks for another.
const LISTED: [&str; 2] = ["typed-list", "projection-list"];

#[actix::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let (place, mode) = match arguments.as_slice() {
        [word] if word == "modes" => {
            let modes = MODES.iter().map(|(name, _)| *name).chain(LISTED);
            println!("{}", modes.collect::<Vec<_>>().join(" "));
            return Ok(());
        }
        [place, mode] => (place, mode.as_str()),
        _ => return Err("say PLACE MODE, or modes".into()),
    };
    let (name, lists) = match mode.strip_suffix("-list") {
        Some(name) => (name, StreamingLists::Never),
        None => (mode, StreamingLists::WherePossible),
    };
    let known = MODES.iter().find(|(known, _)| *known == name);
    let (_, mode) = known.ok_or("no such mode: ask for modes")?;
    let runtime = Runtime::new(HttpCluster::from_connection(connection(place)?));
    run(&runtime, *mode, lists).await
}

fn connection(place: &str) -> Result<Connection, Box<dyn Error>> {
    if place.starts_with("http:") {
        return Ok(Connection::at(place)?);
    }
    let options = ConfigOptions { kubeconfig: Some(place.into()), ..ConfigOptions::default() };
    Ok(Connection::from_kubeconfig(&options)?)
}

async fn run(runtime: &Runtime, mode: Mode, lists: StreamingLists) -> Result<(), Box<dyn Error>> {
    match mode {
        Mode::Typed => follow(runtime, options::<Pod>(lists)).await,
        Mode::TypedPruned => {
            follow(runtime, options::<Pod>(lists).prune(Prune::ManagedFields)).await
        }
        Mode::Lazy => follow(runtime, options::<Lazy<Pod>>(lists)).await,
        Mode::LazyPruned => {
            follow(runtime, options::<Lazy<Pod>>(lists).prune(Prune::ManagedFields)).await
        }
        // Nobody who keeps six fields keeps these.
        Mode::Projection => {
            follow(runtime, options::<Placement>(lists).prune(Prune::ManagedFields)).await
        }
        Mode::Dynamic => follow(runtime, options::<DynamicObject>(lists)).await,
        Mode::Metadata => follow(runtime, options::<PartialObjectMeta<Pod>>(lists)).await,
    }
}

fn options<K>(lists: StreamingLists) -> Options<K> {
    Options::all().streaming_lists(lists)
}

/// Reflects, and stays until the runner has seen enough.
async fn follow<K: Resource>(runtime: &Runtime, options: Options<K>) -> Result<(), Box<dyn Error>> {
    let probe = Probe::begin();
    let pods = runtime.reflect_kind(Pod::static_kind(), options).await?;
    let store = pods.store().clone();
    probe.reads(move || read_cost(&store.keys(), |key| store.get(key).is_some()));
    let objects = pods.clone();
    let synced = Box::new(move || objects.store().len());
    let subscription = pods.subscribe(Subscriber { probe, synced }.start()).await?;
    pods.synced().await?;
    std::future::pending::<()>().await;
    drop(subscription);
    Ok(())
}

struct Subscriber {
    probe: Probe,
    /// How many objects there are.
    synced: Box<dyn Fn() -> usize>,
}

impl Actor for Subscriber {
    type Context = Context<Self>;
}

impl<K: Resource> Handler<ResourceEvent<K>> for Subscriber {
    type Result = ();

    fn handle(&mut self, event: ResourceEvent<K>, _: &mut Context<Self>) {
        match &event {
            ResourceEvent::Synced => self.probe.synced((self.synced)()),
            ResourceEvent::Updated { new, .. } => {
                self.probe.event(new.resource_version().unwrap_or_default());
            }
            ResourceEvent::Added { .. } | ResourceEvent::Deleted { .. } => {}
        }
    }
}
