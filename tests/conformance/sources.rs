//! `listwatch_test.go`, `fake_controller_source_test.go`, `pager_test.go`, `dynamicinformer/informer_test.go`: where
//! objects come from, and how lists of them are put together.

use futures::{FutureExt as _, StreamExt as _};
use k8s_openapi::api::core::v1::Pod;
use kubeflect::api::{
    ApiError, ListRequest, ListWatch, ListerWatcher, WatchEvent, WatchRequest, WatchStart,
};
use kubeflect::client::{Cluster as _, KubernetesSource};
use kubeflect::object::{DynamicObject, StaticKind as _};
use kubeflect::{Options, ResourceVersion};
use serde_json::json;

use crate::script::{Source, expired, page, page_before, status};
use crate::words::{Recorder, World, on_a_paused_clock, pass, pod, settle, told};

/// client-go: `listwatch_test: TestToListWatcherWithWatchListSemantics`
#[test]
fn a_source_of_closures_says_whether_it_streams_lists() {
    let source = || {
        ListWatch::<Pod, _, _>::new(
            |_| async { Err(status(500, "InternalError")) }.boxed_local(),
            |_| async { Ok(futures::stream::pending().boxed_local()) }.boxed_local(),
        )
    };
    assert!(!source().has_streaming_lists());
    assert!(source().with_streaming_lists().has_streaming_lists());
}

/// What a watch of the embedded server is told from a version on, as far as it is there.
async fn watched(source: &KubernetesSource<Pod>, version: &str) -> Result<Vec<String>, ApiError> {
    let request = WatchRequest {
        selection: std::sync::Arc::default(),
        start: WatchStart::After(ResourceVersion::new(version).unwrap()),
        timeout: std::time::Duration::from_secs(300),
        bookmarks: false,
    };
    let mut stream = source.watch(request).await?;
    let mut events = Vec::new();
    while let Some(Some(event)) = stream.next().now_or_never() {
        let event = event?;
        let what = match &event {
            WatchEvent::Added(_) => "added",
            WatchEvent::Modified(_) => "modified",
            WatchEvent::Deleted(_) => "deleted",
            WatchEvent::Bookmark { .. } | WatchEvent::Unknown { .. } => "other",
        };
        events.push(format!("{what} {}", event.resource_version().unwrap()));
    }
    Ok(events)
}

/// client-go: `fake_controller_source_test`
#[test]
fn the_embedded_server_replays_what_it_remembers_and_says_what_it_forgot() {
    on_a_paused_clock(async {
        let world = World::new();
        let source =
            KubernetesSource::<Pod>::new(world.server.connect().unwrap(), Pod::static_kind());
        let start = world.server.resource_version();
        let mut expected = Vec::new();
        world.create("a");
        expected.push(format!("added {}", world.server.resource_version()));
        let middle = world.server.resource_version();
        world.touch("a");
        expected.push(format!("modified {}", world.server.resource_version()));
        world.delete("a");
        expected.push(format!("deleted {}", world.server.resource_version()));
        assert_eq!(watched(&source, &start).await.unwrap(), expected);
        assert_eq!(watched(&source, &middle).await.unwrap(), expected[1..]);

        let listed = source.list(ListRequest::default()).await.unwrap();
        assert_eq!(listed.resource_version.unwrap().as_str(), world.server.resource_version());
        world.server.forget_history();
        let forgotten = watched(&source, &middle).await;
        assert!(matches!(forgotten, Err(ApiError::Expired { .. })), "{forgotten:?}");
        let now = world.server.resource_version();
        assert_eq!(watched(&source, &now).await.unwrap(), [""; 0]);
    });
}

/// client-go: `pager_test: TestListPager_List`
#[test]
fn only_a_token_asks_for_another_page_and_then_no_version_is_said_pg_2_pg_3_pg_4() {
    on_a_paused_clock(async {
        let names: Vec<String> = (0..600).map(|number| format!("p{number:03}")).collect();
        let objects: Vec<(&str, u64)> = names.iter().map(|name| (name.as_str(), 1)).collect();
        let first = "list limit=500";
        let next = "list limit=500&continue=next";
        for (pages, asked, objects) in [
            (vec![page(5, &[])], vec![first], 0),
            (vec![page(5, &objects[..3])], vec![first], 3),
            (vec![page(5, &objects[..500])], vec![first], 500),
            (
                vec![page_before("next", 5, &objects[..500]), page(5, &objects[500..])],
                vec![first, next],
                600,
            ),
            (
                vec![
                    page_before("next", 5, &[]),
                    page_before("next", 6, &objects[..2]),
                    page(7, &[]),
                ],
                vec![first, next, next],
                2,
            ),
        ] {
            let source = pages.into_iter().fold(Source::new(), Source::lists);
            let pods = source.reflect(Options::all()).await;
            pods.synced().await.unwrap();
            settle().await;
            let watch = "watch resourceVersion=5&allowWatchBookmarks=true";
            assert_eq!(
                source.asked(),
                [asked, vec![watch]].concat(),
                "from the first page's version"
            );
            assert_eq!(pods.store().len(), objects);
        }
    });
}

/// Differs: nothing of a list is shown before its last page is there, where client-go's pager visits page by page.
///
/// client-go: `pager_test: TestListPager_EachListItem`
#[test]
fn a_list_that_fails_between_pages_shows_nothing_pg_5() {
    on_a_paused_clock(async {
        let source = Source::new()
            .lists(page_before("next", 5, &[("a", 1)]))
            .list_fails(status(403, "Forbidden"))
            .lists(page_before("next", 6, &[("b", 2)]))
            .list_fails(expired())
            .list_fails(expired())
            .lists(page(7, &[("c", 3)]));
        let pods = source.reflect(Options::all()).await;
        let (recorder, log) = Recorder::start();
        pods.subscribe(recorder).await.unwrap();
        pass(60).await;
        assert_eq!(told(&log), ["added c", "synced"]);
        assert_eq!(
            source.asked()[..6],
            [
                "list limit=500",
                "list limit=500&continue=next",
                "list limit=500",
                "list limit=500&continue=next",
                "list",
                "list limit=500",
            ],
            "in one piece once, then in pages again"
        );
    });
}

/// client-go: `dynamicinformer/informer_test`
#[test]
fn a_kind_known_only_at_run_time_is_selected_and_followed() {
    on_a_paused_clock(async {
        let world = World::new();
        let labelled = |name: &str, namespace: &str, app: &str| {
            let mut object = pod(name);
            object["metadata"]["namespace"] = namespace.into();
            object["metadata"]["labels"] = json!({ "app": app });
            object
        };
        for object in [
            labelled("a", "default", "web"),
            labelled("b", "default", "db"),
            labelled("c", "other", "web"),
        ] {
            world.server.create(object).unwrap();
        }
        let options = || Options::<DynamicObject>::all();
        for (options, expected) in [
            (options(), vec!["added a", "added b", "added other/c"]),
            (options().namespace("default"), vec!["added a", "added b"]),
            (options().labels("app=web"), vec!["added a", "added other/c"]),
            (options().fields("metadata.name=b"), vec!["added b"]),
        ] {
            let pods = world.runtime.reflect_kind(Pod::static_kind(), options).await.unwrap();
            let (recorder, log) = Recorder::start();
            pods.subscribe(recorder).await.unwrap();
            settle().await;
            assert_eq!(told(&log), [expected, vec!["synced"]].concat());
        }
        let pods = world.runtime.reflect_kind(Pod::static_kind(), options()).await.unwrap();
        let (recorder, log) = Recorder::start();
        assert!(pods.subscribe(recorder).await.unwrap().synced().await);
        told(&log);
        world.touch("a");
        world.delete("b");
        world.create("d");
        settle().await;
        assert_eq!(told(&log), ["updated a", "deleted b", "added d"]);
    });
}
