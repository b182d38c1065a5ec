//! Each actor is killed at each of its messages in turn, under load. Nothing may be lost.

use std::time::Duration;

use kubeflect::Options;
use kubeflect::SubscribeOptions;
use kubeflect::reflector::{Delivery, Phase, StreamingLists};
use kubeflect::supervision::Faults;

use crate::support::{Recorder, World, cached, on_a_paused_clock, pass, settle};

const OBJECTS: usize = 1_000;

fn name(number: usize) -> String {
    format!("p{:04}", number % OBJECTS)
}

/// Everything a reflector goes through in its life; then quiet, then the truth.
fn live_through(faults: &Faults, streaming: StreamingLists) {
    on_a_paused_clock(async {
        let names: Vec<String> = (0..OBJECTS).map(name).collect();
        let world = World::new().pods(&names.iter().map(String::as_str).collect::<Vec<_>>());
        let options = Options::all()
            .resync(Duration::from_secs(7))
            .streaming_lists(streaming)
            .page_size(300)
            .faults(faults.clone());
        let pods = world.reflect_with(options).await;
        let (early, early_log) = Recorder::start();
        let (slow, slow_log) = Recorder::start_slow(Duration::from_millis(20));
        let (late, late_log) = Recorder::start();
        let (leaving, _) = Recorder::start();
        pods.subscribe(early).await.unwrap();
        let leaving = pods.subscribe(leaving).await.unwrap();
        pods.subscribe_with(slow, SubscribeOptions::default().delivery(Delivery::Latest))
            .await
            .unwrap();

        let load = async {
            for round in 0..12 {
                for change in 0..250 {
                    let number = round * 37 + change * 3;
                    match change % 10 {
                        0 => world.delete(&name(number)),
                        1 => world.touch(&name(number.saturating_sub(3))),
                        _ => world.touch(&name(number)),
                    }
                }
                tokio::time::sleep(Duration::from_millis(700)).await;
            }
        };
        let trouble = async {
            tokio::time::sleep(Duration::from_millis(1_100)).await;
            world.server.cut_watches();
            pods.add_index("name", |pod: &k8s_openapi::api::core::v1::Pod| {
                pod.metadata.name.iter().cloned().collect()
            })
            .await
            .unwrap();
            tokio::time::sleep(Duration::from_millis(2_900)).await;
            pods.subscribe(late).await.unwrap();
            leaving.unsubscribe().await;
            world.server.break_watches();
            world.server.forget_history();
        };
        futures::join!(load, trouble);
        pass(200).await;

        assert_eq!(cached(&pods), world.truth(), "the cache is not what the server has");
        for (who, log) in [("early", early_log), ("slow", slow_log), ("late", late_log)] {
            let log = log.lock().unwrap();
            assert_eq!(log.fold, cached(&pods), "{who}");
            assert_eq!(log.violations, [""; 0], "{who}");
            assert_eq!(log.events.iter().filter(|event| *event == "synced").count(), 1, "{who}");
        }
        assert_eq!(pods.store().by_index("name", "p0001").unwrap().len(), 1);
        let status = pods.status();
        assert_eq!((status.phase, status.subscribers.len()), (Phase::Watching, 3));
        world.runtime.stop().await;
        settle().await;
    });
}

/// The points that some life passes, each with how often.
fn points(streaming: StreamingLists) -> Vec<(&'static str, &'static str, usize)> {
    let faults = Faults::recording();
    live_through(&faults, streaming);
    faults.seen()
}

fn kill_at_every_point(streaming: StreamingLists, actors: &[&str]) {
    let points: Vec<_> =
        points(streaming).into_iter().filter(|(actor, ..)| actors.contains(actor)).collect();
    for actor in actors {
        assert!(points.iter().any(|(seen, ..)| seen == actor), "{actor} did nothing");
    }
    for (actor, message, times) in points {
        for nth in [1, times.div_ceil(2)] {
            let faults = Faults::panic_at(actor, message, nth);
            live_through(&faults, streaming);
            assert_eq!(faults.fired(), 1, "{actor} was not killed at {message} {nth}");
            if times == 1 {
                break;
            }
        }
    }
}

#[test]
fn the_lister_may_die_at_any_point() {
    kill_at_every_point(StreamingLists::Never, &["lister"]);
}

#[test]
fn the_watcher_may_die_at_any_point() {
    kill_at_every_point(StreamingLists::Never, &["watcher"]);
}

#[test]
fn the_supervisor_may_die_at_any_point() {
    kill_at_every_point(StreamingLists::Never, &["supervisor"]);
}

#[test]
fn the_store_may_die_at_any_point() {
    kill_at_every_point(StreamingLists::Never, &["delta_fifo_store"]);
}

#[test]
fn the_publisher_and_the_timer_may_die_at_any_point() {
    kill_at_every_point(StreamingLists::Never, &["publisher", "resync_timer"]);
}

#[test]
fn everybody_may_die_at_any_point_of_a_streaming_list() {
    let everybody = ["watcher", "supervisor", "delta_fifo_store", "publisher", "resync_timer"];
    kill_at_every_point(StreamingLists::WherePossible, &everybody);
}

/// Without load nothing else would tell the subscribers.
#[test]
fn a_crash_on_a_quiet_kind_is_made_up_for() {
    for streaming in [StreamingLists::WherePossible, StreamingLists::Never] {
        for (actor, point) in [
            ("delta_fifo_store", "Commit"),
            ("delta_fifo_store", "Commit/end"),
            ("delta_fifo_store", "Drain"),
            ("delta_fifo_store", "Drain/shown"),
            ("publisher", "Publish"),
            ("publisher", "Publish/end"),
        ] {
            on_a_paused_clock(async {
                let world = World::new().pods(&["a", "b"]);
                let faults = Faults::panic_at(actor, point, 1);
                let options = Options::all().streaming_lists(streaming).faults(faults.clone());
                let pods = world.reflect_with(options).await;
                let (recorder, log) = Recorder::start();
                pods.subscribe(recorder).await.unwrap();
                pass(30).await;
                assert_eq!(faults.fired(), 1, "{actor} {point}");
                let events = &log.lock().unwrap().events;
                assert_eq!(*events, ["added a", "added b", "synced"], "{actor} {point}");
            });
        }
    }
}

#[test]
fn an_actor_that_dies_too_often_makes_its_reflector_failed_and_is_tried_on() {
    on_a_paused_clock(async {
        let world = World::new().pods(&["a"]);
        let mut faults = Faults::none();
        for nth in 1..=6 {
            faults = faults.and_panic_at("publisher", "Publish", nth);
        }
        let pods = world.reflect_with(Options::all().faults(faults.clone())).await;
        let (recorder, log) = Recorder::start();
        pods.subscribe(recorder).await.unwrap();
        let mut phases = Vec::new();
        for _ in 0..300 {
            world.touch("a");
            pass(1).await;
            phases.push(pods.status().phase);
        }
        assert_eq!(faults.fired(), 6);
        assert!(phases.contains(&Phase::Failed), "{phases:?}");
        assert_eq!(phases.last(), Some(&Phase::Watching));
        assert_eq!(log.lock().unwrap().fold, world.truth());
    });
}

#[test]
fn the_cache_goes_on_while_the_publisher_is_down() {
    on_a_paused_clock(async {
        let world = World::new().pods(&["a"]);
        let mut faults = Faults::none();
        for nth in 1..=7 {
            faults = faults.and_panic_at("publisher", "started", nth);
        }
        let pods = world.reflect_with(Options::all().faults(faults)).await;
        let mut behind = 0;
        for _ in 0..60 {
            world.touch("a");
            pass(1).await;
            behind += usize::from(cached(&pods) != world.truth());
        }
        assert!(behind <= 3, "behind for {behind} of 60 s");
    });
}
