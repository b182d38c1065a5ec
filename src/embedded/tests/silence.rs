//! Watches that tell nothing, or not everything.

use std::time::Duration;

use serde_json::json;

use super::{PODS, get, key, names_of, pod, pods, server_with, watch};

const HOUR: Duration = Duration::from_secs(3600);
const BOOKMARKED: [(&str, &str); 3] =
    [("resourceVersion", "2"), ("allowWatchBookmarks", "true"), ("timeoutSeconds", "100")];
const STREAMING: [(&str, &str); 3] = [
    ("sendInitialEvents", "true"),
    ("resourceVersionMatch", "NotOlderThan"),
    ("allowWatchBookmarks", "true"),
];

#[tokio::test(start_paused = true)]
async fn a_silenced_watch_has_no_events_no_bookmarks_and_no_end_and_then_goes_on() {
    let server = server_with(&["a"]);
    let mut reader = watch(&server, PODS, &BOOKMARKED).await;
    assert!(reader.is_silent_for(Duration::from_secs(1)).await, "it is being read");
    server.silence_watches(true);
    server.create(pod("b", json!({}))).unwrap();
    server.cut_watches();
    assert!(reader.is_silent_for(HOUR).await);
    assert_eq!(server.open_watches(), 1);
    server.silence_watches(false);
    assert_eq!(reader.brief().await.unwrap(), "ADDED b@3");
    assert_eq!(reader.brief().await, None, "it is long past its timeout");
}

#[tokio::test(start_paused = true)]
async fn a_watch_opened_in_silence_is_answered_and_silent() {
    let server = server_with(&["a"]);
    server.silence_watches(true);
    let mut reader = watch(&server, PODS, &STREAMING).await;
    server.forget_history();
    let mut expired = watch(&server, PODS, &[("resourceVersion", "1")]).await;
    assert!(reader.is_silent_for(HOUR).await && expired.is_silent_for(HOUR).await);
    server.create(pod("b", json!({}))).unwrap();
    server.heal();
    for expected in ["ADDED a@2", "ADDED b@3", "BOOKMARK @3"] {
        assert_eq!(reader.brief().await.unwrap(), expected);
    }
    assert_eq!(expired.event().await.unwrap()["object"]["code"], 410);
}

#[tokio::test(start_paused = true)]
async fn a_lost_watch_is_silent_for_ever_and_a_new_one_is_not() {
    let server = server_with(&["a"]);
    let mut lost = watch(&server, PODS, &BOOKMARKED).await;
    server.create(pod("b", json!({}))).unwrap();
    server.lose_watches();
    server.create(pod("c", json!({}))).unwrap();
    assert_eq!(lost.brief().await.unwrap(), "ADDED b@3", "it was sent before");
    assert!(lost.is_silent_for(HOUR).await);
    server.heal();
    server.cut_watches();
    assert!(lost.is_silent_for(HOUR).await);
    let mut reader = watch(&server, PODS, &[("resourceVersion", "3")]).await;
    assert_eq!(reader.brief().await.unwrap(), "ADDED c@4");
    drop(lost);
    assert_eq!(server.open_watches(), 1);
}

#[tokio::test(start_paused = true)]
async fn lost_events_are_in_lists_and_before_bookmarks_but_in_no_watch() {
    let server = server_with(&["a"]);
    let mut reader = watch(&server, PODS, &BOOKMARKED).await;
    let mut config_maps = watch(&server, "/api/v1/configmaps", &[]).await;
    server.lose_events(&pods(), 2);
    server
        .create(json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "m" } }))
        .unwrap();
    assert_eq!(config_maps.brief().await.unwrap(), "ADDED m@3", "another kind loses nothing");
    server.create(pod("b", json!({}))).unwrap();
    server.delete(&pods(), &key("a")).unwrap();
    assert_eq!(reader.brief().await.unwrap(), "BOOKMARK @5");
    server.create(pod("c", json!({}))).unwrap();
    assert_eq!(reader.brief().await.unwrap(), "ADDED c@6");
    assert_eq!(names_of(&get(&server, PODS, &[]).await.1), ["b", "c"]);
    let mut resumed = watch(&server, PODS, &[("resourceVersion", "2")]).await;
    assert_eq!(resumed.brief().await.unwrap(), "ADDED c@6");
}

#[tokio::test(start_paused = true)]
async fn events_planned_to_be_lost_are_shown_once_healed() {
    let server = server_with(&["a"]);
    let mut reader = watch(&server, PODS, &BOOKMARKED).await;
    server.lose_events(&pods(), usize::MAX);
    server.create(pod("b", json!({}))).unwrap();
    server.heal();
    server.create(pod("c", json!({}))).unwrap();
    assert_eq!(reader.brief().await.unwrap(), "ADDED c@4");
}

#[tokio::test(start_paused = true)]
async fn a_silently_restored_server_tells_open_watches_nothing_before_it_passed_them() {
    let server = server_with(&["a"]);
    let before = server.resource_version();
    let mut query = BOOKMARKED.to_vec();
    query[2] = ("timeoutSeconds", "1000");
    let mut reader = watch(&server, PODS, &query).await;
    for name in ["b", "c", "d"] {
        server.create(pod(name, json!({}))).unwrap();
        assert!(reader.brief().await.is_some());
    }
    server.restore_silently(&before).unwrap();
    server.create(pod("e", json!({}))).unwrap();
    let mut opened =
        watch(&server, PODS, &[("resourceVersion", "5"), ("allowWatchBookmarks", "true")]).await;
    for reader in [&mut reader, &mut opened] {
        assert!(reader.is_silent_for(Duration::from_secs(200)).await, "not even a bookmark");
    }
    for name in ["f", "g", "h"] {
        server.create(pod(name, json!({}))).unwrap();
    }
    for reader in [&mut reader, &mut opened] {
        assert_eq!(reader.brief().await.unwrap(), "ADDED h@6");
        assert_eq!(reader.brief().await.unwrap(), "BOOKMARK @6");
    }
    assert_eq!(names_of(&get(&server, PODS, &[]).await.1), ["a", "e", "f", "g", "h"]);
}

#[tokio::test(start_paused = true)]
async fn a_list_at_a_version_from_before_a_restore_is_too_large_after_three_seconds() {
    let server = server_with(&["a", "b", "c"]);
    server.restore_silently("2").unwrap();
    let start = tokio::time::Instant::now();
    let query = [("resourceVersion", "4"), ("resourceVersionMatch", "NotOlderThan")];
    let (status, body) = get(&server, PODS, &query).await;
    assert_eq!((status, start.elapsed()), (504, Duration::from_secs(3)));
    assert_eq!(body["message"], "Timeout: Too large resource version: 4, current: 2");
    assert_eq!(body["details"]["causes"][0]["reason"], "ResourceVersionTooLarge");
}
