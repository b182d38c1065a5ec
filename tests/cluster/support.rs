//! Words the tests are written in.

use std::collections::BTreeMap;
use std::env;
use std::marker::PhantomData;
use std::str::FromStr;
use std::time::Duration;

use actix::{Actor, Context, Handler};
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kubeflect::client::Connection;
use kubeflect::object::{Kind, Resource, StaticKind};
use kubeflect::reflector::Phase;
use kubeflect::supervision::BackoffOptions;
use kubeflect::{Options, Reflector, ResourceEvent, Runtime};
use serde_json::json;
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::recorded::{Exchange, Recorded};

/// Whatever happens within this happens; a test that waits longer hangs.
pub(crate) const LONG: Duration = Duration::from_secs(60);

/// A reflector with a subscriber, and everything that went over its line.
pub(crate) struct Followed<K: Resource> {
    pub(crate) reflector: Reflector<K>,
    runtime: Runtime,
    cluster: Recorded,
    events: mpsc::UnboundedReceiver<String>,
    /// With its slash.
    namespace: String,
}

impl<K: StaticKind> Followed<K> {
    pub(crate) async fn start(connection: Connection, options: Options<K>) -> Self {
        Self::over(Recorded::new(connection), "", K::static_kind(), options).await
    }
}

impl<K: Resource> Followed<K> {
    /// Events and keys do without the namespace named here.
    pub(crate) async fn over(
        cluster: Recorded,
        namespace: &str,
        kind: Kind,
        options: Options<K>,
    ) -> Self {
        let runtime = Runtime::new(cluster.clone());
        let reflector = runtime.reflect_kind::<K>(kind, options).await.unwrap();
        let (sender, events) = mpsc::unbounded_channel();
        let namespace = format!("{namespace}/");
        let teller = Teller { sender, namespace: namespace.clone(), objects: PhantomData };
        let teller = runtime.start_actor(|| teller).await.unwrap();
        reflector.subscribe(teller).await.unwrap();
        Self { reflector, runtime, cluster, events, namespace }
    }

    /// The next event, as a text with its cause.
    pub(crate) async fn next(&mut self) -> String {
        self.next_within(LONG).await
    }

    pub(crate) async fn next_within(&mut self, limit: Duration) -> String {
        match tokio::time::timeout(limit, self.events.recv()).await {
            Ok(event) => event.unwrap(),
            Err(_elapsed) => panic!("nothing came within {limit:?}\n{}", self.report()),
        }
    }

    /// The next event without its cause, where more than one is right.
    pub(crate) async fn next_change(&mut self) -> String {
        let event = self.next().await;
        event.split(" (").next().unwrap_or_default().to_owned()
    }

    /// The next events are these, whatever their order.
    pub(crate) async fn expect(&mut self, expected: &[&str]) {
        let mut told = Vec::new();
        while told.len() < expected.len() {
            told.push(self.next().await);
        }
        told.sort();
        let mut expected = expected.to_vec();
        expected.sort_unstable();
        assert_eq!(told, expected, "{}", self.report());
    }

    /// The last event of an object: that it was deleted. How many changes come before is the server's affair.
    pub(crate) async fn last_of(&mut self, name: &str) -> String {
        loop {
            let event = self.next().await;
            if event.starts_with(&format!("deleted {name} ")) {
                return event;
            }
            assert!(event.starts_with(&format!("updated {name} ")), "{event}");
        }
    }

    /// Nothing was told that has not been taken.
    pub(crate) fn expect_nothing_more(&mut self) {
        if let Ok(event) = self.events.try_recv() {
            panic!("unexpected: {event}\n{}", self.report());
        }
    }

    pub(crate) async fn until(&self, what: &str, holds: impl Fn(&Self) -> bool) {
        let came = eventually(LONG, || holds(self)).await;
        assert!(came, "never came: {what}\n{}", self.report());
    }

    /// Waits until this holds for the reflector.
    pub(crate) async fn until_reflector(&self, what: &str, holds: impl Fn(&Reflector<K>) -> bool) {
        self.until(what, |followed| holds(&followed.reflector)).await;
    }

    pub(crate) async fn until_watching(&self) {
        self.until_reflector("a watch", |it| it.status().phase == Phase::Watching).await;
    }

    /// Waits until something stands in the way.
    pub(crate) async fn until_condition(&self) {
        self.until_reflector("a condition", |it| it.status().condition.is_some()).await;
    }

    /// Waits until nothing stands in the way any more.
    pub(crate) async fn until_recovered(&self) {
        self.until_reflector("a watch again", |it| {
            let status = it.status();
            status.condition.is_none() && status.phase == Phase::Watching
        })
        .await;
    }

    pub(crate) fn exchanges(&self) -> Vec<Exchange> {
        self.cluster.exchanges()
    }

    /// Keys and versions of the cache.
    pub(crate) fn cached(&self) -> BTreeMap<String, String> {
        let snapshot = self.reflector.store().snapshot();
        let version = |object: &K| object.resource_version().unwrap_or_default().to_owned();
        let name = |key: String| key.replacen(&self.namespace, "", 1);
        snapshot.iter().map(|(key, object)| (name(key.to_string()), version(object))).collect()
    }

    /// The version the cache has reached.
    pub(crate) fn position(&self) -> u64 {
        let version = self.reflector.status().resource_version.expect("it has synced");
        version.as_str().parse().expect("versions of Kubernetes are numbers")
    }

    pub(crate) async fn stop(self) {
        self.runtime.stop().await;
    }

    /// What to look at when a test fails.
    pub(crate) fn report(&self) -> String {
        let exchanges = self.exchanges();
        let last = &exchanges[exchanges.len().saturating_sub(12)..];
        let lines: Vec<String> = last.iter().map(|exchange| format!("{exchange:?}")).collect();
        format!("{:#?}\nlast requests:\n{}", self.reflector.status(), lines.join("\n"))
    }
}

struct Teller<K> {
    sender: mpsc::UnboundedSender<String>,
    namespace: String,
    objects: PhantomData<fn() -> K>,
}

impl<K: Resource> Actor for Teller<K> {
    type Context = Context<Self>;
}

impl<K: Resource> Handler<ResourceEvent<K>> for Teller<K> {
    type Result = ();

    fn handle(&mut self, event: ResourceEvent<K>, _: &mut Context<Self>) {
        let event = format!("{event:?}").replacen(&self.namespace, "", 1);
        self.sender.send(event).ok();
    }
}

/// Looks again and again, until it holds or the time is over.
pub(crate) async fn eventually(limit: Duration, mut holds: impl FnMut() -> bool) -> bool {
    let deadline = Instant::now() + limit;
    while !holds() {
        if Instant::now() > deadline {
            return false;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    true
}

/// A number that may be given from outside.
pub(crate) fn number<T: FromStr>(variable: &str, otherwise: T) -> T {
    let given = env::var(variable).ok();
    given.map_or(otherwise, |text| {
        text.parse().unwrap_or_else(|_| panic!("{variable} is no number: {text}"))
    })
}

/// Options that try again soon.
pub(crate) fn quick<K>() -> Options<K> {
    Options::all().backoff(BackoffOptions {
        first: Duration::from_millis(200),
        cap: Duration::from_secs(1),
        ..BackoffOptions::default()
    })
}

pub(crate) fn pod(name: &str) -> Pod {
    let pod = json!({
        "metadata": { "name": name },
        "spec": { "containers": [{ "name": "main", "image": "app" }] },
    });
    serde_json::from_value(pod).unwrap()
}

pub(crate) fn config_map(name: &str) -> ConfigMap {
    let map = json!({ "metadata": { "name": name } });
    serde_json::from_value(map).unwrap()
}
