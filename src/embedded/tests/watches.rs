use std::time::Duration;

use serde_json::json;
use tokio::time::Instant;

use super::{PODS, get, key, pod, pods, request, server_with, watch, widget, widget_definition};
use crate::client::Method;
use crate::embedded::ApiServer;

const STREAMING: [(&str, &str); 3] = [
    ("sendInitialEvents", "true"),
    ("resourceVersionMatch", "NotOlderThan"),
    ("allowWatchBookmarks", "true"),
];

#[tokio::test(start_paused = true)]
async fn a_watch_goes_on_strictly_after_its_version() {
    let server = server_with(&["a", "b"]);
    let mut reader = watch(&server, PODS, &[("resourceVersion", "2")]).await;
    server.apply(pod("a", json!({ "x": "y" }))).unwrap();
    server.delete(&pods(), &key("b")).unwrap();
    assert_eq!(reader.brief().await.unwrap(), "ADDED b@3");
    assert_eq!(reader.brief().await.unwrap(), "MODIFIED a@4");
    assert_eq!(reader.brief().await.unwrap(), "DELETED b@5");
}

#[tokio::test(start_paused = true)]
async fn a_watch_from_a_forgotten_version_is_told_so_in_the_stream() {
    let server = server_with(&["a", "b", "c"]);
    server.forget_history();
    let mut reader = watch(&server, PODS, &[("resourceVersion", "2")]).await;
    let expected = json!({
        "type": "ERROR",
        "object": {
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": "too old resource version: 2 (4)", "reason": "Expired", "code": 410,
        },
    });
    assert_eq!(reader.event().await, Some(expected));
    assert_eq!(reader.event().await, None);
}

#[tokio::test(start_paused = true)]
async fn forgetting_leaves_open_watches_alone() {
    let server = server_with(&["a"]);
    let mut reader = watch(&server, PODS, &[("resourceVersion", "2")]).await;
    server.create(pod("b", json!({}))).unwrap();
    server.forget_history();
    assert_eq!(reader.brief().await.unwrap(), "ADDED b@3");
}

#[tokio::test(start_paused = true)]
async fn a_reader_too_slow_for_the_history_is_disconnected_without_a_word() {
    let server = server_with(&["a"]);
    let mut reader = watch(&server, PODS, &[("resourceVersion", "2")]).await;
    server.limit_history(2);
    for name in ["b", "c", "d"] {
        server.create(pod(name, json!({}))).unwrap();
    }
    assert_eq!(reader.event().await, None);
    let mut reader = watch(&server, PODS, &[("resourceVersion", "2")]).await;
    assert_eq!(reader.event().await.unwrap()["object"]["code"], 410);
}

#[tokio::test(start_paused = true)]
async fn a_watch_from_the_future_is_silent_until_then() {
    let server = server_with(&["a"]);
    let query = [("resourceVersion", "4"), ("allowWatchBookmarks", "true")];
    let mut reader = watch(&server, PODS, &query).await;
    server.create(pod("b", json!({}))).unwrap();
    server.create(pod("c", json!({}))).unwrap();
    assert!(reader.is_silent_for(Duration::from_secs(300)).await);
    server.create(pod("d", json!({}))).unwrap();
    assert_eq!(reader.brief().await.unwrap(), "ADDED d@5");
}

#[tokio::test(start_paused = true)]
async fn a_watch_without_a_version_begins_with_all_objects() {
    let server = server_with(&["b", "a"]);
    for query in [&[][..], &[("resourceVersion", "0")]] {
        let mut reader = watch(&server, PODS, query).await;
        assert_eq!(reader.brief().await.unwrap(), "ADDED a@3");
        assert_eq!(reader.brief().await.unwrap(), "ADDED b@2");
        assert!(reader.is_silent_for(Duration::from_secs(100)).await);
    }
}

#[tokio::test(start_paused = true)]
async fn initial_events_end_with_a_marked_bookmark_and_go_on() {
    let server = server_with(&["a", "b"]);
    let mut reader = watch(&server, PODS, &STREAMING).await;
    assert_eq!(reader.brief().await.unwrap(), "ADDED a@2");
    assert_eq!(reader.brief().await.unwrap(), "ADDED b@3");
    let end = reader.event().await.unwrap();
    assert_eq!(end["type"], "BOOKMARK");
    assert_eq!(
        end["object"]["metadata"]["annotations"],
        json!({ "k8s.io/initial-events-end": "true" })
    );
    assert_eq!(end["object"]["metadata"]["resourceVersion"], "3");
    server.create(pod("c", json!({}))).unwrap();
    assert_eq!(reader.brief().await.unwrap(), "ADDED c@4");
}

#[tokio::test(start_paused = true)]
async fn initial_events_newer_than_the_server_fail_in_the_stream() {
    let server = server_with(&["a"]);
    let mut query = STREAMING.to_vec();
    query.push(("resourceVersion", "99"));
    let mut reader = watch(&server, PODS, &query).await;
    let error = reader.event().await.unwrap();
    assert_eq!((&error["type"], &error["object"]["code"]), (&json!("ERROR"), &json!(504)));
    assert_eq!(reader.event().await, None);
}

#[tokio::test]
async fn initial_events_are_refused_where_they_make_no_sense() {
    let server = ApiServer::new();
    let (status, body) = get(&server, PODS, &[("sendInitialEvents", "true")]).await;
    let expected = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "reason": "Invalid", "code": 422,
        "message": "ListOptions.meta.k8s.io \"\" is invalid: sendInitialEvents: Forbidden: sendInitialEvents is forbidden for list",
        "details": {
            "group": "meta.k8s.io", "kind": "ListOptions",
            "causes": [{
                "reason": "FieldValueForbidden",
                "message": "Forbidden: sendInitialEvents is forbidden for list",
                "field": "sendInitialEvents",
            }],
        },
    });
    assert_eq!((status, body), (422, expected));

    let mut query = STREAMING.to_vec();
    query.push(("watch", "1"));
    let (status, body) = get(&server.without_streaming_lists(), PODS, &query).await;
    assert_eq!(
        (status, &body["details"]["causes"][0]["field"]),
        (422, &json!("sendInitialEvents"))
    );
}

#[tokio::test(start_paused = true)]
async fn an_object_enters_and_leaves_a_selection() {
    let server = server_with(&["a"]);
    let query = [("resourceVersion", "2"), ("labelSelector", "app=web")];
    let mut reader = watch(&server, PODS, &query).await;
    server.apply(pod("a", json!({ "app": "web" }))).unwrap();
    server.apply(pod("a", json!({ "app": "web", "tier": "front" }))).unwrap();
    server.apply(pod("a", json!({ "app": "db" }))).unwrap();
    server.delete(&pods(), &key("a")).unwrap();
    assert_eq!(reader.brief().await.unwrap(), "ADDED a@3");
    assert_eq!(reader.brief().await.unwrap(), "MODIFIED a@4");
    let left = reader.event().await.unwrap();
    assert_eq!(left["type"], "DELETED");
    assert_eq!(left["object"]["metadata"]["resourceVersion"], "5");
    assert_eq!(
        left["object"]["metadata"]["labels"]["app"], "web",
        "the last state that was selected"
    );
    assert!(reader.is_silent_for(Duration::from_secs(10)).await);
}

#[tokio::test(start_paused = true)]
async fn bookmarks_come_each_minute_and_shortly_before_the_end() {
    let server = server_with(&["a"]);
    let query =
        [("resourceVersion", "2"), ("allowWatchBookmarks", "true"), ("timeoutSeconds", "100")];
    let mut reader = watch(&server, PODS, &query).await;
    let node = json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": "n" } });
    server.create(node).unwrap();
    let start = Instant::now();
    assert_eq!(reader.brief().await.unwrap(), "BOOKMARK @3");
    assert_eq!(start.elapsed(), Duration::from_secs(60));
    assert_eq!(reader.brief().await.unwrap(), "BOOKMARK @3");
    assert_eq!(start.elapsed(), Duration::from_secs(98));
    assert_eq!(reader.brief().await, None);
    assert_eq!(start.elapsed(), Duration::from_secs(100));
}

#[tokio::test(start_paused = true)]
async fn a_bookmark_that_tells_nothing_new_is_not_sent() {
    let server = server_with(&["a"]);
    let query =
        [("resourceVersion", "2"), ("allowWatchBookmarks", "true"), ("timeoutSeconds", "100")];
    let mut reader = watch(&server, PODS, &query).await;
    assert_eq!(reader.event().await, None);
}

#[tokio::test(start_paused = true)]
async fn a_watch_without_a_timeout_lives_for_half_an_hour_at_least() {
    let server = server_with(&["a"]);
    let start = Instant::now();
    let mut reader = watch(&server, PODS, &[("resourceVersion", "2")]).await;
    assert_eq!(reader.event().await, None);
    assert!((1800..=3600).contains(&start.elapsed().as_secs()), "{:?}", start.elapsed());
}

#[tokio::test(start_paused = true)]
async fn held_bookmarks_are_sent_when_released() {
    let server = server_with(&["a"]);
    server.hold_bookmarks(true);
    let mut reader = watch(&server, PODS, &STREAMING).await;
    assert_eq!(reader.brief().await.unwrap(), "ADDED a@2");
    assert!(reader.is_silent_for(Duration::from_secs(200)).await);
    server.hold_bookmarks(false);
    assert_eq!(reader.brief().await.unwrap(), "BOOKMARK @2");
}

#[tokio::test(start_paused = true)]
async fn metadata_alone_can_be_watched() {
    let server = server_with(&["a"]);
    let mut request = request(Method::Get, PODS, &[("watch", "true")], &json!(null));
    request.query.extend(STREAMING.map(|(name, value)| (name, value.to_owned())));
    request.accept = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
    let body = server.handle(request).await.body;
    let mut reader = super::Reader::new(body);
    for event_type in ["ADDED", "BOOKMARK"] {
        let event = reader.event().await.unwrap();
        assert_eq!(
            (&event["type"], &event["object"]["kind"]),
            (&json!(event_type), &json!("PartialObjectMetadata"))
        );
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_ready_comes_in_one_chunk() {
    use futures::StreamExt as _;
    let server = server_with(&["a"]);
    let mut reader = watch(&server, PODS, &[("resourceVersion", "1")]).await;
    server.create(pod("b", json!({}))).unwrap();
    let chunk = reader.body.next().await.unwrap().unwrap();
    assert_eq!(chunk.iter().filter(|&&byte| byte == b'\n').count(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_definition_starts_and_ends_its_kind() {
    let server = ApiServer::new();
    let path = "/apis/example.com/v1/widgets";
    assert_eq!(get(&server, path, &[]).await.0, 404);
    let definition = server.create(widget_definition()).unwrap();
    assert_eq!(definition["status"]["conditions"][1]["type"], "Established");
    server.create(widget("w")).unwrap();
    let mut reader = watch(&server, path, &[]).await;
    assert_eq!(reader.brief().await.unwrap(), "ADDED w@3");

    let definitions = crate::object::Kind::new(
        "apiextensions.k8s.io",
        "v1",
        "CustomResourceDefinition",
        "customresourcedefinitions",
        crate::object::Scope::Cluster,
    );
    let name = crate::object::ObjectKey::cluster_scoped("widgets.example.com");
    server.delete(&definitions, &name).unwrap();
    assert_eq!(reader.brief().await.unwrap(), "DELETED w@5");
    assert_eq!(reader.brief().await, None);
    assert_eq!(get(&server, path, &[]).await, (404, json!("404 page not found\n")));

    server.create(widget_definition()).unwrap();
    let mut reader = watch(&server, path, &[("resourceVersion", "3")]).await;
    assert_eq!(reader.event().await.unwrap()["object"]["code"], 410, "an old life is forgotten");
}

#[tokio::test(start_paused = true)]
async fn a_dropped_watch_is_not_open_any_more() {
    let server = server_with(&[]);
    let reader = watch(&server, PODS, &[]).await;
    assert_eq!(server.open_watches(), 1);
    drop(reader);
    assert_eq!(server.open_watches(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_restored_server_goes_back_and_counts_again_from_there() {
    let server = server_with(&["a"]);
    let version = server.resource_version();
    server.create(pod("b", json!({}))).unwrap();
    server.delete(&pods(), &key("a")).unwrap();
    let mut reader = watch(&server, PODS, &[("resourceVersion", "4")]).await;
    server.restore(&version).unwrap();
    assert_eq!(reader.event().await, None);
    assert_eq!(server.objects(&pods()).into_keys().collect::<Vec<_>>(), [key("a")]);

    let mut reader = watch(&server, PODS, &[("resourceVersion", "4")]).await;
    server.create(pod("c", json!({}))).unwrap();
    server.create(pod("d", json!({}))).unwrap();
    assert!(reader.is_silent_for(Duration::from_secs(60)).await, "3 and 4 were used before");
    server.create(pod("e", json!({}))).unwrap();
    assert_eq!(reader.brief().await.unwrap(), "ADDED e@5");
    assert_eq!(server.restore("1").unwrap_err().code, 410);
}

#[tokio::test(start_paused = true)]
async fn a_timeout_beyond_all_bounds_is_no_problem() {
    let server = server_with(&["a"]);
    for timeout in ["1", "18446744073709551615"] {
        let query = [("timeoutSeconds", timeout), ("allowWatchBookmarks", "true")];
        assert!(watch(&server, PODS, &query).await.brief().await.is_some());
    }
}
