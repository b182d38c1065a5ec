//! What the server promises, asked through its in-process door on a paused clock.

mod discovery;
mod faults;
mod kubectl;
mod lists;
mod properties;
mod replicas;
mod silence;
mod sockets;
mod watches;
mod writes;

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt as _;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use serde_json::{Value, json};

use super::ApiServer;
use crate::api::ApiError;
use crate::client::{BodyStream, Method, Request, Response};
use crate::object::{Kind, ObjectKey, StaticKind as _};

const PODS: &str = "/api/v1/pods";

fn pods() -> Kind {
    Pod::static_kind()
}

fn config_maps() -> Kind {
    ConfigMap::static_kind()
}

fn key(name: &str) -> ObjectKey {
    ObjectKey::new("default", name)
}

fn pod(name: &str, labels: Value) -> Value {
    let mut pod = json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": name } });
    pod["metadata"]["labels"] = labels;
    pod
}

fn widget_definition() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "widgets.example.com" },
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": { "kind": "Widget", "plural": "widgets", "singular": "widget", "shortNames": ["wd"] },
            "versions": [{ "name": "v1", "served": true, "storage": true }],
        },
    })
}

fn widget(name: &str) -> Value {
    json!({ "apiVersion": "example.com/v1", "kind": "Widget", "metadata": { "name": name } })
}

/// A server with pods of these names.
fn server_with(names: &[&str]) -> ApiServer {
    let server = ApiServer::new();
    for name in names {
        server.create(pod(name, json!({}))).unwrap();
    }
    server
}

fn request(method: Method, path: &str, query: &[(&'static str, &str)], body: &Value) -> Request {
    Request {
        method,
        query: query.iter().map(|(name, value)| (*name, (*value).to_owned())).collect(),
        body: if body.is_null() { Bytes::new() } else { body.to_string().into() },
        ..Request::get(path)
    }
}

async fn ask(server: &ApiServer, request: Request) -> (u16, Value) {
    let response = server.handle(request).await;
    let status = response.status;
    let text = text_of(response).await;
    (status, serde_json::from_str(&text).unwrap_or(Value::String(text)))
}

async fn text_of(response: Response) -> String {
    let chunks: Vec<_> = response.body.map(Result::unwrap).collect().await;
    String::from_utf8(chunks.concat()).unwrap()
}

async fn get(server: &ApiServer, path: &str, query: &[(&'static str, &str)]) -> (u16, Value) {
    ask(server, request(Method::Get, path, query, &Value::Null)).await
}

fn names_of(list: &Value) -> Vec<&str> {
    list["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["metadata"]["name"].as_str().unwrap())
        .collect()
}

/// One open watch, read event by event.
struct Reader {
    body: BodyStream,
    /// Whole lines not read yet, and the beginning of the next.
    lines: VecDeque<Vec<u8>>,
    begun: Vec<u8>,
}

async fn watch(server: &ApiServer, path: &str, query: &[(&'static str, &str)]) -> Reader {
    watch_with(server, request(Method::Get, path, query, &Value::Null)).await
}

async fn watch_with(server: &ApiServer, mut request: Request) -> Reader {
    request.query.push(("watch", "true".to_owned()));
    let response = server.handle(request).await;
    assert_eq!((response.status, response.content_type.as_str()), (200, "application/json"));
    Reader::new(response.body)
}

impl Reader {
    fn new(body: BodyStream) -> Self {
        Self { body, lines: VecDeque::new(), begun: Vec::new() }
    }

    /// The next line, or none at the end.
    async fn line(&mut self) -> Option<Result<Vec<u8>, ApiError>> {
        loop {
            if let Some(line) = self.lines.pop_front() {
                return Some(Ok(line));
            }
            let chunk = match self.body.next().await? {
                Ok(chunk) => chunk,
                Err(error) => return Some(Err(error)),
            };
            for part in chunk.split_inclusive(|&byte| byte == b'\n') {
                self.begun.extend_from_slice(part);
                if part.ends_with(b"\n") {
                    self.lines.push_back(std::mem::take(&mut self.begun));
                }
            }
        }
    }

    async fn event(&mut self) -> Option<Value> {
        let line = self.line().await?.unwrap();
        Some(serde_json::from_slice(&line).unwrap())
    }

    /// The next event as `ADDED a@7`.
    async fn brief(&mut self) -> Option<String> {
        let event = self.event().await?;
        let (event_type, metadata) =
            (event["type"].as_str().unwrap(), &event["object"]["metadata"]);
        let version = metadata["resourceVersion"].as_str().unwrap_or_default();
        Some(match metadata["name"].as_str() {
            Some(name) => format!("{event_type} {name}@{version}"),
            None => format!("{event_type} @{version}"),
        })
    }

    async fn is_silent_for(&mut self, duration: Duration) -> bool {
        tokio::time::timeout(duration, self.line()).await.is_err()
    }
}
