//! `reflector_test.go`: positions that never go back, and page sizes that are always kept.

use k8s_openapi::api::core::v1::Pod;
use kubeflect::Options;

use crate::script::{Source, added, expired, modified, page, page_before};
use crate::words::{on_a_paused_clock, pass, settle};

/// Ten objects in pages of four, and the version they are at.
fn pages(source: Source<Pod>, version: u64) -> Source<Pod> {
    let names: Vec<String> = (0..10).map(|number| format!("p{number}")).collect();
    let objects: Vec<(&str, u64)> = names.iter().map(|name| (name.as_str(), 1)).collect();
    source
        .lists(page_before("one", version, &objects[..4]))
        .lists(page_before("two", version, &objects[4..8]))
        .lists(page(version, &objects[8..]))
}

fn lists(source: &Source<Pod>) -> Vec<String> {
    source.asked().into_iter().filter(|request| request.starts_with("list")).collect()
}

/// client-go: `TestReflectorWatchListPageSize`
#[test]
fn a_page_size_that_was_chosen_is_kept_with_a_version_too() {
    on_a_paused_clock(async {
        let source = pages(pages(Source::new(), 10).watch_fails(expired()), 12);
        let pods = source.reflect(Options::all().page_size(4)).await;
        pass(10).await;
        assert_eq!(
            lists(&source).split_off(3),
            [
                "list limit=4&resourceVersion=10&resourceVersionMatch=NotOlderThan",
                "list limit=4&continue=one",
                "list limit=4&continue=two",
            ]
        );
        assert_eq!(pods.store().len(), 10);
    });
}

/// client-go: `TestReflectorFullListIfExpired`
#[test]
fn a_relist_that_expires_between_pages_is_asked_for_at_its_version_in_one_piece_pg_5() {
    on_a_paused_clock(async {
        let source = pages(Source::new(), 10)
            .watch_fails(expired())
            .lists(page_before("one", 11, &[("a", 1)]))
            .list_fails(expired())
            .lists(page(12, &[("a", 1), ("b", 2)]));
        let pods = source.reflect(Options::all().page_size(4)).await;
        pass(10).await;
        assert_eq!(
            lists(&source).split_off(3),
            [
                "list limit=4&resourceVersion=10&resourceVersionMatch=NotOlderThan",
                "list limit=4&continue=one",
                "list resourceVersion=10&resourceVersionMatch=NotOlderThan",
            ]
        );
        assert_eq!(pods.store().len(), 2);
    });
}

/// Differs: client-go's position is that of the last event, 32; here it stays at 55, and what is older than the cache
/// is not believed.
///
/// client-go: `TestReflectorWatchHandler`
#[test]
fn an_event_from_the_past_moves_the_position_nowhere_ref_32() {
    on_a_paused_clock(async {
        let source = Source::new()
            .lists(page(50, &[("bar", 20)]))
            .watches(vec![modified("bar", 55), added("baz", 32)]);
        let pods = source.reflect(Options::all()).await;
        settle().await;
        assert_eq!(pods.store().resource_version().unwrap().as_str(), "55");
    });
}
