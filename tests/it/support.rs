//! Words the tests are written in.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use actix::{Actor, Addr, Context, Handler};
use k8s_openapi::api::core::v1::Pod;
use kubeflect::embedded::ApiServer;
use kubeflect::object::{Kind, Resource, StaticKind};
use kubeflect::{ObjectKey, Options, Reflector, ResourceEvent, Runtime, RuntimeOptions, Threads};
use serde_json::{Value, json};

/// Runs a test in an actix system whose clock stands still unless everybody waits for it.
pub(crate) fn on_a_paused_clock<T>(test: impl Future<Output = T>) -> T {
    let runtime = || {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        builder.enable_all().start_paused(true).build().unwrap()
    };
    actix_rt::System::with_tokio_rt(runtime).block_on(test)
}

/// A server and a runtime that reflects it, on one thread.
pub(crate) struct World {
    pub(crate) server: ApiServer,
    pub(crate) runtime: Runtime,
}

impl World {
    pub(crate) fn new() -> Self {
        Self::with(ApiServer::seeded(1))
    }

    pub(crate) fn with(server: ApiServer) -> Self {
        let options = RuntimeOptions {
            threads: Threads::Callers,
            seed: Some(1),
            ..RuntimeOptions::default()
        };
        Self { runtime: Runtime::with_options(server.clone(), options), server }
    }

    pub(crate) fn pods(self, names: &[&str]) -> Self {
        names.iter().for_each(|name| self.create(name));
        self
    }

    pub(crate) async fn reflect(&self) -> Reflector<Pod> {
        self.reflect_with(Options::all()).await
    }

    pub(crate) async fn reflect_with(&self, options: Options<Pod>) -> Reflector<Pod> {
        self.runtime.reflect(options).await.unwrap()
    }

    /// A reflector that has synced, and the log of a subscriber that was told so and nothing since.
    pub(crate) async fn follow(&self, options: Options<Pod>) -> (Reflector<Pod>, Arc<Mutex<Log>>) {
        let pods = self.reflect_with(options).await;
        let (recorder, log) = Recorder::start();
        assert!(pods.subscribe(recorder).await.unwrap().synced().await);
        log.lock().unwrap().take();
        (pods, log)
    }

    pub(crate) fn create(&self, name: &str) {
        self.server.create(pod(name)).unwrap();
    }

    /// Changes a pod, so that it gets another version.
    pub(crate) fn touch(&self, name: &str) {
        let mut changed = pod(name);
        changed["metadata"]["annotations"] = json!({ "touched": self.server.resource_version() });
        self.server.apply(changed).unwrap();
    }

    pub(crate) fn delete(&self, name: &str) {
        self.server.delete(&Pod::static_kind(), &key(name)).unwrap();
    }

    /// Deletes a pod, or creates it if it is not there.
    pub(crate) fn toggle(&self, name: &str) {
        match self.server.get_object(&Pod::static_kind(), &key(name)) {
            Some(_) => self.delete(name),
            None => self.create(name),
        }
    }

    /// What the server has.
    pub(crate) fn truth(&self) -> BTreeMap<String, String> {
        self.truth_of(&Pod::static_kind())
    }

    pub(crate) fn truth_of(&self, kind: &Kind) -> BTreeMap<String, String> {
        let objects = self.server.objects(kind);
        objects.into_iter().map(|(key, (_, version))| (key.to_string(), version)).collect()
    }

    /// How often a request of this kind was seen: `list`, `watch`, `streaming list`, or `check`, a list of one object
    /// that asks how far the server has come.
    pub(crate) fn seen(&self, what: &str) -> usize {
        let is_watch =
            |request: &kubeflect::embedded::SeenRequest| request.parameter("watch").is_some();
        let is_streaming = |request: &kubeflect::embedded::SeenRequest| {
            request.parameter("sendInitialEvents").is_some()
        };
        let is_check =
            |request: &kubeflect::embedded::SeenRequest| request.parameter("limit") == Some("1");
        let requests = self.server.requests();
        let matching = requests.iter().filter(|request| match what {
            "list" => !is_watch(request) && !is_check(request),
            "check" => is_check(request),
            "watch" => is_watch(request) && !is_streaming(request),
            "streaming list" => is_streaming(request),
            _ => panic!("no such request: {what}"),
        });
        matching.count()
    }
}

pub(crate) fn pod(name: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": { "name": name, "namespace": "default", "labels": { "app": "web" } },
        "spec": { "containers": [{ "name": "main", "image": "app" }] },
    })
}

pub(crate) fn key(name: &str) -> ObjectKey {
    ObjectKey::new("default", name)
}

/// Names and versions of what a cache holds.
pub(crate) fn cached<K: Resource>(reflector: &Reflector<K>) -> BTreeMap<String, String> {
    let snapshot = reflector.store().snapshot();
    let version = |object: &Arc<K>| object.resource_version().unwrap_or_default().to_owned();
    snapshot.iter().map(|(key, object)| (key.to_string(), version(object))).collect()
}

/// Lets everybody do what is to be done at once.
pub(crate) async fn settle() {
    tokio::time::sleep(Duration::from_millis(20)).await;
}

/// Lets time pass.
pub(crate) async fn pass(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

/// A subscriber that remembers.
pub(crate) struct Recorder {
    log: Arc<Mutex<Log>>,
    pace: Option<Duration>,
}

/// What a [`Recorder`] was told.
#[derive(Debug, Default)]
pub(crate) struct Log {
    /// `added a`, in short names.
    pub(crate) events: Vec<String>,
    /// The same, with their causes.
    pub(crate) causes: Vec<String>,
    /// What a subscriber knows that applied everything.
    pub(crate) fold: BTreeMap<String, String>,
    /// What should never happen.
    pub(crate) violations: Vec<String>,
}

impl Recorder {
    pub(crate) fn start() -> (Addr<Self>, Arc<Mutex<Log>>) {
        Self::start_with(None)
    }

    /// One that takes its time over each event.
    pub(crate) fn start_slow(pace: Duration) -> (Addr<Self>, Arc<Mutex<Log>>) {
        Self::start_with(Some(pace))
    }

    fn start_with(pace: Option<Duration>) -> (Addr<Self>, Arc<Mutex<Log>>) {
        let log = Arc::default();
        (Self { log: Arc::clone(&log), pace }.start(), log)
    }
}

impl Actor for Recorder {
    type Context = Context<Self>;
}

impl<K: Resource> Handler<ResourceEvent<K>> for Recorder {
    type Result = ();

    fn handle(&mut self, event: ResourceEvent<K>, context: &mut Context<Self>) {
        self.log.lock().unwrap().record(&event);
        if let Some(pace) = self.pace {
            use actix::{AsyncContext as _, WrapFuture as _};
            context.wait(tokio::time::sleep(pace).into_actor(self));
        }
    }
}

impl Log {
    pub(crate) fn record<K: Resource>(&mut self, event: &ResourceEvent<K>) {
        let text = event.to_string().replace("default/", "");
        self.causes.push(format!("{event:?}").replace("default/", ""));
        let version = |object: &K| object.resource_version().unwrap_or_default().to_owned();
        match event {
            ResourceEvent::Added { object, .. } => {
                if self.fold.insert(object.key().to_string(), version(object)).is_some() {
                    self.violations.push(format!("{text}, though known"));
                }
            }
            ResourceEvent::Updated { old, new, .. } => {
                let known = self.fold.insert(new.key().to_string(), version(new));
                if known.as_deref() != Some(&version(old)) {
                    self.violations
                        .push(format!("{text} from {} though {known:?} was known", version(old)));
                }
            }
            ResourceEvent::Deleted { last_known, .. } => {
                if self.fold.remove(&last_known.key().to_string()).is_none() {
                    self.violations.push(format!("{text}, though not known"));
                }
            }
            ResourceEvent::Synced => {}
        }
        self.events.push(text);
    }

    /// Takes the events so far.
    pub(crate) fn take(&mut self) -> Vec<String> {
        self.causes.clear();
        std::mem::take(&mut self.events)
    }
}

/// The events so far, in short.
pub(crate) fn told(log: &Arc<Mutex<Log>>) -> Vec<String> {
    log.lock().unwrap().take()
}

/// The events so far, with their causes.
pub(crate) fn told_why(log: &Arc<Mutex<Log>>) -> Vec<String> {
    let mut log = log.lock().unwrap();
    log.events.clear();
    std::mem::take(&mut log.causes)
}
