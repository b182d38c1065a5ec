//! `controller_test.go`: what a change of the cache is to a subscriber.

use std::collections::BTreeSet;
use std::time::Duration;

use actix::{Actor as _, Addr};
use k8s_openapi::api::core::v1::Pod;
use kubeflect::cache::{Discipline, TransformError};
use kubeflect::embedded::ApiServer;
use kubeflect::object::{Resource as _, StaticKind as _};
use kubeflect::reflector::{Delivery, StreamingLists};
use kubeflect::{Options, ResourceEvent, SubscribeOptions};

use crate::script::{Source, deleted, expired, page};
use crate::support::{Does, noting, taken};
use crate::words::{Recorder, World, cached, key, on_a_paused_clock, pass, pod, settle, told};

/// client-go: `Example`
/// client-go: `ExampleNewInformer`
#[test]
fn a_subscriber_that_deletes_whatever_is_added_is_told_that_it_is_gone() {
    on_a_paused_clock(async {
        let world = World::new();
        let pods = world.reflect().await;
        let server: ApiServer = world.server.clone();
        let (deletes, gone) = noting(move |event| match event {
            ResourceEvent::Added { object, .. } => {
                server.delete(&Pod::static_kind(), &object.key()).unwrap();
                None
            }
            ResourceEvent::Deleted { last_known, .. } => Some(last_known.key().to_string()),
            ResourceEvent::Updated { .. } | ResourceEvent::Synced => None,
        });
        pods.subscribe(deletes).await.unwrap();
        pods.synced().await.unwrap();
        for name in ["a-hello", "b-controller", "c-framework"] {
            world.create(name);
        }
        settle().await;
        let gone = gone.lock().unwrap();
        assert_eq!(*gone, ["default/a-hello", "default/b-controller", "default/c-framework"]);
        assert!(pods.store().is_empty());
    });
}

/// client-go: `TestHammerController`
#[test]
fn whatever_happens_at_once_ends_in_the_state_of_the_server() {
    on_a_paused_clock(async {
        let world = World::new();
        let pods = world.reflect_with(Options::all().resync(Duration::from_secs(1))).await;
        assert!(!pods.has_synced());
        let (recorder, log) = Recorder::start();
        pods.subscribe(recorder).await.unwrap();
        let mut chances: Vec<_> = (0..3).map(fastrand::Rng::with_seed).collect();
        let mut there = BTreeSet::new();
        for _ in 0..100 {
            for chance in &mut chances {
                let name = format!("p{}", chance.u8(0..10));
                if there.insert(name.clone()) {
                    world.create(&name);
                } else if chance.bool() {
                    world.touch(&name);
                } else {
                    there.remove(&name);
                    world.delete(&name);
                }
                tokio::time::sleep(Duration::from_millis(chance.u64(0..30))).await;
            }
        }
        settle().await;
        assert!(pods.has_synced());
        let log = log.lock().unwrap();
        assert_eq!((&log.fold, &log.violations), (&world.truth(), &vec![]));
        assert!(log.causes.iter().any(|cause| cause.ends_with("(Resync)")));
    });
}

fn coloured(name: &str, colour: &str) -> serde_json::Value {
    let mut object = pod(name);
    object["metadata"]["labels"] = serde_json::json!({ "colour": colour });
    object
}

/// client-go: `TestUpdate`
#[test]
fn only_changes_that_happened_are_told_and_every_deletion_is() {
    on_a_paused_clock(async {
        let world = World::new();
        let pods = world.reflect().await;
        let colour = |pod: &Pod| pod.metadata.labels.as_ref().unwrap()["colour"].clone();
        let say = move |event| match event {
            ResourceEvent::Updated { old, new, .. } => {
                Some(format!("{}-{}", colour(&old), colour(&new)))
            }
            ResourceEvent::Deleted { .. } => Some("deleted".to_owned()),
            ResourceEvent::Added { .. } | ResourceEvent::Synced => None,
        };
        let (all, everything) = noting(say);
        let (latest, joined) = noting(say);
        pods.subscribe(all).await.unwrap();
        let options = SubscribeOptions::default().delivery(Delivery::Latest);
        pods.subscribe_with(latest, options).await.unwrap();
        for number in 0..10 {
            let name = format!("p{number}");
            world.server.create(coloured(&name, "from")).unwrap();
            world.server.apply(coloured(&name, "to")).unwrap();
            settle().await;
            world.delete(&name);
            settle().await;
        }
        let allowed = ["from-to", "to-to", "from-from", "deleted"];
        for notes in [&everything, &joined] {
            let notes = notes.lock().unwrap();
            assert!(notes.iter().all(|note| allowed.contains(&note.as_str())), "{notes:?}");
            assert_eq!(notes.iter().filter(|note| *note == "deleted").count(), 10);
        }
        assert_eq!(everything.lock().unwrap().len(), 20, "each change, told to who keeps up");
    });
}

/// Differs: it ends that actor and its subscription, not the program.
///
/// client-go: `TestPanicPropagated`
#[test]
fn a_panic_of_a_subscriber_stays_with_it_ct_6() {
    on_a_paused_clock(async {
        let world = World::new().pods(&["a"]);
        let pods = world.reflect().await;
        let panics: Addr<_> = Does(|event| panic!("told of {event}")).start();
        let subscription = pods.subscribe(panics).await.unwrap();
        assert!(!subscription.synced().await);
        world.create("b");
        settle().await;
        assert_eq!(cached(&pods), world.truth());
        assert!(pods.status().actors.iter().all(|actor| actor.restarts == 0));
    });
}

/// How often an object went through the transform.
fn passes(pod: &Pod) -> usize {
    pod.metadata
        .labels
        .iter()
        .flat_map(|labels| labels.keys())
        .filter(|key| key.starts_with("pass"))
        .count()
}

/// client-go: `TestTransformingInformer`
/// client-go: `TestTransformingInformerRace`
#[test]
fn cache_and_subscribers_see_each_object_transformed_once_resyncs_included_df_3() {
    for (discipline, streaming) in [
        (Discipline::InOrder, StreamingLists::Never),
        (Discipline::InOrderAtomic, StreamingLists::WherePossible),
        (Discipline::PerObject, StreamingLists::WherePossible),
    ] {
        on_a_paused_clock(async {
            let world = World::new().pods(&["a"]);
            let options = Options::all()
                .discipline(discipline)
                .streaming_lists(streaming)
                .resync(Duration::from_secs(1))
                .transform(|mut pod: Pod| {
                    let again = format!("pass{}", passes(&pod));
                    pod.metadata.labels.get_or_insert_default().insert(again, String::new());
                    Ok(pod)
                });
            let pods = world.reflect_with(options).await;
            let (notes, noted) = noting(|event| match event {
                ResourceEvent::Added { object, .. } => Some(format!("added {}", passes(&object))),
                ResourceEvent::Updated { old, new, .. } => {
                    Some(format!("updated {} {}", passes(&old), passes(&new)))
                }
                ResourceEvent::Deleted { last_known, .. } => {
                    Some(format!("deleted {}", passes(&last_known)))
                }
                ResourceEvent::Synced => None,
            });
            pods.subscribe(notes).await.unwrap();
            for _ in 0..5 {
                tokio::time::sleep(Duration::from_millis(700)).await;
                assert!(pods.store().list().iter().all(|pod| passes(pod) == 1));
                world.touch("a");
                settle().await;
            }
            world.delete("a");
            settle().await;
            let noted: BTreeSet<String> = taken(&noted).into_iter().collect();
            let expected = ["added 1", "deleted 1", "updated 1 1"].map(str::to_owned);
            assert_eq!(noted, expected.into(), "{discipline:?}");
        });
    }
}

/// client-go: `TestDeletionHandlingObjectToName`
/// client-go: `TestDeletedObjectGetObjectName`
/// client-go: `TestDeletedObjectGetKey`
#[test]
fn a_deletion_names_its_object_whether_it_was_seen_or_found_out() {
    on_a_paused_clock(async {
        let source = Source::new()
            .lists(page(1, &[("seen", 1), ("missed", 1)]))
            .watches(vec![deleted("seen", 2), Err(expired())])
            .lists(page(3, &[]));
        let pods = source.reflect(Options::all()).await;
        let (notes, noted) = noting(|event| {
            let key = event.key().map(|key| key.to_string());
            Some(format!("{} {:?}", key.unwrap_or_default(), event.cause()))
        });
        pods.subscribe(notes).await.unwrap();
        pass(5).await;
        let noted = taken(&noted).split_off(2);
        assert_eq!(noted, [" None", "default/seen Some(Watch)", "default/missed Some(Relist)"]);
    });
}

/// Differs: the cache can not refuse a change, so a batch can not fail by halves; what can refuse is a transform, and
/// what it refuses is named in the status.
///
/// client-go: `TestProcessDeltasInBatch`
#[test]
fn what_is_refused_is_told_to_nobody_and_costs_nothing_beside_it_ct_12() {
    on_a_paused_clock(async {
        for (names, bad) in [
            (&["a", "b"][..], &[][..]),
            (&["a", "b"], &["a", "b"]),
            (&["a", "b"], &["b"]),
            (&["a", "b", "c"], &["b"]),
        ] {
            let objects: Vec<(&str, u64)> = names.iter().map(|name| (*name, 1)).collect();
            let source = Source::new().lists(page(1, &objects));
            let pods = source
                .reflect(Options::all().transform(move |pod: Pod| {
                    let is_bad = bad.contains(&pod.key().name());
                    if is_bad { Err(TransformError("refused".to_owned())) } else { Ok(pod) }
                }))
                .await;
            let (recorder, log) = Recorder::start();
            pods.subscribe(recorder).await.unwrap();
            settle().await;
            let good = names.iter().filter(|name| !bad.contains(name));
            let expected: Vec<String> = good.map(|name| format!("added {name}")).collect();
            assert_eq!(told(&log), [expected, vec!["synced".to_owned()]].concat());
            let quarantined: Vec<_> = pods.status().quarantined.objects.into_keys().collect();
            assert_eq!(quarantined, bad.iter().map(|name| key(name)).collect::<Vec<_>>());
        }
    });
}
