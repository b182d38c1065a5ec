//! An API server out of reach, ended, and with less history than a watch would need.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kubeflect::Options;
use kubeflect::client::{DeleteOptions, Patch};
use kubeflect::reflector::StreamingLists;
use serde_json::json;

use crate::control_plane::{ControlPlane, User};
use crate::link::Link;
use crate::support::{Followed, LONG, config_map, eventually, quick};

/// A control plane with two objects, and a reflector that has them over a line that can be cut.
struct World {
    plane: ControlPlane,
    link: Link,
    maps: Followed<ConfigMap>,
}

impl World {
    async fn start(flags: &[&str], streaming: StreamingLists) -> Self {
        Self::start_with(flags, quick().streaming_lists(streaming)).await
    }

    async fn start_with(flags: &[&str], options: Options<ConfigMap>) -> Self {
        let plane = ControlPlane::start(flags).await;
        for name in ["a", "b"] {
            plane.objects::<ConfigMap>().create(&config_map(name)).await.unwrap();
        }
        let link = Link::to(plane.address()).await;
        let connection = plane.connection_through(link.port, User::Admin);
        let mut maps = Followed::start(connection, options.namespace("default")).await;
        maps.expect(&["added default/a (InitialList)", "added default/b (InitialList)"]).await;
        maps.expect(&["synced"]).await;
        maps.until_watching().await;
        Self { plane, link, maps }
    }

    async fn create(&self, name: &str) {
        self.plane.objects::<ConfigMap>().create(&config_map(name)).await.unwrap();
    }

    async fn delete(&self, name: &str) {
        let maps = self.plane.objects::<ConfigMap>();
        maps.delete(name, &DeleteOptions::default()).await.unwrap();
    }

    /// The server has objects of these names, and so has the cache, soon.
    async fn until_true(&self, names: &[&str], limit: Duration) {
        let mut truth = BTreeMap::new();
        for name in names {
            let map = self.plane.objects::<ConfigMap>().get(name).await.unwrap();
            truth.insert(format!("default/{name}"), map.metadata.resource_version.unwrap());
        }
        let came = eventually(limit, || self.maps.cached() == truth).await;
        assert!(came, "{:?} is not {truth:?}\n{}", self.maps.cached(), self.maps.report());
    }
}

#[actix::test]
async fn what_happened_while_the_line_was_cut_is_told_when_it_is_mended() {
    let mut world = World::start(&[], StreamingLists::WherePossible).await;
    world.link.cut();
    world.delete("a").await;
    world.create("c").await;
    world.link.mend();
    world.maps.expect(&["deleted default/a (Watch)", "added default/c (Watch)"]).await;
    world.until_true(&["b", "c"], LONG).await;
    let lists = world.maps.exchanges().iter().filter(|it| it.is_streaming_list()).count();
    assert_eq!(lists, 1, "the watch went on where it was: {}", world.maps.report());
    world.maps.stop().await;
}

#[actix::test]
async fn a_server_that_forgot_the_position_in_a_restart_is_listed_again() {
    for streaming in [StreamingLists::WherePossible, StreamingLists::Never] {
        let mut world = World::start(&[], streaming).await;
        world.link.cut();
        world.delete("a").await;
        world.create("c").await;
        world.plane.api_server.stop().await;
        world.plane.start_api_server().await;
        world.link.mend();
        world.maps.expect(&["deleted default/a (Relist)", "added default/c (Relist)"]).await;
        world.until_true(&["b", "c"], LONG).await;
        let expired = |exchange: &crate::recorded::Exchange| {
            exchange.is_watch() && exchange.text().contains(r#""code":410"#)
        };
        assert!(world.maps.exchanges().iter().any(expired), "{}", world.maps.report());
        world.maps.stop().await;
    }
}

/// A server begins with the version of the whole storage, which is later than any position but the newest: after a
/// restart it has almost always forgotten where a watch was, even if nothing of its kind happened.
#[actix::test]
async fn a_server_that_ended_is_watched_again() {
    let mut world = World::start(&[], StreamingLists::WherePossible).await;
    world.plane.api_server.kill().await;
    world.maps.until_condition().await;
    world.plane.start_api_server().await;
    world.maps.until_recovered().await;
    world.create("c").await;
    assert_eq!(world.maps.next().await, "added default/c (Watch)", "nothing else is told");

    world.plane.api_server.stop().await;
    world.maps.until_condition().await;
    world.plane.start_api_server().await;
    world.maps.until_recovered().await;
    world.delete("a").await;
    assert_eq!(world.maps.next().await, "deleted default/a (Watch)", "nothing else is told");
    world.until_true(&["b", "c"], LONG).await;
    world.maps.stop().await;
}

#[actix::test]
async fn a_storage_that_was_killed_comes_back_without_a_gap() {
    let mut world = World::start(&[], StreamingLists::WherePossible).await;
    world.plane.etcd.kill().await;
    world.plane.etcd.start_again();
    world.plane.ready().await;
    world.create("c").await;
    assert!(world.maps.next().await.starts_with("added default/c"), "{}", world.maps.report());
    world.until_true(&["a", "b", "c"], LONG).await;
    world.maps.stop().await;
}

#[actix::test]
async fn a_compacted_history_is_listed_again() {
    for streaming in [StreamingLists::WherePossible, StreamingLists::Never] {
        // Without a cache of its own the server has only the history of etcd.
        let mut world = World::start(&["--watch-cache=false"], streaming).await;
        world.link.cut();
        world.delete("a").await;
        world.create("c").await;
        world.plane.compact().await;
        world.link.mend();
        world.maps.expect(&["deleted default/a (Relist)", "added default/c (Relist)"]).await;
        world.until_true(&["b", "c"], LONG).await;
        world.create("d").await;
        assert_eq!(world.maps.next().await, "added default/d (Watch)");
        world.maps.stop().await;
    }
}

/// The server is asked how far it has come when it is back, and is far behind.
#[actix::test]
async fn a_storage_restored_from_a_backup_is_believed() {
    let mut world = World::start(&[], StreamingLists::WherePossible).await;
    let backup = world.plane.back_up().await;
    world.delete("a").await;
    world.create("c").await;
    // A server that starts writes for itself: leave it no way to catch up meanwhile.
    for round in 0..300 {
        let change = Patch::Merge(json!({ "data": { "round": round.to_string() } }));
        world.plane.objects::<ConfigMap>().patch("c", &change).await.unwrap();
    }
    world.until_true(&["b", "c"], LONG).await;
    world.maps.forget_events();
    let position = world.maps.position();
    world.plane.restore(&backup).await;
    let changes = ["added default/a (Rewind)", "deleted default/c (Rewind)"];
    // The same version may be of another state.
    world.maps.expect(&[changes[0], changes[1], "updated default/b (Rewind)"]).await;
    assert!(world.maps.position() < position, "versions went back: {}", world.maps.report());
    world.until_true(&["a", "b"], LONG).await;
    assert_eq!(world.maps.reflector.status().oddities.rewinds, 1);
    world.create("f").await;
    assert_eq!(world.maps.next().await, "added default/f (Watch)");
    world.maps.stop().await;
}

/// A restored server soon has newer versions than it had before. Then nothing it says shows that its history is another
/// one: only comparing everything does.
#[actix::test]
async fn a_restored_storage_that_has_overtaken_the_position_is_found_by_an_audit() {
    let audit = Duration::from_secs(60);
    let options = quick().audit(audit);
    let mut world = World::start_with(&[], options).await;
    let backup = world.plane.back_up().await;
    world.delete("a").await;
    world.create("c").await;
    world.until_true(&["b", "c"], LONG).await;
    world.plane.restore(&backup).await;
    world.until_true(&["a", "b"], audit * 3).await;
    world.maps.stop().await;
}
