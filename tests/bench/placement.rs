//! A projection of a pod: what a scheduler or a load balancer would keep.

use kubeflect::object::{DecodeError, Kind, ObjectKey, Resource, read};
use serde::Deserialize;

/// Six fields of a pod.
#[derive(Debug, Clone, Deserialize)]
#[expect(dead_code, reason = "a program would read what it keeps")]
pub(crate) struct Placement {
    metadata: Metadata,
    spec: Spec,
    status: Status,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    namespace: Box<str>,
    name: Box<str>,
    uid: Box<str>,
    resource_version: Box<str>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "a program would read what it keeps")]
struct Spec {
    node_name: Option<Box<str>>,
}

#[derive(Debug, Clone, Deserialize)]
#[expect(dead_code, reason = "a program would read what it keeps")]
struct Status {
    #[serde(rename = "podIP")]
    pod_ip: Option<Box<str>>,
}

impl Resource for Placement {
    fn key(&self) -> ObjectKey {
        ObjectKey::new(&self.metadata.namespace, &self.metadata.name)
    }

    fn uid(&self) -> Option<&str> {
        Some(&self.metadata.uid)
    }

    fn resource_version(&self) -> Option<&str> {
        Some(&self.metadata.resource_version)
    }

    fn decode(json: &[u8], _: &Kind) -> Result<Self, DecodeError> {
        read(json)
    }
}
