//! Asks, and has the answers in all that does not change from server to server and from time to time.

use std::collections::BTreeSet;
use std::rc::Rc;
use std::time::Duration;

use futures::StreamExt as _;
use futures::future::join_all;
use kubeflect::client::{Method, Request, Transport};
use serde_json::{Map, Value, json};

use super::known::{Difference, KNOWN};
use super::{Group, Page};

/// Every answer has come by then.
const LONGEST_ANSWER: Duration = Duration::from_secs(30);

/// A question, with `{version}` and `{next}` where only the server can know what to ask.
#[derive(Debug, Clone)]
pub(super) struct Question {
    method: Method,
    path: String,
    query: Vec<(&'static str, String)>,
    accept: &'static str,
    content_type: Option<&'static str>,
    body: Option<Value>,
}

impl Group {
    /// Asks every question, and has every request with its answer.
    pub(crate) async fn ask(self, transport: &Rc<dyn Transport>, page: &Page) -> Value {
        let questions = self.questions();
        let mut answers = Vec::new();
        if matches!(self, Self::Watches | Self::Changes) {
            answers = join_all(questions.iter().map(|it| it.answer(transport, page))).await;
        } else {
            for question in &questions {
                answers.push(question.answer(transport, page).await);
            }
        }
        let exchanges = questions.iter().zip(answers);
        exchanges
            .map(|(question, answer)| json!({ "request": question.told(), "answer": answer }))
            .collect()
    }

    /// Where one who imitates the truth does so otherwise than is known.
    pub(crate) fn differences(self, truth: &Value, imitation: &Value) -> Vec<String> {
        let (truth, imitation) = (truth.as_array().unwrap(), imitation.as_array().unwrap());
        let names: Vec<String> = self.questions().iter().map(Question::name).collect();
        assert_eq!(
            (truth.len(), imitation.len()),
            (names.len(), names.len()),
            "{}: other questions than were recorded",
            self.name()
        );
        let mut differences = Vec::new();
        let known = || KNOWN.iter().filter(|known| known.group == self);
        for known in known().filter(|known| !names.iter().any(|name| name == known.question)) {
            differences.push(format!("{}\n  is known to differ and never asked", known.question));
        }
        for ((name, truth), imitation) in names.iter().zip(truth).zip(imitation) {
            let known = known().find(|known| known.question == name);
            let difference = difference(truth, imitation);
            if known.map(|known| known.difference) != difference {
                let found =
                    difference.map_or("no difference".to_owned(), |found| format!("{found:?}"));
                let known = known.map_or(String::new(), |known| {
                    format!("\n  known    {:?}: {}", known.difference, known.reason)
                });
                differences.push(format!(
                    "{name}\n  found    {found}{known}\n  expected {truth}\n  answered {imitation}"
                ));
            }
        }
        differences
    }
}

impl Question {
    pub(super) fn get(place: &str, accept: &'static str) -> Self {
        let (path, query) = place.split_once('?').unwrap_or((place, ""));
        let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        Self {
            method: Method::Get,
            path: path.to_owned(),
            query: pairs.map(|(name, value)| (parameter(name), value.to_owned())).collect(),
            accept,
            content_type: None,
            body: None,
        }
    }

    pub(super) fn with_body(
        method: Method,
        path: &str,
        content_type: &'static str,
        body: Option<Value>,
    ) -> Self {
        let question = Self::get(path, "application/json");
        Self { method, content_type: body.is_some().then_some(content_type), body, ..question }
    }

    fn query(&self) -> String {
        let pairs = self.query.iter().map(|(name, value)| format!("{name}={value}"));
        pairs.collect::<Vec<_>>().join("&")
    }

    fn name(&self) -> String {
        let Self { method, path, .. } = self;
        let query = self.query();
        let mark = if query.is_empty() { "" } else { "?" };
        let form = match self.accept {
            "application/json" => String::new(),
            form => format!(" as {form}"),
        };
        let body = self.body.as_ref().map(|body| format!(" {body}")).unwrap_or_default();
        format!("{method} {path}{mark}{query}{form}{body}")
    }

    fn told(&self) -> Value {
        let mut told = json!({ "method": self.method.to_string(), "path": self.path });
        if !self.query.is_empty() {
            told["query"] = json!(self.query());
        }
        if self.accept != "application/json" {
            told["accept"] = json!(self.accept);
        }
        if let (Some(content_type), Some(body)) = (self.content_type, &self.body) {
            told["contentType"] = json!(content_type);
            told["body"] = body.clone();
        }
        told
    }

    fn request(&self, page: &Page) -> Request {
        let known = |value: &str| match value {
            "{version}" => page.version.clone(),
            "{next}" => page.next.clone(),
            value => value.to_owned(),
        };
        Request {
            method: self.method,
            query: self.query.iter().map(|(name, value)| (*name, known(value))).collect(),
            accept: self.accept,
            content_type: self.content_type,
            body: self.body.as_ref().map(Value::to_string).unwrap_or_default().into(),
            ..Request::get(&self.path)
        }
    }

    async fn answer(&self, transport: &Rc<dyn Transport>, page: &Page) -> Value {
        let mut response = transport.send(self.request(page)).await.unwrap();
        let mut body = Vec::new();
        let read = async {
            while let Some(Ok(chunk)) = response.body.next().await {
                body.extend_from_slice(&chunk);
            }
        };
        let ended = tokio::time::timeout(LONGEST_ANSWER, read).await.is_ok();
        // All but how characters are written.
        let parameters = response.content_type.split(';').filter(|it| !it.contains("charset"));
        let content_type = parameters.collect::<Vec<_>>().join(";");
        let mut told = json!({ "status": response.status, "contentType": content_type });
        if let Some(seconds) = response.retry_after {
            told["retryAfter"] = json!(seconds);
        }
        if !ended {
            told["ends"] = json!(false);
        }
        let is_watch =
            response.status == 200 && self.query.iter().any(|(name, _)| *name == "watch");
        let values: Result<Vec<Value>, _> =
            serde_json::Deserializer::from_slice(&body).into_iter().collect();
        match values {
            Ok(events) if is_watch => {
                let events: Vec<Value> =
                    events.into_iter().filter(|event| !only_tells_the_time(event)).collect();
                told["events"] = ranked(events).iter().map(normalised).collect();
            }
            Ok(values) if values.len() == 1 => told["body"] = normalised(&values[0]),
            Ok(_) | Err(_) => told["text"] = json!(String::from_utf8_lossy(&body).trim()),
        }
        told
    }
}

/// Requests want names that live for ever.
fn parameter(name: &str) -> &'static str {
    const PARAMETERS: &[&str] = &[
        "allowWatchBookmarks",
        "continue",
        "fieldSelector",
        "includeObject",
        "labelSelector",
        "limit",
        "resourceVersion",
        "resourceVersionMatch",
        "sendInitialEvents",
        "timeoutSeconds",
        "unknown",
        "watch",
    ];
    PARAMETERS.iter().find(|it| **it == name).unwrap_or_else(|| panic!("{name} is not known here"))
}

pub(super) fn request(
    method: Method,
    path: &str,
    content_type: &'static str,
    body: &Value,
) -> Request {
    let (content_type, body) = (Some(content_type), body.to_string().into());
    Request { method, content_type, body, ..Request::get(path) }
}

/// What is at a path, as JSON.
pub(crate) async fn read(transport: &Rc<dyn Transport>, request: Request) -> Value {
    let mut response = transport.send(request).await.unwrap();
    let mut body = Vec::new();
    while let Some(chunk) = response.body.next().await {
        body.extend_from_slice(&chunk.unwrap());
    }
    assert!(response.status < 300, "{}", String::from_utf8_lossy(&body));
    serde_json::from_slice(&body).unwrap()
}

/// A bookmark that comes when a server finds the time for it. The one that ends a streaming list has to come.
fn only_tells_the_time(event: &Value) -> bool {
    let annotations = &event["object"]["metadata"]["annotations"];
    event["type"] == "BOOKMARK" && annotations["k8s.io/initial-events-end"] != "true"
}

/// Events with the ranks of their versions in place of these: what counts is which of them are the same, and which is
/// later. How far the server has come since is what a bookmark tells: that is no rank.
fn ranked(mut events: Vec<Value>) -> Vec<Value> {
    let version =
        |event: &Value| event["object"]["metadata"]["resourceVersion"].as_str()?.parse().ok();
    let counts = |event: &&mut Value| event["type"] != "BOOKMARK";
    let versions: BTreeSet<u64> =
        { events.iter_mut() }.filter(counts).filter_map(|it| version(it)).collect();
    for event in events.iter_mut().filter(counts) {
        rank(event, &versions);
    }
    events
}

fn rank(value: &mut Value, versions: &BTreeSet<u64>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                let version: Option<u64> = value.as_str().and_then(|text| text.parse().ok());
                match version.filter(|_| name == "resourceVersion") {
                    Some(version) => *value = json!(versions.range(..=version).count()),
                    None => rank(value, versions),
                }
            }
        }
        Value::Array(values) => values.iter_mut().for_each(|value| rank(value, versions)),
        _ => {}
    }
}

/// Without what differs from server to server and from time to time.
fn normalised(value: &Value) -> Value {
    let field = |(name, value): (&String, &Value)| {
        let value = match name.as_str() {
            "uid" | "resourceVersion" | "creationTimestamp" | "continue" if is_set(value) => {
                json!("…")
            }
            "message" if value.is_string() => {
                json!(without_variables(value.as_str().unwrap_or_default()))
            }
            "cells" => value.as_array().into_iter().flatten().map(without_age).collect(),
            "groups" | "items" | "resources" if is_discovery(value) => of_common_kinds(value),
            // Who set which field and when; sentences that explain a column; for the storage alone; where else to ask.
            "managedFields"
            | "description"
            | "storageVersionHash"
            | "serverAddressByClientCIDRs" => {
                return None;
            }
            // A field that is null is one that is not there.
            _ if value.is_null() => return None,
            _ => normalised(value),
        };
        Some((name.clone(), value))
    };
    match value {
        Value::Object(fields) => fields.iter().filter_map(field).collect::<Map<_, _>>().into(),
        Value::Array(values) => values.iter().map(normalised).collect(),
        value => value.clone(),
    }
}

fn is_set(value: &Value) -> bool {
    value.as_str().is_some_and(|text| !text.is_empty())
}

/// How long ago something was made, as kubectl prints it.
fn without_age(cell: &Value) -> Value {
    let is_age = |text: &str| {
        text.starts_with(|c: char| c.is_ascii_digit())
            && text.chars().all(|c| c.is_ascii_digit() || "smhd".contains(c))
            && text.ends_with(|c: char| c.is_ascii_alphabetic())
    };
    if cell.as_str().is_some_and(is_age) { json!("…") } else { cell.clone() }
}

/// The kinds that are in both servers. The embedded one has no others.
const COMMON: &[&str] = &[
    "configmaps",
    "endpoints",
    "events",
    "namespaces",
    "nodes",
    "persistentvolumes",
    "persistentvolumeclaims",
    "pods",
    "secrets",
    "services",
    "serviceaccounts",
    "daemonsets",
    "deployments",
    "replicasets",
    "statefulsets",
    "cronjobs",
    "jobs",
    "leases",
    "ingresses",
    "customresourcedefinitions",
];

/// Their groups.
const COMMON_GROUPS: &[&str] =
    &["", "apps", "batch", "coordination.k8s.io", "networking.k8s.io", "apiextensions.k8s.io"];

/// Whether these are groups, or resources of a group.
fn is_discovery(values: &Value) -> bool {
    let first = &values[0];
    ["versions", "singularName", "singularResource"].iter().any(|field| !first[field].is_null())
}

/// What is in both servers, and of what is below an object only its status.
fn of_common_kinds(values: &Value) -> Value {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let is_common = |value: &&Value| {
        if !value["versions"].is_null() {
            let name = text(&value["name"]) + &text(&value["metadata"]["name"]);
            return COMMON_GROUPS.contains(&name.as_str());
        }
        let name = text(&value["name"]) + &text(&value["resource"]);
        match name.split_once('/') {
            Some((plural, below)) => COMMON.contains(&plural) && below == "status",
            None => COMMON.contains(&name.as_str()),
        }
    };
    let without_others_below = |value: &Value| {
        let mut value = normalised(value);
        if let Some(below) = value.get_mut("subresources").and_then(Value::as_array_mut) {
            below.retain(|it| it["subresource"] == "status");
        }
        if value["subresources"].as_array().is_some_and(Vec::is_empty)
            && let Some(fields) = value.as_object_mut()
        {
            fields.remove("subresources");
        }
        value
    };
    values.as_array().into_iter().flatten().filter(is_common).map(without_others_below).collect()
}

fn difference(truth: &Value, imitation: &Value) -> Option<Difference> {
    if truth == imitation {
        None
    } else if without_words(truth) == without_words(imitation) {
        Some(Difference::Words)
    } else {
        Some(Difference::Meaning)
    }
}

fn without_words(exchange: &Value) -> Value {
    match exchange {
        Value::Object(fields) => fields
            .iter()
            .filter(|(name, _)| name.as_str() != "message")
            .map(|(name, value)| (name.clone(), without_words(value)))
            .collect::<Map<_, _>>()
            .into(),
        Value::Array(values) => values.iter().map(without_words).collect(),
        value => value.clone(),
    }
}

/// A message without the version the server is at, without uids, and without who asks.
fn without_variables(message: &str) -> String {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '-';
    let mut result = String::new();
    let (before, user) = message.split_once("User \"").unwrap_or(("", message));
    let (_, mut rest) = user.split_once('"').filter(|_| !before.is_empty()).unwrap_or(("", user));
    if !before.is_empty() {
        result = format!("{before}User \"…\"");
    }
    while let Some(first) = rest.chars().next() {
        let end = rest.find(|c| is_word(c) != is_word(first)).unwrap_or(rest.len());
        let (part, behind) = rest.split_at(end);
        let is_version = ["current: ", "in record ("].iter().any(|it| result.ends_with(it))
            && part.bytes().all(|b| b.is_ascii_digit());
        let is_uid = part.split('-').map(str::len).eq([8, 4, 4, 4, 12]);
        result += if is_version || is_uid { "…" } else { part };
        rest = behind;
    }
    result
}
