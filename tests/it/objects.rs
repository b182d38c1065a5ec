//! Requests beside list and watch.

use std::cell::RefCell;
use std::rc::Rc;

use futures::FutureExt as _;
use futures::future::LocalBoxFuture;
use k8s_openapi::api::core::v1::{ConfigMap, Node, Secret};
use kubeflect::api::ApiError;
use kubeflect::client::{
    Cluster as _, DeleteOptions, Discovery, Method, Objects, Patch, Propagation, Request, Response,
    Transport,
};
use kubeflect::embedded::ApiServer;
use kubeflect::object::{DynamicObject, Resource as _, ResourceVersion, StaticKind as _};
use serde_json::{Value, json};

fn config_maps(server: &ApiServer) -> Objects<ConfigMap> {
    Objects::of(server.connect().unwrap()).in_namespace("default")
}

fn config_map(name: &str, colour: &str) -> ConfigMap {
    serde_json::from_value(json!({ "metadata": { "name": name }, "data": { "colour": colour } }))
        .unwrap()
}

#[tokio::test]
async fn an_object_is_created_read_changed_and_deleted() {
    let objects = config_maps(&ApiServer::new());
    let mut created = objects.create(&config_map("a", "blue")).await.unwrap();
    assert!(created.metadata.uid.is_some());
    created.data.as_mut().unwrap().insert("colour".to_owned(), "red".to_owned());
    objects.replace(&created).await.unwrap();
    assert_eq!(objects.get("a").await.unwrap().data.unwrap()["colour"], "red");
    objects.delete("a", &DeleteOptions::default()).await.unwrap();
    assert!(matches!(objects.get("a").await, Err(ApiError::NotFound { .. })));
}

#[tokio::test]
async fn a_second_object_of_a_name_and_an_old_version_are_told_apart() {
    let objects = config_maps(&ApiServer::new());
    let first = objects.create(&config_map("a", "blue")).await.unwrap();
    let again = objects.create(&config_map("a", "blue")).await;
    assert!(matches!(again, Err(ApiError::AlreadyExists { .. })));

    objects.patch("a", &Patch::Merge(json!({ "data": { "colour": "red" } }))).await.unwrap();
    assert!(matches!(objects.replace(&first).await, Err(ApiError::Conflict { .. })));
}

#[tokio::test]
async fn each_patch_the_server_has_changes_the_object() {
    let objects = config_maps(&ApiServer::new());
    objects.create(&config_map("a", "blue")).await.unwrap();
    for (patch, colour) in [
        (Patch::Merge(json!({ "data": { "colour": "red" } })), "red"),
        (
            Patch::Json(json!([{ "op": "replace", "path": "/data/colour", "value": "green" }])),
            "green",
        ),
        (Patch::Strategic(json!({ "data": { "colour": "grey" } })), "grey"),
    ] {
        let patched = objects.patch("a", &patch).await.unwrap();
        assert_eq!(patched.data.unwrap()["colour"], colour);
    }
    let apply = Patch::Apply { object: json!({}), field_manager: "me".to_owned(), force: true };
    assert!(matches!(objects.patch("a", &apply).await, Err(ApiError::Invalid { .. })));
}

#[tokio::test]
async fn a_deletion_may_depend_on_uid_and_version() {
    let objects = config_maps(&ApiServer::new());
    let created = objects.create(&config_map("a", "blue")).await.unwrap();
    let other = DeleteOptions { uid: Some("other".to_owned()), ..DeleteOptions::default() };
    assert!(matches!(objects.delete("a", &other).await, Err(ApiError::Conflict { .. })));
    let old =
        DeleteOptions { resource_version: ResourceVersion::new("1"), ..DeleteOptions::default() };
    assert!(matches!(objects.delete("a", &old).await, Err(ApiError::Conflict { .. })));
    let this = DeleteOptions { uid: created.metadata.uid, ..DeleteOptions::default() };
    objects.delete("a", &this).await.unwrap();
}

#[tokio::test]
async fn the_namespace_is_ours_or_that_of_the_object_and_never_guessed() {
    let transport = ApiServer::new().connect().unwrap();
    let objects = Objects::<ConfigMap>::of(Rc::clone(&transport));
    let mut object = config_map("a", "blue");
    let error = objects.create(&object).await.unwrap_err();
    assert!(error.to_string().ends_with("configmaps are in namespaces: say in which"), "{error}");
    object.metadata.namespace = Some("default".to_owned());
    objects.create(&object).await.unwrap();
    let nodes = Objects::<Node>::of(transport).in_namespace("default");
    assert!(nodes.get("a").await.unwrap_err().to_string().ends_with("nodes are in no namespace"));
}

#[tokio::test]
async fn a_dynamic_object_is_written_with_its_type() {
    let transport = ApiServer::new().connect().unwrap();
    let objects =
        Objects::<DynamicObject>::new(transport, Secret::static_kind()).in_namespace("default");
    let object: DynamicObject =
        serde_json::from_value(json!({ "metadata": { "name": "a" } })).unwrap();
    let created = objects.create(&object).await.unwrap();
    assert_eq!(created.stated_type(), Some(("v1", "Secret")));
}

/// Keeps what was asked, and answers that it is not there.
#[derive(Default)]
struct Recording(RefCell<Vec<Request>>);

impl Transport for Recording {
    fn send(&self, request: Request) -> LocalBoxFuture<'static, Result<Response, ApiError>> {
        self.0.borrow_mut().push(request);
        async { Err(ApiError::from_code(404, String::new(), None)) }.boxed_local()
    }
}

#[tokio::test]
async fn a_name_that_could_lead_elsewhere_is_never_sent() {
    let recording = Rc::new(Recording::default());
    let objects = Objects::<ConfigMap>::of(recording.clone()).in_namespace("default");
    for name in ["", "..", "a/b", "a%2fb", "a\n", "a?b"] {
        assert!(matches!(objects.get(name).await, Err(ApiError::Invalid { .. })), "{name:?}");
        assert!(objects.delete(name, &DeleteOptions::default()).await.is_err());
        assert!(objects.clone().in_namespace(name).get("a").await.is_err());
    }
    assert!(recording.0.borrow().is_empty());
}

#[tokio::test]
async fn parts_and_options_are_written_as_kubernetes_wants_them() {
    let recording = Rc::new(Recording::default());
    let objects = Objects::<ConfigMap>::of(recording.clone()).in_namespace("default");
    let apply = Patch::Apply { object: json!({}), field_manager: "me".to_owned(), force: true };
    assert!(objects.patch_status("a", &apply).await.is_err());
    assert!(objects.replace_status(&config_map("a", "blue")).await.is_err());
    let options = DeleteOptions {
        propagation: Some(Propagation::Foreground),
        grace_period_seconds: Some(0),
        ..DeleteOptions::default()
    };
    assert!(objects.delete("a", &options).await.is_err());

    let sent = recording.0.borrow();
    let status = "/api/v1/namespaces/default/configmaps/a/status";
    assert_eq!((sent[0].method, sent[0].path.as_str()), (Method::Patch, status));
    assert_eq!(sent[0].content_type, Some("application/apply-patch+yaml"));
    assert_eq!(sent[0].query, [("fieldManager", "me".to_owned()), ("force", "true".to_owned())]);
    assert_eq!((sent[1].method, sent[1].path.as_str()), (Method::Put, status));
    assert_eq!(
        serde_json::from_slice::<Value>(&sent[2].body).unwrap(),
        json!({
            "kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Foreground", "gracePeriodSeconds": 0,
        })
    );
}

#[tokio::test]
async fn the_embedded_server_can_be_discovered() {
    let transport = ApiServer::new().connect().unwrap();
    let discovery = Discovery::run(&*transport).await.unwrap();
    assert_eq!(discovery.problems(), []);
    assert_eq!(discovery.kinds().len(), 25);
    assert_eq!(discovery.resolve("cm").unwrap().kind, ConfigMap::static_kind());
    assert_eq!(discovery.resolve("statefulsets.v1.apps").unwrap().kind.kind, "StatefulSet");
}
