//! Several servers behind one address, some of them behind the others, one of them lying; and kinds that come and go.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use super::{PODS, ask, get, names_of, pod, request, server_with, watch, widget};
use crate::client::Method;
use crate::embedded::ApiServer;
use crate::object::{Kind, Scope};

const WIDGETS: &str = "/apis/example.com/v1/widgets";
const STREAMING: [(&str, &str); 3] = [
    ("sendInitialEvents", "true"),
    ("resourceVersionMatch", "NotOlderThan"),
    ("allowWatchBookmarks", "true"),
];

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn version_of(list: &Value) -> &str {
    list["metadata"]["resourceVersion"].as_str().unwrap()
}

/// Pods `a`, `b` and `c` at the versions 2, 3 and 4, ten seconds apart; ten seconds ago `c`.
async fn server_with_a_past() -> ApiServer {
    let server = ApiServer::new();
    for name in ["a", "b", "c"] {
        server.create(pod(name, json!({}))).unwrap();
        tokio::time::sleep(seconds(10)).await;
    }
    server
}

#[tokio::test(start_paused = true)]
async fn a_replica_that_lags_shows_an_older_state_where_that_is_allowed() {
    let server = server_with_a_past().await;
    server.replicas([seconds(15)]);
    let (_, any) = get(&server, PODS, &[("resourceVersion", "0")]).await;
    assert_eq!((names_of(&any), version_of(&any)), (vec!["a", "b"], "3"));
    let (_, consistent) = get(&server, PODS, &[]).await;
    assert_eq!((names_of(&consistent), version_of(&consistent)), (vec!["a", "b", "c"], "4"));
    let exact = [("resourceVersion", "4"), ("resourceVersionMatch", "Exact")];
    assert_eq!(names_of(&get(&server, PODS, &exact).await.1), ["a", "b", "c"]);
    server.heal();
    let (_, any) = get(&server, PODS, &[("resourceVersion", "0")]).await;
    assert_eq!(version_of(&any), "4");
}

#[tokio::test(start_paused = true)]
async fn a_replica_never_shows_less_than_it_is_asked_for_and_gives_up_after_three_seconds() {
    let server = server_with_a_past().await;
    let query = [("resourceVersion", "4"), ("resourceVersionMatch", "NotOlderThan")];
    server.replicas([seconds(12)]);
    let start = Instant::now();
    let (_, list) = get(&server, PODS, &query).await;
    assert_eq!((version_of(&list), start.elapsed()), ("4", seconds(2)), "it waited for its turn");
    server.create(pod("d", json!({}))).unwrap();
    let query = [("resourceVersion", "5"), ("resourceVersionMatch", "NotOlderThan")];
    let (status, body) = get(&server, PODS, &query).await;
    assert_eq!((status, start.elapsed()), (504, seconds(5)));
    assert_eq!(body["message"], "Timeout: Too large resource version: 5, current: 4");
}

#[tokio::test(start_paused = true)]
async fn requests_go_to_each_replica_in_turn() {
    let server = server_with_a_past().await;
    server.replicas([seconds(0), seconds(15), seconds(25)]);
    let mut versions = Vec::new();
    for _ in 0..6 {
        let (_, list) = get(&server, PODS, &[("resourceVersion", "0")]).await;
        versions.push(version_of(&list).to_owned());
    }
    let (first, second) = versions.split_at(3);
    assert_eq!(first, second);
    versions.sort();
    versions.dedup();
    assert_eq!(versions, ["2", "3", "4"]);
}

#[tokio::test(start_paused = true)]
async fn a_watch_at_a_replica_that_lags_is_as_late_and_misses_nothing() {
    let server = server_with_a_past().await;
    server.replicas([seconds(15)]);
    let mut streaming = STREAMING.to_vec();
    streaming.push(("resourceVersion", "0"));
    let mut reader = watch(&server, PODS, &streaming).await;
    for expected in ["ADDED a@2", "ADDED b@3", "BOOKMARK @3"] {
        assert_eq!(reader.brief().await.unwrap(), expected);
    }
    let start = Instant::now();
    assert_eq!(reader.brief().await.unwrap(), "ADDED c@4");
    assert_eq!(start.elapsed(), seconds(5));
    let mut ahead = watch(&server, PODS, &[("resourceVersion", "4")]).await;
    server.create(pod("d", json!({}))).unwrap();
    assert!(ahead.is_silent_for(seconds(14)).await);
    assert_eq!(ahead.brief().await.unwrap(), "ADDED d@5");
    server.create(pod("e", json!({}))).unwrap();
    server.heal();
    let healed = Instant::now();
    assert_eq!(ahead.brief().await.unwrap(), "ADDED e@6");
    assert_eq!(healed.elapsed(), seconds(0), "a healed replica has caught up");
}

#[tokio::test(start_paused = true)]
async fn a_lying_server_shows_the_past_whatever_version_is_named() {
    let server = server_with_a_past().await;
    server.list_the_past("2", 2).unwrap();
    let query = [("resourceVersion", "4"), ("resourceVersionMatch", "NotOlderThan")];
    assert_eq!(names_of(&get(&server, PODS, &[]).await.1), ["a", "b", "c"]);
    let (status, list) = get(&server, PODS, &query).await;
    assert_eq!((status, names_of(&list), version_of(&list)), (200, vec!["a"], "2"));
    let mut streaming = STREAMING.to_vec();
    streaming.push(("resourceVersion", "4"));
    let mut reader = watch(&server, PODS, &streaming).await;
    for expected in ["ADDED a@2", "BOOKMARK @2", "ADDED b@3", "ADDED c@4"] {
        assert_eq!(reader.brief().await.unwrap(), expected);
    }
    assert_eq!(version_of(&get(&server, PODS, &query).await.1), "4", "two lies were planned");
    assert_eq!(server.list_the_past("9", 1).unwrap_err().code, 504);
    assert_eq!(server.list_the_past("0", 1).unwrap_err().code, 410);
}

#[tokio::test(start_paused = true)]
async fn a_kind_can_vanish_and_come_back_with_other_objects_of_the_same_names() {
    let kind = Kind::new("example.com", "v1", "Widget", "widgets", Scope::Namespaced);
    let server = server_with(&["a"]);
    server.register(kind.clone());
    let uid = |object: Value| object["metadata"]["uid"].as_str().unwrap().to_owned();
    let first = uid(server.create(widget("w")).unwrap());
    let mut reader = watch(&server, WIDGETS, &[]).await;
    assert_eq!(reader.brief().await.unwrap(), "ADDED w@3");
    server.vanish(&kind);
    assert_eq!(reader.brief().await, None, "no deletion is told");
    assert_eq!(server.resource_version(), "3");

    for path in [WIDGETS, "/apis/example.com/v1/namespaces/default/widgets/w", "/apis/example.com"]
    {
        let response = server.handle(request(Method::Get, path, &[], &Value::Null)).await;
        assert_eq!(
            (response.status, response.content_type.as_str()),
            (404, "text/plain; charset=utf-8")
        );
        assert_eq!(super::text_of(response).await, "404 page not found\n");
    }
    let (_, groups) = get(&server, "/apis", &[]).await;
    assert!(!groups.to_string().contains("example.com"), "{groups}");
    assert_eq!(server.create(widget("w")).unwrap_err().code, 404);

    server.register(kind);
    assert_eq!(names_of(&get(&server, WIDGETS, &[]).await.1), [""; 0]);
    let again = server.create(widget("w")).unwrap();
    assert_eq!(again["metadata"]["resourceVersion"], "4", "versions go on");
    assert_ne!(uid(again), first);
    let mut resumed = watch(&server, WIDGETS, &[("resourceVersion", "2")]).await;
    assert_eq!(resumed.event().await.unwrap()["object"]["code"], 410);
    let (status, _) =
        ask(&server, request(Method::Get, "/apis/example.com/v1", &[], &Value::Null)).await;
    assert_eq!(status, 200);
}

#[tokio::test(start_paused = true)]
async fn an_unregistered_kind_deletes_its_objects_before_it_goes() {
    let kind = Kind::new("example.com", "v1", "Widget", "widgets", Scope::Namespaced);
    let server = ApiServer::new();
    server.register(kind.clone());
    server.create(widget("w")).unwrap();
    let mut reader = watch(&server, WIDGETS, &[("resourceVersion", "2")]).await;
    server.unregister(&kind);
    assert_eq!(reader.brief().await.unwrap(), "DELETED w@3");
    assert_eq!(reader.brief().await, None);
    assert_eq!(get(&server, WIDGETS, &[]).await, (404, json!("404 page not found\n")));
    server.register(kind);
    assert_eq!(server.create(widget("w")).unwrap()["metadata"]["resourceVersion"], "4");
}
