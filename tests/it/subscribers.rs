//! What subscribers are promised: order, isolation, bounds.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use actix::{Actor, Context, Handler};
use k8s_openapi::api::core::v1::Pod;
use kubeflect::cache::Discipline;
use kubeflect::reflector::Delivery;
use kubeflect::{Options, ResourceEvent, ResourceEvents, ResourceSnapshot, SubscribeOptions};

use crate::support::{
    Log, Recorder, World, cached, key, on_a_paused_clock, pass, settle, told, told_why,
};

/// Makes the server change `objects` pods `updates` times, a few at a time.
async fn churn(world: &World, objects: usize, updates: usize) {
    for update in 0..updates {
        world.touch(&format!("p{:04}", update % objects));
        if update % 200 == 199 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}

fn many(objects: usize) -> World {
    let names: Vec<String> = (0..objects).map(|number| format!("p{number:04}")).collect();
    World::new().pods(&names.iter().map(String::as_str).collect::<Vec<_>>())
}

#[test]
fn a_slow_subscriber_is_told_less_and_a_fast_one_everything() {
    on_a_paused_clock(async {
        const OBJECTS: usize = 1_000;
        const UPDATES: usize = 100_000;
        let world = many(OBJECTS);
        let pods = world.reflect().await;
        pods.synced().await.unwrap();
        let (fast, fast_log) = Recorder::start();
        let (slow, slow_log) = Recorder::start_slow(Duration::from_secs(1));
        let fast = pods.subscribe(fast).await.unwrap();
        let slow = pods.subscribe(slow).await.unwrap();
        assert!(fast.synced().await);
        told(&fast_log);

        let mut most = 0;
        for _ in 0..UPDATES / 1_000 {
            churn(&world, OBJECTS, 1_000).await;
            most = most.max(slow.status().pending);
        }
        settle().await;
        assert_eq!(told(&fast_log).len(), UPDATES, "the fast one got every delta");
        assert_eq!(fast.status().coalesced, 0);
        assert!(most <= OBJECTS, "the slow one had {most} pending");
        assert!(slow.status().coalesced > 0);

        pass(3 * OBJECTS as u64).await;
        assert_eq!(slow.status().pending, 0);
        for log in [fast_log, slow_log] {
            let log = log.lock().unwrap();
            assert_eq!(log.fold, cached(&pods));
            assert_eq!(log.violations, [""; 0]);
        }
        assert_eq!(cached(&pods), world.truth());
    });
}

#[test]
fn a_subscriber_that_wants_the_latest_is_told_each_object_once() {
    on_a_paused_clock(async {
        let world = World::new().pods(&["a"]);
        let pods = world.reflect().await;
        pods.synced().await.unwrap();
        let (recorder, log) = Recorder::start_slow(Duration::from_secs(1));
        let options = SubscribeOptions::default().delivery(Delivery::Latest);
        pods.subscribe_with(recorder, options).await.unwrap();
        settle().await;
        for _ in 0..5 {
            world.touch("a");
            world.create("passing");
            settle().await;
            world.delete("passing");
            settle().await;
        }
        pass(30).await;
        assert_eq!(
            told(&log),
            ["added a", "synced", "updated a"],
            "and nothing of what came and went"
        );
        assert_eq!(log.lock().unwrap().fold, world.truth());
    });
}

struct Batches(Arc<Mutex<Vec<usize>>>, Arc<Mutex<Log>>);

impl Actor for Batches {
    type Context = Context<Self>;
}

impl Handler<ResourceEvents<Pod>> for Batches {
    type Result = ();

    fn handle(&mut self, events: ResourceEvents<Pod>, _: &mut Context<Self>) {
        self.0.lock().unwrap().push(events.len());
        events.iter().for_each(|event| self.1.lock().unwrap().record(event));
    }
}

#[test]
fn a_subscriber_may_take_events_in_batches() {
    on_a_paused_clock(async {
        let world = many(300);
        let pods = world.reflect().await;
        let (sizes, log) = (Arc::default(), Arc::default());
        let batches = Batches(Arc::clone(&sizes), Arc::clone(&log)).start();
        let subscription =
            pods.subscribe_batches(batches, SubscribeOptions::default()).await.unwrap();
        assert!(subscription.synced().await);
        assert!(sizes.lock().unwrap().len() < 10, "{sizes:?}");
        assert_eq!(log.lock().unwrap().fold, world.truth());
    });
}

struct Snapshots(Arc<Mutex<Vec<usize>>>);

impl Actor for Snapshots {
    type Context = Context<Self>;
}

impl Handler<ResourceSnapshot<Pod>> for Snapshots {
    type Result = ();

    fn handle(&mut self, ResourceSnapshot(snapshot): ResourceSnapshot<Pod>, _: &mut Context<Self>) {
        self.0.lock().unwrap().push(snapshot.len());
    }
}

#[test]
fn a_subscriber_may_take_the_whole_cache_after_changes() {
    on_a_paused_clock(async {
        let world = World::new().pods(&["a", "b"]);
        let pods = world.reflect().await;
        pods.synced().await.unwrap();
        let sizes = Arc::default();
        let snapshots = Snapshots(Arc::clone(&sizes)).start();
        let subscription =
            pods.subscribe_snapshots(snapshots, Duration::from_millis(100)).await.unwrap();
        assert!(subscription.synced().await);
        for name in ["c", "d", "e"] {
            world.create(name);
            settle().await;
        }
        pass(1).await;
        world.delete("a");
        pass(1).await;
        assert_eq!(
            *sizes.lock().unwrap(),
            [2, 5, 4],
            "three changes within the debounce are one snapshot"
        );
    });
}

#[test]
fn an_unsubscribed_subscriber_is_told_nothing_more() {
    on_a_paused_clock(async {
        let world = World::new().pods(&["a"]);
        let pods = world.reflect().await;
        pods.synced().await.unwrap();
        let (recorder, log) = Recorder::start();
        let first = pods.subscribe(recorder.clone()).await.unwrap();
        let second = pods.subscribe(recorder).await.unwrap();
        assert!(first.synced().await && second.synced().await);
        assert_eq!(pods.status().subscribers.len(), 2, "the same actor may subscribe twice");
        first.unsubscribe().await;
        told(&log);
        world.touch("a");
        settle().await;
        assert_eq!(told(&log), ["updated a"]);
        second.unsubscribe().await;
        world.touch("a");
        settle().await;
        assert_eq!(told(&log), [""; 0]);
        assert!(pods.status().subscribers.is_empty());
    });
}

/// Panics when told of an object of this name.
struct Panics(&'static str);

impl Actor for Panics {
    type Context = Context<Self>;
}

impl Handler<ResourceEvent<Pod>> for Panics {
    type Result = ();

    fn handle(&mut self, event: ResourceEvent<Pod>, _: &mut Context<Self>) {
        assert!(event.key().is_none_or(|key| key.name() != self.0), "told of {}", self.0);
    }
}

#[test]
fn a_subscriber_that_panics_or_stops_harms_nobody_else() {
    on_a_paused_clock(async {
        let world = World::new().pods(&["a"]);
        let pods = world.reflect().await;
        let (recorder, log) = Recorder::start();
        pods.subscribe(Panics("b").start()).await.unwrap();
        pods.subscribe(recorder).await.unwrap();
        let (stopping, _) = Recorder::start();
        pods.subscribe(stopping.downgrade().recipient().upgrade().unwrap()).await.unwrap();
        drop(stopping);
        pods.synced().await.unwrap();
        world.create("b");
        settle().await;
        world.create("c");
        settle().await;
        assert_eq!(told(&log), ["added a", "synced", "added b", "added c"]);
        world.create("d");
        settle().await;
        assert_eq!(pods.status().subscribers.len(), 2, "the one that panicked is gone");
    });
}

#[test]
fn a_subscriber_that_hangs_is_bounded_by_the_objects() {
    struct Hangs;
    impl Actor for Hangs {
        type Context = Context<Self>;
    }
    impl Handler<ResourceEvent<Pod>> for Hangs {
        type Result = actix::ResponseFuture<()>;

        fn handle(&mut self, _: ResourceEvent<Pod>, _: &mut Context<Self>) -> Self::Result {
            Box::pin(std::future::pending())
        }
    }
    on_a_paused_clock(async {
        let world = many(50);
        let pods = world.reflect().await;
        pods.synced().await.unwrap();
        let hanging = pods.subscribe(Hangs.start()).await.unwrap();
        churn(&world, 50, 5_000).await;
        // Names that come and go leave nothing behind.
        for number in 0..2_000 {
            let name = format!("job-{number}");
            world.create(&name);
            settle().await;
            world.delete(&name);
        }
        settle().await;
        assert!(hanging.status().pending <= 512, "{:?}", hanging.status());
        assert_eq!(cached(&pods), world.truth());
    });
}

#[test]
fn each_subscriber_is_resynced_in_its_own_time() {
    on_a_paused_clock(async {
        let world = World::new().pods(&["a", "b"]);
        let pods = world.reflect_with(Options::all().resync(Duration::from_secs(1))).await;
        pods.synced().await.unwrap();
        let mut logs = Vec::new();
        for options in [
            SubscribeOptions::default().no_resync(),
            SubscribeOptions::default().resync(Duration::from_secs(2)),
            SubscribeOptions::default().resync(Duration::from_secs(3)),
        ] {
            let (recorder, log) = Recorder::start();
            assert!(pods.subscribe_with(recorder, options).await.unwrap().synced().await);
            told(&log);
            logs.push(log);
        }
        tokio::time::sleep(Duration::from_millis(6_500)).await;
        let told: Vec<Vec<String>> = logs.iter().map(told_why).collect();
        let resyncs = |rounds: usize| ["updated a (Resync)", "updated b (Resync)"].repeat(rounds);
        assert_eq!(told, [resyncs(0), resyncs(3), resyncs(2)]);
    });
}

#[test]
fn a_resync_that_is_not_wanted_does_not_happen() {
    on_a_paused_clock(async {
        let world = World::new().pods(&["a"]);
        let options = Options::all().resync(Duration::from_secs(1)).should_resync(|| false);
        let pods = world.reflect_with(options).await;
        let (recorder, log) = Recorder::start();
        pods.subscribe(recorder).await.unwrap();
        pass(10).await;
        assert_eq!(told(&log), ["added a", "synced"]);
    });
}

#[test]
fn objects_are_transformed_before_anybody_sees_them() {
    on_a_paused_clock(async {
        let world = World::new().pods(&["a"]);
        let strip = |mut pod: Pod| {
            pod.spec = None;
            Ok(pod)
        };
        let options = Options::all()
            .transform(strip)
            .index("spec", |pod| vec![pod.spec.is_some().to_string()]);
        let pods = world.reflect_with(options).await;
        pods.synced().await.unwrap();
        world.create("b");
        settle().await;
        assert_eq!(pods.store().by_index("spec", "false").unwrap().len(), 2);
        assert!(pods.store().by_index("spec", "true").unwrap().is_empty());
        pods.add_index("name", |pod: &Pod| pod.metadata.name.iter().cloned().collect())
            .await
            .unwrap();
        assert_eq!(pods.store().by_index("name", "b").unwrap().len(), 1);
        assert!(pods.add_index("name", |_| vec![]).await.is_err());
    });
}

/// Handles each event in a future of its own, for a second.
struct Ponders(Arc<Mutex<Vec<String>>>);

impl Actor for Ponders {
    type Context = Context<Self>;
}

impl Handler<ResourceEvent<Pod>> for Ponders {
    type Result = actix::ResponseFuture<()>;

    fn handle(&mut self, event: ResourceEvent<Pod>, _: &mut Context<Self>) -> Self::Result {
        let handled = Arc::clone(&self.0);
        Box::pin(async move {
            pass(1).await;
            handled.lock().unwrap().push(event.to_string());
        })
    }
}

#[test]
fn synced_comes_after_everything_has_been_handled_in_futures_too() {
    on_a_paused_clock(async {
        let world = many(600);
        let pods = world.reflect().await;
        let handled = Arc::default();
        let subscription = pods.subscribe(Ponders(Arc::clone(&handled)).start()).await.unwrap();
        assert!(subscription.synced().await);
        let handled = handled.lock().unwrap();
        assert_eq!((handled.len(), handled.last().unwrap().as_str()), (601, "synced"));
    });
}

#[test]
fn stopping_waits_for_what_is_handled_in_futures() {
    on_a_paused_clock(async {
        let world = many(3);
        let pods = world.reflect().await;
        pods.synced().await.unwrap();
        let handled = Arc::default();
        pods.subscribe(Ponders(Arc::clone(&handled)).start()).await.unwrap();
        settle().await;
        pods.stop(Duration::from_secs(10)).await;
        assert_eq!(handled.lock().unwrap().len(), 4);
    });
}

#[test]
fn a_stopped_reflector_tells_nobody_anything_more() {
    on_a_paused_clock(async {
        let world = many(10);
        let pods = world.reflect().await;
        pods.synced().await.unwrap();
        let (slow, log) = Recorder::start_slow(Duration::from_secs(1));
        let recorder = slow.downgrade();
        let subscription = pods.subscribe(slow).await.unwrap();
        settle().await;
        pods.stop(Duration::from_secs(2)).await;
        let at_the_end = told(&log).len();
        assert!(at_the_end <= 4, "{at_the_end}");
        assert!(!subscription.synced().await, "it never will be");
        pass(100).await;
        assert!(told(&log).len() <= 10 - at_the_end, "what was in its mailbox at most");
        drop(subscription);
        settle().await;
        assert!(recorder.upgrade().is_none(), "nobody holds the subscriber any more");
    });
}

#[test]
fn waiting_for_a_subscriber_ends_when_its_reflector_is_stopped_before_the_first_list() {
    on_a_paused_clock(async {
        let world = World::new();
        world.server.refuse_connections(true);
        let pods = world.reflect().await;
        let (recorder, _) = Recorder::start();
        let subscription = pods.subscribe(recorder).await.unwrap();
        settle().await;
        pods.stop(Duration::ZERO).await;
        assert!(!subscription.synced().await);
    });
}

#[test]
fn a_subscriber_that_dies_is_forgotten_though_nothing_changes() {
    on_a_paused_clock(async {
        let world = World::new().pods(&["a"]);
        let pods = world.reflect_with(Options::all().resync(Duration::from_secs(60))).await;
        pods.synced().await.unwrap();
        pods.subscribe(Panics("a").start()).await.unwrap();
        settle().await;
        assert!(pods.status().subscribers.is_empty());
    });
}

#[test]
fn an_object_the_transform_renamed_is_deleted_under_its_new_name() {
    for discipline in [Discipline::PerObject, Discipline::InOrder, Discipline::InOrderAtomic] {
        on_a_paused_clock(async {
            let world = World::new().pods(&["a", "b"]);
            let shout = |mut pod: Pod| {
                pod.metadata.name = pod.metadata.name.map(|name| name.to_uppercase());
                Ok(pod)
            };
            let options = Options::all().transform(shout).discipline(discipline);
            let (pods, log) = world.follow(options).await;
            world.delete("a");
            settle().await;
            assert_eq!(told(&log), ["deleted A"], "{discipline:?}");
            assert_eq!(pods.store().keys(), [key("B")]);
        });
    }
}
