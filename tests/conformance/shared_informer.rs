//! `shared_informer_test.go`: many subscribers of one reflector; resyncs, indices, transforms, loss.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kubeflect::embedded::{Filter, Verb};
use kubeflect::object::StaticKind as _;
use kubeflect::{Options, Reflector, SubscribeOptions};

use crate::script::noting_errors;
use crate::words::{Log, Recorder, World, cached, on_a_paused_clock, pass, settle, told, told_why};

const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

async fn subscribe(pods: &Reflector<Pod>, options: SubscribeOptions) -> Arc<Mutex<Log>> {
    let (recorder, log) = Recorder::start();
    pods.subscribe_with(recorder, options).await.unwrap();
    log
}

/// client-go: `TestIndexer`
#[test]
fn an_index_is_complete_whether_it_was_there_first_or_came_later_ix_5() {
    on_a_paused_clock(async {
        let world = World::new().pods(&["a1", "b1"]);
        let letter =
            |pod: &Pod| pod.metadata.name.iter().map(|name| name[..1].to_owned()).collect();
        let number =
            |pod: &Pod| pod.metadata.name.iter().map(|name| name[1..].to_owned()).collect();
        let pods = world.reflect_with(Options::all().index("letter", letter)).await;
        pods.synced().await.unwrap();
        let found = |index: &str, value: &str| pods.store().by_index(index, value).unwrap().len();
        assert_eq!((found("letter", "a"), found("letter", "b")), (1, 1));
        world.create("a2");
        settle().await;
        assert_eq!(found("letter", "a"), 2);

        pods.add_index("number", number).await.unwrap();
        assert_eq!((found("number", "1"), found("number", "2")), (2, 1));
        let values = pods.store().snapshot().index_values("number");
        assert_eq!(values.iter().map(ToString::to_string).collect::<Vec<_>>(), ["1", "2"]);
        world.delete("a2");
        settle().await;
        assert_eq!((found("letter", "a"), found("number", "2")), (1, 0));
    });
}

/// Three subscribers, resynced never, every two and every three seconds, while the server takes its time.
async fn resyncs_in_their_own_time(delay: Duration) {
    let world = World::new().pods(&["a", "b"]);
    world.server.delay(Filter::everything(), delay);
    let pods = world.reflect_with(Options::all().resync(seconds(1))).await;
    let mut logs = Vec::new();
    for options in [
        SubscribeOptions::default().no_resync(),
        SubscribeOptions::default().resync(seconds(2)),
        SubscribeOptions::default().resync(seconds(3)),
    ] {
        logs.push(subscribe(&pods, options).await);
    }
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    for log in &logs {
        assert_eq!(told(log), ["added a", "added b", "synced"]);
    }
    let resynced = || logs.iter().map(|log| told_why(log).len()).collect::<Vec<_>>();
    pass(1).await;
    assert_eq!(resynced(), [0, 2, 0], "after two seconds");
    pass(1).await;
    assert_eq!(resynced(), [0, 0, 2], "after three");
}

/// client-go: `TestListenerResyncPeriods`
/// client-go: `TestListenerResyncPeriodsDelayed`
#[test]
fn each_subscriber_is_resynced_in_its_own_time_si_10() {
    for delay in [Duration::ZERO, seconds(1)] {
        on_a_paused_clock(resyncs_in_their_own_time(delay));
    }
}

/// Differs: a reflector runs from the start, so a shorter period never shortens that of the reflector; client-go lets
/// it, before the start.
///
/// client-go: `TestResyncCheckPeriod`
#[test]
fn no_subscriber_is_resynced_more_often_than_its_reflector_si_8_si_10() {
    on_a_paused_clock(async {
        let world = World::new().pods(&["a"]);
        let pods = world.reflect_with(Options::all().resync(seconds(60))).await;
        let without = world.reflect().await;
        let own = SubscribeOptions::default;
        let logs = [
            subscribe(&pods, own().no_resync()).await,
            subscribe(&pods, own()).await,
            subscribe(&pods, own().resync(seconds(5))).await,
            subscribe(&pods, own().resync(seconds(90))).await,
            subscribe(&without, own().resync(seconds(5))).await,
        ];
        pass(1).await;
        for log in &logs {
            assert_eq!(told(log), ["added a", "synced"]);
        }
        pass(240).await;
        let resynced: Vec<usize> = logs.iter().map(|log| told_why(log).len()).collect();
        assert_eq!(resynced, [0, 4, 4, 2, 0], "90 s are rounded up to twice 60");
    });
}

/// Differs: no two threads ever write here; what is left of the race is who comes first.
///
/// client-go: `TestSharedInformerInitializationRace`
#[test]
fn whoever_subscribes_while_it_starts_is_told_everything_once_si_5() {
    on_a_paused_clock(async {
        let world = World::new().pods(&["a", "b", "c"]);
        world.server.delay(Filter::everything(), Duration::from_millis(5));
        let pods = world.reflect().await;
        let mut logs = Vec::new();
        for _ in 0..20 {
            logs.push(subscribe(&pods, SubscribeOptions::default()).await);
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        settle().await;
        for log in logs {
            assert_eq!(told(&log), ["added a", "added b", "added c", "synced"]);
        }
    });
}

/// client-go: `TestSharedInformerWatchDisruption`
#[test]
fn what_was_missed_is_told_to_all_and_a_resync_to_those_who_want_it() {
    on_a_paused_clock(async {
        let world = World::new().pods(&["pod1", "pod2"]);
        let pods = world.reflect_with(Options::all().resync(seconds(60))).await;
        let calm = subscribe(&pods, SubscribeOptions::default().no_resync()).await;
        let resynced = subscribe(&pods, SubscribeOptions::default()).await;
        pass(59).await;
        told(&calm);
        told(&resynced);

        world.server.refuse_connections(true);
        world.server.break_watches();
        world.touch("pod2");
        world.create("pod3");
        world.server.forget_history();
        pass(2).await;
        assert_eq!(told_why(&resynced), ["updated pod1 (Resync)", "updated pod2 (Resync)"]);
        world.server.refuse_connections(false);
        pass(50).await;
        for log in [calm, resynced] {
            assert_eq!(told_why(&log), ["updated pod2 (Relist)", "added pod3 (Relist)"]);
        }
        assert_eq!(cached(&pods), world.truth());
    });
}

/// client-go: `TestSharedInformerErrorHandling`
#[test]
fn an_error_reaches_who_asked_to_be_told() {
    on_a_paused_clock(async {
        let world = World::new();
        world.server.forbid(&Pod::static_kind(), Verb::List);
        world.server.forbid(&Pod::static_kind(), Verb::Watch);
        let (options, errors) = noting_errors(Options::all());
        let pods = world.reflect_with(options).await;
        pass(1).await;
        let errors = errors.lock().unwrap();
        assert!(errors[0].starts_with("not allowed: "), "{errors:?}");
        assert!(pods.status().condition.is_some());
    });
}

/// client-go: `TestSharedInformerTransformer`
#[test]
fn subscribers_see_what_the_transform_made() {
    on_a_paused_clock(async {
        let world = World::new().pods(&["pod1", "pod2"]);
        let shout = |mut pod: Pod| {
            pod.metadata.name = pod.metadata.name.map(|name| name.to_uppercase());
            Ok(pod)
        };
        let pods = world.reflect_with(Options::all().transform(shout)).await;
        let log = subscribe(&pods, SubscribeOptions::default()).await;
        settle().await;
        assert_eq!(told(&log), ["added POD1", "added POD2", "synced"]);
        world.create("pod3");
        settle().await;
        assert_eq!(told(&log), ["added POD3"]);
    });
}

/// One of many who come and go; some stay.
async fn come_and_go(pods: Reflector<Pod>, mut chance: fastrand::Rng) -> Vec<Arc<Mutex<Log>>> {
    let mut stayed = Vec::new();
    for _ in 0..10 {
        let (recorder, log) = Recorder::start();
        let Ok(subscription) = pods.subscribe(recorder).await else { break };
        tokio::time::sleep(Duration::from_millis(chance.u64(0..20))).await;
        if chance.u8(0..10) == 0 {
            stayed.push(log);
        } else {
            subscription.unsubscribe().await;
            assert!(log.lock().unwrap().violations.is_empty());
        }
    }
    stayed
}

/// client-go: `TestSharedInformerHandlerAbuse`
#[test]
fn subscribers_may_come_and_go_while_everything_changes() {
    on_a_paused_clock(async {
        let world = World::new();
        let pods = world.reflect().await;
        let mut chance = fastrand::Rng::with_seed(11);
        let workers: Vec<_> =
            (0..100).map(|_| actix_rt::spawn(come_and_go(pods.clone(), chance.fork()))).collect();
        let mut there = BTreeSet::new();
        for _ in 0..1_000 {
            let name = format!("p{}", chance.u8(0..20));
            if there.insert(name.clone()) {
                world.create(&name);
            } else if chance.bool() {
                world.touch(&name);
            } else {
                there.remove(&name);
                world.delete(&name);
            }
            if chance.u8(0..10) == 0 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        }
        let stayed: Vec<_> = futures::future::join_all(workers)
            .await
            .into_iter()
            .flat_map(|stayed| stayed.expect("no worker panics"))
            .collect();
        settle().await;
        assert!(stayed.len() > 50);
        for log in &stayed {
            let log = log.lock().unwrap();
            assert_eq!((&log.fold, &log.violations), (&world.truth(), &vec![]));
        }
        assert_eq!(pods.status().subscribers.len(), stayed.len());
        pods.stop(Duration::ZERO).await;
        assert!(come_and_go(pods, chance).await.is_empty(), "stopped already");
    });
}
