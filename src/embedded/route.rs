use bytes::Bytes;
use percent_encoding::percent_decode_str;

use super::faults::Verb;
use super::model::Model;
use super::options::Query;
use super::resources::ResourceId;
use crate::client::{Method, Request};
use crate::object::ObjectKey;

/// A request, whichever door it came in by.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) method: Method,
    pub(super) path: String,
    pub(super) query: Vec<(String, String)>,
    pub(super) accept: String,
    pub(super) content_type: String,
    pub(super) body: Bytes,
}

/// What a request is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Target {
    /// All objects of a resource, or those of one namespace.
    Collection { resource: ResourceId, namespace: Option<String> },
    /// One object.
    Object { resource: ResourceId, key: ObjectKey },
    /// How many replicas one object has.
    Scale { resource: ResourceId, key: ObjectKey },
    /// Which kinds there are, the version, health.
    Discovery(Vec<String>),
}

impl From<Request> for Call {
    fn from(request: Request) -> Self {
        let query = request.query.into_iter().map(|(name, value)| (name.to_owned(), value));
        Self {
            method: request.method,
            path: request.path,
            query: query.collect(),
            accept: request.accept.to_owned(),
            content_type: request.content_type.unwrap_or_default().to_owned(),
            body: request.body,
        }
    }
}

impl Target {
    pub(super) fn of(path: &str, model: &Model) -> Self {
        let parts: Vec<String> = path
            .split('/')
            .filter(|part| !part.is_empty())
            .map(|part| percent_decode_str(part).decode_utf8_lossy().into_owned())
            .collect();
        let parts_as_text: Vec<&str> = parts.iter().map(String::as_str).collect();
        let found = match parts_as_text.as_slice() {
            ["api", version, rest @ ..] => resource_target(model, "", version, rest),
            ["apis", group, version, rest @ ..] => resource_target(model, group, version, rest),
            _ => None,
        };
        found.unwrap_or(Self::Discovery(parts))
    }

    pub(super) fn resource(&self) -> Option<&ResourceId> {
        match self {
            Self::Collection { resource, .. }
            | Self::Object { resource, .. }
            | Self::Scale { resource, .. } => Some(resource),
            Self::Discovery(_) => None,
        }
    }

    pub(super) fn namespace(&self) -> Option<&str> {
        match self {
            Self::Collection { namespace, .. } => namespace.as_deref(),
            Self::Object { key, .. } | Self::Scale { key, .. } => key.namespace(),
            Self::Discovery(_) => None,
        }
    }

    /// The name of the object; empty for a collection.
    pub(super) fn name(&self) -> &str {
        match self {
            Self::Object { key, .. } | Self::Scale { key, .. } => key.name(),
            Self::Collection { .. } | Self::Discovery(_) => "",
        }
    }

    pub(super) fn verb(&self, call: &Call) -> Verb {
        match (self, call.method) {
            (Self::Discovery(_), _) => Verb::Discover,
            (Self::Object { .. } | Self::Scale { .. }, Method::Get) => Verb::Get,
            (Self::Collection { .. }, Method::Get) if Query(&call.query).asks_to_watch() => {
                Verb::Watch
            }
            (Self::Collection { .. }, Method::Get) => Verb::List,
            (_, Method::Post) => Verb::Create,
            (_, Method::Put) => Verb::Update,
            (_, Method::Patch) => Verb::Patch,
            (Self::Object { .. } | Self::Scale { .. }, Method::Delete) => Verb::Delete,
            (Self::Collection { .. }, Method::Delete) => Verb::DeleteCollection,
        }
    }
}

/// Reads what follows the group and version. Below an object only `scale` and `status` are known; that one means the
/// object.
fn resource_target(model: &Model, group: &str, version: &str, rest: &[&str]) -> Option<Target> {
    if let ["namespaces", namespace, plural, name, "scale"] = *rest {
        let resource = ResourceId::new(group, version, plural);
        let is_scalable = model.collection(&resource)?.served.is_scalable();
        return is_scalable
            .then(|| Target::Scale { resource, key: ObjectKey::new(namespace, name) });
    }
    let (namespace, plural, name) = match *rest {
        ["namespaces", name, "status" | "finalize"] => (None, "namespaces", name),
        ["namespaces", namespace, plural] => (Some(namespace), plural, ""),
        ["namespaces", namespace, plural, name]
        | ["namespaces", namespace, plural, name, "status"] => (Some(namespace), plural, name),
        [plural] => (None, plural, ""),
        [plural, name] | [plural, name, "status"] => (None, plural, name),
        _ => return None,
    };
    let resource = ResourceId::new(group, version, plural);
    let served = &model.collection(&resource)?.served;
    let of_status = matches!(rest, [_, _, "status"] | ["namespaces", _, _, _, "status"]);
    if of_status && !served.has_status() {
        return None;
    }
    let namespaced = served.is_namespaced();
    match (namespaced, namespace, name) {
        (false, Some(_), _) => None,
        (_, _, "") => {
            Some(Target::Collection { resource, namespace: namespace.map(str::to_owned) })
        }
        (true, None, _) => None,
        (_, _, name) => {
            let key = ObjectKey::new(namespace.unwrap_or_default(), name);
            Some(Target::Object { resource, key })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_leads_to_its_collection_or_object() {
        let model = Model::new(0);
        let pods = ResourceId::new("", "v1", "pods");
        let nodes = ResourceId::new("", "v1", "nodes");
        let collection = |resource: &ResourceId, namespace: Option<&str>| Target::Collection {
            resource: resource.clone(),
            namespace: namespace.map(str::to_owned),
        };
        let object = |resource: &ResourceId, namespace, name| Target::Object {
            resource: resource.clone(),
            key: ObjectKey::new(namespace, name),
        };
        for (path, target) in [
            ("/api/v1/pods", collection(&pods, None)),
            ("/api/v1/namespaces/a/pods", collection(&pods, Some("a"))),
            ("/api/v1/namespaces/a/pods/b", object(&pods, "a", "b")),
            ("/api/v1/namespaces/a/pods/b/status", object(&pods, "a", "b")),
            ("/api/v1/nodes/n%2D1", object(&nodes, "", "n-1")),
            ("/api/v1/namespaces", collection(&ResourceId::namespaces(), None)),
            ("/api/v1/namespaces/a", object(&ResourceId::namespaces(), "", "a")),
            ("/api/v1/namespaces/a/status", object(&ResourceId::namespaces(), "", "a")),
        ] {
            assert_eq!(Target::of(path, &model), target, "{path}");
        }
    }

    #[test]
    fn a_path_that_fits_no_resource_leads_to_none() {
        let model = Model::new(0);
        for path in [
            "/api/v1/pods/b",
            "/api/v1/namespaces/a/nodes",
            "/apis/apps/v1/pods",
            "/api/v2/pods",
            "/api/v1/namespaces/a/pods/b/log",
            "/api/v1/namespaces/a/configmaps/b/status",
        ] {
            assert_eq!(Target::of(path, &model).resource(), None, "{path}");
        }
    }
}
