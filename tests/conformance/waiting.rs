//! `wait_test.go`, `synctrack_test.go`, `default_rate_limiters_test.go`: waiting for caches, for those who follow them,
//! and between attempts.

use std::error::Error as _;
use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Node, Pod};
use kubeflect::Options;
use kubeflect::embedded::Filter;
use kubeflect::object::{Kind, StaticKind as _};
use kubeflect::reflector::NotSynced;
use kubeflect::supervision::{Backoff, BackoffOptions};
use tokio::time::Instant;

use crate::script::{Source, page, runtime};
use crate::words::{Recorder, World, on_a_paused_clock, pass, settle};

const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// Answers about this kind take so long.
fn slow(world: &World, kind: &Kind, delay: Duration) {
    world.server.delay(Filter::kind(kind), delay);
}

fn laggards(world: &World) -> Vec<String> {
    let waits = world.runtime.readiness().into_iter().filter(|(_, ready)| ready.is_err());
    waits.map(|(kind, _)| kind.to_string()).collect()
}

/// client-go: `TestWaitFor/none`
/// client-go: `TestWaitFor/all finish`
#[test]
fn waiting_for_all_takes_as_long_as_the_slowest() {
    on_a_paused_clock(async {
        assert!(runtime().synced().await.is_ok(), "nobody to wait for");
        let world = World::new();
        slow(&world, &Pod::static_kind(), seconds(10));
        slow(&world, &Node::static_kind(), seconds(5));
        let started = Instant::now();
        let pods = world.reflect().await;
        let nodes = world.runtime.reflect::<Node>(Options::all()).await.unwrap();
        let maps = world.runtime.reflect::<ConfigMap>(Options::all()).await.unwrap();
        maps.synced().await.unwrap();
        assert!(started.elapsed() < seconds(1));
        assert_eq!(laggards(&world), ["pods", "nodes"]);
        nodes.synced().await.unwrap();
        assert!(started.elapsed() >= seconds(5) && started.elapsed() < seconds(6));
        assert_eq!(laggards(&world), ["pods"]);
        world.runtime.synced().await.unwrap();
        assert!(started.elapsed() >= seconds(10) && started.elapsed() < seconds(11));
        assert!(pods.has_synced());
    });
}

/// client-go: `TestWaitFor/one never`
/// client-go: `TestWaitFor/all never`
/// client-go: `TestSyncResult`
#[test]
fn waiting_with_a_limit_ends_with_who_was_late_and_why() {
    on_a_paused_clock(async {
        let world = World::new();
        slow(&world, &Pod::static_kind(), seconds(3_600));
        world.runtime.reflect::<Node>(Options::all()).await.unwrap().synced().await.unwrap();
        let pods = world.reflect().await;
        let late = pods.synced_within(seconds(60)).await.unwrap_err();
        assert_eq!(late.to_string(), "pods not reflected within 60s");
        assert_eq!(laggards(&world), ["pods"]);

        let world = World::new();
        world.server.refuse_connections(true);
        let pods = world.reflect().await;
        let nodes = world.runtime.reflect::<Node>(Options::all()).await.unwrap();
        let late = nodes.synced_within(seconds(60)).await.unwrap_err();
        let why = late.source().unwrap().to_string();
        assert!(why.ends_with("nodes: connection failed"), "{why}");
        assert!(matches!(late, NotSynced::TooSlow { .. }));
        assert_eq!(laggards(&world), ["pods", "nodes"], "in the order they were asked for");
        assert!(!pods.has_synced());
    });
}

/// client-go: `TestWaitFor/already cancelled`
/// client-go: `TestWaitFor/custom cause`
#[test]
fn what_synced_before_it_was_stopped_counts_and_the_rest_says_that_it_stopped() {
    on_a_paused_clock(async {
        let source = Source::new().lists(page(1, &[]));
        let finished = source.reflect(Options::all()).await;
        finished.synced().await.unwrap();
        let unfinished = Source::new().list_hangs().reflect(Options::all()).await;
        finished.stop(Duration::ZERO).await;
        unfinished.stop(Duration::ZERO).await;
        assert!(finished.synced().await.is_ok());
        let error = unfinished.synced().await.unwrap_err();
        assert_eq!(error.to_string(), "the reflector of pods has been stopped");
    });
}

/// client-go: `synctrack_test`
#[test]
fn a_subscriber_is_synced_when_the_cache_is_and_it_handled_all_of_it() {
    on_a_paused_clock(async {
        let world = World::new().pods(&["a", "b"]);
        slow(&world, &Pod::static_kind(), seconds(5));
        let pods = world.reflect().await;
        let (quick, _) = Recorder::start();
        let (slow, _) = Recorder::start_slow(seconds(3));
        let quick = pods.subscribe(quick).await.unwrap();
        let slow = pods.subscribe(slow).await.unwrap();
        let synced = || [pods.has_synced(), quick.status().synced, slow.status().synced];
        pass(4).await;
        assert_eq!(synced(), [false; 3]);
        pods.synced().await.unwrap();
        settle().await;
        assert_eq!(synced(), [true, true, false], "two objects take six seconds");
        pass(7).await;
        assert_eq!(synced(), [true; 3]);
        world.create("c");
        settle().await;
        assert_eq!(synced(), [true; 3], "once and for all");
    });
}

/// Of the limiters, the one that is needed here: delays that double up to a cap.
///
/// client-go: `default_rate_limiters_test`
#[test]
fn delays_double_up_to_their_cap_and_never_overflow() {
    on_a_paused_clock(async {
        let options = BackoffOptions {
            first: Duration::from_millis(1),
            cap: seconds(1),
            jitter: 0.0,
            ..BackoffOptions::default()
        };
        let mut backoff = Backoff::new(options, fastrand::Rng::with_seed(1));
        let mut next = || backoff.next(Instant::now());
        let first: Vec<u128> = (0..5).map(|_| next().as_millis()).collect();
        assert_eq!(first, [1, 2, 4, 8, 16]);
        let last = (0..1_000).map(|_| next()).last();
        assert_eq!(last, Some(seconds(1)));
        backoff.reset();
        assert_eq!(backoff.next(Instant::now()), Duration::from_millis(1));
    });
}
