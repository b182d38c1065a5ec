//! After loss: what the reflector asks, and what its subscribers are told.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;
use kubeflect::Options;
use kubeflect::api::{ApiError, Status};
use kubeflect::embedded::{Filter, RawAnswer, Verb};
use kubeflect::object::StaticKind as _;
use kubeflect::reflector::{Freshness, NotSynced, Phase, StreamingLists};

use crate::support::{Recorder, World, cached, key, on_a_paused_clock, pass, settle, told_why};

fn status(code: u16, reason: &str) -> Status {
    Status { status: "Failure".to_owned(), reason: reason.to_owned(), code, ..Status::default() }
}

#[test]
fn a_cut_watch_goes_on_from_where_it_was() {
    on_a_paused_clock(async {
        let world = World::new().pods(&["a"]);
        let (_, log) = world.follow(Options::all()).await;
        for _ in 0..3 {
            world.server.cut_watches();
            world.touch("a");
            pass(60).await;
        }
        assert_eq!(told_why(&log), ["updated a (Watch)"; 3]);
        assert_eq!(
            (world.seen("list"), world.seen("streaming list")),
            (0, 1),
            "nothing was listed again"
        );
    });
}

#[test]
fn an_expired_watch_relists_and_tells_what_was_missed() {
    for streaming in [StreamingLists::WherePossible, StreamingLists::Never] {
        on_a_paused_clock(async {
            let world = World::new().pods(&["kept", "gone", "changed"]);
            let (pods, log) = world.follow(Options::all().streaming_lists(streaming)).await;
            pass(300).await;
            let [kept, changed] =
                ["kept", "changed"].map(|name| pods.store().get(&key(name)).unwrap());

            world.server.refuse_connections(true);
            world.server.break_watches();
            world.delete("gone");
            world.touch("changed");
            world.create("new");
            world.server.forget_history();
            world.server.refuse_connections(false);
            pass(60).await;
            let mut told = told_why(&log);
            told.sort();
            assert_eq!(
                told,
                ["added new (Relist)", "deleted gone (Relist)", "updated changed (Relist)"]
            );
            assert_eq!(cached(&pods), world.truth());
            assert!(log.lock().unwrap().violations.is_empty());
            let is_same = |before: &Arc<Pod>, name| {
                Arc::ptr_eq(before, &pods.store().get(&key(name)).unwrap())
            };
            assert!(is_same(&kept, "kept"), "what did not change is not read again");
            assert!(!is_same(&changed, "changed"));
        });
    }
}

#[test]
fn an_object_created_again_under_its_name_is_deleted_and_added() {
    on_a_paused_clock(async {
        let world = World::new().pods(&["a"]);
        let (_, log) = world.follow(Options::all()).await;
        world.server.break_watches();
        world.delete("a");
        world.create("a");
        world.server.forget_history();
        pass(60).await;
        assert_eq!(told_why(&log), ["deleted a (Relist)", "added a (Relist)"]);
    });
}

#[test]
fn an_expired_page_restarts_the_list_without_pages_pg_5() {
    on_a_paused_clock(async {
        let world = World::new().pods(&["a", "b", "c"]);
        let expired = Filter::verb(Verb::List);
        let options = Options::all().page_size(2).streaming_lists(StreamingLists::Never);
        // The second page is refused: the first request goes through.
        world.server.delay(expired.clone(), std::time::Duration::from_secs(1));
        let pods = world.reflect_with(options).await;
        tokio::time::sleep(std::time::Duration::from_millis(1500)).await;
        world.server.refuse(expired, status(410, "Expired"), 1);
        pods.synced().await.unwrap();
        let lists: Vec<_> = world
            .server
            .requests()
            .into_iter()
            .filter(|seen| seen.parameter("watch").is_none())
            .collect();
        let limits: Vec<Option<&str>> = lists.iter().map(|seen| seen.parameter("limit")).collect();
        assert_eq!(limits, [Some("2"), Some("2"), None]);
        assert_eq!(pods.store().len(), 3);
    });
}

#[test]
fn too_many_requests_keeps_the_position_and_waits_as_asked() {
    on_a_paused_clock(async {
        let world = World::new().pods(&["a"]);
        let pods = world.reflect().await;
        pods.synced().await.unwrap();
        let busy =
            RawAnswer::text(429, "Too many requests, please try again later.").retry_after(20);
        world.server.answer_with(Filter::verb(Verb::Watch), busy, 1);
        world.server.break_watches();
        world.touch("a");
        pass(15).await;
        assert_ne!(cached(&pods), world.truth(), "not before the server said so");
        pass(50).await;
        assert_eq!(cached(&pods), world.truth());
        assert_eq!((world.seen("list"), world.seen("streaming list")), (0, 1));
    });
}

#[test]
fn missing_rights_are_a_typed_reason_not_an_endless_wait() {
    on_a_paused_clock(async {
        let world = World::new();
        world.server.forbid(&Pod::static_kind(), Verb::List);
        world.server.forbid(&Pod::static_kind(), Verb::Watch);
        let pods = world.reflect().await;
        let error = pods.synced().await.unwrap_err();
        let NotSynced::NeedsHelp(condition) = error else { panic!("{error:?}") };
        assert!(matches!(condition.error, ApiError::Forbidden { .. }), "{condition:?}");
        assert!(condition.to_string().starts_with("can not list pods: not allowed"), "{condition}");

        world.server.permit(&Pod::static_kind(), Verb::List);
        world.server.permit(&Pod::static_kind(), Verb::Watch);
        pass(120).await;
        pods.synced().await.unwrap();
    });
}

#[test]
fn a_kind_that_is_not_served_yet_is_waited_for() {
    on_a_paused_clock(async {
        let world = World::new();
        let kind = kubeflect::Kind::new(
            "example.com",
            "v1",
            "Widget",
            "widgets",
            kubeflect::object::Scope::Namespaced,
        );
        let options = Options::<kubeflect::object::DynamicObject>::all();
        let widgets = world.runtime.reflect_kind(kind.clone(), options).await.unwrap();
        let error = widgets.synced().await.unwrap_err();
        let NotSynced::NeedsHelp(condition) = error else { panic!("{error:?}") };
        assert!(matches!(condition.error, ApiError::NotFound { .. }), "{condition:?}");
        world.server.register(kind);
        let widget = serde_json::json!({
            "apiVersion": "example.com/v1", "kind": "Widget", "metadata": { "name": "w", "namespace": "default" },
        });
        world.server.create(widget).unwrap();
        pass(120).await;
        assert_eq!(widgets.store().keys(), [key("w")]);
    });
}

#[test]
fn an_outage_is_backed_off_and_shown_as_stale() {
    on_a_paused_clock(async {
        let world = World::new().pods(&["a"]);
        let pods = world.reflect().await;
        pods.synced().await.unwrap();
        let before = world.server.requests().len();
        world.server.refuse_connections(true);
        world.server.break_watches();
        pass(3600).await;
        let status = pods.status();
        assert_eq!(status.phase, Phase::BackingOff);
        assert!(matches!(status.freshness, Freshness::Stale { .. }), "{:?}", status.freshness);
        world.server.refuse_connections(false);
        world.touch("a");
        pass(61).await;
        assert_eq!(cached(&pods), world.truth());
        assert_eq!(pods.status().freshness, Freshness::Fresh);
        assert!(world.server.requests().len() - before <= 3600 / 30 + 10);
    });
}

#[test]
fn what_can_not_be_read_is_quarantined_and_costs_no_other_object() {
    for streaming in [StreamingLists::WherePossible, StreamingLists::Never] {
        on_a_paused_clock(async {
            let world = World::new().pods(&["a", "bad", "c"]);
            let broken = r#"{"metadata":{"name":"bad","namespace":"default","resourceVersion":"900"},"spec":{"containers":7}}"#;
            world.server.corrupt(&Pod::static_kind(), &key("bad"), broken).unwrap();
            let pods = world.reflect_with(Options::all().streaming_lists(streaming)).await;
            pods.synced().await.unwrap();
            assert_eq!(pods.store().keys(), [key("a"), key("c")]);
            let quarantined = pods.status().quarantined;
            assert!(
                quarantined.objects[&key("bad")].contains("expected a sequence"),
                "{quarantined:?}"
            );

            world.touch("bad");
            settle().await;
            assert_eq!(pods.store().len(), 3);
            assert!(pods.status().quarantined.is_empty());
        });
    }
}

#[test]
fn events_that_are_none_of_ours_are_reported_and_stored_nowhere() {
    on_a_paused_clock(async {
        let world = World::new().pods(&["a"]);
        let pods = world.reflect().await;
        pods.synced().await.unwrap();
        settle().await;
        let kind = Pod::static_kind();
        let service = r#"{"type":"ADDED","object":{"apiVersion":"v1","kind":"Service","metadata":{"name":"s","namespace":"default","resourceVersion":"901"}}}"#;
        let nameless = r#"{"type":"ADDED","object":{"metadata":{"resourceVersion":"902"}}}"#;
        let novel = r#"{"type":"NOVEL","object":{"metadata":{"name":"n"}}}"#;
        for frame in [service, nameless, novel] {
            world.server.emit_raw_frame(&kind, frame.as_bytes());
        }
        settle().await;
        assert_eq!(pods.store().keys(), [key("a")]);
        let quarantined = pods.status().quarantined;
        assert!(
            quarantined.objects[&key("s")].contains("it is a Service of v1"),
            "{quarantined:?}"
        );
        assert!(quarantined.last_other.unwrap().contains("has no name"));
        assert_eq!(pods.status().phase, Phase::Watching);
    });
}

#[test]
fn garbage_in_a_watch_ends_it_and_loses_nothing() {
    on_a_paused_clock(async {
        let world = World::new().pods(&["a"]);
        let pods = world.reflect().await;
        pods.synced().await.unwrap();
        settle().await;
        world.server.emit_raw_frame(&Pod::static_kind(), b"<html>bad gateway</html>".as_slice());
        world.touch("a");
        pass(10).await;
        assert_eq!(cached(&pods), world.truth());
    });
}

#[test]
fn every_error_reaches_the_error_handler() {
    on_a_paused_clock(async {
        let world = World::new();
        let errors = Arc::new(std::sync::Mutex::new(Vec::new()));
        let seen = Arc::clone(&errors);
        world.server.refuse(Filter::everything(), status(503, "ServiceUnavailable"), 2);
        let pods = world
            .reflect_with(Options::all().on_error(move |condition| {
                seen.lock().unwrap().push(condition.to_string());
                panic!("an error handler may even panic");
            }))
            .await;
        pods.synced().await.unwrap();
        assert_eq!(errors.lock().unwrap().len(), 2);
    });
}

#[test]
fn a_deletion_is_not_lost_though_its_last_state_can_not_be_taken() {
    on_a_paused_clock(async {
        let world = World::new().pods(&["refused", "kept", "unreadable"]);
        let refuse_touched = |pod: Pod| match pod.metadata.annotations {
            Some(_) => Err(kubeflect::cache::TransformError("touched".to_owned())),
            None => Ok(pod),
        };
        let pods = world.reflect_with(Options::all().transform(refuse_touched)).await;
        let (recorder, log) = Recorder::start();
        pods.subscribe(recorder).await.unwrap();
        pods.synced().await.unwrap();
        world.touch("refused");
        settle().await;
        assert_eq!(pods.store().len(), 3, "its last good state stays");
        assert!(pods.status().quarantined.objects.contains_key(&key("refused")));
        world.delete("refused");
        let kind = Pod::static_kind();
        let unreadable = |event: &str, name: &str| {
            format!(
                r#"{{"type":"{event}","object":{{"metadata":{{"name":"{name}","namespace":"default","resourceVersion":"900"}},"spec":7}}}}"#
            )
        };
        world.server.emit_raw_frame(&kind, unreadable("DELETED", "unreadable"));
        // In one batch: a new state, and a deletion that can not be read.
        let brief = r#"{"type":"ADDED","object":{"metadata":{"name":"brief","namespace":"default","resourceVersion":"901"}}}"#;
        world.server.emit_raw_frame(&kind, format!("{brief}{}", unreadable("DELETED", "brief")));
        settle().await;
        assert_eq!(pods.store().keys(), [key("kept")]);
        assert!(pods.status().quarantined.is_empty());
        let log = log.lock().unwrap();
        assert_eq!((log.fold.len(), log.violations.len()), (1, 0), "{log:?}");
    });
}

#[test]
fn a_decoder_that_panics_costs_its_object_only() {
    struct Picky(Pod);
    impl kubeflect::Resource for Picky {
        fn key(&self) -> kubeflect::ObjectKey {
            self.0.key()
        }
        fn uid(&self) -> Option<&str> {
            kubeflect::Resource::uid(&self.0)
        }
        fn resource_version(&self) -> Option<&str> {
            kubeflect::Resource::resource_version(&self.0)
        }
        fn decode(
            json: &[u8],
            kind: &kubeflect::Kind,
        ) -> Result<Self, kubeflect::object::DecodeError> {
            let pod = Pod::decode(json, kind)?;
            assert_ne!(pod.metadata.name.as_deref(), Some("bad"), "not that one");
            Ok(Self(pod))
        }
    }
    on_a_paused_clock(async {
        let world = World::new().pods(&["a", "bad"]);
        let pods =
            world.runtime.reflect_kind::<Picky>(Pod::static_kind(), Options::all()).await.unwrap();
        pods.synced().await.unwrap();
        world.create("c");
        settle().await;
        assert_eq!(pods.store().keys(), [key("a"), key("c")]);
        assert_eq!(pods.status().quarantined.objects[&key("bad")], "decoding it panicked");
    });
}

#[test]
fn a_wait_no_server_can_mean_is_cut_to_five_minutes() {
    on_a_paused_clock(async {
        let world = World::new().pods(&["a"]);
        let absurd = RawAnswer::text(503, "come back later").retry_after(u64::MAX);
        world.server.answer_with(Filter::everything(), absurd, 1);
        let pods = world.reflect().await;
        pass(299).await;
        assert!(!pods.has_synced());
        pass(2).await;
        assert!(pods.has_synced());
    });
}

#[test]
fn a_server_that_never_ends_its_initial_events_is_listed() {
    on_a_paused_clock(async {
        let world = World::new().pods(&["a"]);
        world.server.hold_bookmarks(true);
        let pods = world.reflect().await;
        // Never silent for long, so that silence alone does not tell.
        for _ in 0..20 {
            world.touch("a");
            pass(10).await;
        }
        assert!(pods.has_synced());
        assert_eq!((world.seen("streaming list"), world.seen("list")), (1, 1));
        assert_eq!(cached(&pods), world.truth());
    });
}

#[test]
fn what_is_no_list_or_too_large_empties_nothing() {
    let large_item =
        format!(r#"{{"kind":"PodList","items":[{{"a":"{}"}}]}}"#, "x".repeat(17 << 20));
    let large_envelope =
        format!(r#"{{"kind":"PodList","a":"{}","items":[]}}"#, "x".repeat(2 << 20));
    for body in [
        r#"{"kind":"X","metadata":{"resourceVersion":"99"}}"#,
        r#"{"kind":"PodList","metadata":{"resourceVersion":"99"}}"#,
        r#"{"kind":"PodList","metadata":{"resourceVersion":"99"},"items":[]"#,
        r#"{"kind":"PodList","metadata":{"resourceVersion":"99"},"items":[]}{}"#,
        &large_item,
        &large_envelope,
    ] {
        on_a_paused_clock(async {
            let world = World::new().pods(&["a"]);
            let pods =
                world.reflect_with(Options::all().streaming_lists(StreamingLists::Never)).await;
            pods.synced().await.unwrap();
            world.server.answer_with(
                Filter::verb(Verb::List),
                RawAnswer::text(200, body.to_owned()),
                3,
            );
            world.server.break_watches();
            world.touch("a");
            world.server.forget_history();
            pass(20).await;
            assert_eq!(pods.store().len(), 1);
            pass(120).await;
            assert_eq!(cached(&pods), world.truth());
        });
    }
}

#[test]
fn an_object_that_grew_too_large_is_quarantined_and_costs_no_other() {
    for streaming in [StreamingLists::WherePossible, StreamingLists::Never] {
        on_a_paused_clock(async {
            let world = World::new().pods(&["a", "grows"]);
            let (pods, log) = world.follow(Options::all().streaming_lists(streaming)).await;
            let before = cached(&pods);
            let mut grown = crate::support::pod("grows");
            grown["spec"]["containers"][0]["args"] = serde_json::json!(["x".repeat(17 << 20)]);
            world.server.apply(grown).unwrap();
            world.touch("a");
            pass(120).await;
            assert_eq!(told_why(&log), ["updated a (Relist)"]);
            assert_eq!(cached(&pods)["default/grows"], before["default/grows"], "as it was last");
            let quarantined = pods.status().quarantined;
            let reason = &quarantined.objects[&key("grows")];
            assert!(reason.contains("larger than 16777216 bytes"), "{reason}");

            world.touch("a");
            settle().await;
            assert_eq!(told_why(&log), ["updated a (Watch)"], "the others flow");
            world.touch("grows");
            settle().await;
            assert_eq!(told_why(&log), ["updated grows (Watch)"], "and so does it when it shrinks");
            assert!(pods.status().quarantined.is_empty());
        });
    }
}
