//! `/status.json`: complete, and true.

use std::time::Duration;

use k8s_openapi::api::core::v1::{Node, Pod};
use kubeflect::Options;
use kubeflect::embedded::Verb;
use kubeflect::object::StaticKind as _;
use kubeflect::reflector::StreamingLists;
use kubeflect::supervision::Faults;

use crate::support::{World, on_a_paused_clock};

#[test]
fn a_status_tells_everything_of_each_reflector() {
    on_a_paused_clock(async {
        let world = World::new();
        let options = Options::all().namespace("shop").labels("app=web");
        let pods = world.pods_with(&["a", "b"], options).await;
        world.runtime.reflect::<Node>(Options::all()).await.unwrap();

        let status = world.get_json("/status.json").await;
        assert_eq!(status["version"], env!("CARGO_PKG_VERSION"));
        assert_eq!(status["reflectors"].as_array().unwrap().len(), 2);
        let shown = &status["reflectors"][0];
        assert_eq!(shown["id"], pods.status().id);
        assert_eq!((&shown["resource"], &shown["kind"]), (&"pods".into(), &"Pod".into()));
        assert_eq!(shown["selection"]["namespace"], "shop");
        assert_eq!(shown["selection"]["labels"], "app=web");
        assert_eq!((&shown["phase"], &shown["synced"]), (&"watching".into(), &true.into()));
        assert_eq!((&shown["health"], &shown["objects"]), (&"good".into(), &2.into()));
        assert_eq!(shown["freshness"]["state"], "fresh");
        assert_eq!(shown["resourceVersion"], world.server.resource_version());
        assert_eq!(
            (&shown["changes"]["added"], &shown["changes"]["total"]),
            (&2.into(), &2.into())
        );
        let requests = &shown["requests"];
        assert_eq!(requests["lists"].as_u64().unwrap() + requests["watches"].as_u64().unwrap(), 1);
        let actors = shown["actors"].as_array().unwrap();
        assert_eq!(actors.len(), 4);
        assert!(actors.iter().all(|actor| actor["state"] == "running" && actor["restarts"] == 0));
        let subscriber = &shown["subscribers"][0];
        assert_eq!(
            (&subscriber["name"], &subscriber["policy"]),
            (&"dashboard".into(), &"every change".into())
        );
        assert_eq!((&subscriber["atMost"], &subscriber["pending"]), (&512.into(), &0.into()));
        for part in ["quarantined", "oddities", "audits", "queue", "condition", "nextAttempt"] {
            assert!(shown.get(part).is_some(), "{part}");
        }
    });
}

#[test]
fn a_crash_is_told_with_its_reason_and_a_second_one_with_its_backoff() {
    on_a_paused_clock(async {
        let faults =
            Faults::panic_at("publisher", "Publish", 2).and_panic_at("publisher", "Publish", 3);
        let world = World::new();
        world.pods_with(&["a"], Options::all().faults(faults.clone())).await;
        for revision in ["1", "2"] {
            world.apply("a", revision);
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        assert_eq!(faults.fired(), 2);

        let status = world.get_json("/status.json").await;
        let shown = &status["reflectors"][0];
        let publisher =
            shown["actors"].as_array().unwrap().iter().find(|it| it["name"] == "publisher");
        let publisher = publisher.unwrap();
        assert_eq!(
            (&publisher["state"], &publisher["restarts"]),
            (&"backing off".into(), &2.into())
        );
        let wait = publisher["until"].as_i64().unwrap() - status["now"].as_i64().unwrap();
        assert!((1..2_000).contains(&wait), "{wait}");
        let restarts = publisher["lastRestarts"].as_array().unwrap();
        assert_eq!(restarts.len(), 2);
        assert_eq!(restarts[0]["delay"], 0, "the first is at once");
        assert!(restarts[1]["delay"].as_u64().unwrap() >= 800);
        let reason = restarts[0]["reason"].as_str().unwrap();
        assert_eq!(reason, "panicked: planned fault: publisher at Publish, time 2");
        assert_eq!(shown["health"], "poor");

        tokio::time::sleep(Duration::from_secs(5)).await;
        let status = world.get_json("/status.json").await;
        assert_eq!(status["reflectors"][0]["health"], "good");
    });
}

#[test]
fn a_condition_says_what_to_do() {
    on_a_paused_clock(async {
        let world = World::new();
        world.server.forbid(&Pod::static_kind(), Verb::List);
        let options = Options::all().streaming_lists(StreamingLists::Never);
        world.runtime.reflect::<Pod>(options).await.unwrap();
        tokio::time::sleep(Duration::from_millis(100)).await;

        let status = world.get_json("/status.json").await;
        let shown = &status["reflectors"][0];
        assert_eq!((&shown["health"], &shown["phase"]), (&"bad".into(), &"backing off".into()));
        let condition = &shown["condition"];
        assert!(
            condition["message"].as_str().unwrap().starts_with("can not list pods: not allowed")
        );
        assert_eq!(
            condition["advice"],
            "grant the verb list on pods to this identity, in a Role or ClusterRole"
        );
        assert_eq!(condition["needsHelp"], true);
        assert!(shown["nextAttempt"].as_i64().unwrap() > status["now"].as_i64().unwrap());
        assert_eq!(shown["requests"]["failures"], 1);
        assert_eq!(shown["requests"]["lastFailures"][0]["verb"], "list");
    });
}
