//! Comparing the cache with the server, for what no watch can tell.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kubeflect::Options;
use kubeflect::object::StaticKind as _;
use kubeflect::reflector::{Audits, StreamingLists};

use crate::support::{World, cached, key, on_a_paused_clock, pass, settle, told_why};

fn audited() -> Options<Pod> {
    Options::all().audit(Duration::from_secs(300))
}

#[test]
fn an_event_the_server_lost_is_found_by_an_audit_and_by_nothing_else_g20() {
    for audit in [false, true] {
        on_a_paused_clock(async {
            let world = World::new().pods(&["a", "b", "c"]);
            let options = if audit { audited() } else { Options::all() };
            let (pods, log) = world.follow(options).await;
            world.server.lose_events(&Pod::static_kind(), 3);
            world.delete("a");
            world.touch("b");
            world.create("d");
            pass(1300).await;
            if audit {
                assert_eq!(cached(&pods), world.truth());
                let mut told = told_why(&log);
                told.sort();
                assert_eq!(told, ["added d (Relist)", "deleted a (Relist)", "updated b (Relist)"]);
                let audits = pods.status().audits;
                assert_eq!((audits.differences, audits.last_found.len()), (3, 3), "{audits:?}");
            } else {
                // The limit of a watch: the server itself does not know what it did not say.
                assert_ne!(cached(&pods), world.truth());
                assert!(told_why(&log).is_empty());
                assert_eq!(pods.status().audits, Audits::default());
            }
        });
    }
}

#[test]
fn an_audit_of_a_good_cache_changes_nothing_however_busy_it_is() {
    on_a_paused_clock(async {
        let world = World::new();
        (0..1200).for_each(|number| world.create(&format!("pod-{number}")));
        let options = audited().streaming_lists(StreamingLists::Never);
        let (pods, _) = world.follow(options).await;
        let lists = world.seen("list");
        for round in 0..3600 {
            world.touch(&format!("pod-{}", round % 1200));
            pass(1).await;
        }
        let audits = pods.status().audits;
        assert!((6..=12).contains(&audits.done), "{audits:?}");
        assert_eq!((audits.differences, audits.skipped), (0, 0), "{audits:?}");
        let exact = world
            .server
            .requests()
            .into_iter()
            .filter(|request| request.parameter("resourceVersionMatch") == Some("Exact"));
        assert_eq!(exact.count() as u64, audits.done);
        let pages = (world.seen("list") - lists) as u64;
        assert_eq!(pages, audits.done * 3, "1200 objects in pages of 500, and no relist");
    });
}

#[test]
fn an_audit_of_a_version_the_server_forgot_is_left_out() {
    on_a_paused_clock(async {
        let world = World::new().pods(&["a"]);
        let (pods, log) = world.follow(audited()).await;
        for _ in 0..1300 {
            // Others go on, and what we have is forgotten.
            let node = serde_json::json!({
                "apiVersion": "v1", "kind": "Node",
                "metadata": { "name": "n", "labels": { "at": world.server.resource_version() } },
            });
            world.server.apply(node).unwrap();
            world.server.forget_history();
            pass(1).await;
        }
        let audits = pods.status().audits;
        assert!(audits.skipped >= 1 && audits.differences == 0, "{audits:?}");
        assert!(told_why(&log).is_empty());
    });
}

#[test]
fn what_is_quarantined_is_no_difference() {
    on_a_paused_clock(async {
        let world = World::new().pods(&["a", "b"]);
        let (pods, _) = world.follow(audited()).await;
        let version = world.server.resource_version().parse::<u64>().unwrap() + 1;
        let unreadable = serde_json::json!({
            "metadata": {
                "name": "b", "namespace": "default", "uid": "u",
                "resourceVersion": version.to_string(),
            },
            "spec": 7,
        });
        world.server.corrupt(&Pod::static_kind(), &key("b"), unreadable.to_string()).unwrap();
        settle().await;
        pass(1300).await;
        let audits = pods.status().audits;
        assert!(audits.done >= 2, "{audits:?}");
        assert_eq!(audits.differences, 0, "{audits:?}");
    });
}
