//! Reflects one kind with kube-rs, and says what it sees: one JSON value on each line.
//!
//! `kube-rs-reflector KUBECONFIG GROUP/VERSION/KIND/PLURAL LABELS`, where the group of core kinds is empty.
//!
//! It tells `listed`, `synced`, `applied`, `deleted` and `failed`. Asked by any line of input it tells its `store`. When
//! its input ends, so does it.

use std::collections::BTreeMap;
use std::error::Error;
use std::io::Write as _;
use std::{env, io};

use futures::{StreamExt as _, pin_mut};
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind};
use kube::config::{Config, KubeConfigOptions, Kubeconfig};
use kube::runtime::reflector::Store;
use kube::runtime::{WatchStreamExt as _, reflector, watcher};
use kube::{Client, ResourceExt as _};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, BufReader, stdin};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [kubeconfig, kind, labels] = arguments.as_slice() else {
        return Err("say KUBECONFIG GROUP/VERSION/KIND/PLURAL LABELS".into());
    };
    let resource = resource(kind).ok_or("a kind is GROUP/VERSION/KIND/PLURAL")?;
    let kubeconfig = Kubeconfig::read_from(kubeconfig)?;
    let context = KubeConfigOptions::default();
    let config = Config::from_custom_kubeconfig(kubeconfig, &context).await?;
    let objects: Api<DynamicObject> = Api::all_with(Client::try_from(config)?, &resource);
    let writer = reflector::store::Writer::new(resource);
    let store = writer.as_reader();
    let events = watcher(objects, watcher::Config::default().labels(labels))
        .default_backoff()
        .reflect(writer);
    pin_mut!(events);
    let mut requests = BufReader::new(stdin()).lines();
    loop {
        tokio::select! {
            event = events.next() => match event {
                Some(event) => tell_event(&event)?,
                None => return Err("the watcher ended".into()),
            },
            request = requests.next_line() => match request? {
                Some(_) => tell(&contents(&store))?,
                None => return Ok(()),
            },
        }
    }
}

fn resource(text: &str) -> Option<ApiResource> {
    let parts: Vec<&str> = text.split('/').collect();
    let [group, version, kind, plural] = parts.as_slice() else { return None };
    let kind = GroupVersionKind::gvk(group, version, kind);
    Some(ApiResource::from_gvk_with_plural(&kind, plural))
}

fn tell_event(event: &watcher::Result<watcher::Event<DynamicObject>>) -> io::Result<()> {
    match event {
        Ok(watcher::Event::Init) => Ok(()),
        Ok(watcher::Event::InitApply(object)) => tell_object("listed", object),
        Ok(watcher::Event::InitDone) => tell(&json!({ "event": "synced" })),
        Ok(watcher::Event::Apply(object)) => tell_object("applied", object),
        Ok(watcher::Event::Delete(object)) => tell_object("deleted", object),
        Err(error) => tell(&json!({ "event": "failed", "message": error.to_string() })),
    }
}

fn tell_object(event: &str, object: &DynamicObject) -> io::Result<()> {
    tell(&json!({
        "event": event,
        "namespace": object.namespace().unwrap_or_default(),
        "name": object.name_any(),
        "uid": object.uid().unwrap_or_default(),
        "resourceVersion": object.resource_version().unwrap_or_default(),
    }))
}

/// What it believes to be there: `"default/a": ["uid", "7"]`.
fn contents(store: &Store<DynamicObject>) -> Value {
    let entry = |object: &DynamicObject| {
        let key = format!("{}/{}", object.namespace().unwrap_or_default(), object.name_any());
        (key, json!([object.uid(), object.resource_version()]))
    };
    let objects: BTreeMap<String, Value> =
        store.state().iter().map(|object| entry(object)).collect();
    json!({ "event": "store", "objects": objects })
}

fn tell(line: &Value) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()
}
