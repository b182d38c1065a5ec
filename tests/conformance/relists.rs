//! `controller_test.go`: what a list tells, and where the cache is when it does.

use std::sync::{Arc, Mutex};

use actix::Recipient;
use k8s_openapi::api::core::v1::Pod;
use kubeflect::cache::{Discipline, Store};
use kubeflect::object::Resource as _;
use kubeflect::{Options, Reflector, ResourceEvent};

use crate::script::{Source, added, deleted, expired, modified, page};
use crate::support::{noting, taken};
use crate::words::{Recorder, on_a_paused_clock, pass, settle, told, told_why};

/// Names and versions.
type Listed<'a> = &'a [(&'a str, u64)];

fn version(pod: &Pod) -> String {
    pod.resource_version().unwrap_or_default().to_owned()
}

/// Writes down each event, where the cache is when it is told, and whether it is told too early.
fn looking(pods: &Reflector<Pod>) -> (Recipient<ResourceEvent<Pod>>, Arc<Mutex<Vec<String>>>) {
    let store: Store<Pod> = pods.store().clone();
    noting(move |event| {
        let shown = event.key().and_then(|key| store.get(&key)).map(|pod| version(&pod));
        let expected = match &event {
            ResourceEvent::Added { object, .. } => Some(version(object)),
            ResourceEvent::Updated { new, .. } => Some(version(new)),
            ResourceEvent::Deleted { .. } | ResourceEvent::Synced => None,
        };
        let at = store.resource_version().unwrap();
        let right = if shown == expected { "" } else { " too early" };
        Some(format!("{event:?} at {at}{right}").replace("default/", ""))
    })
}

/// Differs: what the list did not change is told to nobody. In the order of DeltaFIFO, deletions come last.
///
/// client-go: `TestReplaceEvents/create`
/// client-go: `TestReplaceEvents/delete all`
/// client-go: `TestReplaceEvents/mixed`
#[test]
fn a_list_tells_what_it_changed_and_the_cache_shows_each_change_before_ct_9() {
    let three = [("pod-1", 1), ("pod-2", 1), ("pod-3", 1)];
    let mixed = [("pod-1", 4), ("pod-2", 4), ("pod-4", 4)];
    let lists: [(Listed<'_>, Listed<'_>, &[&str]); 3] = [
        (&[], &three, &["added pod-1", "added pod-2", "added pod-3"]),
        (&three, &[], &["deleted pod-1", "deleted pod-2", "deleted pod-3"]),
        (&three, &mixed, &["deleted pod-3", "updated pod-1", "updated pod-2", "added pod-4"]),
    ];
    for discipline in [Discipline::InOrder, Discipline::InOrderAtomic, Discipline::PerObject] {
        for (before, after, expected) in lists {
            on_a_paused_clock(async {
                let source = Source::new()
                    .lists(page(3, before))
                    .watch_fails(expired())
                    .lists(page(5, after));
                let pods = source.reflect(Options::all().discipline(discipline)).await;
                pods.synced().await.unwrap();
                let (looks, seen) = looking(&pods);
                pods.subscribe(looks).await.unwrap();
                settle().await;
                taken(&seen);
                pass(10).await;
                let mut expected = expected.to_vec();
                if discipline == Discipline::PerObject {
                    expected.sort_by_key(|event| event.starts_with("deleted"));
                }
                let expected: Vec<String> =
                    expected.iter().map(|event| format!("{event} (Relist) at 5")).collect();
                assert_eq!(taken(&seen), expected, "{discipline:?}");
            });
        }
    }
}

/// client-go: `TestResetWatch/atomic`
/// client-go: `TestResetWatch/not atomic`
#[test]
fn only_the_first_list_is_called_the_first_list_ct_10() {
    for discipline in [Discipline::InOrderAtomic, Discipline::InOrder] {
        on_a_paused_clock(async {
            let source = Source::new()
                .lists(page(1, &[("pod-1", 1)]))
                .watch_fails(expired())
                .lists(page(3, &[("pod-1", 2), ("pod-2", 3)]));
            let pods = source.reflect(Options::all().discipline(discipline)).await;
            let (recorder, log) = Recorder::start();
            pods.subscribe(recorder).await.unwrap();
            pass(10).await;
            assert_eq!(
                told_why(&log),
                [
                    "added pod-1 (InitialList)",
                    "synced",
                    "updated pod-1 (Relist)",
                    "added pod-2 (Relist)"
                ]
            );
        });
    }
}

/// client-go: `TestStoreResourceVersion`
#[test]
fn the_cache_is_at_the_version_of_each_event_when_it_is_told_ts_2() {
    on_a_paused_clock(async {
        let source = Source::new().lists(page(1, &[("a", 1)])).watches(vec![]);
        let pods = source.reflect(Options::all()).await;
        let (looks, seen) = looking(&pods);
        pods.subscribe(looks).await.unwrap();
        settle().await;
        for event in [modified("a", 2), added("b", 3), deleted("a", 4)] {
            source.tell(event).await;
        }
        assert_eq!(
            taken(&seen).split_off(2),
            ["updated a (Watch) at 2", "added b (Watch) at 3", "deleted a (Watch) at 4"]
        );
    });
}

/// Differs: the cache is at the version the server is at, whatever the transform leaves of it; client-go's stays at that
/// of the last list.
///
/// client-go: `TestStoreResourceVersionWithNonMetaTransform`
#[test]
fn a_transform_that_forgets_versions_costs_no_change_and_no_position() {
    on_a_paused_clock(async {
        let source = Source::new()
            .lists(page(1, &[("a", 1)]))
            .watch_closes(vec![modified("a", 2)])
            .watches(vec![Err(expired())])
            .lists(page(3, &[("a", 2)]));
        let forgets = |mut pod: Pod| {
            pod.metadata.resource_version = None;
            Ok(pod)
        };
        let pods = source.reflect(Options::all().transform(forgets)).await;
        let (recorder, log) = Recorder::start();
        pods.subscribe(recorder).await.unwrap();
        pass(10).await;
        assert_eq!(told(&log)[..3], ["added a", "synced", "updated a"]);
        assert_eq!(
            source.asked()[2..4],
            [
                "watch resourceVersion=2&allowWatchBookmarks=true",
                "list resourceVersion=2&resourceVersionMatch=NotOlderThan",
            ]
        );
        assert_eq!(pods.store().resource_version().unwrap().as_str(), "3");
    });
}
