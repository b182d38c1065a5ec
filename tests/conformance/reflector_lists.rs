//! `reflector_test.go`: which lists a reflector asks for, and what becomes of their answers.

use std::sync::{Arc, Weak};
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kubeflect::Options;
use kubeflect::api::Item;
use kubeflect::object::{DynamicObject, Resource as _, StaticKind as _};

use crate::script::{
    Source, added, bookmark, deleted, expired, item, modified, noting_errors, object, page,
    page_before, page_of, runtime, status, too_large,
};
use crate::words::{Recorder, cached, key, on_a_paused_clock, pass, pod, settle, told};

const NEWEST: &str = "list limit=500";
const AT_LEAST_10: &str = "list resourceVersion=10&resourceVersionMatch=NotOlderThan";

fn lists(source: &Source<Pod>) -> Vec<String> {
    source.asked().into_iter().filter(|request| request.starts_with("list")).collect()
}

fn versions(reflector: &kubeflect::Reflector<Pod>) -> Vec<String> {
    cached(reflector)
        .into_iter()
        .map(|(name, version)| format!("{}{version}", name.replace("default/", "")))
        .collect()
}

/// Differs: the first list asks for the newest state, not for any (`resourceVersion=0`).
///
/// client-go: `TestReflectorListAndWatch/watch-list off`
#[test]
fn a_list_is_followed_by_a_watch_from_its_version_ref_22() {
    on_a_paused_clock(async {
        let source = Source::new().lists(page(1, &[("foo", 1)])).watches(vec![
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
        assert_eq!(source.asked(), [NEWEST, "watch resourceVersion=1&allowWatchBookmarks=true"]);
        assert_eq!(versions(&pods), ["bar3", "baz4", "foo2", "qux5", "zoo6"]);
        let last = told(&log).split_off(2);
        assert_eq!(last, ["updated foo", "added bar", "added baz", "added qux", "added zoo"]);
    });
}

/// Differs: a watch that can not be opened keeps its position, and what a list did not change is told to nobody.
///
/// client-go: `TestReflectorListAndWatchWithErrors`
#[test]
fn what_was_watched_is_what_the_next_list_finds_whatever_fails_between_ref_15_ref_23() {
    on_a_paused_clock(async {
        let source = Source::new()
            .lists(page(1, &[]))
            .watches(vec![added("foo", 2), added("bar", 3), Err(expired())])
            .lists(page(3, &[("foo", 2), ("bar", 3)]))
            .watches(vec![deleted("foo", 4), added("qux", 5), Err(expired())])
            .list_fails(status(500, "InternalError"))
            .lists(page(5, &[("bar", 3), ("qux", 5)]))
            .watch_fails(status(503, "ServiceUnavailable"))
            .watches(vec![added("baz", 6), Err(expired())])
            .lists(page(6, &[("bar", 3), ("qux", 5), ("baz", 6)]));
        let (options, errors) = noting_errors(Options::all());
        let pods = source.reflect(options).await;
        let (recorder, log) = Recorder::start();
        pods.subscribe(recorder).await.unwrap();
        pass(80).await;
        assert_eq!(
            told(&log),
            ["synced", "added foo", "added bar", "deleted foo", "added qux", "added baz"]
        );
        assert_eq!(versions(&pods), ["bar3", "baz6", "qux5"]);
        assert_eq!(
            *errors.lock().unwrap(),
            [
                "resource version expired",
                "resource version expired",
                "internal server error",
                "server unavailable (HTTP 503)",
                "resource version expired",
            ]
        );
        assert_eq!(lists(&source).len(), 5, "one each, and one that failed");
    });
}

/// Differs: `NotOlderThan`, which servers take a bare version for, is said.
///
/// client-go: `TestReflectorResyncWithResourceVersion`
/// client-go: `TestReflectorNotPaginatingNotConsistentReads`
#[test]
fn a_relist_is_no_older_than_the_cache_and_comes_in_one_piece() {
    on_a_paused_clock(async {
        let source = Source::new()
            .lists(page(10, &[("a", 1)]))
            .watch_fails(expired())
            .lists(page(12, &[("a", 1)]));
        let _pods = source.reflect(Options::all()).await;
        pass(10).await;
        assert_eq!(lists(&source), [NEWEST, AT_LEAST_10]);
    });
}

/// Differs: that the newest state came in pages says nothing about the server's cache, so a relist still asks for
/// one piece; client-go goes on in pages after a paged answer to `resourceVersion=0`, which we never ask.
///
/// client-go: `TestReflectorPaginatingNonConsistentReadsIfWatchCacheDisabled`
#[test]
fn a_first_list_in_pages_does_not_make_the_next_one_paged() {
    on_a_paused_clock(async {
        let source = Source::new()
            .lists(page_before("one", 10, &[("a", 1)]))
            .lists(page_before("two", 10, &[("b", 2)]))
            .lists(page(10, &[("c", 3)]))
            .watch_fails(expired())
            .lists(page(12, &[("a", 1)]));
        let pods = source.reflect(Options::all()).await;
        settle().await;
        assert_eq!(versions(&pods), ["a1", "b2", "c3"]);
        pass(10).await;
        assert_eq!(
            lists(&source),
            [NEWEST, "list limit=500&continue=one", "list limit=500&continue=two", AT_LEAST_10]
        );
    });
}

/// Ten objects in pages of four.
fn pages_of_four(source: Source<Pod>, version: u64) -> Source<Pod> {
    let names: Vec<String> = (0..10).map(|number| format!("p{number}")).collect();
    let objects: Vec<(&str, u64)> = names.iter().map(|name| (name.as_str(), 1)).collect();
    source
        .lists(page_before("one", version, &objects[..4]))
        .lists(page_before("two", version, &objects[4..8]))
        .lists(page(version, &objects[8..]))
}

/// client-go: `TestReflectorWatchListPageSize`
#[test]
fn a_page_size_that_was_chosen_is_kept_on_every_page_of_every_list_pg_3() {
    on_a_paused_clock(async {
        let source = pages_of_four(pages_of_four(Source::new(), 10).watch_fails(expired()), 12);
        let pods = source.reflect(Options::all().page_size(4)).await;
        pass(10).await;
        assert_eq!(
            lists(&source),
            [
                "list limit=4",
                "list limit=4&continue=one",
                "list limit=4&continue=two",
                "list limit=4&resourceVersion=10&resourceVersionMatch=NotOlderThan",
                "list limit=4&continue=one",
                "list limit=4&continue=two",
            ]
        );
        assert_eq!(pods.store().len(), 10);
    });
}

/// client-go: `TestReflectorExpiredExactResourceVersion`
#[test]
fn a_position_the_server_forgot_is_followed_at_once_by_the_newest_ref_11() {
    on_a_paused_clock(async {
        let objects: Vec<(String, u64)> = (1..=8).map(|n| (format!("p{n}"), n)).collect();
        let objects: Vec<(&str, u64)> =
            objects.iter().map(|(name, n)| (name.as_str(), *n)).collect();
        let source = Source::new()
            .lists(page(10, &objects[..4]))
            .watch_fails(expired())
            .list_fails(expired())
            .lists(page(11, &objects));
        let pods = source.reflect(Options::all()).await;
        pass(10).await;
        assert_eq!(lists(&source), [NEWEST, AT_LEAST_10, NEWEST]);
        assert!(source.gaps()[2] < Duration::from_millis(20), "{:?}", source.gaps());
        assert_eq!(pods.store().len(), 8);
    });
}

/// client-go: `TestReflectorFullListIfExpired`
#[test]
fn a_list_that_expires_between_pages_is_asked_for_in_one_piece_pg_5() {
    on_a_paused_clock(async {
        let source = pages_of_four(Source::new(), 10)
            .watch_fails(expired())
            .lists(page_before("one", 11, &[("gone", 1)]))
            .list_fails(expired())
            .lists(page(12, &[("a", 2), ("b", 3)]));
        let pods = source.reflect(Options::all().page_size(4)).await;
        pass(10).await;
        assert_eq!(
            lists(&source).split_off(3),
            [
                "list limit=4&resourceVersion=10&resourceVersionMatch=NotOlderThan",
                "list limit=4&continue=one",
                AT_LEAST_10,
            ]
        );
        assert_eq!(versions(&pods), ["a2", "b3"], "nothing of the first page");
    });
}

/// client-go: `TestReflectorFullListIfTooLarge`
#[test]
fn a_server_that_is_behind_is_asked_for_the_newest_it_has_ref_11() {
    on_a_paused_clock(async {
        let mut source = Source::new().lists(page(20, &[]));
        for (error, version) in too_large().into_iter().zip([30, 40, 50]) {
            source = source
                .watch_fails(expired())
                .list_fails(error)
                .lists(page(version, &[("a", version)]));
        }
        let pods = source.reflect(Options::all()).await;
        pass(60).await;
        let at_least = |version: u32| {
            format!("list resourceVersion={version}&resourceVersionMatch=NotOlderThan")
        };
        let newest = || NEWEST.to_owned();
        assert_eq!(
            lists(&source),
            [newest(), at_least(20), newest(), at_least(30), newest(), at_least(40), newest()]
        );
        assert_eq!(versions(&pods), ["a50"]);
    });
}

/// client-go: `TestReflectorResourceVersionUpdate`
#[test]
fn every_event_moves_the_position_bookmarks_too_ref_32() {
    on_a_paused_clock(async {
        let source = Source::new().lists(page(10, &[])).watches(vec![]);
        let pods = source.reflect(Options::all()).await;
        settle().await;
        for (event, version) in [
            (added("a", 11), "11"),
            (modified("a", 20), "20"),
            (bookmark(30), "30"),
            (deleted("a", 40), "40"),
        ] {
            source.tell(event).await;
            assert_eq!(pods.store().resource_version().unwrap().as_str(), version);
        }
        source.close();
        pass(5).await;
        assert!(source.asked().last().unwrap().starts_with("watch resourceVersion=40&"));
    });
}

/// Pages are taken apart: an object that stays holds none of those it was listed with.
///
/// client-go: `TestReflectorListExtract`
#[test]
fn an_object_that_is_gone_is_freed_though_others_of_its_page_stay_pg_7() {
    on_a_paused_clock(async {
        let mut source = Source::new();
        let mut listed: Vec<(String, Weak<Pod>)> = Vec::new();
        for number in 0..5 {
            let items = (0..100).map(|place| object(&format!("p{number}-{place:02}"), 1));
            let items: Vec<Item<Pod>> = items.collect();
            listed.extend(items.iter().filter_map(|item| match item {
                Item::Object(pod) => Some((pod.key().name().to_owned(), Arc::downgrade(pod))),
                Item::Undecodable(_) => None,
            }));
            let token = format!("page {number}");
            let more = (number < 4).then_some(token.as_str());
            source = source.lists(page_of(items, 10, more));
        }
        let source = source.watches(vec![]);
        let pods = source.reflect(Options::all()).await;
        pods.synced().await.unwrap();
        settle().await;
        let stays = |name: &str| name.ends_with("-07");
        let mut version = 10;
        for (name, _) in listed.iter().filter(|(name, _)| !stays(name)) {
            version += 1;
            source.tell(deleted(name, version)).await;
        }
        let held = listed.iter().filter(|(_, pod)| pod.upgrade().is_some());
        let held: Vec<&str> = held.map(|(name, _)| name.as_str()).collect();
        assert_eq!(pods.store().len(), 5);
        assert_eq!(held, ["p0-07", "p1-07", "p2-07", "p3-07", "p4-07"]);
    });
}

/// Differs: what states another type is set aside by name, from lists too, and a missing type is nobody's mistake.
///
/// client-go: `TestGetExpectedGVKFromObject`
/// client-go: `TestIsUnsupportedTableObject`
#[test]
fn what_states_another_type_is_set_aside_ref_12_ref_16() {
    on_a_paused_clock(async {
        let typed = |name: &str, api_version: &str, kind: &str| -> Item<DynamicObject> {
            let mut object = pod(name);
            object["apiVersion"] = api_version.into();
            object["kind"] = kind.into();
            object["metadata"]["resourceVersion"] = "1".into();
            item(object)
        };
        let mut untyped = pod("untyped");
        untyped
            .as_object_mut()
            .unwrap()
            .retain(|field, _| field != "apiVersion" && field != "kind");
        let items = vec![
            typed("pod", "v1", "Pod"),
            item(untyped),
            typed("service", "v1", "Service"),
            typed("other-group", "example.org/v1", "Pod"),
            typed("table", "meta.k8s.io/v1", "Table"),
            typed("old-table", "meta.k8s.io/v1beta1", "Table"),
        ];
        let source = Source::new().lists(page_of(items, 5, None));
        let pods = runtime()
            .reflect_from(Pod::static_kind(), move || source, Options::all())
            .await
            .unwrap();
        pods.synced().await.unwrap();
        assert_eq!(pods.store().keys(), [key("pod"), key("untyped")]);
        let quarantined: Vec<String> =
            pods.status().quarantined.objects.keys().map(|key| key.name().to_owned()).collect();
        assert_eq!(quarantined, ["old-table", "other-group", "service", "table"]);
    });
}
