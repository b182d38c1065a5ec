use std::cell::RefCell;
use std::collections::BTreeMap;

use bytes::Bytes;
use futures::FutureExt as _;
use futures::future::LocalBoxFuture;
use serde_json::{Value, json};

use super::*;
use crate::client::Response;

/// Answers each path with what was written for it.
#[derive(Default)]
struct Scripted {
    answers: BTreeMap<&'static str, (u16, String)>,
    asked: RefCell<Vec<(String, &'static str)>>,
}

impl Scripted {
    fn with(mut self, path: &'static str, status: u16, body: &Value) -> Self {
        self.answers.insert(path, (status, body.to_string()));
        self
    }
}

impl Transport for Scripted {
    fn send(&self, request: Request) -> LocalBoxFuture<'static, Result<Response, ApiError>> {
        let nothing = (404, "404 page not found".to_owned());
        let (status, body) = self.answers.get(request.path.as_str()).cloned().unwrap_or(nothing);
        self.asked.borrow_mut().push((request.path, request.accept));
        let body = stream::iter([Ok(Bytes::from(body))]).boxed_local();
        let response = Response {
            status,
            content_type: String::new(),
            retry_after: None,
            fairness: None,
            body,
        };
        async { Ok(response) }.boxed_local()
    }
}

fn aggregated_resource(plural: &str, kind: &str, scope: &str, short: &[&str]) -> Value {
    json!({
        "resource": plural, "responseKind": { "group": "", "version": "", "kind": kind }, "scope": scope,
        "singularResource": kind.to_lowercase(), "verbs": ["get", "list", "watch"], "shortNames": short,
        "subresources": [{ "subresource": "status", "verbs": ["get"] }],
    })
}

fn aggregated() -> Scripted {
    let list = |items: Value| json!({ "kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items });
    Scripted::default()
        .with("/api", 200, &list(json!([{
            "metadata": {}, "versions": [{ "version": "v1", "freshness": "Current", "resources": [
                aggregated_resource("events", "Event", "Namespaced", &["ev"]),
                aggregated_resource("nodes", "Node", "Cluster", &["no"]),
                aggregated_resource("pods", "Pod", "Namespaced", &["po"]),
            ]}],
        }])))
        .with("/apis", 200, &list(json!([
            { "metadata": { "name": "apps" }, "versions": [
                { "version": "v1", "freshness": "Current", "resources": [aggregated_resource("deployments", "Deployment", "Namespaced", &["deploy"])] },
                { "version": "v1beta1", "resources": [aggregated_resource("deployments", "Deployment", "Namespaced", &["deploy"])] },
            ]},
            { "metadata": { "name": "events.k8s.io" }, "versions": [
                { "version": "v1", "resources": [aggregated_resource("events", "Event", "Namespaced", &["ev"])] },
            ]},
            { "metadata": { "name": "metrics.k8s.io" }, "versions": [{ "version": "v1beta1", "freshness": "Stale", "resources": null }] },
            { "metadata": { "name": "example.com" }, "versions": [
                { "version": "v1", "resources": [
                    aggregated_resource("widgets", "Widget", "Namespaced", &["pods", "wd"]),
                    { "resource": "parts", "scope": "Namespaced", "verbs": ["get"] },
                    // As Go writes a resource of which only parts are served.
                    { "resource": "more-parts", "responseKind": { "group": "", "version": "", "kind": "" },
                      "scope": "Namespaced", "singularResource": "", "verbs": null },
                ]},
            ]},
        ])))
}

fn name(kind: &ServedKind) -> String {
    format!("{}.{}.{}", kind.kind.plural, kind.kind.version, kind.kind.group)
}

#[tokio::test]
async fn a_server_with_aggregated_discovery_is_asked_twice() {
    let server = aggregated();
    let discovery = Discovery::run(&server).await.unwrap();
    assert_eq!(
        *server.asked.borrow(),
        [("/api".to_owned(), AGGREGATED), ("/apis".to_owned(), AGGREGATED)]
    );
    assert_eq!(discovery.kinds().len(), 7);
    let nodes = discovery.resolve("nodes").unwrap();
    assert_eq!(nodes.kind, Kind::new("", "v1", "Node", "nodes", Scope::Cluster));
    assert!(nodes.can_be_watched() & nodes.preferred);
    assert!(!discovery.resolve("deployments.v1beta1.apps").unwrap().preferred);
}

#[tokio::test]
async fn a_kind_is_found_by_every_name_kubectl_takes() {
    let discovery = Discovery::run(&aggregated()).await.unwrap();
    for (asked, expected) in [
        ("pods", "pods.v1."),
        ("po", "pods.v1."),
        ("pod", "pods.v1."),
        ("Pod", "pods.v1."),
        ("PODS", "pods.v1."),
        ("pods.v1", "pods.v1."),
        ("pods.v1.", "pods.v1."),
        ("deploy", "deployments.v1.apps"),
        ("deploy.apps", "deployments.v1.apps"),
        ("deployments.apps", "deployments.v1.apps"),
        ("deployments.v1.apps", "deployments.v1.apps"),
        ("deployments.v1beta1.apps", "deployments.v1beta1.apps"),
        ("widgets.example.com", "widgets.v1.example.com"),
        ("widgets.v1.example.com", "widgets.v1.example.com"),
        ("wd", "widgets.v1.example.com"),
        ("events", "events.v1."),
        ("events.events.k8s.io", "events.v1.events.k8s.io"),
    ] {
        assert_eq!(name(discovery.resolve(asked).unwrap()), expected, "{asked}");
    }
}

#[tokio::test]
async fn an_unknown_name_comes_with_the_one_most_like_it() {
    let discovery = Discovery::run(&aggregated()).await.unwrap();
    for (asked, suggestion) in [
        ("depoyments", Some("deployments")),
        ("deployment.app", Some("deployments.apps")),
        ("pdos", Some("pods")),
        ("zebras", None),
        ("", None),
    ] {
        let error = discovery.resolve(asked).unwrap_err();
        assert_eq!(error.suggestion.as_deref(), suggestion, "{asked}");
    }
    assert_eq!(
        discovery.resolve("wigdets").unwrap_err().to_string(),
        "the server has no kind \"wigdets\": did you mean widgets? (could not be asked about: metrics.k8s.io)"
    );
}

#[tokio::test]
async fn a_server_without_aggregated_discovery_is_asked_group_by_group() {
    let resource = |plural: &str, kind: &str| json!({ "name": plural, "singularName": "", "namespaced": true, "kind": kind, "verbs": ["list"] });
    let server = Scripted::default()
        .with("/api", 200, &json!({ "kind": "APIVersions", "versions": ["v1"] }))
        .with("/apis", 200, &json!({ "kind": "APIGroupList", "groups": [
            { "name": "metrics.k8s.io", "versions": [{ "version": "v1beta1" }], "preferredVersion": { "version": "v1beta1" } },
            { "name": "apps", "versions": [{ "version": "v1beta1" }, { "version": "v1" }], "preferredVersion": { "version": "v1" } },
            { "name": "../secret", "versions": [{ "version": "v1" }] },
        ]}))
        .with("/api/v1", 200, &json!({ "resources": [resource("pods", "Pod"), resource("pods/status", "Pod")] }))
        .with("/apis/apps/v1", 200, &json!({ "resources": [resource("deployments", "Deployment")] }))
        .with("/apis/apps/v1beta1", 200, &json!({ "resources": [resource("deployments", "Deployment")] }))
        .with("/apis/metrics.k8s.io/v1beta1", 503, &json!("no endpoints"));
    let discovery = Discovery::run(&server).await.unwrap();
    let names: Vec<String> = discovery.kinds().iter().map(name).collect();
    assert_eq!(names, ["pods.v1.", "deployments.v1.apps", "deployments.v1beta1.apps"]);
    let problems: Vec<&str> =
        discovery.problems().iter().map(|problem| problem.group.as_str()).collect();
    assert_eq!(problems, ["metrics.k8s.io", "../secret"]);
    assert!(
        discovery.problems()[0]
            .to_string()
            .starts_with("metrics.k8s.io/v1beta1: server unavailable")
    );
    assert!(!server.asked.borrow().iter().any(|(path, _)| path.contains("secret")));
}

#[tokio::test]
async fn a_server_that_does_not_name_its_groups_is_an_error() {
    let server = Scripted::default().with("/apis", 503, &json!("starting"));
    assert!(matches!(Discovery::run(&server).await, Err(ApiError::Unavailable { .. })));
}
