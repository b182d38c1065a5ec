use std::fmt;
use std::marker::PhantomData;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use serde::Serialize;
use serde_json::{Value, json};

use super::answer::{read_body, require_success};
use super::path::Place;
use super::{Method, Request, Transport};
use crate::api::ApiError;
use crate::object::{Kind, Resource, ResourceVersion, Scope, StaticKind};

/// No object may be larger: the limit of list items and watch events.
const OBJECT_CAP: usize = 16 << 20;
/// The server gives up on a request after 60 s.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(65);

/// The objects of one kind, to be read and written one at a time.
///
/// ```
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kubeflect::client::{Cluster, DeleteOptions, Objects, Patch};
/// use kubeflect::embedded::ApiServer;
/// use serde_json::json;
///
/// # actix_rt::System::new().block_on(async {
/// let transport = ApiServer::demo_cluster(1).connect()?;
/// let config_maps = Objects::<ConfigMap>::of(transport).in_namespace("shop");
/// let settings: ConfigMap = serde_json::from_value(json!({ "metadata": { "name": "settings" } })).unwrap();
/// config_maps.create(&settings).await?;
/// let change = Patch::Merge(json!({ "data": { "colour": "blue" } }));
/// let settings = config_maps.patch("settings", &change).await?;
/// assert_eq!(settings.data.unwrap()["colour"], "blue");
/// config_maps.delete("settings", &DeleteOptions::default()).await?;
/// # Ok::<(), kubeflect::api::ApiError>(())
/// # }).unwrap();
/// ```
pub struct Objects<K> {
    transport: Rc<dyn Transport>,
    kind: Rc<Kind>,
    namespace: Option<Rc<str>>,
    objects: PhantomData<fn() -> K>,
}

/// How to change an object without sending the whole of it.
#[derive(Clone, PartialEq)]
pub enum Patch {
    /// Sets the fields given, and removes those given as null (RFC 7386).
    Merge(Value),
    /// Carries out operations one after the other (RFC 6902).
    Json(Value),
    /// Merges lists too, as the schema of a built-in kind says.
    Strategic(Value),
    /// Declares the fields that are ours; the server leaves those of others alone.
    #[doc(alias = "server-side apply")]
    Apply {
        /// The object, with our fields only.
        object: Value,
        /// Who we are.
        field_manager: String,
        /// Whether to take fields that are somebody else's.
        force: bool,
    },
}

/// Without what it changes: that may be a secret.
impl fmt::Debug for Patch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Merge(_) => "Merge",
            Self::Json(_) => "Json",
            Self::Strategic(_) => "Strategic",
            Self::Apply { .. } => "Apply",
        })
    }
}

/// How to delete an object.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DeleteOptions {
    /// Only the object with this uid, not a later one of the same name.
    pub uid: Option<String>,
    /// Only in this state.
    pub resource_version: Option<ResourceVersion>,
    /// What happens to the objects it owns; none leaves that to the kind.
    pub propagation: Option<Propagation>,
    /// How long it may take to end, in seconds; none leaves that to the object.
    pub grace_period_seconds: Option<u32>,
}

/// What happens to the objects that a deleted object owns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Propagation {
    /// They stay.
    Orphan,
    /// They are deleted afterwards.
    Background,
    /// They are deleted first.
    Foreground,
}

impl<K: StaticKind> Objects<K> {
    /// The objects of a type whose kind is known when compiling.
    pub fn of(transport: Rc<dyn Transport>) -> Self {
        Self::new(transport, K::static_kind())
    }
}

impl<K: Resource> Objects<K> {
    /// The objects of a kind.
    pub fn new(transport: Rc<dyn Transport>, kind: Kind) -> Self {
        Self { transport, kind: Rc::new(kind), namespace: None, objects: PhantomData }
    }

    /// The objects of one namespace.
    #[must_use]
    pub fn in_namespace(self, namespace: &str) -> Self {
        Self { namespace: Some(namespace.into()), ..self }
    }

    /// Reads an object.
    ///
    /// # Errors
    /// [`ApiError::NotFound`] when there is none.
    pub async fn get(&self, name: &str) -> Result<K, ApiError> {
        self.object(Request::get(self.path(name, None, None)?)).await
    }

    /// Creates an object, and returns it as the server keeps it. Without a namespace of our own it goes to that of
    /// the object.
    ///
    /// # Errors
    /// [`ApiError::AlreadyExists`] when one of its name is there.
    pub async fn create(&self, object: &K) -> Result<K, ApiError>
    where
        K: Serialize,
    {
        let key = object.key();
        let path = self.place(key.namespace())?.collection()?;
        self.object(self.write(Method::Post, path, "application/json", &self.typed(object)?)?).await
    }

    /// Replaces an object: the one of its name, in the version it states.
    ///
    /// # Errors
    /// [`ApiError::Conflict`] when it changed meanwhile: read it again, and change that.
    pub async fn replace(&self, object: &K) -> Result<K, ApiError>
    where
        K: Serialize,
    {
        self.put(object, None).await
    }

    /// Replaces the status of an object, and nothing else of it.
    ///
    /// # Errors
    /// As [`replace`](Self::replace).
    pub async fn replace_status(&self, object: &K) -> Result<K, ApiError>
    where
        K: Serialize,
    {
        self.put(object, Some("status")).await
    }

    /// Changes parts of an object.
    ///
    /// # Errors
    /// [`ApiError::Conflict`] when the patch states a version that has passed, or others own the fields.
    pub async fn patch(&self, name: &str, patch: &Patch) -> Result<K, ApiError> {
        self.patch_at(self.path(name, None, None)?, patch).await
    }

    /// Changes parts of the status of an object.
    ///
    /// # Errors
    /// As [`patch`](Self::patch).
    pub async fn patch_status(&self, name: &str, patch: &Patch) -> Result<K, ApiError> {
        self.patch_at(self.path(name, Some("status"), None)?, patch).await
    }

    /// Deletes an object. It may take a while to go: finalizers hold it.
    ///
    /// # Errors
    /// [`ApiError::NotFound`] when there is none, [`ApiError::Conflict`] when it is not the one that was meant.
    pub async fn delete(&self, name: &str, options: &DeleteOptions) -> Result<(), ApiError> {
        let path = self.path(name, None, None)?;
        let request = self.write(Method::Delete, path, "application/json", &options.body())?;
        // The object or a status: either says that it was done.
        self.send(request).await.map(|_body| ())
    }

    async fn put(&self, object: &K, part: Option<&str>) -> Result<K, ApiError>
    where
        K: Serialize,
    {
        let key = object.key();
        let path = self.path(key.name(), part, key.namespace())?;
        self.object(self.write(Method::Put, path, "application/json", &self.typed(object)?)?).await
    }

    async fn patch_at(&self, path: String, patch: &Patch) -> Result<K, ApiError> {
        let (content_type, change) = match patch {
            Patch::Merge(change) => ("application/merge-patch+json", change),
            Patch::Json(change) => ("application/json-patch+json", change),
            Patch::Strategic(change) => ("application/strategic-merge-patch+json", change),
            // JSON is YAML.
            Patch::Apply { object, .. } => ("application/apply-patch+yaml", object),
        };
        let mut request = self.write(Method::Patch, path, content_type, change)?;
        if let Patch::Apply { field_manager, force, .. } = patch {
            request.query.push(("fieldManager", field_manager.clone()));
            request.query.push(("force", force.to_string()));
        }
        self.object(request).await
    }

    fn path(
        &self,
        name: &str,
        part: Option<&str>,
        stated_namespace: Option<&str>,
    ) -> Result<String, ApiError> {
        self.place(stated_namespace)?.object(name, part)
    }

    fn place<'a>(&'a self, stated_namespace: Option<&'a str>) -> Result<Place<'a>, ApiError> {
        let (kind, namespace) = (&*self.kind, self.namespace.as_deref().or(stated_namespace));
        match (kind.scope, namespace) {
            (Scope::Namespaced, None) => Err(ApiError::Invalid {
                message: format!("{kind} are in namespaces: say in which"),
            }),
            (Scope::Cluster, Some(_)) => {
                Err(ApiError::Invalid { message: format!("{kind} are in no namespace") })
            }
            _ => Ok(Place { kind, namespace }),
        }
    }

    /// The object with its type: servers want it, and some of our types do not write it.
    fn typed(&self, object: &K) -> Result<Value, ApiError>
    where
        K: Serialize,
    {
        let unwritable = || ApiError::Invalid {
            message: format!("an object of {} can not be written", self.kind),
        };
        let mut value = serde_json::to_value(object).map_err(|_error| unwritable())?;
        let fields = value.as_object_mut().ok_or_else(unwritable)?;
        fields.entry("apiVersion").or_insert_with(|| json!(self.kind.api_version()));
        fields.entry("kind").or_insert_with(|| json!(self.kind.kind));
        Ok(value)
    }

    fn write(
        &self,
        method: Method,
        path: String,
        content_type: &'static str,
        body: &Value,
    ) -> Result<Request, ApiError> {
        let body = body.to_string();
        if body.len() > OBJECT_CAP {
            let message = format!("an object of {} is larger than {OBJECT_CAP} bytes", self.kind);
            return Err(ApiError::Invalid { message });
        }
        let (content_type, body) = (Some(content_type), Bytes::from(body));
        Ok(Request { method, content_type, body, ..Request::get(path) })
    }

    async fn object(&self, request: Request) -> Result<K, ApiError> {
        let body = self.send(request).await?;
        K::decode(&body, &self.kind).map_err(|error| {
            ApiError::malformed(format!("an object of {} can not be read: {error}", self.kind))
        })
    }

    async fn send(&self, request: Request) -> Result<Bytes, ApiError> {
        let answer = async {
            let response = require_success(self.transport.send(request).await?).await?;
            read_body(response.body, OBJECT_CAP).await
        };
        let answer = tokio::time::timeout(REQUEST_TIMEOUT, answer).await;
        answer.map_err(|_elapsed| ApiError::Timeout { waited: REQUEST_TIMEOUT })?
    }
}

impl DeleteOptions {
    fn body(&self) -> Value {
        let mut body = json!({ "kind": "DeleteOptions", "apiVersion": "v1" });
        if let Some(uid) = &self.uid {
            body["preconditions"]["uid"] = json!(uid);
        }
        if let Some(version) = &self.resource_version {
            body["preconditions"]["resourceVersion"] = json!(version.as_str());
        }
        if let Some(propagation) = self.propagation {
            body["propagationPolicy"] = json!(propagation);
        }
        if let Some(seconds) = self.grace_period_seconds {
            body["gracePeriodSeconds"] = json!(seconds);
        }
        body
    }
}

impl<K> Clone for Objects<K> {
    fn clone(&self) -> Self {
        Self {
            transport: Rc::clone(&self.transport),
            kind: Rc::clone(&self.kind),
            namespace: self.namespace.clone(),
            objects: PhantomData,
        }
    }
}

impl<K> fmt::Debug for Objects<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Objects")
            .field("kind", &self.kind)
            .field("namespace", &self.namespace)
            .finish_non_exhaustive()
    }
}
