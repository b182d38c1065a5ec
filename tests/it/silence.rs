//! Watches that say nothing: how long that is believed, and what is done about it.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kubeflect::Options;
use kubeflect::embedded::{Filter, Verb};
use kubeflect::object::StaticKind as _;
use kubeflect::reflector::{Freshness, StreamingLists};
use tokio::time::Instant;

use crate::support::{World, cached, on_a_paused_clock, pass, settle, told};

/// How long it takes until the cache is as the server is.
async fn time_to_recover(world: &World, pods: &kubeflect::Reflector<Pod>) -> Duration {
    let begun = Instant::now();
    while cached(pods) != world.truth() {
        assert!(begun.elapsed() < Duration::from_secs(3600), "it never recovers");
        pass(1).await;
    }
    begun.elapsed()
}

#[test]
fn a_half_open_connection_is_replaced_after_two_missed_bookmarks_g13() {
    on_a_paused_clock(async {
        let world = World::new().pods(&["a"]);
        let (pods, log) = world.follow(Options::all()).await;
        world.touch("a");
        pass(70).await;
        world.server.lose_watches();
        told(&log);
        world.touch("a");
        let recovered = time_to_recover(&world, &pods).await;
        assert!(recovered <= Duration::from_secs(151), "{recovered:?}");
        settle().await;
        assert_eq!(told(&log), ["updated a"]);
        assert_eq!((world.seen("list"), world.seen("streaming list")), (0, 1), "no relist");
    });
}

#[test]
fn a_connection_that_was_silent_from_the_beginning_is_replaced_after_a_check_g13() {
    for streaming in [StreamingLists::WherePossible, StreamingLists::Never] {
        on_a_paused_clock(async {
            let world = World::new().pods(&["a"]);
            world.server.hold_bookmarks(streaming == StreamingLists::Never);
            let (pods, _) = world.follow(Options::all().streaming_lists(streaming)).await;
            world.server.lose_watches();
            world.touch("a");
            let recovered = time_to_recover(&world, &pods).await;
            assert!(recovered <= Duration::from_secs(152), "{recovered:?}");
            assert_eq!(world.seen("check"), 1, "the server went on, and the watch does not say so");
        });
    }
}

#[test]
fn a_stuck_proxy_that_answers_every_watch_and_passes_nothing_on_is_no_silent_truth() {
    on_a_paused_clock(async {
        let world = World::new().pods(&["a"]);
        let (pods, _) = world.follow(Options::all()).await;
        world.server.silence_watches(true);
        world.touch("a");
        for second in 0..1200 {
            let freshness = pods.status().freshness;
            assert!(second <= 150 || freshness != Freshness::Fresh, "fresh after {second} s");
            pass(1).await;
        }
        let watches = world.seen("watch");
        assert!((5..=20).contains(&watches), "{watches} watches in 20 minutes");
        world.server.heal();
        let recovered = time_to_recover(&world, &pods).await;
        assert!(recovered <= Duration::from_secs(152), "{recovered:?}");
        assert_eq!(world.seen("list"), 0, "no relist");
    });
}

#[test]
fn a_quiet_server_is_asked_now_and_then_and_keeps_its_watch() {
    on_a_paused_clock(async {
        let world = World::new().pods(&["a"]);
        world.server.hold_bookmarks(true);
        let options = Options::all().streaming_lists(StreamingLists::Never);
        let (pods, _) = world.follow(options).await;
        pass(295).await;
        assert_eq!(world.seen("watch"), 1);
        let checks = world.seen("check");
        assert!((2..=3).contains(&checks), "{checks} checks in five minutes");
        assert_eq!(pods.status().freshness, Freshness::Fresh);
    });
}

#[test]
fn bookmarks_alone_keep_a_cache_fresh_and_tell_nobody_anything() {
    on_a_paused_clock(async {
        let world = World::new().pods(&["a"]);
        let (pods, log) = world.follow(Options::all()).await;
        for minute in 0..180 {
            let other = serde_json::json!({
                "apiVersion": "v1", "kind": "Node",
                "metadata": { "name": "n", "labels": { "minute": minute.to_string() } },
            });
            world.server.apply(other).unwrap();
            pass(60).await;
            assert_eq!(pods.status().freshness, Freshness::Fresh);
        }
        assert_eq!((told(&log).len(), world.seen("check"), world.seen("list")), (0, 0, 0));
        let reached = pods.store().snapshot().resource_version().unwrap().to_string();
        assert!(reached.parse::<u64>().unwrap() > 150, "{reached}");
    });
}

#[test]
fn a_watch_that_is_allowed_where_a_list_is_not_is_replaced_when_it_is_silent() {
    on_a_paused_clock(async {
        let world = World::new().pods(&["a"]);
        world.server.forbid(&Pod::static_kind(), Verb::List);
        let (pods, _) = world.follow(Options::all()).await;
        world.server.lose_watches();
        world.touch("a");
        let recovered = time_to_recover(&world, &pods).await;
        assert!(recovered <= Duration::from_secs(152), "{recovered:?}");
    });
}

#[test]
fn the_status_is_never_fresh_for_longer_than_the_bound_g8() {
    const BOUND: u64 = 150;
    for seed in 0..20 {
        on_a_paused_clock(async {
            let mut rng = fastrand::Rng::with_seed(seed);
            let world = World::new().pods(&["a"]);
            let (pods, _) = world.follow(Options::all()).await;
            for _ in 0..6 {
                for _ in 0..rng.u64(0..600) {
                    world.touch("a");
                    pass(1).await;
                }
                // Nothing gets through, in one of the ways nothing can get through.
                match rng.u8(0..4) {
                    0 => world.server.silence_watches(true),
                    1 => world.server.lose_watches(),
                    2 => world.server.cut_watches(),
                    _ => world.server.break_watches(),
                }
                if rng.bool() {
                    world.server.delay(Filter::everything(), Duration::from_secs(10_000));
                } else {
                    world.server.silence_watches(true);
                }
                world.touch("a");
                for second in 0..rng.u64(0..600) {
                    let freshness = pods.status().freshness;
                    assert!(
                        second <= BOUND || freshness != Freshness::Fresh,
                        "seed {seed}: fresh after {second} s of nothing"
                    );
                    pass(1).await;
                }
                world.server.heal();
            }
            let recovered = time_to_recover(&world, &pods).await;
            assert!(recovered <= Duration::from_secs(700), "seed {seed}: {recovered:?}");
        });
    }
}

#[test]
fn a_gateway_that_cuts_idle_watches_in_peace_hides_no_restored_server_g14() {
    for seconds in [20, 61, 70] {
        on_a_paused_clock(async {
            let world = World::new().pods(&["a"]);
            let backup = world.server.resource_version();
            world.create("b");
            let (pods, _) = world.follow(Options::all()).await;
            world.server.restore_silently(&backup).unwrap();
            let begun = Instant::now();
            while cached(&pods) != world.truth() {
                assert!(begun.elapsed() < Duration::from_secs(300), "cut after {seconds} s");
                pass(seconds).await;
                world.server.cut_watches();
            }
            assert_eq!(pods.status().oddities.rewinds, 1);
        });
    }
}
