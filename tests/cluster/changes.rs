//! What happens after the first list, told as it happens.

use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube_core::metadata::PartialObjectMeta;
use kubeflect::Options;
use kubeflect::api::ApiError;
use kubeflect::client::{DeleteOptions, Patch};
use kubeflect::object::StaticKind as _;
use serde_json::json;

use crate::recorded::{Exchange, Recorded};
use crate::server::{Server, on_both_servers};
use crate::support::{Followed, config_map, eventually, pod, quick};
use crate::users::User;

on_both_servers! {
    a_subscriber_is_told_what_is_created_changed_and_deleted: Shared,
    objects_are_told_again_when_it_is_time: Shared,
    an_object_enters_and_leaves_with_its_labels: Shared,
    an_object_enters_and_leaves_with_its_fields: Shared,
    metadata_alone_is_reflected: Shared,
    a_write_of_an_old_state_is_refused_and_a_second_of_a_name_too: Shared,
    an_audit_in_several_pages_finds_a_true_cache_true: Shared,
    bookmarks_move_the_position_of_a_kind_that_does_not_change: Shared,
}

fn data(text: &str) -> Patch {
    Patch::Merge(json!({ "data": { "text": text } }))
}

async fn a_subscriber_is_told_what_is_created_changed_and_deleted(server: Server) {
    let pods = server.objects::<Pod>();
    let mut followed = server.follow::<Pod>(Options::all()).await;
    followed.expect(&["synced"]).await;

    let created = pods.create(&pod("a")).await.unwrap();
    assert_eq!(followed.next().await, "added a (Watch)");
    let change = Patch::Merge(json!({ "metadata": { "annotations": { "colour": "blue" } } }));
    let changed = pods.patch("a", &change).await.unwrap();
    assert_eq!(followed.next().await, "updated a (Watch)");
    assert_ne!(created.metadata.resource_version, changed.metadata.resource_version);
    assert_eq!(followed.cached()["a"], changed.metadata.resource_version.unwrap());
    pods.delete("a", &DeleteOptions::default()).await.unwrap();
    // On its way out first, with another deletion timestamp: a server may tell that as a change.
    let last = followed.last_of("a").await;
    assert_eq!(last, "deleted a (Watch)");
    assert!(followed.cached().is_empty());
    followed.stop().await;
}

/// The next event that is news.
async fn next_but_resyncs(followed: &mut Followed<ConfigMap>) -> String {
    loop {
        let event = followed.next().await;
        if !event.ends_with("(Resync)") {
            return event;
        }
    }
}

async fn objects_are_told_again_when_it_is_time(server: Server) {
    let maps = server.objects::<ConfigMap>();
    maps.create(&config_map("a")).await.unwrap();
    let mut followed = server.follow::<ConfigMap>(quick().resync(Duration::from_secs(5))).await;
    followed.expect(&["added a (InitialList)"]).await;
    followed.expect(&["synced"]).await;
    maps.patch("a", &data("changed")).await.unwrap();
    // It may be time before, too.
    assert_eq!(next_but_resyncs(&mut followed).await, "updated a (Watch)");
    assert_eq!(followed.next().await, "updated a (Resync)");
    maps.delete("a", &DeleteOptions::default()).await.unwrap();
    assert_eq!(next_but_resyncs(&mut followed).await, "deleted a (Watch)");
    followed.stop().await;
}

async fn an_object_enters_and_leaves_with_its_labels(server: Server) {
    let maps = server.objects::<ConfigMap>();
    maps.create(&config_map("a")).await.unwrap();
    let mut followed = server.follow::<ConfigMap>(Options::all().labels("tier=front")).await;
    followed.expect(&["synced"]).await;

    let label = |tier: &str| Patch::Merge(json!({ "metadata": { "labels": { "tier": tier } } }));
    maps.patch("a", &label("front")).await.unwrap();
    assert_eq!(followed.next().await, "added a (Watch)");
    let left = maps.patch("a", &label("back")).await.unwrap();
    assert_eq!(followed.next().await, "deleted a (Watch)");
    let version = left.metadata.resource_version.unwrap();
    assert_eq!(followed.position().to_string(), version, "the version at which it left counts");
    maps.patch("a", &label("front")).await.unwrap();
    assert_eq!(followed.next().await, "added a (Watch)");
    maps.delete("a", &DeleteOptions::default()).await.unwrap();
    assert_eq!(followed.next().await, "deleted a (Watch)");
    followed.stop().await;
}

async fn an_object_enters_and_leaves_with_its_fields(server: Server) {
    let pods = server.objects::<Pod>();
    pods.create(&pod("a")).await.unwrap();
    let options = Options::all().fields("status.phase=Running");
    let mut followed = server.follow::<Pod>(options).await;
    followed.expect(&["synced"]).await;

    let phase = |phase: &str| Patch::Merge(json!({ "status": { "phase": phase } }));
    pods.patch_status("a", &phase("Running")).await.unwrap();
    assert_eq!(followed.next().await, "added a (Watch)");
    let left = pods.patch_status("a", &phase("Failed")).await.unwrap();
    assert_eq!(followed.next().await, "deleted a (Watch)");
    let version = left.metadata.resource_version.unwrap();
    assert_eq!(followed.position().to_string(), version, "the version at which it left counts");
    followed.stop().await;
}

async fn metadata_alone_is_reflected(server: Server) {
    let maps = server.objects::<ConfigMap>();
    maps.create(&config_map("a")).await.unwrap();
    maps.patch("a", &data("large, or secret")).await.unwrap();
    let line = Recorded::new(server.connection(User::Admin));
    let (namespace, kind) = (&server.namespace, ConfigMap::static_kind());
    let options = quick().namespace(namespace);
    let mut followed =
        Followed::<PartialObjectMeta<ConfigMap>>::over(line, namespace, kind, options).await;
    followed.expect(&["added a (InitialList)"]).await;
    followed.expect(&["synced"]).await;
    maps.patch("a", &data("changed")).await.unwrap();
    assert_eq!(followed.next().await, "updated a (Watch)");
    let sent: Vec<String> = followed.exchanges().iter().map(Exchange::text).collect();
    assert!(!sent.concat().contains("secret"), "it was not even sent");
    followed.stop().await;
}

async fn a_write_of_an_old_state_is_refused_and_a_second_of_a_name_too(server: Server) {
    let maps = server.objects::<ConfigMap>();
    let old = maps.create(&config_map("a")).await.unwrap();
    maps.patch("a", &data("newer")).await.unwrap();
    let refused = maps.replace(&old).await.unwrap_err();
    assert!(matches!(refused, ApiError::Conflict { .. }), "{refused:?}");
    let refused = maps.create(&config_map("a")).await.unwrap_err();
    assert!(matches!(refused, ApiError::AlreadyExists { .. }), "{refused:?}");
    let missing = maps.get("none").await.unwrap_err();
    assert!(matches!(missing, ApiError::NotFound { .. }), "{missing:?}");
}

/// The first audit is after one to two minutes.
async fn an_audit_in_several_pages_finds_a_true_cache_true(server: Server) {
    let maps = server.objects::<ConfigMap>();
    for number in 0..600 {
        maps.create(&config_map(&format!("map-{number:03}"))).await.unwrap();
    }
    let followed = server.follow::<ConfigMap>(Options::all().audit(Duration::from_secs(60))).await;
    let audits = || followed.reflector.status().audits;
    let done = eventually(Duration::from_secs(150), || audits().done > 0).await;
    assert!(done && audits().differences == 0, "{}", followed.report());
    let exact = |exchange: &Exchange| exchange.parameter("resourceVersionMatch") == Some("Exact");
    assert!(followed.exchanges().iter().any(exact), "{}", followed.report());
    followed.stop().await;
}

async fn bookmarks_move_the_position_of_a_kind_that_does_not_change(server: Server) {
    let mut followed = server.follow::<Pod>(Options::all()).await;
    followed.expect(&["synced"]).await;
    let before = followed.position();
    server.objects::<ConfigMap>().create(&config_map("a")).await.unwrap();
    // The server sends one each minute.
    let moved = eventually(Duration::from_secs(100), || followed.position() > before).await;
    assert!(moved, "{}", followed.report());
    followed.expect_nothing_more();
    let told = followed.exchanges();
    assert_eq!(told.len(), 1, "nobody asked: {told:?}");
    assert!(told[0].text().matches(r#""type":"BOOKMARK""#).count() >= 2, "{told:?}");
    followed.stop().await;
}
