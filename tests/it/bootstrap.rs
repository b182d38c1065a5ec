//! From nothing to a cache that follows the server.

use std::time::Duration;

use kubeflect::cache::Discipline;
use kubeflect::reflector::{Freshness, Phase, StreamingLists};
use kubeflect::{Options, ResourceVersion};

use crate::support::{Recorder, World, cached, on_a_paused_clock, pass, settle, told, told_why};

fn options_of_every_mode() -> Vec<Options<k8s_openapi::api::core::v1::Pod>> {
    let mut all = Vec::new();
    for discipline in [Discipline::PerObject, Discipline::InOrder, Discipline::InOrderAtomic] {
        for streaming in [StreamingLists::WherePossible, StreamingLists::Never] {
            all.push(Options::all().discipline(discipline).streaming_lists(streaming));
        }
    }
    all
}

#[test]
fn a_reflector_caches_what_is_there_and_follows_changes() {
    for options in options_of_every_mode() {
        on_a_paused_clock(async {
            let world = World::new().pods(&["a", "b"]);
            let pods = world.reflect_with(options).await;
            let (recorder, log) = Recorder::start();
            pods.subscribe(recorder).await.unwrap();
            pods.synced().await.unwrap();
            assert_eq!(cached(&pods), world.truth());
            settle().await;
            assert_eq!(
                told_why(&log),
                ["added a (InitialList)", "added b (InitialList)", "synced"]
            );

            world.create("c");
            world.touch("a");
            world.delete("b");
            settle().await;
            assert_eq!(
                told_why(&log),
                ["added c (Watch)", "updated a (Watch)", "deleted b (Watch)"]
            );
            assert_eq!(cached(&pods), world.truth());
            assert_eq!(
                pods.store().resource_version(),
                ResourceVersion::new(&world.server.resource_version())
            );
            assert!(log.lock().unwrap().violations.is_empty());
        });
    }
}

#[test]
fn an_empty_kind_syncs_too() {
    for options in options_of_every_mode() {
        on_a_paused_clock(async {
            let world = World::new();
            let pods = world.reflect_with(options).await;
            let (recorder, log) = Recorder::start();
            let subscription = pods.subscribe(recorder).await.unwrap();
            pods.synced().await.unwrap();
            assert!(subscription.synced().await);
            assert_eq!(told(&log), ["synced"]);
        });
    }
}

#[test]
fn a_late_subscriber_is_told_the_cache_then_every_change() {
    on_a_paused_clock(async {
        let world = World::new().pods(&["a", "b"]);
        let pods = world.reflect().await;
        pods.synced().await.unwrap();
        world.touch("a");
        world.delete("b");
        let (recorder, log) = Recorder::start();
        let subscription = pods.subscribe(recorder).await.unwrap();
        world.create("c");
        assert!(subscription.synced().await);
        settle().await;
        let log = log.lock().unwrap();
        assert!(log.violations.is_empty(), "{log:?}");
        assert_eq!(log.fold, world.truth());
        assert_eq!(log.events.iter().filter(|event| *event == "synced").count(), 1);
    });
}

#[test]
fn a_list_comes_in_pages_and_is_shown_at_once() {
    on_a_paused_clock(async {
        let names: Vec<String> = (0..25).map(|number| format!("p{number:02}")).collect();
        let world = World::new().pods(&names.iter().map(String::as_str).collect::<Vec<_>>());
        let pods = world
            .reflect_with(Options::all().page_size(10).streaming_lists(StreamingLists::Never))
            .await;
        pods.synced().await.unwrap();
        assert_eq!((world.seen("list"), pods.store().len()), (3, 25));
    });
}

#[test]
fn a_server_without_streaming_lists_is_listed_and_not_asked_again_for_an_hour() {
    on_a_paused_clock(async {
        let world = World::with(kubeflect::embedded::ApiServer::new().without_streaming_lists())
            .pods(&["a"]);
        let pods = world.reflect().await;
        pods.synced().await.unwrap();
        assert_eq!((world.seen("streaming list"), world.seen("list")), (1, 1));
        for _ in 0..3 {
            world.server.forget_history();
            world.touch("a");
            world.server.forget_history();
            world.server.break_watches();
            pass(120).await;
        }
        assert_eq!(world.seen("streaming list"), 1, "remembered");
        assert_eq!(cached(&pods), world.truth());
    });
}

#[test]
fn selectors_decide_what_is_there() {
    on_a_paused_clock(async {
        let world = World::new().pods(&["a"]);
        let mut other = crate::support::pod("b");
        other["metadata"]["labels"] = serde_json::json!({ "app": "db" });
        world.server.create(other.clone()).unwrap();
        let pods = world.reflect_with(Options::all().namespace("default").labels("app=web")).await;
        let (recorder, log) = Recorder::start();
        pods.subscribe(recorder).await.unwrap();
        pods.synced().await.unwrap();
        settle().await;
        assert_eq!(told(&log), ["added a", "synced"]);

        other["metadata"]["labels"] = serde_json::json!({ "app": "web" });
        world.server.apply(other.clone()).unwrap();
        settle().await;
        other["metadata"]["labels"] = serde_json::json!({ "app": "db" });
        world.server.apply(other).unwrap();
        settle().await;
        assert_eq!(told(&log), ["added b", "deleted b"], "it entered the selection and left it");
    });
}

#[test]
fn the_status_tells_where_it_stands() {
    on_a_paused_clock(async {
        let world = World::new().pods(&["a"]);
        world.server.refuse_connections(true);
        let pods = world.reflect().await;
        settle().await;
        let status = pods.status();
        assert_eq!(
            (status.phase.clone(), status.synced, status.freshness.clone()),
            (Phase::BackingOff, false, Freshness::Unknown)
        );
        assert!(
            status.condition.is_some()
                && status.next_attempt_in().is_some_and(|wait| wait < Duration::from_secs(2))
        );

        world.server.refuse_connections(false);
        pods.synced().await.unwrap();
        settle().await;
        let status = pods.status();
        assert_eq!(
            (status.phase, status.synced, status.freshness),
            (Phase::Watching, true, Freshness::Fresh)
        );
        assert_eq!((status.objects, status.queue, status.condition.is_none()), (1, 0, true));
        assert_eq!(status.actors.len(), 4);
    });
}
