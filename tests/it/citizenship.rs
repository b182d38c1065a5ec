//! What a server is asked, and how often, when it is down, overloaded or broken. The clock is paused: an hour is
//! nothing.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kubeflect::api::{ListPage, ListWatch, Status};
use kubeflect::client::{BudgetOptions, Budgeted};
use kubeflect::embedded::{ApiServer, SeenRequest};
use kubeflect::object::{ResourceVersion, StaticKind as _};
use kubeflect::reflector::{Freshness, StreamingLists};
use kubeflect::{Options, Reflector, Runtime, RuntimeOptions, Threads};
use tokio::time::Instant;

use crate::support::{World, cached, on_a_paused_clock, pass, told};

/// G17: one request each 30 s in the long run, and a few before the delays have grown.
const HOURLY: usize = 3600 / 30 + 10;

fn requests_since(server: &ApiServer, since: Instant) -> Vec<SeenRequest> {
    server.requests().into_iter().filter(|request| request.at >= since).collect()
}

/// The most requests within any one second.
fn peak(requests: &[SeenRequest]) -> usize {
    let within_a_second = |first: &SeenRequest| {
        let last = first.at + Duration::from_secs(1);
        requests.iter().filter(|request| request.at >= first.at && request.at < last).count()
    };
    requests.iter().map(within_a_second).max().unwrap_or_default()
}

#[test]
fn an_hour_of_outage_is_few_requests_and_no_relist_g17() {
    on_a_paused_clock(async {
        let world = World::new().pods(&["a"]);
        let (pods, log) = world.follow(Options::all()).await;
        pass(200).await;
        let unavailable = kubeflect::embedded::RawAnswer::text(503, "down");
        let everything = kubeflect::embedded::Filter::everything();
        world.server.answer_with(everything, unavailable, usize::MAX);
        world.server.break_watches();
        let begun = Instant::now();
        pass(3600).await;
        let asked = requests_since(&world.server, begun);
        assert!((60..=HOURLY).contains(&asked.len()), "{} requests in an hour", asked.len());
        assert!(asked.iter().all(|request| request.parameter("watch").is_some()), "no list");
        let Freshness::Stale { since, .. } = pods.status().freshness else { panic!() };
        assert!(since.elapsed() >= Duration::from_secs(3599));

        world.touch("a");
        world.server.heal();
        pass(61).await;
        assert_eq!(cached(&pods), world.truth());
        assert_eq!(told(&log), ["updated a"]);
        assert_eq!((world.seen("list"), world.seen("streaming list")), (0, 1), "no relist");
    });
}

/// Reflects a source whose lists are good and whose watches end at once after some events. Gives how many lists and
/// watches there were within an hour, and how many objects are known.
fn an_hour_of_short_watches(events: usize) -> (usize, usize, usize) {
    use futures::FutureExt as _;
    use futures::stream::{self, StreamExt as _};
    use kubeflect::api::{Item, WatchEvent};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    on_a_paused_clock(async move {
        let (lists, watches) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let (seen_lists, seen_watches) = (Arc::clone(&lists), Arc::clone(&watches));
        let source = move || {
            let (lists, watches) = (Arc::clone(&seen_lists), Arc::clone(&seen_watches));
            ListWatch::<Pod, _, _>::new(
                move |_request| {
                    lists.fetch_add(1, Ordering::Relaxed);
                    let resource_version = ResourceVersion::new("1");
                    async { Ok(ListPage { items: vec![], resource_version, continue_token: None }) }
                        .boxed_local()
                },
                move |_request| {
                    let number = watches.fetch_add(1, Ordering::Relaxed);
                    let event = (0..events).map(move |_| {
                        let mut pod = Pod::default();
                        pod.metadata.name = Some(format!("pod-{number}"));
                        pod.metadata.resource_version = Some((number + 2).to_string());
                        Ok(WatchEvent::Added(Item::Object(Arc::new(pod))))
                    });
                    async { Ok(stream::iter(event).boxed_local()) }.boxed_local()
                },
            )
        };
        let options = RuntimeOptions { threads: Threads::Callers, ..RuntimeOptions::default() };
        let runtime = Runtime::with_options(ApiServer::new(), options);
        let pods = runtime.reflect_from(Pod::static_kind(), source, Options::all()).await.unwrap();
        pods.synced().await.unwrap();
        pass(3600).await;
        (lists.load(Ordering::Relaxed), watches.load(Ordering::Relaxed), pods.store().len())
    })
}

#[test]
fn an_hour_of_watches_that_close_at_once_is_few_requests_and_no_relist_g18() {
    let (lists, watches, objects) = an_hour_of_short_watches(0);
    assert_eq!((lists, objects), (1, 0));
    assert!((60..=HOURLY).contains(&watches), "{watches} watches in an hour");
}

#[test]
fn an_hour_of_watches_that_close_after_one_event_gets_on_at_a_bounded_rate_g18() {
    let (lists, watches, objects) = an_hour_of_short_watches(1);
    assert_eq!((lists, objects), (1, watches), "every event is taken");
    assert!((60..=HOURLY).contains(&watches), "{watches} watches in an hour");
}

#[test]
fn a_storm_of_expired_positions_is_ridden_out_and_over_within_a_minute() {
    for streaming in [StreamingLists::WherePossible, StreamingLists::Never] {
        on_a_paused_clock(async {
            let world = World::new().pods(&["a"]);
            let (pods, _) = world.follow(Options::all().streaming_lists(streaming)).await;
            let begun = Instant::now();
            let expired = Status { reason: "Expired".to_owned(), code: 410, ..Status::default() };
            // No watch lives for longer than half a second, for an hour.
            while begun.elapsed() < Duration::from_secs(3600) {
                world.server.fail_watches(&Pod::static_kind(), expired.clone());
                tokio::time::sleep(Duration::from_millis(500)).await;
            }
            let asked = requests_since(&world.server, begun);
            let lists = asked.iter().filter(|request| {
                request.parameter("sendInitialEvents").is_some()
                    || request.parameter("watch").is_none()
            });
            let lists = lists.count();
            assert!((50..=HOURLY).contains(&lists), "{lists} lists in an hour");
            world.touch("a");
            pass(62).await;
            assert_eq!(cached(&pods), world.truth(), "within the longest delay");
            assert_eq!(pods.status().freshness, Freshness::Fresh);
        });
    }
}

/// So many reflectors of one kind, each of another namespace, within the default budget.
async fn many(server: &ApiServer, count: usize) -> (Runtime, Vec<Reflector<Pod>>) {
    let options =
        RuntimeOptions { threads: Threads::Callers, seed: Some(1), ..RuntimeOptions::default() };
    let cluster = Budgeted::new(server.clone(), BudgetOptions::default());
    let runtime = Runtime::with_options(cluster, options);
    let mut reflectors = Vec::new();
    for number in 0..count {
        let options = Options::all().namespace(format!("namespace-{number}"));
        reflectors.push(runtime.reflect::<Pod>(options).await.unwrap());
    }
    runtime.synced().await.unwrap();
    (runtime, reflectors)
}

#[test]
fn two_hundred_reflectors_do_not_stampede_before_during_or_after_an_outage_g17() {
    on_a_paused_clock(async {
        let server = ApiServer::seeded(1);
        server.remember_requests(1_000_000);
        let begun = Instant::now();
        let (_runtime, reflectors) = many(&server, 200).await;
        let asked = requests_since(&server, begun);
        assert_eq!(asked.len(), 200, "one each to begin with");
        assert!(peak(&asked) <= 30, "{} requests in one second", peak(&asked));
        pass(60).await;

        let down = kubeflect::embedded::RawAnswer::text(503, "down");
        server.answer_with(kubeflect::embedded::Filter::everything(), down, usize::MAX);
        server.break_watches();
        let begun = Instant::now();
        pass(600).await;
        let asked = requests_since(&server, begun);
        assert!(peak(&asked) <= 30, "{} requests in one second", peak(&asked));
        let late: Vec<SeenRequest> = asked
            .into_iter()
            .filter(|request| request.at >= begun + Duration::from_secs(120))
            .collect();
        let rate = late.len() as f64 / 480.0;
        assert!(rate <= 200.0 / 30.0, "{rate} requests a second in the long run");

        server.heal();
        let healed = Instant::now();
        pass(90).await;
        for reflector in &reflectors {
            assert_eq!(reflector.status().freshness, Freshness::Fresh);
        }
        let asked = requests_since(&server, healed);
        assert!(peak(&asked) <= 30, "{} requests in one second", peak(&asked));
        let is_relist = |request: &&SeenRequest| {
            request.parameter("sendInitialEvents").is_some()
                || (request.parameter("watch").is_none() && request.parameter("limit") != Some("1"))
        };
        assert_eq!(asked.iter().filter(is_relist).count(), 0, "nobody lost anything");
    });
}

#[test]
fn two_hundred_reflectors_that_lost_their_position_list_once_each_and_not_at_once_g17() {
    on_a_paused_clock(async {
        let server = ApiServer::seeded(1);
        server.remember_requests(1_000_000);
        let (_runtime, reflectors) = many(&server, 200).await;
        pass(300).await;
        let pod = serde_json::json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": { "name": "a", "namespace": "namespace-7" }, "spec": { "containers": [] },
        });
        server.refuse_connections(true);
        server.break_watches();
        server.create(pod).unwrap();
        server.forget_history();
        server.refuse_connections(false);
        let begun = Instant::now();
        pass(150).await;
        let asked = requests_since(&server, begun);
        let lists = asked.iter().filter(|request| request.parameter("sendInitialEvents").is_some());
        assert_eq!(lists.count(), 200);
        assert!(peak(&asked) <= 30, "{} requests in one second", peak(&asked));
        assert!(reflectors.iter().all(|it| it.status().freshness == Freshness::Fresh));
        assert_eq!(reflectors[7].store().len(), 1);
    });
}

#[test]
fn a_short_outage_that_the_history_covers_costs_no_list() {
    for streaming in [StreamingLists::WherePossible, StreamingLists::Never] {
        on_a_paused_clock(async {
            let world = World::new().pods(&["a", "b"]);
            let (pods, log) = world.follow(Options::all().streaming_lists(streaming)).await;
            let lists = world.seen("list") + world.seen("streaming list");
            world.server.refuse_connections(true);
            world.server.break_watches();
            world.touch("a");
            world.delete("b");
            pass(30).await;
            world.server.refuse_connections(false);
            pass(61).await;
            assert_eq!(told(&log), ["updated a", "deleted b"]);
            assert_eq!(cached(&pods), world.truth());
            assert_eq!(world.seen("list") + world.seen("streaming list"), lists);
        });
    }
}
