//! `shared_informer_test.go`: how subscriptions and reflectors begin and end.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use actix::{Actor, Context, Handler, WeakAddr};
use k8s_openapi::api::core::v1::Pod;
use kubeflect::embedded::Filter;
use kubeflect::reflector::Phase;
use kubeflect::{Options, Reflector, ResourceEvent};
use tokio::time::Instant;

use crate::script::{Source, page};
use crate::words::{Recorder, World, on_a_paused_clock, pass, settle, told};

/// Takes ten seconds over each event.
struct Ponders(Arc<Mutex<Vec<String>>>);

impl Actor for Ponders {
    type Context = Context<Self>;
}

impl Handler<ResourceEvent<Pod>> for Ponders {
    type Result = actix::ResponseFuture<()>;

    fn handle(&mut self, event: ResourceEvent<Pod>, _: &mut Context<Self>) -> Self::Result {
        let handled = Arc::clone(&self.0);
        Box::pin(async move {
            pass(10).await;
            handled.lock().unwrap().push(event.to_string());
        })
    }
}

/// Panics over every object.
struct Panics;

impl Actor for Panics {
    type Context = Context<Self>;
}

impl Handler<ResourceEvent<Pod>> for Panics {
    type Result = ();

    fn handle(&mut self, event: ResourceEvent<Pod>, _: &mut Context<Self>) {
        assert!(matches!(event, ResourceEvent::Synced), "told of {event}");
    }
}

fn subscribers(pods: &Reflector<Pod>) -> usize {
    pods.status().subscribers.len()
}

/// client-go: `TestSharedInformerRemoveHandler`
/// client-go: `TestSharedInformerMultipleRegistration`
#[test]
fn the_same_actor_may_subscribe_twice_and_leave_twice_si_6() {
    on_a_paused_clock(async {
        let world = World::new();
        let pods = world.reflect().await;
        let (recorder, log) = Recorder::start();
        let first = pods.subscribe(recorder.clone()).await.unwrap();
        let second = pods.subscribe(recorder).await.unwrap();
        assert!(first.synced().await && second.synced().await);
        assert_eq!((subscribers(&pods), told(&log).len()), (2, 2));
        first.unsubscribe().await;
        world.create("a");
        settle().await;
        assert_eq!((subscribers(&pods), told(&log)), (1, vec!["added a".to_owned()]));
        second.unsubscribe().await;
        assert_eq!(subscribers(&pods), 0);
    });
}

/// client-go: `TestRemovingRemovedSharedInformer`
#[test]
fn a_subscription_that_is_over_already_may_be_ended_sp_3() {
    on_a_paused_clock(async {
        let world = World::new().pods(&["a"]);
        let pods = world.reflect().await;
        pods.synced().await.unwrap();
        let subscription = pods.subscribe(Panics.start()).await.unwrap();
        settle().await;
        assert_eq!(subscribers(&pods), 0, "it went by itself");
        subscription.unsubscribe().await;
        assert_eq!(subscribers(&pods), 0);
    });
}

/// Differs: a reflector runs once there is a handle to it.
///
/// client-go: `TestStateSharedInformer`
#[test]
fn a_reflector_starts_runs_and_stops() {
    on_a_paused_clock(async {
        let source = Source::new().lists(page(1, &[]));
        let pods = source.reflect(Options::all()).await;
        assert!(!pods.has_synced() && pods.status().phase != Phase::Stopped);
        pods.synced().await.unwrap();
        settle().await;
        assert_eq!(pods.status().phase, Phase::Watching);
        pods.stop(Duration::ZERO).await;
        assert!(pods.has_synced(), "it keeps what it was");
        assert_eq!(pods.status().phase, Phase::Stopped);
    });
}

/// client-go: `TestAddOnStoppedSharedInformer`
/// client-go: `TestRemoveOnStoppedSharedInformer`
#[test]
fn a_stopped_reflector_takes_no_subscriber_and_lets_every_one_go() {
    on_a_paused_clock(async {
        let pods = World::new().reflect().await;
        let (recorder, _) = Recorder::start();
        let subscription = pods.subscribe(recorder.clone()).await.unwrap();
        pods.stop(Duration::ZERO).await;
        let refused = pods.subscribe(recorder).await.unwrap_err();
        assert_eq!(refused.to_string(), "the reflector of pods has been stopped");
        subscription.unsubscribe().await;
        assert_eq!(subscribers(&pods), 0);
    });
}

/// client-go: `TestRemoveWhileActive`
#[test]
fn who_left_is_told_nothing_more() {
    on_a_paused_clock(async {
        let world = World::new();
        let pods = world.reflect().await;
        let (recorder, log) = Recorder::start();
        let subscription = pods.subscribe(recorder).await.unwrap();
        world.create("a");
        settle().await;
        assert_eq!(told(&log), ["synced", "added a"]);
        subscription.unsubscribe().await;
        world.create("b");
        settle().await;
        assert_eq!(told(&log), [""; 0]);
    });
}

/// client-go: `TestAddWhileActive`
#[test]
fn who_comes_late_is_synced_when_it_handled_what_was_there_si_5() {
    on_a_paused_clock(async {
        let world = World::new().pods(&["pod1"]);
        world.server.delay(Filter::everything(), Duration::from_millis(5));
        let pods = world.reflect().await;
        let (early, _) = Recorder::start();
        let early = pods.subscribe(early).await.unwrap();
        assert!(!early.status().synced);
        assert!(early.synced().await);

        let (late, log) = Recorder::start_slow(Duration::from_secs(1));
        let late = pods.subscribe(late).await.unwrap();
        world.create("pod2");
        settle().await;
        assert!(!late.status().synced, "it still looks at pod1");
        assert!(late.synced().await);
        pass(5).await;
        let told = told(&log);
        assert_eq!(told, ["added pod1", "synced", "added pod2"]);
    });
}

/// Stops, and sees that nobody is left.
async fn leaves_nothing(pods: Reflector<Pod>, recorder: WeakAddr<Recorder>, source: &Source<Pod>) {
    pods.stop(Duration::from_secs(1)).await;
    settle().await;
    assert!(recorder.upgrade().is_none(), "somebody holds the subscriber");
    assert_eq!((source.open_watches(), subscribers(&pods)), (0, 0));
    let asked = source.asked().len();
    pass(600).await;
    assert_eq!(source.asked().len(), asked);
}

/// client-go: `TestShutdown/before run`
/// client-go: `TestShutdown/after sync`
/// client-go: `TestShutdown/never run`
#[test]
fn a_stopped_reflector_leaves_nothing_behind_si_1() {
    on_a_paused_clock(async {
        let (recorder, _) = Recorder::start();
        let source = Source::new().lists(page(1, &[("a", 1)]));
        let pods = source.reflect(Options::all()).await;
        pods.subscribe(recorder.clone()).await.unwrap();
        pods.synced().await.unwrap();
        let weak = recorder.downgrade();
        drop(recorder);
        leaves_nothing(pods, weak, &source).await;

        let (recorder, _) = Recorder::start();
        let source = Source::new().lists(page(1, &[("a", 1)]));
        let pods = source.reflect(Options::all()).await;
        pods.synced().await.unwrap();
        pods.subscribe(recorder.clone()).await.unwrap();
        let weak = recorder.downgrade();
        drop(recorder);
        leaves_nothing(pods, weak, &source).await;

        let (recorder, _) = Recorder::start();
        let source = Source::new().list_hangs();
        let pods = source.reflect(Options::all()).await;
        pods.subscribe(recorder.clone()).await.unwrap();
        let weak = recorder.downgrade();
        drop(recorder);
        leaves_nothing(pods, weak, &source).await;
    });
}

/// Differs: neither the process ends nor is the next event tried a second later: an actor that panicked is gone, and so
/// is its subscription; the others do not notice.
///
/// client-go: `TestEventPanics`
#[test]
fn a_subscriber_that_panics_is_detached_and_nobody_else_notices_pl_4() {
    on_a_paused_clock(async {
        let world = World::new();
        let pods = world.reflect().await;
        let (recorder, log) = Recorder::start();
        pods.subscribe(recorder).await.unwrap();
        pods.subscribe(Panics.start()).await.unwrap();
        pods.synced().await.unwrap();
        settle().await;
        assert_eq!(subscribers(&pods), 2);
        let before = Instant::now();
        for name in ["p1", "p2", "p3", "p4", "p5"] {
            world.create(name);
        }
        settle().await;
        assert_eq!(
            told(&log),
            ["synced", "added p1", "added p2", "added p3", "added p4", "added p5"]
        );
        assert_eq!(subscribers(&pods), 1);
        assert!(before.elapsed() < Duration::from_secs(1));
    });
}

/// client-go: `TestRemoveEventHandler_AsynchronousPanic`
#[test]
fn leaving_does_not_wait_for_what_is_being_handled_pl_3() {
    on_a_paused_clock(async {
        let world = World::new().pods(&["a"]);
        let pods = world.reflect().await;
        let handled = Arc::default();
        let ponders = Ponders(Arc::clone(&handled)).start();
        let subscription = pods.subscribe(ponders).await.unwrap();
        pass(1).await;
        let before = Instant::now();
        subscription.unsubscribe().await;
        assert!(before.elapsed() < Duration::from_secs(1));
        assert_eq!(*handled.lock().unwrap(), [""; 0]);
        world.create("b");
        pass(60).await;
        assert_eq!(*handled.lock().unwrap(), ["added default/a"], "what it was sent it handles");
    });
}

/// Differs: leaving never waits; stopping the reflector does, within its grace period.
///
/// client-go: `TestRemoveEventHandler_SynchronousShutdown`
#[test]
fn stopping_waits_for_what_is_being_handled_pl_3() {
    on_a_paused_clock(async {
        let world = World::new().pods(&["a"]);
        let pods = world.reflect().await;
        let handled: Arc<Mutex<Vec<String>>> = Arc::default();
        let ponders = Ponders(Arc::clone(&handled)).start();
        pods.subscribe(ponders).await.unwrap();
        pass(1).await;
        pods.stop(Duration::from_secs(60)).await;
        assert_eq!(handled.lock().unwrap()[0], "added default/a");
    });
}

/// client-go: `TestShutDownEventHandler_Lifecycles/never started`
/// client-go: `TestShutDownEventHandler_Lifecycles/added after start`
/// client-go: `TestShutDownEventHandler_Lifecycles/added before start`
#[test]
fn leaving_never_hangs() {
    on_a_paused_clock(async {
        for hangs in [true, false] {
            let source = Source::new();
            let source = if hangs { source.list_hangs() } else { source.lists(page(1, &[])) };
            let pods = source.reflect(Options::all()).await;
            let (recorder, _) = Recorder::start();
            let before = pods.subscribe(recorder.clone()).await.unwrap();
            pass(1).await;
            assert_eq!(pods.has_synced(), !hangs);
            let after = pods.subscribe(recorder).await.unwrap();
            for subscription in [before, after] {
                let left = subscription.unsubscribe();
                assert!(tokio::time::timeout(Duration::from_secs(1), left).await.is_ok());
            }
            assert_eq!(subscribers(&pods), 0);
        }
    });
}
