//! `reflector_data_consistency_detector_test.go`, `consistencydetector`: the cache compared with the server. client-go
//! does so in its own tests only, and panics; here a program may ask for it, and differences are listed away.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kubeflect::api::Status;
use kubeflect::cache::Discipline;
use kubeflect::embedded::{Filter, Verb};
use kubeflect::object::StaticKind as _;
use kubeflect::reflector::StreamingLists;
use kubeflect::{Options, Reflector};

use crate::words::{World, cached, on_a_paused_clock, pass, settle};

fn audited() -> Options<Pod> {
    Options::all().audit(Duration::from_secs(60))
}

/// Audits that compared, that could not, and the objects that differed.
fn audits(pods: &Reflector<Pod>) -> (u64, u64, u64) {
    let audits = pods.status().audits;
    (audits.done, audits.skipped, audits.differences)
}

/// client-go: `reflector_data_consistency_detector_test`
#[test]
fn a_cache_is_what_the_server_has_at_its_version_however_it_was_filled_wl_13() {
    for discipline in [Discipline::InOrder, Discipline::InOrderAtomic, Discipline::PerObject] {
        for streaming in [StreamingLists::WherePossible, StreamingLists::Never] {
            on_a_paused_clock(async {
                let world = World::new().pods(&["a", "b", "c"]);
                let plain = audited().discipline(discipline).streaming_lists(streaming);
                let reduced = plain.clone().transform(|mut pod: Pod| {
                    pod.spec = None;
                    Ok(pod)
                });
                let reflectors =
                    [world.reflect_with(plain).await, world.reflect_with(reduced).await];
                let lists = || (world.seen("streaming list"), world.server.open_watches());
                settle().await;
                let before = lists();
                for _ in 0..5 {
                    world.touch("a");
                    pass(120).await;
                }
                for pods in &reflectors {
                    let (done, skipped, differences) = audits(pods);
                    assert!(done >= 4, "{done}");
                    assert_eq!((skipped, differences), (0, 0), "{discipline:?} {streaming:?}");
                }
                assert_eq!(lists(), before, "nothing had to be listed again");
            });
        }
    }
}

/// Differs: what was asked about an unknown version is left for the next time, not asked every second.
///
/// client-go: `consistencydetector`
#[test]
fn a_difference_is_found_and_mended_and_what_can_not_be_asked_is_skipped_wl_13() {
    on_a_paused_clock(async {
        let world = World::new().pods(&["a"]);
        let pods = world.reflect_with(audited()).await;
        pods.synced().await.unwrap();
        settle().await;
        let broken = Status { code: 500, reason: "InternalError".to_owned(), ..Status::default() };
        world.server.refuse(Filter::verb(Verb::List), broken, 1);
        pass(121).await;
        let (done, skipped, differences) = audits(&pods);
        assert_eq!((skipped, differences), (1, 0), "{done} done");

        world.server.lose_events(&Pod::static_kind(), 1);
        world.create("lost");
        world.touch("a");
        settle().await;
        assert_ne!(cached(&pods), world.truth());
        pass(125).await;
        assert_eq!(audits(&pods).2, 1);
        assert_eq!(
            pods.status().audits.last_found,
            ["default/lost is on the server but not cached"]
        );
        assert_eq!(cached(&pods), world.truth());
        let exact = world
            .server
            .requests()
            .into_iter()
            .filter(|request| request.parameter("resourceVersionMatch") == Some("Exact"));
        let (done, skipped, _) = audits(&pods);
        assert_eq!(exact.count() as u64, done + skipped, "at the version of the cache");
    });
}
