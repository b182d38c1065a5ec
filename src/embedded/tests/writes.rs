use serde_json::{Value, json};

use super::{PODS, ask, config_maps, get, key, names_of, pod, pods, request, server_with};
use crate::client::Method;
use crate::embedded::ApiServer;
use crate::object::ObjectKey;

const POD_A: &str = "/api/v1/namespaces/default/pods/a";

async fn patch(server: &ApiServer, content_type: &'static str, body: Value) -> (u16, Value) {
    let mut request = request(Method::Patch, POD_A, &[], &body);
    request.content_type = Some(content_type);
    ask(server, request).await
}

#[tokio::test]
async fn a_created_object_gets_what_the_server_gives() {
    let server = ApiServer::new();
    let path = "/api/v1/namespaces/shop/pods";
    let body = json!({ "metadata": { "generateName": "web-" } });
    let (status, created) = ask(&server, request(Method::Post, path, &[], &body)).await;
    let metadata = &created["metadata"];
    assert_eq!(
        (status, &created["kind"], &metadata["namespace"]),
        (201, &json!("Pod"), &json!("shop"))
    );
    assert_eq!(
        (metadata["name"].as_str().unwrap().len(), &metadata["resourceVersion"]),
        (9, &json!("2"))
    );
    assert_eq!(metadata["uid"].as_str().unwrap().len(), 36);
    let timestamp = metadata["creationTimestamp"].as_str().unwrap();
    assert!(timestamp.parse::<k8s_openapi::jiff::Timestamp>().is_ok(), "{timestamp}");
}

#[tokio::test]
async fn what_can_not_be_created_is_refused() {
    let server = server_with(&["a"]);
    let path = "/api/v1/namespaces/default/pods";
    let post = |body: Value| ask(&server, request(Method::Post, path, &[], &body));
    let (status, body) = post(json!({ "metadata": { "name": "a" } })).await;
    let expected = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": 409,
        "message": "pods \"a\" already exists", "reason": "AlreadyExists", "details": { "name": "a", "kind": "pods" },
    });
    assert_eq!((status, body), (409, expected));
    assert_eq!(post(json!({ "metadata": {} })).await.0, 422);
    assert_eq!(post(json!({ "metadata": { "name": "b", "namespace": "other" } })).await.0, 400);
    assert_eq!(
        post(json!({ "kind": "Node", "apiVersion": "v1", "metadata": { "name": "b" } })).await.0,
        400
    );
    assert_eq!(post(json!({ "metadata": { "name": "b", "resourceVersion": "7" } })).await.0, 500);
    for name in ["A", "a_b", "-a", "a.", "a..b", &"a".repeat(254)] {
        assert_eq!(post(json!({ "metadata": { "name": name } })).await.0, 422, "{name}");
    }
}

#[tokio::test]
async fn an_update_of_an_old_version_is_a_conflict() {
    let server = server_with(&["a"]);
    let old = get(&server, POD_A, &[]).await.1;
    server.apply(pod("a", json!({ "x": "y" }))).unwrap();
    let (status, body) = ask(&server, request(Method::Put, POD_A, &[], &old)).await;
    let message = "Operation cannot be fulfilled on pods \"a\": the object has been modified; please apply your changes to the latest version and try again";
    assert_eq!(
        (status, body["message"].as_str(), body["reason"].as_str()),
        (409, Some(message), Some("Conflict"))
    );
}

#[tokio::test]
async fn an_update_that_changes_nothing_makes_no_version() {
    let server = server_with(&["a"]);
    let object = get(&server, POD_A, &[]).await.1;
    let (status, same) = ask(&server, request(Method::Put, POD_A, &[], &object)).await;
    assert_eq!((status, &same), (200, &object));
    assert_eq!(server.resource_version(), "2");
}

#[tokio::test]
async fn an_update_keeps_what_the_server_gave() {
    let server = server_with(&["a"]);
    let before = get(&server, POD_A, &[]).await.1;
    let after = server.update(pod("a", json!({ "x": "y" }))).unwrap();
    for name in ["uid", "creationTimestamp", "namespace"] {
        assert_eq!(before["metadata"][name], after["metadata"][name]);
    }
    assert_eq!(after["metadata"]["resourceVersion"], "3");
}

#[tokio::test]
async fn what_is_not_there_is_not_found() {
    let server = ApiServer::new();
    let (status, body) = get(&server, "/apis/apps/v1/namespaces/a/deployments/b", &[]).await;
    assert_eq!((status, body["message"].as_str()), (404, Some("deployments.apps \"b\" not found")));
    assert_eq!(body["details"], json!({ "name": "b", "group": "apps", "kind": "deployments" }));
    assert_eq!(server.delete(&pods(), &key("b")).unwrap_err().code, 404);
    assert_eq!(server.update(pod("b", json!({}))).unwrap_err().code, 404);
}

#[tokio::test]
async fn a_merge_patch_changes_adds_and_removes() {
    let server = server_with(&[]);
    server.create(pod("a", json!({ "app": "web", "old": "yes" }))).unwrap();
    for content_type in ["application/merge-patch+json", "application/strategic-merge-patch+json"] {
        let change = json!({ "metadata": { "labels": { "old": null, "new": "yes" } } });
        let (status, patched) = patch(&server, content_type, change).await;
        assert_eq!(
            (status, &patched["metadata"]["labels"]),
            (200, &json!({ "app": "web", "new": "yes" }))
        );
    }
    assert_eq!(server.resource_version(), "3", "the second patch changed nothing");
}

#[tokio::test]
async fn a_json_patch_is_all_or_nothing() {
    let server = server_with(&["a"]);
    let nowhere = json!([{ "op": "add", "path": "/metadata/labels/app", "value": "web" }]);
    let (status, _) = patch(&server, "application/json-patch+json", nowhere).await;
    assert_eq!(status, 422, "it has no labels, as it was made with none");
    let good = json!([{ "op": "add", "path": "/metadata/labels", "value": { "app": "web" } }]);
    let (status, patched) = patch(&server, "application/json-patch+json", good).await;
    assert_eq!((status, &patched["metadata"]["labels"]["app"]), (200, &json!("web")));
    let bad = json!([
        { "op": "remove", "path": "/metadata/labels/app" },
        { "op": "test", "path": "/kind", "value": "Node" },
    ]);
    assert_eq!(patch(&server, "application/json-patch+json", bad).await.0, 422);
    assert_eq!(get(&server, POD_A, &[]).await.1["metadata"]["labels"]["app"], "web");
}

#[tokio::test]
async fn a_patch_may_depend_on_a_version() {
    let server = server_with(&["a"]);
    let change = json!({ "metadata": { "resourceVersion": "1", "labels": { "x": "y" } } });
    assert_eq!(patch(&server, "application/merge-patch+json", change).await.0, 409);
}

#[tokio::test]
async fn server_side_apply_is_not_supported() {
    let server = server_with(&["a"]);
    assert_eq!(patch(&server, "application/apply-patch+yaml", json!({})).await.0, 415);
}

#[tokio::test]
async fn a_deletion_is_answered_with_a_status_or_the_object() {
    let server = server_with(&["a"]);
    server
        .create(json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "c" } }))
        .unwrap();
    let delete = |path| ask(&server, request(Method::Delete, path, &[], &Value::Null));
    assert_eq!(delete(POD_A).await.1["kind"], "Pod");
    let (status, body) = delete("/api/v1/namespaces/default/configmaps/c").await;
    assert_eq!(
        (status, &body["status"], &body["details"]["name"]),
        (200, &json!("Success"), &json!("c"))
    );
    assert!(server.objects(&pods()).is_empty() && server.objects(&config_maps()).is_empty());
}

#[tokio::test]
async fn a_deletion_may_depend_on_the_uid() {
    let server = server_with(&["a"]);
    let options = json!({ "preconditions": { "uid": "another" } });
    assert_eq!(ask(&server, request(Method::Delete, POD_A, &[], &options)).await.0, 409);
    assert_eq!(server.objects(&pods()).len(), 1);
}

#[tokio::test]
async fn finalizers_hold_an_object_until_they_are_gone() {
    let server = ApiServer::new();
    let mut object = pod("a", json!({}));
    object["metadata"]["finalizers"] = json!(["example.com/hold"]);
    server.create(object).unwrap();
    let mut marked = server.delete(&pods(), &key("a")).unwrap();
    assert!(marked["metadata"]["deletionTimestamp"].is_string());
    marked["metadata"]["finalizers"] = json!([]);
    server.update(marked).unwrap();
    assert!(server.objects(&pods()).is_empty());
}

#[tokio::test]
async fn a_collection_can_be_deleted_by_selector() {
    let server = server_with(&["a", "b"]);
    server.create(pod("c", json!({ "app": "web" }))).unwrap();
    let query = [("labelSelector", "!app")];
    let path = "/api/v1/namespaces/default/pods";
    let (status, list) = ask(&server, request(Method::Delete, path, &query, &Value::Null)).await;
    assert_eq!((status, names_of(&list)), (200, vec!["a", "b"]));
    assert_eq!(server.objects(&pods()).into_keys().collect::<Vec<_>>(), [key("c")]);
}

#[tokio::test]
async fn a_deleted_namespace_takes_its_objects_along() {
    let server = server_with(&["a"]);
    server
        .create(
            json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "default" } }),
        )
        .unwrap();
    let path = "/api/v1/namespaces/default";
    let spaces = super::watch(&server, "/api/v1/namespaces", &[("resourceVersion", "3")]).await;
    let inside = super::watch(&server, PODS, &[("resourceVersion", "3")]).await;
    let (status, body) = ask(&server, request(Method::Delete, path, &[], &Value::Null)).await;
    assert_eq!((status, &body["status"]["phase"]), (200, &json!("Terminating")));
    assert!(server.objects(&pods()).is_empty());
    let mut told = Vec::new();
    for (mut reader, events) in [(spaces, 2), (inside, 1)] {
        for _ in 0..events {
            let line = reader.line().await.unwrap().unwrap();
            let event: Value = serde_json::from_slice(&line).unwrap();
            let version = &event["object"]["metadata"]["resourceVersion"];
            told.push(format!("{} {}", event["type"], version).replace('"', ""));
        }
    }
    assert_eq!(told, ["MODIFIED 4", "DELETED 6", "DELETED 5"], "what is inside goes first");
}

#[test]
fn objects_are_told_by_uid_and_version() {
    let server = server_with(&["a"]);
    let first = server.objects(&pods())[&key("a")].clone();
    server.delete(&pods(), &key("a")).unwrap();
    server.create(pod("a", json!({}))).unwrap();
    let second = server.objects(&pods())[&key("a")].clone();
    assert!(first.0 != second.0 && (first.1, second.1) == ("2".to_owned(), "4".to_owned()));
    assert_eq!(server.get_object(&pods(), &ObjectKey::new("other", "a")), None);
}

#[tokio::test(start_paused = true)]
async fn many_updates_reach_a_watch_that_reads_late() {
    let server = server_with(&["a"]);
    let mut reader = super::watch(&server, PODS, &[("resourceVersion", "2")]).await;
    for round in 0..20_000_u32 {
        server.update(pod("a", json!({ "round": round.to_string() }))).unwrap();
    }
    let mut last = None;
    for _ in 0..20_000 {
        last = reader.line().await;
    }
    let last: Value = serde_json::from_slice(&last.unwrap().unwrap()).unwrap();
    assert_eq!(last["object"]["metadata"]["labels"]["round"], "19999");
    assert_eq!(last["object"]["metadata"]["resourceVersion"], server.resource_version().as_str());
}

#[tokio::test]
async fn what_is_in_several_namespaces_and_namespaces_themselves_go_one_by_one() {
    let server = server_with(&["a"]);
    for path in [PODS, "/api/v1/namespaces"] {
        let (status, body) = ask(&server, request(Method::Delete, path, &[], &json!({}))).await;
        assert_eq!((status, &body["reason"]), (405, &json!("MethodNotAllowed")), "{path}");
    }
    assert_eq!(names_of(&get(&server, PODS, &[]).await.1), ["a"]);
    let here = "/api/v1/namespaces/default/pods";
    let (status, _) = ask(&server, request(Method::Delete, here, &[], &json!({}))).await;
    assert_eq!(status, 200);
    assert!(names_of(&get(&server, PODS, &[]).await.1).is_empty());
}
