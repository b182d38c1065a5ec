use std::time::Duration;

use serde_json::json;
use tokio::time::Instant;

use super::{PODS, get, names_of, pod, request, server_with, text_of, widget, widget_definition};
use crate::client::Method;
use crate::embedded::ApiServer;
use crate::object::ObjectKey;

#[tokio::test]
async fn a_list_has_the_newest_version_and_untyped_items() {
    let server = server_with(&["a", "b"]);
    server
        .create(json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": "n" } }))
        .unwrap();
    let (status, list) = get(&server, PODS, &[]).await;
    assert_eq!(
        (status, list["kind"].as_str(), list["apiVersion"].as_str()),
        (200, Some("PodList"), Some("v1"))
    );
    assert_eq!(list["metadata"], json!({ "resourceVersion": server.resource_version() }));
    assert_eq!(names_of(&list), ["a", "b"]);
    assert_eq!(list["items"][0].get("kind"), None);
}

#[tokio::test]
async fn an_empty_list_has_no_items_rather_than_null() {
    let (_, list) = get(&ApiServer::new(), PODS, &[]).await;
    assert_eq!(list["items"], json!([]));
    assert_eq!(list["metadata"]["resourceVersion"], "1");
}

#[tokio::test]
async fn items_of_custom_resources_say_what_they_are() {
    let server = ApiServer::new();
    server.create(widget_definition()).unwrap();
    server.create(widget("w")).unwrap();
    let (_, list) = get(&server, "/apis/example.com/v1/widgets", &[]).await;
    assert_eq!(
        (&list["kind"], &list["items"][0]["kind"]),
        (&json!("WidgetList"), &json!("Widget"))
    );
}

#[tokio::test]
async fn selectors_select() {
    let server = ApiServer::new();
    let mut scheduled = pod("scheduled", json!({ "app": "web" }));
    scheduled["spec"]["nodeName"] = json!("node-1");
    server.create(scheduled).unwrap();
    server.create(pod("waiting", json!({ "app": "db" }))).unwrap();
    for (query, expected) in [
        (("labelSelector", "app=web"), vec!["scheduled"]),
        (("labelSelector", "app in (web, db)"), vec!["scheduled", "waiting"]),
        (("fieldSelector", "metadata.name=waiting"), vec!["waiting"]),
        (("fieldSelector", "spec.nodeName="), vec!["waiting"]),
        (("fieldSelector", "spec.nodeName!=,metadata.namespace==default"), vec!["scheduled"]),
    ] {
        assert_eq!(names_of(&get(&server, PODS, &[query]).await.1), expected, "{query:?}");
    }
    assert_eq!(names_of(&get(&server, "/api/v1/namespaces/other/pods", &[]).await.1), [""; 0]);
}

#[tokio::test]
async fn an_unknown_field_label_is_a_bad_request() {
    let server = ApiServer::new();
    let (status, body) = get(&server, PODS, &[("fieldSelector", "spec.colour=red")]).await;
    let expected = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": "field label not supported: spec.colour", "reason": "BadRequest", "code": 400,
    });
    assert_eq!((status, body), (400, expected));
}

#[tokio::test]
async fn pages_show_one_snapshot_while_objects_change() {
    let server = server_with(&["a", "b", "c", "d"]);
    let (_, first) = get(&server, PODS, &[("limit", "2")]).await;
    assert_eq!(names_of(&first), ["a", "b"]);
    assert_eq!(first["metadata"]["remainingItemCount"], 2);

    server.delete(&super::pods(), &ObjectKey::new("default", "c")).unwrap();
    server.create(pod("bb", json!({}))).unwrap();
    server.apply(pod("d", json!({ "changed": "yes" }))).unwrap();

    let token = first["metadata"]["continue"].as_str().unwrap();
    let (_, second) = get(&server, PODS, &[("limit", "2"), ("continue", token)]).await;
    assert_eq!(names_of(&second), ["c", "d"]);
    assert_eq!(second["items"][1]["metadata"]["labels"], json!(null));
    assert_eq!(
        second["metadata"],
        json!({ "resourceVersion": first["metadata"]["resourceVersion"] })
    );
}

#[tokio::test]
async fn an_expired_page_offers_a_token_that_goes_on_at_the_newest_version() {
    let server = server_with(&["a", "b", "c"]);
    let (_, first) = get(&server, PODS, &[("limit", "1")]).await;
    server.create(pod("bb", json!({}))).unwrap();
    server.forget_history();

    let token = first["metadata"]["continue"].as_str().unwrap();
    let (status, expired) = get(&server, PODS, &[("limit", "1"), ("continue", token)]).await;
    assert_eq!((status, &expired["reason"]), (410, &json!("Expired")));

    let token = expired["metadata"]["continue"].as_str().unwrap();
    let (status, rest) = get(&server, PODS, &[("continue", token)]).await;
    assert_eq!((status, names_of(&rest)), (200, vec!["b", "bb", "c"]));
    assert_eq!(rest["metadata"]["resourceVersion"], server.resource_version().as_str());
}

#[tokio::test]
async fn any_version_will_do_comes_in_one_page() {
    let server = server_with(&["a", "b"]);
    let (_, list) = get(&server, PODS, &[("resourceVersion", "0"), ("limit", "1")]).await;
    assert_eq!(names_of(&list).len(), 2);
}

#[tokio::test]
async fn an_exact_list_shows_the_past_until_it_is_forgotten() {
    let server = server_with(&["a"]);
    let version = server.resource_version();
    server.create(pod("b", json!({}))).unwrap();
    let exact = [("resourceVersion", version.as_str()), ("resourceVersionMatch", "Exact")];
    let (_, list) = get(&server, PODS, &exact).await;
    assert_eq!(
        (names_of(&list), &list["metadata"]["resourceVersion"]),
        (vec!["a"], &json!(version))
    );

    server.forget_history();
    let (status, body) = get(&server, PODS, &exact).await;
    assert_eq!(
        (status, body["message"].as_str()),
        (410, Some("The resourceVersion for the provided list is too old."))
    );
    assert_eq!(body["metadata"], json!({}));
}

#[tokio::test(start_paused = true)]
async fn a_version_from_the_future_is_waited_for_three_seconds() {
    let server = server_with(&["a"]);
    let query = [("resourceVersion", "999"), ("resourceVersionMatch", "NotOlderThan")];
    let start = Instant::now();
    let response = server.handle(request(Method::Get, PODS, &query, &json!(null))).await;
    assert_eq!(start.elapsed(), Duration::from_secs(3));
    assert_eq!((response.status, response.retry_after), (504, Some(1)));
    let body: serde_json::Value = serde_json::from_str(&text_of(response).await).unwrap();
    let expected = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "reason": "Timeout", "code": 504,
        "message": "Timeout: Too large resource version: 999, current: 2",
        "details": {
            "causes": [{ "reason": "ResourceVersionTooLarge", "message": "Too large resource version" }],
            "retryAfterSeconds": 1,
        },
    });
    assert_eq!(body, expected);
}

#[tokio::test(start_paused = true)]
async fn a_version_that_comes_in_time_is_answered() {
    let server = server_with(&["a"]);
    let query = [("resourceVersion", "3")];
    let (answer, ()) = tokio::join!(get(&server, PODS, &query), async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        server.create(pod("b", json!({}))).unwrap();
    });
    assert_eq!((answer.0, names_of(&answer.1)), (200, vec!["a", "b"]));
}

#[tokio::test]
async fn metadata_alone_can_be_listed() {
    let server = server_with(&["a"]);
    let mut request = request(Method::Get, PODS, &[], &json!(null));
    request.accept = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
    let (_, list) = super::ask(&server, request).await;
    assert_eq!(list["kind"], "PartialObjectMetadataList");
    assert_eq!(list["apiVersion"], "meta.k8s.io/v1");
    assert_eq!(list["items"][0]["kind"], "PartialObjectMetadata");
    assert_eq!(names_of(&list), ["a"]);
}
