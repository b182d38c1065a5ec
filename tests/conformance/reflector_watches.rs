//! `reflector_test.go`: how a watch begins, what its events do, and what follows its end.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kubeflect::Options;
use kubeflect::api::{ApiError, WatchEvent};
use kubeflect::object::{DynamicObject, StaticKind as _};
use kubeflect::reflector::StreamingLists;
use kubeflect::supervision::{BackoffOptions, Faults};

use crate::script::{
    Request, Source, Told, added, deleted, item, modified, page, refused, runtime, status,
};
use crate::words::{
    Recorder, World, cached, key, on_a_paused_clock, pass, pod, settle, told, told_why,
};

const WATCH_AT_1: &str = "watch resourceVersion=1&allowWatchBookmarks=true";
const RELIST_AT_1: &str = "list resourceVersion=1&resourceVersionMatch=NotOlderThan";

const fn milliseconds(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

fn watches(source: &Source<Pod>) -> usize {
    source.asked().iter().filter(|request| request.starts_with("watch")).count()
}

/// A list at version 1, and then these watches refused.
fn refusing(times: usize) -> Source<Pod> {
    (0..times).fold(Source::new().lists(page(1, &[])), |source, _| source.watch_fails(refused()))
}

/// Differs: the position is kept; client-go lists again.
///
/// client-go: `TestCloseWatchChannelOnError`
#[test]
fn an_error_that_is_no_status_ends_the_watch_and_nothing_else_ref_35() {
    on_a_paused_clock(async {
        let world = World::new().pods(&["a"]);
        let (pods, log) = world.follow(Options::all().streaming_lists(StreamingLists::Never)).await;
        settle().await;
        assert_eq!((world.server.open_watches(), world.seen("watch")), (1, 1));
        let frame = "{\"type\":\"ERROR\",\"object\":{\"apiVersion\":\"v1\",\"kind\":\"Pod\"}}\n";
        world.server.emit_raw_frame(&Pod::static_kind(), frame);
        settle().await;
        assert_eq!(world.server.open_watches(), 0);
        world.touch("a");
        pass(5).await;
        assert_eq!(
            (world.server.open_watches(), world.seen("watch"), world.seen("list")),
            (1, 2, 1)
        );
        assert_eq!(told(&log), ["updated a"]);
        assert_eq!(cached(&pods), world.truth());
    });
}

/// Differs: a watch that ends early is not an error and does not list again; it watches again, with backoff.
///
/// client-go: `TestReflectorHandleWatchResultChanClosedBefore`
/// client-go: `TestReflectorHandleWatchResultChanClosedAfter`
#[test]
fn a_watch_that_ends_early_is_opened_again_where_it_was_ref_33() {
    on_a_paused_clock(async {
        let source = Source::new().lists(page(1, &[])).watch_closes(vec![]).watches(vec![]);
        let pods = source.reflect(Options::all()).await;
        settle().await;
        assert!(pods.status().condition.is_none());
        pass(2).await;
        assert_eq!(source.asked(), ["list limit=500", WATCH_AT_1, WATCH_AT_1]);
        let waited = source.gaps()[1];
        assert!(waited >= milliseconds(800) && waited <= milliseconds(1_620), "{waited:?}");
        tokio::time::sleep(milliseconds(10)).await;
        source.close();
        pass(4).await;
        assert_eq!(source.asked().split_off(2), [WATCH_AT_1, WATCH_AT_1]);
    });
}

/// Differs: what is set aside is named in the status, and the position never goes back: it stays at 55, where client-go
/// takes that of the last event, 32.
///
/// client-go: `TestReflectorWatchHandler`
#[test]
fn events_change_the_cache_and_those_of_another_type_do_not_ref_30_ref_32() {
    on_a_paused_clock(async {
        let mut service = pod("rejected");
        service["kind"] = "Service".into();
        service["metadata"]["resourceVersion"] = "51".into();
        let source: Source<DynamicObject> =
            Source::new().lists(page(30, &[("foo", 10), ("bar", 20)])).watches(vec![
                Ok(WatchEvent::Added(item(service))),
                deleted("foo", 52),
                modified("bar", 55),
                added("baz", 32),
            ]);
        let played = source.clone();
        let pods = runtime()
            .reflect_from(Pod::static_kind(), move || played, Options::all())
            .await
            .unwrap();
        pods.synced().await.unwrap();
        settle().await;
        assert_eq!(cached(&pods)["default/bar"], "55");
        assert!(pods.store().get(&key("foo")).is_none());
        assert!(pods.store().get(&key("rejected")).is_none());
        assert!(pods.status().quarantined.objects.contains_key(&key("rejected")));
        assert_eq!(cached(&pods)["default/baz"], "32", "late, but news");
        assert_eq!(pods.status().oddities.late_events, 1);
        assert_eq!(pods.store().resource_version().unwrap().as_str(), "55");
    });
}

/// client-go: `TestReflectorListAndWatchInitConnBackoff`
#[test]
fn a_refused_connection_is_tried_again_with_backoff_for_as_long_as_it_takes_ref_23() {
    let backoff = BackoffOptions {
        first: milliseconds(1),
        cap: milliseconds(50),
        ..BackoffOptions::default()
    };
    // 1, 2, 4, 8, 16, 32, then 50 each; up to twice that with jitter, and two each for the answer and the clock's grain.
    for (refusals, least, most) in [(5, 31, 62 + 10), (40, 1_763, 2 * 1_763 + 80)] {
        on_a_paused_clock(async {
            let source = refusing(refusals).watches(vec![added("a", 2)]);
            let pods = source.reflect(Options::all().backoff(backoff)).await;
            pass(10).await;
            assert_eq!(pods.store().len(), 1);
            assert_eq!(
                source.asked(),
                [vec!["list limit=500"], vec![WATCH_AT_1; refusals + 1]].concat()
            );
            let waited: Duration = source.gaps()[1..].iter().sum();
            assert!(
                waited >= milliseconds(least) && waited <= milliseconds(most),
                "{refusals}: {waited:?}"
            );
        });
    }
}

/// client-go: `TestNewReflectorWithCustomBackoff/default`
/// client-go: `TestNewReflectorWithCustomBackoff/custom`
#[test]
fn the_backoff_may_be_chosen_ref_6() {
    let chosen = BackoffOptions {
        first: milliseconds(10),
        factor: 2.0,
        cap: milliseconds(100),
        jitter: 0.0,
        ..BackoffOptions::default()
    };
    on_a_paused_clock(async {
        let source = refusing(2).watches(vec![]);
        let _pods = source.reflect(Options::all()).await;
        pass(10).await;
        let waited: Duration = source.gaps()[1..].iter().sum();
        assert!(waited >= milliseconds(2_400) && waited <= milliseconds(4_810), "{waited:?}");

        let source = refusing(5).watches(vec![]);
        let _pods = source.reflect(Options::all().backoff(chosen)).await;
        pass(10).await;
        let waited = source.gaps().split_off(1);
        for (waited, expected) in waited.iter().zip([10, 20, 40, 80, 100]) {
            let late = *waited - milliseconds(expected);
            assert!(late <= milliseconds(3), "{waited:?} instead of {expected} ms");
        }
        assert_eq!(waited.len(), 5);
    });
}

/// Differs: the early end of the third stream is waited after too.
///
/// client-go: `TestBackoffOnTooManyRequests`
#[test]
fn a_busy_server_is_given_time_whether_it_says_so_before_or_in_a_stream_ref_25() {
    on_a_paused_clock(async {
        let source = Source::new()
            .lists(page(1, &[]))
            .watch_fails(status(429, ""))
            .watches(vec![Err(status(429, "TooManyRequests"))])
            .watch_closes(vec![])
            .watches(vec![]);
        let _pods = source.reflect(Options::all()).await;
        pass(30).await;
        assert_eq!(source.asked(), [vec!["list limit=500"], vec![WATCH_AT_1; 4]].concat());
        for (waited, least) in source.gaps()[1..].iter().zip([800, 1_600, 3_200]) {
            assert!(*waited >= milliseconds(least), "{waited:?} instead of {least} ms");
        }
    });
}

/// client-go: `TestNoRelistOnTooManyRequests`
#[test]
fn a_busy_server_is_not_listed_again_ref_23() {
    on_a_paused_clock(async {
        let busy = || status(429, "TooManyRequests");
        let source =
            (0..4).fold(Source::new().lists(page(1, &[])), |source, _| source.watch_fails(busy()));
        let _pods = source.reflect(Options::all()).await;
        pass(60).await;
        assert_eq!(source.asked(), [vec!["list limit=500"], vec![WATCH_AT_1; 5]].concat());
    });
}

/// A list at version 1, then watches that are opened or refused in these ways.
fn failing(watches: impl IntoIterator<Item = Result<Vec<Told<Pod>>, ApiError>>) -> Source<Pod> {
    watches.into_iter().fold(Source::new().lists(page(1, &[])), |source, watch| match watch {
        Ok(events) => source.watches(events),
        Err(error) => source.watch_fails(error),
    })
}

fn internal() -> ApiError {
    status(500, "InternalError")
}

/// Differs: client-go lists after the first, unless told to watch on for a while, which it then does without a delay.
///
/// client-go: `TestRetryInternalError/none`
#[test]
fn the_third_internal_error_in_streams_from_one_position_lists_again_ref_25() {
    on_a_paused_clock(async {
        let source = failing((0..3).map(|_| Ok(vec![Err(internal())]))).lists(page(2, &[]));
        let _pods = source.reflect(Options::all()).await;
        pass(60).await;
        assert_eq!(source.asked()[1..5], [WATCH_AT_1, WATCH_AT_1, WATCH_AT_1, RELIST_AT_1]);
        assert!(source.gaps()[1..4].iter().all(|waited| *waited >= milliseconds(800)));
        assert_eq!(source.asked().len(), 6);
    });
}

/// Differs: for ten minutes, with the backoff between.
///
/// client-go: `TestRetryInternalError/30 s`
/// client-go: `TestRetryWithDeadline`
#[test]
fn a_server_that_refuses_with_internal_errors_is_asked_for_ten_minutes_whatever_else_it_says() {
    let ten_seconds = Duration::from_secs(10);
    let backoff = BackoffOptions {
        first: ten_seconds,
        factor: 1.0,
        jitter: 0.0,
        ..BackoffOptions::default()
    };
    for between in [internal, || status(429, "TooManyRequests")] {
        on_a_paused_clock(async {
            let refusals =
                (0..80).map(|number| Err(if number % 2 == 0 { internal() } else { between() }));
            let source = failing(refusals).lists(page(2, &[]));
            let _pods = source.reflect(Options::all().backoff(backoff)).await;
            pass(605).await;
            assert_eq!(watches(&source), 61);
            assert!(!source.asked().iter().any(|request| request == RELIST_AT_1));
            pass(6).await;
            assert_eq!(source.asked()[62], RELIST_AT_1, "after the one ten minutes later");
        });
    }
}

/// Differs: a minute without errors is one in which a stream was open, or got further.
///
/// client-go: `TestRetryInternalError/30 s with a jump`
#[test]
fn internal_errors_with_progress_or_calm_between_them_never_list_again() {
    on_a_paused_clock(async {
        let source =
            failing((2..12).map(|version| Ok(vec![modified("a", version), Err(internal())])));
        let pods = source.reflect(Options::all()).await;
        pass(600).await;
        assert_eq!(watches(&source), 11);
        for _ in 0..5 {
            pass(60).await;
            source.tell(Err(internal())).await;
            pass(60).await;
        }
        assert_eq!(source.asked().iter().filter(|request| request.starts_with("list")).count(), 1);
        assert_eq!((watches(&source), cached(&pods)["default/a"].as_str()), (16, "11"));
    });
}

/// Differs: the cache can not refuse a resync; should it crash over one, it is rebuilt from a list and resynced on.
///
/// client-go: `TestReflectorResync`
#[test]
fn a_resync_the_cache_crashes_over_is_followed_by_a_list_ref_40() {
    on_a_paused_clock(async {
        let source = Source::new().lists(page(1, &[("a", 1)])).lists(page(1, &[("a", 1)]));
        let faults = Faults::panic_at("delta_fifo_store", "Resync", 2);
        let options = Options::all().resync(Duration::from_secs(10)).faults(faults.clone());
        let pods = source.reflect(options).await;
        let (recorder, log) = Recorder::start();
        pods.subscribe(recorder).await.unwrap();
        pass(35).await;
        assert_eq!(faults.fired(), 1);
        let asked = ["list limit=500", WATCH_AT_1, RELIST_AT_1, WATCH_AT_1];
        assert_eq!(source.asked(), asked);
        let told = told_why(&log);
        let resync = "updated a (Resync)";
        assert_eq!(told, ["added a (InitialList)", "synced", resync, resync]);
    });
}

/// client-go: `TestReflectorResyncChan`
#[test]
fn a_resync_period_repeats_the_cache_and_asks_nobody_ref_40() {
    on_a_paused_clock(async {
        let source = Source::new().lists(page(1, &[("a", 1)]));
        let pods = source.reflect(Options::all().resync(Duration::from_secs(1))).await;
        let (recorder, log) = Recorder::start();
        pods.subscribe(recorder).await.unwrap();
        settle().await;
        told(&log);
        pass(3).await;
        assert_eq!(told_why(&log), ["updated a (Resync)"; 3]);
        assert_eq!(source.asked().len(), 2);
    });
}

/// Differs: less than the five minutes is refused, not raised.
///
/// client-go: `TestWatchTimeout/unset`
/// client-go: `TestWatchTimeout/1 s`
/// client-go: `TestWatchTimeout/30 min`
#[test]
fn a_watch_is_asked_to_last_for_once_to_twice_the_least_ref_22() {
    on_a_paused_clock(async {
        let half_an_hour = Options::all().watch_timeout(Duration::from_secs(1_800));
        for (options, least) in [(Options::all(), 300), (half_an_hour, 1_800)] {
            let source = (0..20)
                .fold(Source::new().lists(page(1, &[])), |source, _| source.watch_fails(refused()));
            let _pods = source.reflect(options).await;
            pass(2_000).await;
            let timeouts = source.requests().into_iter().filter_map(|asked| match asked.request {
                Request::Watch(watch) => Some(watch.timeout.as_secs()),
                Request::List(_) => None,
            });
            let timeouts: Vec<u64> = timeouts.collect();
            assert!(
                timeouts.iter().all(|seconds| (least..=2 * least).contains(seconds)),
                "{timeouts:?}"
            );
            assert!(timeouts.windows(2).any(|pair| pair[0] != pair[1]), "by chance");
        }
        let short = Options::all().watch_timeout(Duration::from_secs(1));
        let refused = Source::new().reflect_in(&runtime(), short).await.unwrap_err().to_string();
        assert!(refused.contains("write at least 300s"), "{refused}");
    });
}

/// client-go: `TestReflectorReplacesStoreOnUnsafeDelete`
#[test]
fn an_object_removed_by_force_is_found_missing_by_a_list() {
    on_a_paused_clock(async {
        let source = Source::new()
            .lists(page(3, &[("bar", 1), ("baz", 2)]))
            .watches(vec![added("foo", 4), Err(status(500, "StoreReadError"))])
            .lists(page(5, &[("bar", 1), ("baz", 2)]));
        let pods = source.reflect(Options::all()).await;
        let (recorder, log) = Recorder::start();
        pods.subscribe(recorder).await.unwrap();
        pass(10).await;
        assert_eq!(told_why(&log).split_off(3), ["added foo (Watch)", "deleted foo (Relist)"]);
        assert_eq!(pods.store().keys(), [key("bar"), key("baz")]);
        assert_eq!(pods.store().resource_version().unwrap().as_str(), "5");
    });
}
