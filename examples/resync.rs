//! What a resync is for: an actor keeps something outside of the cluster as objects say, and looks at all of them again
//! now and then, because nobody tells it when the outside changes. The server is not asked.
//!
//! Run with `cargo run --example resync`. It needs no cluster and takes two seconds.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use actix::{Actor, Context, Handler};
use k8s_openapi::api::core::v1::ConfigMap;
use kubeflect::embedded::ApiServer;
use kubeflect::{Cause, Options, ResourceEvent, Runtime};
use serde_json::json;
use tokio::sync::mpsc;

/// The lamps of a house: name and colour.
type Lamps = Arc<Mutex<BTreeMap<String, String>>>;

/// Gives every lamp the colour that its config map wants.
struct Electrician {
    lamps: Lamps,
    report: mpsc::UnboundedSender<(Cause, String)>,
}

impl Actor for Electrician {
    type Context = Context<Self>;
}

impl Handler<ResourceEvent<ConfigMap>> for Electrician {
    type Result = ();

    fn handle(&mut self, event: ResourceEvent<ConfigMap>, _: &mut Context<Self>) {
        let (ResourceEvent::Added { object: wanted, cause }
        | ResourceEvent::Updated { new: wanted, cause, .. }) = event
        else {
            return;
        };
        let name = wanted.metadata.name.clone().unwrap_or_default();
        let colour = wanted.data.as_ref().map_or("", |data| &data["colour"]).to_owned();
        let mut lamps = self.lamps.lock().expect("nobody panics with it");
        let before = lamps.insert(name.clone(), colour.clone());
        let line = match before {
            Some(before) if before == colour => format!("{name} is {colour}, as it should be"),
            Some(before) => format!("{name} was {before}: made it {colour}"),
            None => format!("{name} is new: made it {colour}"),
        };
        // The receiver is gone when the program is about to end.
        self.report.send((cause, line)).ok();
    }
}

#[actix::main]
async fn main() -> kubeflect::Result<()> {
    let cluster = ApiServer::new();
    for (name, colour) in [("kitchen", "white"), ("porch", "blue")] {
        let wanted = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name },
            "data": { "colour": colour } });
        cluster.create(wanted).expect("the kind is served and the name is free");
    }
    let runtime = Runtime::new(cluster.clone());
    let every_second = Options::all().resync(Duration::from_secs(1));
    let config_maps = runtime.reflect::<ConfigMap>(every_second).await?;
    let (report, mut reports) = mpsc::unbounded_channel();
    let lamps = Lamps::default();
    let electrician = Electrician { lamps: Arc::clone(&lamps), report }.start();
    config_maps.subscribe(electrician).await?.synced().await;

    lamps.lock().expect("nobody panics with it").insert("porch".into(), "broken".into());
    let requests = cluster.requests().len();
    let mut resynced = 0;
    while resynced < 4 {
        let Some((cause, line)) = reports.recv().await else { break };
        println!("{cause:?}: {line}");
        resynced += usize::from(cause == Cause::Resync);
    }
    println!("requests meanwhile: {}", cluster.requests().len() - requests);
    runtime.stop().await;
    Ok(())
}
