use serde_json::{Value, json};

use super::{ask, get, request, widget_definition};
use crate::client::Method;
use crate::embedded::ApiServer;
use crate::object::{Kind, Scope};

#[tokio::test]
async fn kinds_can_be_discovered_from_the_root() {
    let server = ApiServer::new();
    let (_, core) = get(&server, "/api", &[]).await;
    assert_eq!((&core["kind"], &core["versions"]), (&json!("APIVersions"), &json!(["v1"])));
    let (_, groups) = get(&server, "/apis", &[]).await;
    let names: Vec<&Value> =
        groups["groups"].as_array().unwrap().iter().map(|group| &group["name"]).collect();
    let expected = [
        "apps",
        "batch",
        "networking.k8s.io",
        "rbac.authorization.k8s.io",
        "apiextensions.k8s.io",
        "coordination.k8s.io",
    ];
    assert_eq!(names, expected);
    let (_, resources) = get(&server, "/api/v1", &[]).await;
    let pods = resources["resources"]
        .as_array()
        .unwrap()
        .iter()
        .find(|resource| resource["name"] == "pods");
    assert_eq!(
        pods,
        Some(&json!({
            "name": "pods", "singularName": "pod", "namespaced": true, "kind": "Pod", "shortNames": ["po"],
            "categories": ["all"],
            "verbs": ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"],
        }))
    );
}

#[tokio::test]
async fn defined_and_registered_kinds_are_discovered_too() {
    let server = ApiServer::new();
    server.create(widget_definition()).unwrap();
    let gadgets = Kind::new("example.com", "v2", "Gadget", "gadgets", Scope::Cluster);
    server.register(gadgets.clone());
    let (_, group) = get(&server, "/apis/example.com", &[]).await;
    assert_eq!(group["preferredVersion"]["groupVersion"], "example.com/v2");
    assert_eq!(group["versions"].as_array().unwrap().len(), 2);
    let (_, list) = get(&server, "/apis/example.com/v1", &[]).await;
    assert_eq!(list["resources"][0]["shortNames"], json!(["wd"]));

    server.unregister(&gadgets);
    assert_eq!(get(&server, "/apis/example.com/v2", &[]).await.0, 404);
}

#[tokio::test]
async fn health_and_version_answer() {
    let server = ApiServer::new();
    for path in ["/readyz", "/livez", "/healthz"] {
        assert_eq!(get(&server, path, &[]).await, (200, json!("ok")));
    }
    assert_eq!(get(&server, "/version", &[]).await.1["major"], "1");
}

#[tokio::test]
async fn an_unknown_path_is_a_page_not_found() {
    let server = ApiServer::new();
    for path in ["/", "/openapi/v2", "/apis/none", "/apis/none/v1/things"] {
        let response = server.handle(request(Method::Get, path, &[], &Value::Null)).await;
        assert_eq!(
            (response.status, response.content_type.as_str()),
            (404, "text/plain; charset=utf-8")
        );
        assert_eq!(super::text_of(response).await, "404 page not found\n");
    }
}

#[tokio::test]
async fn an_unknown_resource_of_a_built_in_group_is_a_status() {
    let server = ApiServer::new();
    for path in ["/api/v1/gadgets", "/api/v1/namespaces/a/gadgets/b", "/apis/apps/v7/deployments"] {
        let (status, body) = get(&server, path, &[]).await;
        assert_eq!((status, &body["reason"]), (404, &json!("NotFound")), "{path}");
    }
}

#[tokio::test]
async fn a_method_that_makes_no_sense_is_not_allowed() {
    let server = ApiServer::new();
    for (method, path) in
        [(Method::Post, "/api/v1/pods"), (Method::Put, "/api/v1/nodes"), (Method::Post, "/apis")]
    {
        assert_eq!(
            ask(&server, request(method, path, &[], &json!({}))).await.0,
            405,
            "{method} {path}"
        );
    }
}

#[tokio::test]
async fn kubectl_is_told_that_the_server_validates() {
    let server = ApiServer::new();
    let (_, index) = get(&server, "/openapi/v3", &[]).await;
    let path = index["paths"]["apis/apps/v1"]["serverRelativeURL"].as_str().unwrap();
    let (_, description) = get(&server, path, &[]).await;
    let patch =
        &description["paths"]["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"]["patch"];
    assert_eq!(patch["parameters"][0]["name"], "fieldValidation");
    assert_eq!(patch["x-kubernetes-group-version-kind"]["kind"], "Deployment");
}
