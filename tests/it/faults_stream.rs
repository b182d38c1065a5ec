//! What goes wrong on the way and inside of a stream: faults 9 to 43 of `tests/faults.md`.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kubeflect::Options;
use kubeflect::api::{ApiError, Status};
use kubeflect::embedded::{ApiServer, Filter, RawAnswer, SeenRequest, Verb};
use kubeflect::object::{DynamicObject, StaticKind as _};
use kubeflect::reflector::{Freshness, Phase, StreamingLists};
use serde_json::json;

use crate::proxy::Proxy;
use crate::support::{World, cached, key, on_a_paused_clock, pass, pod, settle, told, told_why};

/// The lists of all objects: not those that only look how far the server is.
pub(crate) fn lists(world: &World) -> Vec<SeenRequest> {
    let mut requests = world.server.requests();
    requests.retain(|seen| seen.verb == Verb::List && seen.parameter("limit") != Some("1"));
    requests
}

/// The watches that go on from a version.
pub(crate) fn watches(world: &World) -> Vec<SeenRequest> {
    let mut requests = world.server.requests();
    requests
        .retain(|seen| seen.verb == Verb::Watch && seen.parameter("sendInitialEvents").is_none());
    requests
}

/// Lets time pass until something is so.
pub(crate) async fn until(is_so: impl Fn() -> bool) {
    let so = async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(600), so).await.expect("it never is so");
}

fn listed() -> Options<Pod> {
    Options::all().streaming_lists(StreamingLists::Never)
}

fn event(event_type: &str, name: &str, version: &str) -> serde_json::Value {
    let mut object = pod(name);
    object["metadata"]["resourceVersion"] = version.into();
    object["metadata"]["uid"] = name.into();
    json!({ "type": event_type, "object": object })
}

#[test]
fn a_watch_that_is_never_answered_is_given_up_fifteen_seconds_after_its_time() {
    on_a_paused_clock(async {
        let world = World::new().pods(&["a"]);
        let (pods, _) = world.follow(listed()).await;
        let before = watches(&world).len();
        world.server.delay(Filter::verb(Verb::Watch), Duration::from_secs(86_400));
        world.server.cut_watches();
        pass(1_300).await;
        let unanswered = watches(&world).split_off(before);
        let [first, second, ..] = &unanswered[..] else { panic!("{unanswered:?}") };
        let asked: u64 = first.parameter("timeoutSeconds").unwrap().parse().unwrap();
        let waited = (second.at - first.at).as_secs();
        assert!((asked + 15..=asked + 20).contains(&waited), "{waited} s for {asked} s");
        assert_eq!(lists(&world).len(), 1);
        world.server.heal();
        world.touch("a");
        pass(700).await;
        assert_eq!(cached(&pods), world.truth());
    });
}

#[test]
fn a_slow_list_is_read_in_its_time_or_not_at_all() {
    on_a_paused_clock(async {
        let server = ApiServer::seeded(1);
        for number in 0..60 {
            let mut large = pod(&format!("p{number:02}"));
            large["metadata"]["annotations"] = json!({ "filler": "x".repeat(100 << 10) });
            server.create(large).unwrap();
        }
        // 6 MB at 10 KiB a second are ten minutes, and a page has five.
        let slow = Proxy::Throttles(10 << 10).world(server.clone());
        let pods = slow.reflect_with(listed()).await;
        pass(599).await;
        let error = pods.status().condition.map(|condition| condition.error);
        assert!(matches!(error, Some(ApiError::Timeout { .. })), "{error:?}");
        assert_eq!((pods.store().len(), pods.has_synced()), (0, false));

        let paged = slow.reflect_with(listed().page_size(20)).await;
        pass(599).await;
        assert_eq!((paged.store().len(), paged.has_synced()), (0, false), "two pages of three");
        pass(60).await;
        assert_eq!(cached(&paged), slow.truth());
    });
}

#[test]
fn a_proxy_that_cuts_everything_after_a_minute_costs_a_watch_a_minute_and_no_list() {
    on_a_paused_clock(async {
        let server = ApiServer::seeded(1);
        server.create(pod("a")).unwrap();
        let world = Proxy::Cuts(Duration::from_secs(60)).world(server);
        let (pods, log) = world.follow(Options::all()).await;
        for _ in 0..30 {
            world.touch("a");
            pass(120).await;
            assert_eq!(cached(&pods), world.truth());
            assert_eq!(pods.status().freshness, Freshness::Fresh);
        }
        assert_eq!(told_why(&log), ["updated a (Watch)"; 30]);
        let (watches, lists) = (watches(&world).len(), lists(&world).len());
        assert!((55..=60).contains(&watches), "{watches} watches in an hour");
        assert_eq!((lists, world.seen("streaming list")), (0, 1));
    });
}

#[test]
fn frames_of_a_wrong_shape_are_stored_nowhere_and_lose_nothing() {
    for frame in [
        "[]",
        "7",
        "{}",
        r#"{"type":"ADDED"}"#,
        r#"{"object":{"metadata":{"name":"x","resourceVersion":"900"}}}"#,
        r#"{"type":7,"object":{"metadata":{"name":"x","resourceVersion":"900"}}}"#,
        r#"{"type":"ADDED","object":[]}"#,
        r#"{"type":"ADDED","object":{"metadata":[]}}"#,
        r#"{"type":"ERROR","object":null}"#,
        r#"{"type":"BOOKMARK","object":{}}"#,
    ] {
        on_a_paused_clock(async {
            let world = World::new().pods(&["a"]);
            let (pods, log) = world.follow(listed()).await;
            world.server.emit_raw_frame(&Pod::static_kind(), format!("{frame}\n"));
            world.touch("a");
            pass(30).await;
            assert_eq!(cached(&pods), world.truth(), "{frame}");
            assert_eq!(told(&log), ["updated a"], "{frame}");
            assert_eq!(lists(&world).len(), 1, "{frame}");
        });
    }
}

#[test]
fn an_event_of_an_unknown_type_moves_nothing() {
    on_a_paused_clock(async {
        let world = World::new().pods(&["a"]);
        let (_, log) = world.follow(listed()).await;
        let version = world.server.resource_version();
        let novel = event("NOVEL", "x", "900").to_string();
        world.server.emit_raw_frame(&Pod::static_kind(), novel);
        pass(5).await;
        assert_eq!(watches(&world).len(), 1, "the stream goes on");
        world.server.cut_watches();
        pass(5).await;
        assert_eq!(watches(&world).last().unwrap().parameter("resourceVersion"), Some(&*version));
        assert_eq!(told(&log), [""; 0]);
    });
}

#[test]
fn an_object_nested_too_deep_is_quarantined_and_costs_no_other() {
    for depth in [200, 100_000] {
        on_a_paused_clock(async {
            let world = World::new().pods(&["a", "listed", "watched"]);
            let corrupt = |name: &str| {
                let (open, close) = (r#"{"a":"#.repeat(depth), "}".repeat(depth));
                let text = format!(
                    r#"{{"metadata":{{"name":"{name}","namespace":"default","resourceVersion":"900"}},"spec":{open}7{close}}}"#
                );
                world.server.corrupt(&Pod::static_kind(), &key(name), text).unwrap();
            };
            corrupt("listed");
            let options = Options::<DynamicObject>::all().streaming_lists(StreamingLists::Never);
            let pods = world.runtime.reflect_kind(Pod::static_kind(), options).await.unwrap();
            pods.synced().await.unwrap();
            settle().await;
            corrupt("watched");
            world.touch("a");
            settle().await;
            let quarantined = pods.status().quarantined.objects;
            assert_eq!(
                quarantined.into_keys().collect::<Vec<_>>(),
                [key("listed"), key("watched")]
            );
            assert_eq!(cached(&pods)["default/a"], world.truth()["default/a"]);
            assert_eq!(pods.status().phase, Phase::Watching);
        });
    }
}

#[test]
fn an_event_that_comes_twice_is_told_once() {
    on_a_paused_clock(async {
        let world = World::new().pods(&["a"]);
        let (pods, log) = world.follow(listed()).await;
        world.create("b");
        settle().await;
        let object = world.server.get_object(&Pod::static_kind(), &key("b")).unwrap();
        for event_type in ["ADDED", "MODIFIED", "ADDED"] {
            let again = json!({ "type": event_type, "object": object }).to_string();
            world.server.emit_raw_frame(&Pod::static_kind(), again);
        }
        settle().await;
        assert_eq!(told(&log), ["added b"]);
        assert_eq!((cached(&pods), pods.status().phase), (world.truth(), Phase::Watching));
    });
}

#[test]
fn a_bookmark_with_nulls_and_odd_fields_is_a_position() {
    on_a_paused_clock(async {
        let world = World::new().pods(&["a"]);
        let (pods, _) = world.follow(listed()).await;
        let node = json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": "n" } });
        world.server.create(node).unwrap();
        let version = world.server.resource_version();
        let bookmark = json!({ "type": "BOOKMARK", "object": {
            "kind": "Pod", "apiVersion": "v1",
            "metadata": {
                "resourceVersion": version, "creationTimestamp": null, "annotations": null,
                "labels": null, "name": null, "uid": null, "managedFields": null,
            },
            "spec": { "containers": null }, "status": [], "novel": { "a": [null] },
        } });
        world.server.emit_raw_frame(&Pod::static_kind(), bookmark.to_string());
        settle().await;
        assert_eq!(pods.status().phase, Phase::Watching);
        world.server.cut_watches();
        pass(5).await;
        assert_eq!(watches(&world).last().unwrap().parameter("resourceVersion"), Some(&*version));
    });
}

#[test]
fn a_streaming_list_that_is_cut_short_deletes_nothing() {
    for cut in [0, 40] {
        on_a_paused_clock(async {
            let world = World::new().pods(&["a", "b", "c"]);
            let (pods, log) = world.follow(Options::all()).await;
            pass(300).await;
            let mut partial = format!("{}\n", event("ADDED", "a", "900"));
            partial.truncate(partial.len() - cut);
            let expired = Status { code: 410, reason: "Expired".to_owned(), ..Status::default() };
            world.server.refuse(Filter::verb(Verb::Watch), expired, 1);
            world.server.answer_with(Filter::verb(Verb::Watch), RawAnswer::text(200, partial), 1);
            world.server.cut_watches();
            world.touch("b");
            until(|| world.seen("streaming list") == 2).await;
            settle().await;
            assert_eq!((pods.store().len(), pods.status().phase), (3, Phase::BackingOff));
            pass(60).await;
            assert_eq!(told_why(&log), ["updated b (Relist)"]);
            assert_eq!(cached(&pods), world.truth());
        });
    }
}

#[test]
fn frames_may_be_printed_prettily_and_between_them_may_be_anything_blank() {
    on_a_paused_clock(async {
        let world = World::new();
        let (pods, log) = world.follow(listed()).await;
        let kind = Pod::static_kind();
        let pretty = serde_json::to_string_pretty(&event("ADDED", "pretty", "901")).unwrap();
        world.server.emit_raw_frame(&kind, pretty.replace('\n', "\r\n"));
        world.server.emit_raw_frame(&kind, "\r\n\r\n\t \n\n");
        world.server.emit_raw_frame(&kind, format!("\u{feff}{}", event("ADDED", "marked", "902")));
        let pair = [event("ADDED", "first", "903"), event("ADDED", "second", "904")];
        world.server.emit_raw_frame(&kind, format!("{}{}", pair[0], pair[1]));
        settle().await;
        assert_eq!(told(&log), ["added pretty", "added marked", "added first", "added second"]);
        assert_eq!((pods.status().phase, watches(&world).len()), (Phase::Watching, 1));
    });
}
