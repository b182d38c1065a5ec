//! An API server in memory that speaks the Kubernetes protocol: for tests, demos and first steps without a cluster.
//!
//! [`ApiServer`] is the whole of it. It can be asked in two ways, with the same answers:
//! - in process, as a [`Cluster`](crate::client::Cluster): no socket, and time may be paused;
//! - over HTTP, once [started](ApiServer::start): kubectl can talk to it.
//!
//! ```
//! use kubeflect::embedded::ApiServer;
//! use kubeflect::object::{ObjectKey, StaticKind};
//! use k8s_openapi::api::core::v1::ConfigMap;
//! use serde_json::json;
//!
//! let server = ApiServer::new();
//! server.create(json!({
//!     "apiVersion": "v1", "kind": "ConfigMap",
//!     "metadata": { "namespace": "default", "name": "settings" },
//!     "data": { "colour": "blue" },
//! })).unwrap();
//! let objects = server.objects(&ConfigMap::static_kind());
//! assert!(objects.contains_key(&ObjectKey::new("default", "settings")));
//! ```
//!
//! What Kubernetes does and this server does not: validation, defaults, controllers, users and their rights (but see
//! [`demand_tokens`](ApiServer::demand_tokens) and [`forbid`](ApiServer::forbid); roles are kept and grant nothing),
//! server-side apply, conversion between versions of a custom resource, bodies in YAML or protobuf. kubectl writes
//! protobuf in `kubectl create KIND NAME` and `kubectl auth can-i`, and goes on in no other format when refused:
//! `kubectl create KIND NAME … --dry-run=client -o yaml | kubectl apply -f -` does it in JSON.
#![allow(
    clippy::result_large_err,
    reason = "a Status is one of the answers here, and as common as any other"
)]

mod aggregated;
mod continue_token;
mod control;
mod demo;
mod discovery;
mod failure;
mod faults;
mod frames;
mod history;
mod in_process;
mod model;
mod mutation;
mod openapi;
mod options;
mod reads;
mod resources;
mod reviews;
mod route;
mod scale;
mod selection;
mod serve;
mod stored;
mod strategic_merge;
mod table;
#[cfg(test)]
mod tests;
mod watch;
mod writes;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Map, Value};
use tokio::time::Instant;

pub use self::faults::{Filter, RawAnswer, SeenRequest, Verb};
pub use self::serve::ServingApiServer;

use self::failure::Failure;
use self::model::Model;
use self::mutation::{Preconditions, metadata_of, text};
use self::resources::{ResourceId, Served};
use self::route::{Call, Target};
use crate::api::Status;
use crate::client::{Request, Response};
use crate::object::{Kind, ObjectKey};

/// An API server in memory. Clones are the same server.
///
/// It has words for what goes wrong with real ones: requests are [refused](Self::refuse) or [delayed](Self::delay),
/// rights [missing](Self::forbid), watches [cut](Self::cut_watches) or [silent](Self::silence_watches), objects
/// [unreadable](Self::corrupt), its history [forgotten](Self::forget_history) or [taken back](Self::restore), until it
/// is made to [heal](Self::heal).
///
/// ```
/// use k8s_openapi::api::core::v1::Node;
/// use kubeflect::embedded::ApiServer;
/// use kubeflect::object::StaticKind;
/// use kubeflect::{ObjectKey, Options, Runtime};
///
/// # actix_rt::System::new().block_on(async {
/// let server = ApiServer::demo_cluster(1);
/// let broken = ObjectKey::cluster_scoped("node-1");
/// server.corrupt(&Node::static_kind(), &broken, r#"{"metadata":{"name":"node-1"},"spec":7}"#).unwrap();
///
/// let runtime = Runtime::new(server.clone());
/// let nodes = runtime.reflect::<Node>(Options::all()).await?;
/// nodes.synced().await?;
/// assert_eq!(nodes.store().len(), 2);
/// assert!(nodes.status().quarantined.objects.contains_key(&broken));
/// # runtime.stop().await;
/// # Ok::<(), kubeflect::Error>(())
/// # }).unwrap();
/// ```
#[derive(Clone)]
pub struct ApiServer {
    model: Arc<Mutex<Model>>,
}

impl fmt::Debug for ApiServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Its objects may be secrets, and its lock may be taken.
        f.debug_struct("ApiServer").finish_non_exhaustive()
    }
}

impl Default for ApiServer {
    fn default() -> Self {
        Self::new()
    }
}

impl ApiServer {
    /// An empty server that knows the common kinds and listens nowhere.
    pub fn new() -> Self {
        Self::seeded(0)
    }

    /// The same; uids, generated names and watch timeouts follow from the seed.
    pub fn seeded(seed: u64) -> Self {
        Self { model: Arc::new(Mutex::new(Model::new(seed))) }
    }

    /// Serves one more kind; a kind already served stays as it is.
    pub fn register(&self, kind: Kind) {
        let mut model = lock(&self.model);
        if model.collection(&ResourceId::of(&kind)).is_none() {
            model.register(Served::custom(kind));
        }
    }

    /// Deletes the objects of a kind, ends its watches and serves it no more, as when its definition is deleted.
    pub fn unregister(&self, kind: &Kind) {
        lock(&self.model).unregister(kind);
    }

    /// The same at one blow: no watch is told of a deletion, each just ends.
    pub fn vanish(&self, kind: &Kind) {
        lock(&self.model).vanish(kind);
    }

    /// Creates an object, which says itself of which kind it is. A namespace it does not name is `default`.
    ///
    /// # Errors
    /// As Kubernetes: the object exists, has no name, or its kind is not served.
    pub fn create(&self, object: Value) -> Result<Value, Status> {
        let mut model = lock(&self.model);
        let (resource, key, object) = locate(&model, object)?;
        let namespace = key.namespace().unwrap_or_default();
        model.create(&resource, namespace, object).map_err(|failure| failure.status)
    }

    /// Replaces an object; if it carries a version, only that version.
    ///
    /// # Errors
    /// As Kubernetes: there is no such object, or it has another version by now.
    pub fn update(&self, object: Value) -> Result<Value, Status> {
        let mut model = lock(&self.model);
        let (resource, key, object) = locate(&model, object)?;
        model.replace(&resource, &key, object).map_err(|failure| failure.status)
    }

    /// Creates or replaces an object, whatever its version.
    ///
    /// # Errors
    /// When the object has no name, or its kind is not served.
    pub fn apply(&self, object: Value) -> Result<Value, Status> {
        let mut model = lock(&self.model);
        let (resource, key, mut object) = locate(&model, object)?;
        let metadata = metadata_of(&mut object).map_err(|failure| failure.status)?;
        metadata.remove("resourceVersion");
        metadata.remove("uid");
        let applied = match model.object(&resource, &key) {
            Some(_) => model.replace(&resource, &key, object),
            None => model.create(&resource, key.namespace().unwrap_or_default(), object),
        };
        applied.map_err(|failure| failure.status)
    }

    /// Deletes an object and returns its last state. Finalizers hold it back, as in Kubernetes.
    ///
    /// # Errors
    /// When there is no such object.
    pub fn delete(&self, kind: &Kind, key: &ObjectKey) -> Result<Value, Status> {
        let resource = ResourceId::of(kind);
        let removed = lock(&self.model).remove(&resource, key, &Preconditions::default());
        removed.map_err(|failure| failure.status)
    }

    /// One object as it is now.
    pub fn get_object(&self, kind: &Kind, key: &ObjectKey) -> Option<Value> {
        let object = lock(&self.model).object(&ResourceId::of(kind), key).map(Arc::clone);
        object.map(|object| object.to_value())
    }

    /// All objects of a kind, each by uid and resource version: what a reflection must come to show.
    pub fn objects(&self, kind: &Kind) -> BTreeMap<ObjectKey, (String, String)> {
        let model = lock(&self.model);
        let objects = model.collection(&ResourceId::of(kind)).map(|collection| &collection.objects);
        objects
            .into_iter()
            .flatten()
            .map(|(key, object)| (key.clone(), (object.uid.clone(), object.revision.to_string())))
            .collect()
    }

    /// The version of the last write, of whichever kind.
    pub fn resource_version(&self) -> String {
        lock(&self.model).revision().to_string()
    }

    /// Answers a request. A watch is answered at once; its body goes on.
    pub async fn handle(&self, request: Request) -> Response {
        self.answer(Call::from(request)).await
    }

    async fn answer(&self, call: Call) -> Response {
        let (target, verb, delay) = self.admit(&call);
        if !delay.is_zero() {
            tokio::time::sleep(delay).await;
        }
        let planned = lock(&self.model).faults.planned(verb, target.resource());
        if let Some(planned) = planned {
            return planned.response();
        }
        self.respond(&call, &target, verb).await.unwrap_or_else(|failure| failure.response())
    }

    /// Finds out what is asked, and notes it down.
    fn admit(&self, call: &Call) -> (Target, Verb, std::time::Duration) {
        let mut model = lock(&self.model);
        let target = Target::of(&call.path, &model);
        let verb = target.verb(call);
        let (path, query) = (call.path.clone(), call.query.clone());
        model.remember(SeenRequest { verb, path, query, at: Instant::now() });
        let delay = model.faults.delay_of(verb, target.resource());
        (target, verb, delay)
    }

    async fn respond(&self, call: &Call, target: &Target, verb: Verb) -> Result<Response, Failure> {
        self.authorise(target, verb)?;
        match (target, verb) {
            (Target::Discovery(path), _) => {
                let model = lock(&self.model);
                let reviewed = reviews::answer(&model, call, path);
                reviewed.unwrap_or_else(|| Ok(discovery::answer(&model, call, path)))
            }
            (Target::Collection { resource, namespace }, verb) => {
                let namespace = namespace.as_deref();
                match verb {
                    Verb::List => self.list(call, resource, namespace).await,
                    Verb::Watch => self.watch(call, resource, namespace),
                    Verb::Create => {
                        self.write(call, |model| writes::create(model, call, resource, namespace))
                    }
                    Verb::DeleteCollection => self.write(call, |model| {
                        writes::delete_collection(model, call, resource, namespace)
                    }),
                    _ => Err(Failure::method_not_allowed()),
                }
            }
            (Target::Scale { resource, key }, verb) => match verb {
                Verb::Get => scale::read(&lock(&self.model), resource, key),
                Verb::Update | Verb::Patch => {
                    self.write(call, |model| scale::write(model, call, resource, key))
                }
                _ => Err(Failure::method_not_allowed()),
            },
            (Target::Object { resource, key }, verb) => match verb {
                Verb::Get => self.get(call, resource, key).await,
                Verb::Update => {
                    self.write(call, |model| writes::replace(model, call, resource, key))
                }
                Verb::Patch => self.write(call, |model| writes::patch(model, call, resource, key)),
                Verb::Delete => {
                    self.write(call, |model| writes::delete(model, call, resource, key))
                }
                _ => Err(Failure::method_not_allowed()),
            },
        }
    }

    /// Writes, or only says what a write would come to: `dryRun=All`.
    fn write(
        &self,
        call: &Call,
        write: impl FnOnce(&mut Model) -> Result<Response, Failure>,
    ) -> Result<Response, Failure> {
        let rehearsing = writes::asks_for_a_dry_run(call)?;
        let mut model = lock(&self.model);
        model.rehearsing = rehearsing;
        let written = write(&mut model);
        model.rehearsing = false;
        written
    }

    fn authorise(&self, target: &Target, verb: Verb) -> Result<(), Failure> {
        let model = lock(&self.model);
        match target.resource().filter(|resource| model.faults.is_forbidden(resource, verb)) {
            Some(resource) => {
                let served = model.served(resource)?;
                let (namespace, name) = (target.namespace(), target.name());
                Err(Failure::forbidden(&served, verb.as_str(), namespace, name))
            }
            None => Ok(()),
        }
    }
}

/// Finds the place of an object by what it says of itself.
fn locate(
    model: &Model,
    object: Value,
) -> Result<(ResourceId, ObjectKey, Map<String, Value>), Status> {
    let Value::Object(mut object) = object else {
        return Err(Failure::bad_request("an object is written in braces").status);
    };
    let (api_version, kind) = (text(&object, "apiVersion"), text(&object, "kind"));
    let resource = model
        .resource_of(api_version, kind)
        .ok_or_else(|| Failure::no_such_kind(api_version, kind).status)?;
    let namespaced = model.served(&resource).is_ok_and(|served| served.is_namespaced());
    let metadata = metadata_of(&mut object).map_err(|failure| failure.status)?;
    let namespace = match text(metadata, "namespace") {
        _ if !namespaced => "",
        "" => "default",
        namespace => namespace,
    };
    let key = ObjectKey::new(namespace, text(metadata, "name"));
    Ok((resource, key, object))
}

/// The model is whole between any two writes, so that a panic elsewhere does not spoil it.
fn lock(model: &Mutex<Model>) -> MutexGuard<'_, Model> {
    model.lock().unwrap_or_else(PoisonError::into_inner)
}
