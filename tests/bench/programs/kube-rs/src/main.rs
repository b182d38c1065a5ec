//! Reflects the pods of a server with kube-rs, as its users do: `bench-kube-rs PLACE list|stream`. The place is a URL, or
//! a kubeconfig.

use std::env;
use std::error::Error;

use futures::{StreamExt as _, pin_mut};
use k8s_openapi::api::core::v1::Pod;
use kube::config::Kubeconfig;
use kube::runtime::reflector::{self, ObjectRef};
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Api, Client, Config};
use probe::{Probe, read_cost};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let (place, config) = match arguments.as_slice() {
        [word] if word == "modes" => {
            println!("list stream");
            return Ok(());
        }
        [place, mode] if mode == "list" => (place, watcher::Config::default()),
        [place, mode] if mode == "stream" => (place, watcher::Config::default().streaming_lists()),
        _ => return Err("say PLACE and list or stream, or modes".into()),
    };
    let pods: Api<Pod> = Api::all(Client::try_from(reach(place).await?)?);
    let (store, writer) = reflector::store();
    let probe = Probe::begin();
    let read = store.clone();
    probe.reads(move || {
        let keys: Vec<_> = read.state().iter().map(|pod| ObjectRef::from_obj(&**pod)).collect();
        read_cost(&keys, |key| read.get(key).is_some())
    });
    let events = watcher(pods, config).default_backoff().reflect(writer);
    pin_mut!(events);
    let mut synced = false;
    while let Some(event) = events.next().await {
        match event {
            Ok(watcher::Event::Apply(pod)) => {
                probe.event(pod.metadata.resource_version.as_deref().unwrap_or_default());
            }
            Ok(watcher::Event::InitDone) if !synced => {
                synced = true;
                probe.synced(store.state().len());
            }
            Ok(_) => {}
            // Backed off and asked again by the stream itself; 410 is among them.
            Err(error) => eprintln!("kube-rs: {error}"),
        }
    }
    Err("the watcher ended".into())
}

async fn reach(place: &str) -> Result<Config, Box<dyn Error>> {
    if place.starts_with("http:") {
        return Ok(Config::new(place.parse()?));
    }
    let kubeconfig = Kubeconfig::read_from(place)?;
    Ok(Config::from_custom_kubeconfig(kubeconfig, &Default::default()).await?)
}
