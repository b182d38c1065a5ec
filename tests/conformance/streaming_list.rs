//! `reflector_watchlist_test.go`: lists that come as the beginning of a watch.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kubeflect::api::{ListFuture, ListRequest, ListerWatcher, WatchFuture, WatchRequest};
use kubeflect::cache::Discipline;
use kubeflect::object::StaticKind as _;
use kubeflect::reflector::{Phase, StreamingLists};
use kubeflect::{Options, Reflector};

use crate::script::{
    Source, added, bookmark, deleted, expired, initial_events_end, modified, noting_errors, page,
    runtime, status,
};
use crate::words::{Recorder, cached, on_a_paused_clock, pass, settle, told_why};

const STREAM: &str =
    "watch sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
const LIST: &str = "list limit=500";

fn watch(version: u64) -> String {
    format!("watch resourceVersion={version}&allowWatchBookmarks=true")
}

fn versions(reflector: &Reflector<Pod>) -> Vec<String> {
    cached(reflector)
        .into_iter()
        .map(|(name, version)| format!("{}@{version}", name.replace("default/", "")))
        .collect()
}

/// client-go: `TestReflectorListAndWatch/watch-list on`
#[test]
fn a_streamed_list_goes_on_as_a_watch_wl_6_wl_11() {
    on_a_paused_clock(async {
        let source = Source::streaming().watches(vec![
            added("foo", 1),
            initial_events_end(1),
            modified("foo", 2),
            added("bar", 3),
            added("baz", 4),
            added("qux", 5),
            added("zoo", 6),
        ]);
        let pods = source.reflect(Options::all()).await;
        let (recorder, log) = Recorder::start();
        pods.subscribe(recorder).await.unwrap();
        settle().await;
        assert_eq!(source.asked(), [STREAM]);
        assert_eq!(versions(&pods), ["bar@3", "baz@4", "foo@2", "qux@5", "zoo@6"]);
        assert_eq!(
            told_why(&log),
            [
                "added foo (InitialList)",
                "synced",
                "updated foo (Watch)",
                "added bar (Watch)",
                "added baz (Watch)",
                "added qux (Watch)",
                "added zoo (Watch)",
            ]
        );
    });
}

/// A source that says nothing about streaming lists.
struct Undeclared(Source<Pod>);

impl ListerWatcher<Pod> for Undeclared {
    fn list(&self, request: ListRequest) -> ListFuture<Pod> {
        self.0.list(request)
    }

    fn watch(&self, request: WatchRequest) -> WatchFuture<Pod> {
        self.0.watch(request)
    }
}

/// client-go: `TestNewReflectorWithDisablementWatchList/off, supported`
/// client-go: `TestNewReflectorWithDisablementWatchList/on, supported`
/// client-go: `TestNewReflectorWithDisablementWatchList/on, unsupported`
/// client-go: `TestNewReflectorWithDisablementWatchList/on, undeclared`
#[test]
fn lists_are_streamed_where_nobody_says_no() {
    on_a_paused_clock(async {
        let off = || Options::all().streaming_lists(StreamingLists::Never);
        for (source, options, first) in [
            (Source::streaming(), off(), LIST),
            (Source::streaming(), Options::all(), STREAM),
            (Source::new(), Options::all(), LIST),
        ] {
            let _pods = source.reflect(options).await;
            settle().await;
            assert_eq!(source.asked()[0], first);
        }
        let source = Source::new();
        let undeclared = Undeclared(source.clone());
        let factory = move || undeclared;
        let _pods =
            runtime().reflect_from(Pod::static_kind(), factory, Options::all()).await.unwrap();
        settle().await;
        assert_eq!(source.asked()[0], STREAM);
    });
}

/// Differs: client-go warns every ten seconds of silence and waits on; here 30 s of it end the stream, and the
/// objects are listed.
///
/// client-go: `TestInitialEventsEndBookmarkTicker`
#[test]
fn a_stream_that_falls_silent_before_its_list_is_complete_is_given_up_wl_10() {
    on_a_paused_clock(async {
        let source = Source::streaming().watches(vec![]).lists(page(5, &[("a", 1)]));
        let pods = source.reflect(Options::all()).await;
        settle().await;
        pass(20).await;
        source.tell(added("a", 1)).await;
        pass(29).await;
        assert_eq!(pods.status().phase, Phase::StreamingList, "it said something 29 s ago");
        pass(2).await;
        assert_eq!(source.asked(), [STREAM.to_owned(), LIST.to_owned(), watch(5)]);
        assert_eq!(source.open_watches(), 1, "only the new one");
        assert_eq!(versions(&pods), ["a@1"]);
    });
}

/// client-go: `TestWatchListResourceVersion/no events`
/// client-go: `TestWatchListResourceVersion/only ADDED`
/// client-go: `TestWatchListResourceVersion/with the marker`
#[test]
fn the_version_of_a_streamed_list_is_that_of_its_last_bookmark_wl_7() {
    on_a_paused_clock(async {
        let source = Source::streaming().watches(vec![]);
        let pods = source.reflect(Options::all()).await;
        settle().await;
        assert_eq!(pods.store().resource_version(), None);
        source.tell(added("p1", 1)).await;
        assert_eq!(pods.store().resource_version(), None);
        source.tell(initial_events_end(2)).await;
        assert_eq!(pods.store().resource_version().unwrap().as_str(), "2");
    });
}

/// client-go: `TestWatchList/no bookmark`
#[test]
fn a_streamed_list_that_is_never_complete_shows_nothing() {
    on_a_paused_clock(async {
        let source = Source::streaming().watches(vec![added("p1", 1)]);
        let pods = source.reflect(Options::all()).await;
        settle().await;
        pods.stop(Duration::ZERO).await;
        assert!(pods.store().is_empty() && !pods.has_synced());
        assert_eq!((source.asked(), source.open_watches()), (vec![STREAM.to_owned()], 0));
    });
}

/// client-go: `TestWatchList/gate off`
#[test]
fn without_streaming_lists_there_is_a_list_and_a_watch() {
    on_a_paused_clock(async {
        let source = Source::streaming().lists(page(1, &[])).watches(vec![added("p1", 2)]);
        let pods = source.reflect(Options::all().streaming_lists(StreamingLists::Never)).await;
        settle().await;
        assert_eq!(source.asked(), [LIST.to_owned(), watch(1)]);
        assert_eq!(versions(&pods), ["p1@2"]);
    });
}

/// client-go: `TestWatchList/any other error forces fallback`
/// client-go: `TestWatchList/server without streaming`
#[test]
fn a_server_that_can_not_stream_a_list_is_listed_instead_wl_9() {
    for error in [status(500, "InternalError"), status(422, "Invalid")] {
        on_a_paused_clock(async {
            let source = Source::streaming()
                .watch_fails(error)
                .lists(page(1, &[("p1", 1)]))
                .watches(vec![added("p2", 2)]);
            let pods = source.reflect(Options::all()).await;
            pass(2).await;
            assert_eq!(source.asked(), [STREAM.to_owned(), LIST.to_owned(), watch(1)]);
            assert_eq!(versions(&pods), ["p1@1", "p2@2"]);
        });
    }
}

/// client-go: `TestWatchList/synced after bookmark`
#[test]
fn a_streamed_list_is_complete_with_its_bookmark() {
    on_a_paused_clock(async {
        let source = Source::streaming().watches(vec![
            added("p1", 1),
            added("p2", 2),
            initial_events_end(2),
        ]);
        let pods = source.reflect(Options::all()).await;
        pods.synced().await.unwrap();
        assert_eq!(versions(&pods), ["p1@1", "p2@2"]);
        assert_eq!(source.asked(), [STREAM]);
    });
}

/// client-go: `TestWatchList/updates and deletes during streaming`
#[test]
fn changes_told_while_a_list_is_streamed_are_part_of_it_wl_5() {
    on_a_paused_clock(async {
        let source = Source::streaming().watches(vec![
            added("p1", 1),
            added("p2", 2),
            modified("p1", 3),
            added("p3", 4),
            deleted("p3", 5),
            initial_events_end(5),
        ]);
        let pods = source.reflect(Options::all()).await;
        pods.synced().await.unwrap();
        assert_eq!(versions(&pods), ["p1@3", "p2@2"]);
        assert_eq!(source.asked(), [STREAM]);
    });
}

/// client-go: `TestWatchList/429 retried`
#[test]
fn a_busy_server_is_asked_for_the_same_stream_again_wl_9() {
    on_a_paused_clock(async {
        let source = Source::streaming()
            .watch_fails(status(429, "TooManyRequests"))
            .watch_fails(status(429, "TooManyRequests"))
            .watches(vec![added("p1", 1), initial_events_end(2)]);
        let pods = source.reflect(Options::all()).await;
        pods.synced().await.unwrap();
        assert_eq!(source.asked(), [STREAM; 3]);
        assert_eq!(versions(&pods), ["p1@1"]);
    });
}

/// Differs: client-go asks for the stream again at once and for ever; here a list follows after a backoff, since the
/// server may never say that a stream is complete.
///
/// client-go: `TestWatchList/stream stopped before sync`
#[test]
fn a_stream_that_ends_before_its_list_is_complete_is_followed_by_a_list_wl_8() {
    on_a_paused_clock(async {
        let source =
            Source::streaming().watch_closes(vec![added("p1", 1)]).lists(page(2, &[("p2", 2)]));
        let pods = source.reflect(Options::all()).await;
        settle().await;
        assert!(pods.store().is_empty(), "nothing of it is shown");
        pods.synced().await.unwrap();
        settle().await;
        assert_eq!(source.asked(), [STREAM.to_owned(), LIST.to_owned(), watch(2)]);
        assert!(source.gaps()[0] >= Duration::from_millis(800));
        assert_eq!(versions(&pods), ["p2@2"]);
    });
}

/// Differs: the watch that ended early is followed after a backoff.
///
/// client-go: `TestWatchList/stream stopped after sync`
#[test]
fn a_stream_that_ends_after_its_list_is_followed_by_a_watch() {
    on_a_paused_clock(async {
        let source = Source::streaming()
            .watch_closes(vec![
                added("p1", 1),
                added("p2", 2),
                initial_events_end(2),
                added("p3", 3),
            ])
            .watches(vec![added("p4", 4)]);
        let pods = source.reflect(Options::all()).await;
        pass(5).await;
        assert_eq!(source.asked(), [STREAM.to_owned(), watch(3)]);
        assert_eq!(versions(&pods), ["p1@1", "p2@2", "p3@3", "p4@4"]);
    });
}

/// client-go: `TestWatchList/expiry after sync`
#[test]
fn an_expired_watch_is_reported_and_the_cache_kept_until_the_next_list_is_complete() {
    on_a_paused_clock(async {
        let source = Source::streaming()
            .watch_closes(vec![added("p1", 1), initial_events_end(2), added("p3", 3)])
            .watch_fails(expired())
            .watches(vec![]);
        let (options, errors) = noting_errors(Options::all());
        let pods = source.reflect(options).await;
        pass(10).await;
        let again = STREAM.replace("NotOlderThan", "NotOlderThan&resourceVersion=3");
        assert_eq!(source.asked(), [STREAM.to_owned(), watch(3), again]);
        assert_eq!(*errors.lock().unwrap(), ["resource version expired"]);
        assert_eq!(versions(&pods), ["p1@1", "p3@3"]);
    });
}

/// client-go: `TestWatchList/annotation value "false"`
#[test]
fn an_ordinary_bookmark_completes_nothing_wl_6() {
    on_a_paused_clock(async {
        let source = Source::streaming().watches(vec![added("p1", 1), bookmark(2)]);
        let pods = source.reflect(Options::all()).await;
        settle().await;
        assert!(pods.store().is_empty() && !pods.has_synced());
    });
}

/// Differs: each object is transformed once; client-go transforms those of the first list twice, five calls in all.
///
/// client-go: `TestReflectorRespectStoreTransformer/RealFIFO`
/// client-go: `TestReflectorRespectStoreTransformer/DeltaFIFO`
#[test]
fn every_object_of_a_streamed_list_is_transformed_once_wl_12() {
    for discipline in [Discipline::InOrder, Discipline::InOrderAtomic, Discipline::PerObject] {
        on_a_paused_clock(async {
            let source = Source::streaming().watches(vec![
                added("p1", 1),
                added("p2", 2),
                initial_events_end(2),
                added("p3", 3),
            ]);
            let calls = Arc::new(AtomicUsize::new(0));
            let counted = Arc::clone(&calls);
            let options = Options::all().discipline(discipline).transform(move |mut pod: Pod| {
                counted.fetch_add(1, Ordering::Relaxed);
                pod.spec = None;
                Ok(pod)
            });
            let pods = source.reflect(options).await;
            settle().await;
            assert_eq!(pods.store().list().iter().filter(|pod| pod.spec.is_none()).count(), 3);
            assert_eq!(calls.load(Ordering::Relaxed), 3);
            assert_eq!(source.asked(), [STREAM]);
        });
    }
}
