//! What happens after the first list, told as it happens.

use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kubeflect::Options;
use kubeflect::client::{DeleteOptions, Patch};
use serde_json::json;

use crate::control_plane::{ControlPlane, User};
use crate::recorded::Exchange;
use crate::support::{Followed, config_map, eventually, pod};

#[actix::test]
async fn a_subscriber_is_told_what_is_created_changed_and_deleted() {
    let plane = ControlPlane::start(&[]).await;
    let pods = plane.objects::<Pod>();
    let mut followed = Followed::<Pod>::start(plane.connection(User::Admin), Options::all()).await;
    followed.expect(&["synced"]).await;

    let created = pods.create(&pod("a")).await.unwrap();
    assert_eq!(followed.next().await, "added default/a (Watch)");
    let change = Patch::Merge(json!({ "metadata": { "annotations": { "colour": "blue" } } }));
    let changed = pods.patch("a", &change).await.unwrap();
    assert_eq!(followed.next().await, "updated default/a (Watch)");
    assert_ne!(created.metadata.resource_version, changed.metadata.resource_version);
    assert_eq!(followed.cached()["default/a"], changed.metadata.resource_version.unwrap());
    pods.delete("a", &DeleteOptions::default()).await.unwrap();
    // On its way out first, with another deletion timestamp: a server may tell that as a change.
    let last = followed.last_of("a").await;
    assert_eq!(last, "deleted default/a (Watch)");
    assert!(followed.cached().is_empty());
    followed.stop().await;
}

#[actix::test]
async fn an_object_enters_and_leaves_with_its_labels() {
    let plane = ControlPlane::start(&[]).await;
    let maps = plane.objects::<ConfigMap>();
    maps.create(&config_map("a")).await.unwrap();
    let options = Options::all().namespace("default").labels("tier=front");
    let mut followed = Followed::<ConfigMap>::start(plane.connection(User::Admin), options).await;
    followed.expect(&["synced"]).await;

    let label = |tier: &str| Patch::Merge(json!({ "metadata": { "labels": { "tier": tier } } }));
    maps.patch("a", &label("front")).await.unwrap();
    assert_eq!(followed.next().await, "added default/a (Watch)");
    let left = maps.patch("a", &label("back")).await.unwrap();
    assert_eq!(followed.next().await, "deleted default/a (Watch)");
    let version = left.metadata.resource_version.unwrap();
    assert_eq!(followed.position().to_string(), version, "the version at which it left counts");
    maps.patch("a", &label("front")).await.unwrap();
    assert_eq!(followed.next().await, "added default/a (Watch)");
    maps.delete("a", &DeleteOptions::default()).await.unwrap();
    assert_eq!(followed.next().await, "deleted default/a (Watch)");
    followed.stop().await;
}

/// The first audit is after one to two minutes.
#[actix::test]
async fn an_audit_in_several_pages_finds_a_true_cache_true() {
    let plane = ControlPlane::start(&[]).await;
    let maps = plane.objects::<ConfigMap>();
    for number in 0..600 {
        maps.create(&config_map(&format!("map-{number:03}"))).await.unwrap();
    }
    let options = Options::all().audit(Duration::from_secs(60));
    let followed = Followed::<ConfigMap>::start(plane.connection(User::Admin), options).await;
    let audits = || followed.reflector.status().audits;
    let done = eventually(Duration::from_secs(150), || audits().done > 0).await;
    assert!(done && audits().differences == 0, "{}", followed.report());
    let exact = |exchange: &Exchange| exchange.parameter("resourceVersionMatch") == Some("Exact");
    assert!(followed.exchanges().iter().any(exact), "{}", followed.report());
    followed.stop().await;
}

#[actix::test]
async fn bookmarks_move_the_position_of_a_kind_that_does_not_change() {
    let plane = ControlPlane::start(&[]).await;
    let maps = plane.objects::<ConfigMap>();
    let mut followed = Followed::<Pod>::start(plane.connection(User::Admin), Options::all()).await;
    followed.expect(&["synced"]).await;
    let before = followed.position();
    maps.create(&config_map("a")).await.unwrap();
    // The server sends one each minute.
    let moved = eventually(Duration::from_secs(100), || followed.position() > before).await;
    assert!(moved, "{}", followed.report());
    followed.expect_nothing_more();
    let told = followed.exchanges();
    assert_eq!(told.len(), 1, "nobody asked: {told:?}");
    assert!(told[0].text().matches(r#""type":"BOOKMARK""#).count() >= 2, "{told:?}");
    followed.stop().await;
}
