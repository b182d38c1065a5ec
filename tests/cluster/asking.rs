//! Asks, and compares the answers.

use std::rc::Rc;
use std::time::Duration;

use futures::StreamExt as _;
use futures::future::join_all;
use kubeflect::client::{Method, Request, Transport};
use serde_json::{Value, json};

use super::known::KNOWN;
use super::normalised::{difference, normalised, ranked};
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
