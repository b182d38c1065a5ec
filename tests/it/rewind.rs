//! Servers that go back: replicas that lag or lie, events that come late, storage restored from a backup.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kubeflect::api::ApiError;
use kubeflect::object::{ResourceVersion, StaticKind as _};
use kubeflect::reflector::StreamingLists;
use kubeflect::{Options, Reflector};
use serde_json::json;

use crate::support::{World, cached, key, on_a_paused_clock, pass, settle, told, told_why};

fn version(pods: &Reflector<Pod>) -> ResourceVersion {
    pods.store().snapshot().resource_version().unwrap().clone()
}

/// Sends an event into the open watches, as no server should.
fn emit(world: &World, event: &str, object: &serde_json::Value) {
    let frame = json!({ "type": event, "object": object }).to_string() + "\n";
    world.server.emit_raw_frame(&Pod::static_kind(), frame);
}

#[test]
fn a_restored_server_is_noticed_and_its_history_begun_anew_g14() {
    for streaming in [StreamingLists::WherePossible, StreamingLists::Never] {
        for silently in [false, true] {
            on_a_paused_clock(async {
                let world = World::new().pods(&["kept", "changed"]);
                let backup = world.server.resource_version();
                world.create("after-the-backup");
                world.touch("changed");
                let options = Options::all().streaming_lists(streaming);
                let (pods, log) = world.follow(options).await;
                let before = version(&pods);
                match silently {
                    true => world.server.restore_silently(&backup).unwrap(),
                    false => {
                        world.server.restore(&backup).unwrap();
                        world.server.break_watches();
                    }
                }
                pass(300).await;
                assert_eq!(cached(&pods), world.truth(), "within five minutes");
                assert!(version(&pods) < before);
                assert_eq!(pods.status().oddities.rewinds, 1);
                let mut told = told_why(&log);
                told.sort();
                // The same version may be of another state after a rewind: nobody can tell.
                let expected = ["deleted after-the-backup", "updated changed", "updated kept"];
                assert_eq!(told, expected.map(|event| format!("{event} (Rewind)")));
                assert!(log.lock().unwrap().violations.is_empty());
                world.touch("kept");
                pass(200).await;
                assert_eq!(told_why(&log), ["updated kept (Watch)"], "and it goes on from there");
            });
        }
    }
}

#[test]
fn a_server_that_comes_back_from_an_outage_with_an_older_state_is_noticed_soon() {
    on_a_paused_clock(async {
        let world = World::new().pods(&["a"]);
        let backup = world.server.resource_version();
        world.create("b");
        let (pods, _) = world.follow(Options::all()).await;
        pass(60).await;
        world.server.refuse_connections(true);
        world.server.break_watches();
        world.server.restore_silently(&backup).unwrap();
        pass(5).await;
        world.server.refuse_connections(false);
        pass(50).await;
        assert_eq!(
            cached(&pods),
            world.truth(),
            "long before a watch would be silent for too long"
        );
    });
}

#[test]
fn replicas_that_lag_never_lead_the_cache_back_g2() {
    for seed in 0..10 {
        on_a_paused_clock(async {
            let mut rng = fastrand::Rng::with_seed(seed);
            let world = World::new().pods(&["a", "b"]);
            let lags: Vec<_> = (0..3).map(|_| Duration::from_secs(rng.u64(0..600))).collect();
            world.server.replicas([Duration::ZERO].into_iter().chain(lags));
            let (pods, log) = world.follow(Options::all()).await;
            let mut reached = version(&pods);
            for _ in 0..200 {
                match rng.u8(0..6) {
                    0 => world.server.break_watches(),
                    1 => world.server.forget_history(),
                    2 => world.toggle("b"),
                    3 => world.touch("b"),
                    _ => world.touch("a"),
                }
                pass(rng.u64(1..20)).await;
                let now = version(&pods);
                assert!(now >= reached, "seed {seed}: from {reached} back to {now}");
                reached = now;
            }
            world.server.heal();
            pass(1200).await;
            assert_eq!(cached(&pods), world.truth(), "seed {seed}");
            assert_eq!(pods.status().oddities.rewinds, 0, "seed {seed}");
            assert!(log.lock().unwrap().violations.is_empty(), "seed {seed}");
        });
    }
}

#[test]
fn a_list_older_than_the_cache_is_refused_and_the_truth_asked_for() {
    for streaming in [StreamingLists::WherePossible, StreamingLists::Never] {
        on_a_paused_clock(async {
            let world = World::new().pods(&["a"]);
            let past = world.server.resource_version();
            world.create("b");
            let (pods, log) = world.follow(Options::all().streaming_lists(streaming)).await;
            world.server.list_the_past(&past, 1).unwrap();
            let expired = kubeflect::api::Status {
                reason: "Expired".to_owned(),
                code: 410,
                ..Default::default()
            };
            world.server.fail_watches(&Pod::static_kind(), expired);
            tokio::time::sleep(Duration::from_millis(1700)).await;
            let condition = pods.status().condition.expect("the list was refused");
            assert!(matches!(condition.error, ApiError::Older { .. }), "{condition}");
            assert_eq!(cached(&pods), world.truth(), "b is there still");
            pass(60).await;
            assert_eq!(cached(&pods), world.truth());
            assert!(told(&log).is_empty(), "nobody saw anything of it");
            let oddities = pods.status().oddities;
            assert_eq!((oddities.older_lists, oddities.rewinds), (1, 0));
        });
    }
}

#[test]
fn what_was_deleted_is_not_brought_back_by_a_late_event_g3() {
    on_a_paused_clock(async {
        let world = World::new().pods(&["a", "b"]);
        let (pods, log) = world.follow(Options::all()).await;
        world.touch("a");
        let alive = world.server.get_object(&Pod::static_kind(), &key("a")).unwrap();
        world.delete("a");
        settle().await;
        let reached = version(&pods);
        for event in ["ADDED", "MODIFIED"] {
            emit(&world, event, &alive);
        }
        settle().await;
        assert_eq!(told(&log), ["updated a", "deleted a"]);
        assert_eq!((version(&pods), pods.store().len()), (reached, 1));
        assert_eq!(pods.status().oddities.resurrections, 2);
        world.create("a");
        settle().await;
        assert_eq!(told(&log), ["added a"], "another one of its name is welcome");
    });
}

#[test]
fn late_events_and_bookmarks_do_not_lower_the_position() {
    on_a_paused_clock(async {
        let world = World::new().pods(&["a"]);
        let old = world.server.get_object(&Pod::static_kind(), &key("a")).unwrap();
        let (pods, log) = world.follow(Options::all()).await;
        world.touch("a");
        world.touch("a");
        settle().await;
        told(&log);
        let reached = version(&pods);
        emit(&world, "MODIFIED", &old);
        emit(&world, "BOOKMARK", &json!({ "metadata": { "resourceVersion": "1" } }));
        settle().await;
        assert_eq!(version(&pods), reached);
        assert!(told(&log).is_empty());
        let oddities = pods.status().oddities;
        assert_eq!((oddities.late_events, oddities.late_bookmarks), (1, 1));
    });
}

#[test]
fn an_event_without_a_version_ends_the_watch_and_at_last_its_position() {
    on_a_paused_clock(async {
        let world = World::new().pods(&["a"]);
        let (pods, log) = world.follow(Options::all()).await;
        let mut bare = world.server.get_object(&Pod::static_kind(), &key("a")).unwrap();
        bare["metadata"]["resourceVersion"] = json!("");
        for relists in [0, 0, 1] {
            emit(&world, "MODIFIED", &bare);
            pass(30).await;
            assert_eq!(world.seen("streaming list"), 1 + relists);
        }
        assert!(told(&log).is_empty());
        assert_eq!(cached(&pods), world.truth());
    });
}

#[test]
fn what_was_not_asked_for_never_enters_the_cache() {
    on_a_paused_clock(async {
        let world = World::new().pods(&["a"]);
        let options = Options::all().namespace("default").labels("app=web");
        let (pods, log) = world.follow(options).await;
        let mut foreign = world.server.get_object(&Pod::static_kind(), &key("a")).unwrap();
        foreign["metadata"]["resourceVersion"] = json!("1000");
        foreign["metadata"]["namespace"] = json!("other");
        emit(&world, "ADDED", &foreign);
        foreign["metadata"]["namespace"] = json!("default");
        foreign["metadata"]["name"] = json!("other labels");
        foreign["metadata"]["labels"] = json!({ "app": "db" });
        emit(&world, "ADDED", &foreign);
        settle().await;
        assert!(told(&log).is_empty());
        assert_eq!(cached(&pods), world.truth());
        let quarantined = pods.status().quarantined;
        assert_eq!((quarantined.objects.len(), quarantined.others), (0, 2));
    });
}

#[test]
fn a_late_event_is_no_news_of_an_object_that_lost_its_version_to_a_transform() {
    on_a_paused_clock(async {
        let world = World::new().pods(&["a"]);
        let old = world.server.get_object(&Pod::static_kind(), &key("a")).unwrap();
        let forget_versions = |mut pod: Pod| {
            pod.metadata.resource_version = None;
            Ok(pod)
        };
        let (pods, log) = world.follow(Options::all().transform(forget_versions)).await;
        world.touch("a");
        settle().await;
        assert_eq!(told(&log), ["updated a"]);
        emit(&world, "MODIFIED", &old);
        settle().await;
        assert!(told(&log).is_empty());
        let cached = pods.store().get(&key("a")).unwrap();
        assert!(cached.metadata.annotations.is_some(), "the cache did not go back");
    });
}

#[test]
fn a_version_given_out_twice_is_of_another_state_after_a_rewind_g14() {
    on_a_paused_clock(async {
        let world = World::new().pods(&["a", "b"]);
        let backup = world.server.resource_version();
        let annotate = |text: &str| {
            let mut pod = crate::support::pod("a");
            pod["metadata"]["annotations"] = json!({ "is": text });
            world.server.apply(pod).unwrap();
        };
        annotate("before");
        (0..5).for_each(|_| world.touch("b"));
        let (pods, _) = world.follow(Options::all()).await;
        world.server.restore(&backup).unwrap();
        annotate("after");
        pass(300).await;
        assert_eq!(cached(&pods), world.truth());
        let cached = pods.store().get(&key("a")).unwrap();
        assert_eq!(cached.metadata.annotations.as_ref().unwrap()["is"], "after");
    });
}

#[test]
fn a_late_event_of_an_earlier_object_of_a_name_does_nothing_to_the_present_one() {
    on_a_paused_clock(async {
        let world = World::new().pods(&["a"]);
        let (pods, log) = world.follow(Options::all()).await;
        let mut earlier = world.server.get_object(&Pod::static_kind(), &key("a")).unwrap();
        let told_at = world.server.resource_version();
        world.delete("a");
        world.create("a");
        world.touch("a");
        settle().await;
        told(&log);
        earlier["metadata"]["uid"] = json!("of an earlier one nobody saw");
        earlier["metadata"]["resourceVersion"] = json!(told_at);
        for event in ["MODIFIED", "DELETED"] {
            emit(&world, event, &earlier);
        }
        let unreadable = json!({ "metadata": earlier["metadata"], "spec": 7 });
        emit(&world, "DELETED", &unreadable);
        settle().await;
        assert!(told(&log).is_empty());
        assert_eq!(cached(&pods), world.truth());
    });
}

#[test]
fn what_was_deleted_before_a_list_is_not_brought_back_after_it_g3() {
    on_a_paused_clock(async {
        let world = World::new().pods(&["a", "b"]);
        let (pods, log) = world.follow(Options::all()).await;
        let alive = world.server.get_object(&Pod::static_kind(), &key("a")).unwrap();
        world.delete("a");
        world.touch("b");
        world.server.break_watches();
        world.server.forget_history();
        pass(60).await;
        told(&log);
        emit(&world, "ADDED", &alive);
        settle().await;
        assert!(told(&log).is_empty());
        assert_eq!(cached(&pods), world.truth());
    });
}
