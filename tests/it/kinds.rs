//! Kinds that come and go: custom resources whose definition is deleted, and made again.

use kubeflect::api::ApiError;
use kubeflect::embedded::{Filter, RawAnswer, Verb};
use kubeflect::object::{DynamicObject, Scope};
use kubeflect::reflector::{Freshness, StreamingLists};
use kubeflect::supervision::Faults;
use kubeflect::{Kind, Options, Reflector};
use serde_json::json;

use crate::support::{Log, Recorder, World, on_a_paused_clock, pass, told_why};

fn widgets() -> Kind {
    Kind::new("example.com", "v1", "Widget", "widgets", Scope::Namespaced)
}

fn create(world: &World, name: &str) {
    let widget = json!({
        "apiVersion": "example.com/v1", "kind": "Widget",
        "metadata": { "name": name, "namespace": "default" },
    });
    world.server.create(widget).unwrap();
}

/// A kind that is served, with objects `a` and `b` that have been told.
async fn follow(
    world: &World,
    streaming: StreamingLists,
) -> (Reflector<DynamicObject>, std::sync::Arc<std::sync::Mutex<Log>>) {
    world.server.register(widgets());
    create(world, "a");
    create(world, "b");
    let options = Options::all().streaming_lists(streaming);
    let reflector = world.runtime.reflect_kind(widgets(), options).await.unwrap();
    let (recorder, log) = Recorder::start();
    assert!(reflector.subscribe(recorder).await.unwrap().synced().await);
    told_why(&log);
    (reflector, log)
}

const MODES: [StreamingLists; 2] = [StreamingLists::WherePossible, StreamingLists::Never];

#[test]
fn a_definition_that_is_deleted_takes_its_objects_along_and_brings_others_when_it_returns() {
    for streaming in MODES {
        on_a_paused_clock(async {
            let world = World::new();
            let (reflector, log) = follow(&world, streaming).await;
            world.server.unregister(&widgets());
            pass(120).await;
            assert_eq!(told_why(&log), ["deleted a (Watch)", "deleted b (Watch)"]);
            let condition = reflector.status().condition.expect("it is not served");
            assert!(matches!(condition.error, ApiError::NotFound { .. }), "{condition}");

            world.server.register(widgets());
            create(&world, "a");
            pass(120).await;
            assert_eq!(told_why(&log), ["added a (Relist)"]);
            assert_eq!(world.truth_of(&widgets()).len(), reflector.store().len());
            assert!(reflector.status().condition.is_none());
        });
    }
}

#[test]
fn objects_whose_end_was_not_told_are_kept_for_their_time_then_given_up() {
    for streaming in MODES {
        on_a_paused_clock(async {
            let world = World::new();
            let (reflector, log) = follow(&world, streaming).await;
            world.server.vanish(&widgets());
            pass(295).await;
            assert!(told_why(&log).is_empty(), "a gateway astray answers 404 too");
            let Freshness::Stale { reason, .. } = reflector.status().freshness else { panic!() };
            assert!(reason.contains("not served here"), "{reason}");

            pass(240).await;
            assert_eq!(told_why(&log), ["deleted a (Relist)", "deleted b (Relist)"]);
            assert!(reflector.store().is_empty());

            world.server.register(widgets());
            create(&world, "a");
            pass(120).await;
            assert_eq!(told_why(&log), ["added a (Relist)"], "it syncs again by itself");
            assert_eq!(reflector.status().freshness, Freshness::Fresh);
        });
    }
}

#[test]
fn a_store_that_crashes_over_giving_up_a_kind_gives_it_up_all_the_same() {
    on_a_paused_clock(async {
        let world = World::new();
        world.server.register(widgets());
        create(&world, "a");
        let faults = Faults::panic_at("delta_fifo_store", "Forget", 1);
        let options = Options::<DynamicObject>::all().faults(faults.clone());
        let reflector = world.runtime.reflect_kind(widgets(), options).await.unwrap();
        reflector.synced().await.unwrap();
        world.server.vanish(&widgets());
        pass(700).await;
        assert_eq!((faults.fired(), reflector.store().len()), (1, 0));
    });
}

#[test]
fn a_definition_made_again_in_time_is_another_object_of_each_name() {
    on_a_paused_clock(async {
        let world = World::new();
        let (reflector, log) = follow(&world, StreamingLists::WherePossible).await;
        world.server.vanish(&widgets());
        pass(60).await;
        world.server.register(widgets());
        create(&world, "a");
        pass(120).await;
        let mut told = told_why(&log);
        told.sort();
        assert_eq!(told, ["added a (Relist)", "deleted a (Relist)", "deleted b (Relist)"]);
        assert!(log.lock().unwrap().violations.is_empty());
        assert_eq!(reflector.store().len(), 1);
    });
}

#[test]
fn a_gateway_that_answers_404_for_an_hour_costs_no_object_while_discovery_knows_better() {
    on_a_paused_clock(async {
        let world = World::new();
        let (reflector, log) = follow(&world, StreamingLists::WherePossible).await;
        let lost = RawAnswer::text(404, "404 page not found");
        for verb in [Verb::List, Verb::Watch] {
            world.server.answer_with(Filter::verb(verb).of(&widgets()), lost.clone(), usize::MAX);
        }
        world.server.cut_watches();
        pass(3600).await;
        assert!(told_why(&log).is_empty());
        assert_eq!(reflector.store().len(), 2);
        world.server.heal();
        pass(120).await;
        assert_eq!(reflector.status().freshness, Freshness::Fresh);
        assert!(told_why(&log).is_empty());
    });
}

#[test]
fn a_kind_made_again_while_nobody_was_let_in_is_listed_anew() {
    on_a_paused_clock(async {
        let world = World::new();
        let (reflector, log) = follow(&world, StreamingLists::WherePossible).await;
        for verb in [Verb::List, Verb::Watch] {
            world.server.forbid(&widgets(), verb);
        }
        world.server.vanish(&widgets());
        // A definition is an object too.
        world.create("pod");
        world.server.register(widgets());
        create(&world, "a");
        pass(600).await;
        assert_eq!(reflector.store().len(), 2, "kept: nobody says that they are gone");
        world.server.heal();
        pass(120).await;
        let mut told = told_why(&log);
        told.sort();
        assert_eq!(told, ["added a (Relist)", "deleted a (Relist)", "deleted b (Relist)"]);
        assert_eq!(reflector.status().freshness, Freshness::Fresh);
    });
}
