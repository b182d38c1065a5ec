//! What a server may answer: faults 20 and 45 to 66 of `tests/faults.md`.

use bytes::Bytes;
use k8s_openapi::api::core::v1::{Namespace, Pod};
use kubeflect::api::{ApiError, Status};
use kubeflect::embedded::{Filter, RawAnswer, Verb};
use kubeflect::object::StaticKind as _;
use kubeflect::reflector::{Freshness, Phase, StreamingLists};
use kubeflect::{ObjectKey, Options};
use serde_json::json;

use crate::faults_stream::{lists, until, watches};
use crate::support::{World, cached, on_a_paused_clock, pass, pod, settle, told, told_why};

fn listed() -> Options<Pod> {
    Options::all().streaming_lists(StreamingLists::Never)
}

fn status(code: u16, reason: &str, message: &str) -> Status {
    let [status, reason, message] = ["Failure", reason, message].map(str::to_owned);
    Status { status, reason, message, code, ..Status::default() }
}

#[test]
fn a_page_of_a_proxy_instead_of_an_answer_empties_nothing() {
    on_a_paused_clock(async {
        let world = World::new().pods(&["a", "b"]);
        let (pods, log) = world.follow(listed()).await;
        let page = RawAnswer {
            content_type: "text/html".to_owned(),
            ..RawAnswer::text(200, "<html><body>please log in</body></html>")
        };
        world.server.answer_with(Filter::verb(Verb::Watch), page.clone(), 1);
        world.server.cut_watches();
        until(|| {
            matches!(
                pods.status().condition.map(|condition| condition.error),
                Some(ApiError::Malformed { .. })
            )
        })
        .await;
        pass(30).await;
        assert_eq!((pods.status().phase, lists(&world).len()), (Phase::Watching, 1));

        world.server.answer_with(Filter::verb(Verb::List), page, 2);
        world.server.break_watches();
        world.delete("b");
        world.server.forget_history();
        until(|| lists(&world).len() == 3).await;
        settle().await;
        assert_eq!((pods.store().len(), told(&log)), (2, vec![]), "two answers were pages");
        pass(120).await;
        assert_eq!(told_why(&log), ["deleted b (Relist)"]);
        assert_eq!(cached(&pods), world.truth());
    });
}

#[test]
fn a_watch_refused_with_410_is_followed_by_a_list_whatever_the_reason_is_called() {
    for reason in ["Expired", "Gone", ""] {
        on_a_paused_clock(async {
            let world = World::new().pods(&["kept", "gone"]);
            let (pods, log) = world.follow(listed()).await;
            world.server.refuse(Filter::verb(Verb::Watch), status(410, reason, ""), 1);
            world.server.cut_watches();
            world.delete("gone");
            pass(30).await;
            assert_eq!(told_why(&log), ["deleted gone (Relist)"], "{reason:?}");
            let versions: Vec<_> = lists(&world)
                .iter()
                .map(|list| list.parameter("resourceVersion").map(str::to_owned))
                .collect();
            assert_eq!(versions, [None, Some("3".to_owned())], "not older than what is known");
            assert_eq!(cached(&pods), world.truth());
        });
    }
}

#[test]
fn a_version_that_the_server_lost_is_not_asked_for_again_and_again() {
    on_a_paused_clock(async {
        let world = World::new().pods(&["a"]);
        let backup = world.server.resource_version();
        let (pods, _) = world.follow(listed()).await;
        world.create("b");
        world.create("c");
        settle().await;
        let lost = world.server.resource_version();
        world.server.restore(&backup).unwrap();
        pass(5).await;
        world.server.fail_watches(&Pod::static_kind(), status(410, "Expired", ""));
        pass(120).await;
        let asked = lists(&world)
            .iter()
            .filter(|list| list.parameter("resourceVersion") == Some(&lost))
            .count();
        assert!(asked <= 2, "asked {asked} times");
        assert_eq!(cached(&pods), world.truth());
    });
}

#[test]
fn an_error_told_three_times_at_one_place_is_followed_by_a_list() {
    on_a_paused_clock(async {
        let world = World::new().pods(&["a"]);
        let (pods, log) = world.follow(listed()).await;
        for listed in [1, 1, 2] {
            world.server.fail_watches(&Pod::static_kind(), status(500, "InternalError", "poison"));
            pass(50).await;
            assert_eq!(lists(&world).len(), listed);
        }
        assert_eq!((told(&log), pods.status().phase), (vec![], Phase::Watching));
    });
}

#[test]
fn an_object_the_server_dropped_as_unreadable_is_found_missing() {
    on_a_paused_clock(async {
        let world = World::new().pods(&["kept", "unreadable"]);
        let (pods, log) = world.follow(listed()).await;
        world.server.lose_events(&Pod::static_kind(), 1);
        world.delete("unreadable");
        settle().await;
        assert_eq!(told(&log), [""; 0], "no deletion is ever told");
        world.server.fail_watches(&Pod::static_kind(), status(500, "StorageReadError", "corrupt"));
        pass(30).await;
        assert_eq!(told_why(&log), ["deleted unreadable (Relist)"]);
        assert_eq!(cached(&pods), world.truth());
    });
}

#[test]
fn a_server_that_is_still_starting_is_waited_for_and_nothing_is_gone() {
    on_a_paused_clock(async {
        let world = World::new().pods(&["a"]);
        let (pods, log) = world.follow(listed()).await;
        let before = watches(&world).len();
        let message = "the request has been made before all known HTTP paths have been installed, please try again";
        let body = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": message, "reason": "ServiceUnavailable", "code": 503,
            "details": { "retryAfterSeconds": 5 },
        });
        let starting = RawAnswer {
            content_type: "application/json".to_owned(),
            ..RawAnswer::text(503, Bytes::from(body.to_string())).retry_after(5)
        };
        world.server.answer_with(Filter::everything(), starting, 3);
        world.server.cut_watches();
        pass(3).await;
        let error = pods.status().condition.map(|condition| condition.error).unwrap();
        assert!(matches!(error, ApiError::Unavailable { code: 503, .. }), "{error:?}");
        assert!(!error.needs_help(), "it passes by itself");
        pass(60).await;
        let asked: Vec<_> = watches(&world).split_off(before).iter().map(|seen| seen.at).collect();
        assert_eq!(asked.len(), 4, "three refusals, one watch");
        assert!(asked.windows(2).all(|pair| (pair[1] - pair[0]).as_secs() >= 5), "{asked:?}");
        assert_eq!((told(&log), lists(&world).len()), (vec![], 1));
        assert_eq!(pods.status().freshness, Freshness::Fresh);
    });
}

#[test]
fn credentials_that_are_never_accepted_again_keep_the_cache_and_are_tried_slowly() {
    on_a_paused_clock(async {
        let world = World::new().pods(&["a"]);
        let (pods, log) = world.follow(listed()).await;
        let refused = status(401, "Unauthorized", "Unauthorized");
        world.server.refuse(Filter::everything(), refused, usize::MAX);
        world.touch("a");
        settle().await;
        assert_eq!(told(&log), ["updated a"], "an open watch is left alone");
        let before = world.server.requests().len();
        world.server.cut_watches();
        pass(3_600).await;
        let error = pods.status().condition.map(|condition| condition.error).unwrap();
        assert!(matches!(error, ApiError::Unauthorized { .. }) && error.needs_help(), "{error:?}");
        assert!(matches!(pods.status().freshness, Freshness::Stale { .. }));
        let asked = world.server.requests().len() - before;
        assert!((60..=130).contains(&asked), "{asked} requests in an hour");
        world.touch("a");
        world.server.heal();
        pass(61).await;
        assert_eq!((told(&log), cached(&pods)), (vec!["updated a".to_owned()], world.truth()));
    });
}

#[test]
fn a_list_that_a_broken_webhook_prevents_keeps_the_cache() {
    on_a_paused_clock(async {
        let world = World::new().pods(&["a", "b"]);
        let (pods, log) = world.follow(listed()).await;
        let message = "conversion webhook for example.com/v1, Kind=Widget failed";
        let broken = status(500, "InternalError", message);
        world.server.refuse(Filter::verb(Verb::List), broken, usize::MAX);
        world.server.break_watches();
        world.delete("b");
        world.server.forget_history();
        pass(300).await;
        assert_eq!((pods.store().len(), told(&log)), (2, vec![]));
        let error = pods.status().condition.map(|condition| condition.error).unwrap().to_string();
        assert!(error.contains("conversion webhook"), "{error}");
        assert!(matches!(pods.status().freshness, Freshness::Stale { .. }));
        world.server.heal();
        pass(61).await;
        assert_eq!(told_why(&log), ["deleted b (Relist)"]);
    });
}

#[test]
fn who_may_watch_but_not_list_is_streamed_and_who_may_list_but_not_watch_is_told_why() {
    on_a_paused_clock(async {
        let world = World::new().pods(&["a"]);
        world.server.forbid(&Pod::static_kind(), Verb::List);
        let (pods, log) = world.follow(Options::all()).await;
        world.create("b");
        settle().await;
        assert_eq!((told(&log), lists(&world).len()), (vec!["added b".to_owned()], 0));
        assert!(pods.status().condition.is_none());

        world.server.permit(&Pod::static_kind(), Verb::List);
        world.server.forbid(&Pod::static_kind(), Verb::Watch);
        let (pods, _) = world.follow(Options::all().page_size(7)).await;
        pass(120).await;
        assert_eq!(cached(&pods), world.truth());
        let error = pods.status().condition.map(|condition| condition.error).unwrap();
        assert!(matches!(error, ApiError::Forbidden { .. }), "{error:?}");
        assert!(error.to_string().contains("cannot watch resource \"pods\""), "{error}");
        assert!(matches!(pods.status().freshness, Freshness::Stale { .. }));
    });
}

#[test]
fn a_namespace_that_is_deleted_leaves_an_empty_cache_that_is_good() {
    on_a_paused_clock(async {
        let world = World::new().pods(&["elsewhere"]);
        let namespace = || {
            let shop =
                json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "shop" } });
            world.server.create(shop).unwrap();
            for name in ["a", "b"] {
                let mut pod = pod(name);
                pod["metadata"]["namespace"] = "shop".into();
                world.server.create(pod).unwrap();
            }
        };
        namespace();
        let (pods, log) = world.follow(Options::all().namespace("shop")).await;
        let shop = ObjectKey::cluster_scoped("shop");
        world.server.delete(&Namespace::static_kind(), &shop).unwrap();
        settle().await;
        assert_eq!(told_why(&log), ["deleted shop/a (Watch)", "deleted shop/b (Watch)"]);
        assert_eq!((pods.store().len(), pods.status().phase), (0, Phase::Watching));
        assert_eq!(pods.status().freshness, Freshness::Fresh);
        namespace();
        settle().await;
        assert_eq!(told_why(&log), ["added shop/a (Watch)", "added shop/b (Watch)"]);
    });
}
