//! What kubectl asks for beyond objects, lists and watches. That it is content with the answers: `tests/cluster/kubectl.rs`.

use serde_json::{Value, json};

use super::{
    PODS, ask, get, key, pod, pods, request, server_with, watch_with, widget, widget_definition,
};
use crate::client::{Method, Request};
use crate::embedded::ApiServer;

const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
const ALL_GROUPS: &str =
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";

fn accepting(accept: &'static str, path: &str, query: &[(&'static str, &str)]) -> Request {
    Request { accept, ..request(Method::Get, path, query, &Value::Null) }
}

#[tokio::test]
async fn a_list_can_be_a_table() {
    let server = server_with(&["a", "b"]);
    let (status, table) = ask(&server, accepting(TABLE, PODS, &[("limit", "1")])).await;
    assert_eq!((status, &table["kind"]), (200, &json!("Table")));
    assert_eq!(table["columnDefinitions"][1]["name"], "Ready");
    assert_eq!(table["rows"].as_array().unwrap().len(), 1);
    assert_eq!(table["rows"][0]["cells"][0], "a");
    assert_eq!(table["rows"][0]["object"]["kind"], "PartialObjectMetadata");
    assert_eq!(table["metadata"]["remainingItemCount"], 1);
}

#[tokio::test]
async fn an_object_and_each_event_can_be_a_table_of_one_row() {
    let server = server_with(&["a"]);
    let path = "/api/v1/namespaces/default/pods/a";
    let (_, one) = ask(&server, accepting(TABLE, path, &[("includeObject", "Object")])).await;
    assert_eq!((&one["kind"], &one["rows"][0]["object"]["kind"]), (&json!("Table"), &json!("Pod")));

    let mut events = watch_with(&server, accepting(TABLE, PODS, &[("resourceVersion", "2")])).await;
    server.delete(&pods(), &key("a")).unwrap();
    let event = events.event().await.unwrap();
    assert_eq!((&event["type"], &event["object"]["kind"]), (&json!("DELETED"), &json!("Table")));
    assert_eq!(event["object"]["rows"][0]["object"]["metadata"]["resourceVersion"], "3");
}

#[tokio::test]
async fn all_groups_can_be_had_in_one_answer() {
    let server = ApiServer::new();
    server.create(widget_definition()).unwrap();
    let response = server.handle(accepting(ALL_GROUPS, "/apis", &[])).await;
    assert_eq!(
        response.content_type,
        "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    );
    let (_, groups) = ask(&server, accepting(ALL_GROUPS, "/apis", &[])).await;
    let groups = groups["items"].as_array().unwrap();
    let ours = groups.iter().find(|group| group["metadata"]["name"] == "example.com").unwrap();
    let widgets = &ours["versions"][0]["resources"][0];
    assert_eq!(widgets["responseKind"]["kind"], "Widget");
    assert_eq!(widgets["shortNames"], json!(["wd"]));
    let (_, core) = ask(&server, accepting(ALL_GROUPS, "/api", &[])).await;
    assert_eq!(core["items"][0]["versions"][0]["version"], "v1");
}

#[tokio::test]
async fn a_dry_run_says_what_would_be_and_changes_nothing() {
    let server = server_with(&["a"]);
    let dry = [("dryRun", "All")];
    let (pods_path, path) =
        ("/api/v1/namespaces/default/pods", "/api/v1/namespaces/default/pods/a");
    let before = server.objects(&pods());

    let created = ask(&server, request(Method::Post, pods_path, &dry, &pod("b", json!({})))).await;
    assert_eq!((created.0, &created.1["metadata"]["name"]), (201, &json!("b")));
    assert_eq!(created.1["metadata"].get("resourceVersion"), None);
    let changed = pod("a", json!({ "x": "y" }));
    let (status, replaced) = ask(&server, request(Method::Put, path, &dry, &changed)).await;
    assert_eq!((status, &replaced["metadata"]["labels"]["x"]), (200, &json!("y")));
    assert_eq!(replaced["metadata"]["resourceVersion"], "2");
    assert_eq!(ask(&server, request(Method::Delete, path, &dry, &Value::Null)).await.0, 200);
    let in_body = json!({ "dryRun": ["All"] });
    assert_eq!(ask(&server, request(Method::Delete, path, &[], &in_body)).await.0, 200);
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let defined =
        ask(&server, request(Method::Post, definitions, &dry, &widget_definition())).await;
    assert_eq!(defined.0, 201);

    assert_eq!((server.objects(&pods()), server.resource_version()), (before, "2".to_owned()));
    assert_eq!(get(&server, "/apis/example.com/v1/widgets", &[]).await.0, 404);
    let odd = request(Method::Delete, path, &[("dryRun", "Some")], &Value::Null);
    assert_eq!(ask(&server, odd).await.0, 400);
}

#[tokio::test]
async fn replicas_can_be_asked_for_and_set_apart_from_the_rest() {
    let server = ApiServer::demo_cluster(1);
    let path = "/apis/apps/v1/namespaces/shop/deployments/web";
    let scale_path = format!("{path}/scale");
    let (status, scale) = get(&server, &scale_path, &[]).await;
    assert_eq!(
        (status, &scale["kind"], &scale["spec"]["replicas"]),
        (200, &json!("Scale"), &json!(5))
    );
    assert_eq!(scale["status"], json!({ "replicas": 5, "selector": "app=web" }));

    let patch = |replicas: Value| Request {
        content_type: Some("application/merge-patch+json"),
        ..request(Method::Patch, &scale_path, &[], &json!({ "spec": { "replicas": replicas } }))
    };
    let (status, scaled) = ask(&server, patch(json!(7))).await;
    assert_eq!((status, &scaled["spec"]["replicas"]), (200, &json!(7)));
    assert_eq!(get(&server, path, &[]).await.1["spec"]["replicas"], 7);
    assert_eq!(ask(&server, patch(json!("many"))).await.0, 400);
    let late = ask(&server, request(Method::Put, &scale_path, &[], &scale)).await;
    assert_eq!(late.0, 409, "of a version that is no more");
    assert_eq!(get(&server, "/api/v1/namespaces/shop/pods/web/scale", &[]).await.0, 404);
    assert_eq!(ask(&server, request(Method::Delete, &scale_path, &[], &Value::Null)).await.0, 405);
}

#[tokio::test]
async fn who_somebody_is_can_be_asked_in_protobuf_too() {
    let path = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    let asked = Request {
        content_type: Some("application/vnd.kubernetes.protobuf"),
        body: b"k8s\0"[..].into(),
        ..request(Method::Post, path, &[], &Value::Null)
    };
    let (status, review) = ask(&ApiServer::new(), asked).await;
    assert_eq!((status, &review["kind"]), (201, &json!("SelfSubjectReview")));
    assert_eq!(review["status"]["userInfo"]["username"], "system:anonymous");
}

#[tokio::test]
async fn a_strategic_merge_is_for_built_in_kinds_only() {
    let server = ApiServer::new();
    let containers = |image: &str| json!({ "containers": [{ "name": "main", "image": image }] });
    let mut created = pod("a", json!({}));
    created["spec"] =
        json!({ "containers": [{ "name": "main", "image": "1" }, { "name": "side" }] });
    server.create(created).unwrap();
    server.create(widget_definition()).unwrap();
    server.create(widget("a")).unwrap();
    let patch = |path: &str| Request {
        content_type: Some("application/strategic-merge-patch+json"),
        ..request(Method::Patch, path, &[], &json!({ "spec": containers("2") }))
    };
    let (status, patched) = ask(&server, patch("/api/v1/namespaces/default/pods/a")).await;
    let expected = json!([{ "name": "main", "image": "2" }, { "name": "side" }]);
    assert_eq!((status, &patched["spec"]["containers"]), (200, &expected));
    let widgets = "/apis/example.com/v1/namespaces/default/widgets/a";
    assert_eq!(ask(&server, patch(widgets)).await.0, 415);
}

#[tokio::test]
async fn a_defined_kind_is_described_by_its_schema() {
    let server = ApiServer::new();
    let mut definition = widget_definition();
    definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = json!({
        "type": "object", "properties": { "spec": { "type": "object", "description": "How large." } },
    });
    server.create(definition).unwrap();
    let (_, description) = get(&server, "/openapi/v3/apis/example.com/v1", &[]).await;
    let schema = &description["components"]["schemas"]["example.com.v1.Widget"];
    assert_eq!(schema["properties"]["spec"]["description"], "How large.");
    assert_eq!(schema["x-kubernetes-group-version-kind"][0]["kind"], "Widget");
}
