use std::time::Duration;

use futures::TryStreamExt as _;
use kubeflect::Kind;
use kubeflect::client::{Cluster as _, HttpCluster, Request};
use serde_json::Value;

use super::known::list;
use super::path::JsonPath;
use super::{AGE, Seen};

/// A column that the definition of a kind adds.
pub(super) struct Defined {
    pub(super) title: String,
    path: JsonPath,
    is_time: bool,
}

/// Nobody waits longer for titles.
const PATIENCE: Duration = Duration::from_secs(5);

/// The columns of a custom resource; none if it has none, or its definition may not be read.
pub(super) async fn columns(kind: &Kind, cluster: &HttpCluster) -> Option<Vec<Defined>> {
    if kind.group.is_empty() {
        return None;
    }
    let definition = tokio::time::timeout(PATIENCE, definition(kind, cluster)).await.ok()??;
    let mut versions = list(&definition["spec"]["versions"]);
    let version = versions.find(|version| version["name"] == *kind.version)?;
    let columns: Vec<Defined> =
        list(&version["additionalPrinterColumns"]).filter_map(Defined::read).collect();
    (!columns.is_empty()).then_some(columns)
}

async fn definition(kind: &Kind, cluster: &HttpCluster) -> Option<Value> {
    let (plural, group) = (&kind.plural, &kind.group);
    let path = format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{plural}.{group}");
    let response = cluster.connect().ok()?.send(Request::get(path)).await.ok()?;
    let is_there = response.status == 200;
    let body: Vec<u8> = response
        .body
        .map_ok(|chunk| chunk.to_vec())
        .try_concat()
        .await
        .ok()
        .filter(|_| is_there)?;
    serde_json::from_slice(&body).ok()
}

impl Defined {
    fn read(column: &Value) -> Option<Self> {
        let title = column["name"].as_str()?.to_uppercase();
        let path = column["jsonPath"].as_str()?.parse().ok()?;
        // The others are for `-o wide`.
        let is_shown = column["priority"].as_i64().unwrap_or_default() == 0;
        is_shown.then(|| Self { title, path, is_time: column["type"] == "date" })
    }

    pub(super) fn cell(&self, seen: &Seen<'_>) -> String {
        if self.title == AGE && self.is_time && self.path.is_creation() {
            return seen.age();
        }
        let metadata = || serde_json::to_value(seen.metadata).unwrap_or_default();
        let values = self.path.find(seen.data, metadata);
        let shown = |value: &Value| match value {
            Value::Null => String::new(),
            Value::String(_) if self.is_time => seen.ago(value).unwrap_or_default(),
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        values.iter().map(shown).collect::<Vec<_>>().join(",")
    }
}
