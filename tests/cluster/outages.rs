//! An API server out of reach, ended, and with less history than a watch would need.

use k8s_openapi::api::core::v1::ConfigMap;
use kubeflect::client::DeleteOptions;
use kubeflect::reflector::StreamingLists;

use crate::control_plane::{ControlPlane, User};
use crate::link::Link;
use crate::support::{Followed, config_map, quick};

/// A control plane with two objects, and a reflector that has them over a line that can be cut.
struct World {
    plane: ControlPlane,
    link: Link,
    maps: Followed<ConfigMap>,
}

impl World {
    async fn start(flags: &[&str], streaming: StreamingLists) -> Self {
        let plane = ControlPlane::start(flags).await;
        for name in ["a", "b"] {
            plane.objects::<ConfigMap>().create(&config_map(name)).await.unwrap();
        }
        let link = Link::to(plane.address()).await;
        let connection = plane.connection_through(link.port, User::Admin);
        let options = quick().namespace("default").streaming_lists(streaming);
        let mut maps = Followed::start(connection, options).await;
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

    /// The cache is what the server has.
    async fn assert_true(&self, names: &[&str]) {
        let mut truth = std::collections::BTreeMap::new();
        for name in names {
            let map = self.plane.objects::<ConfigMap>().get(name).await.unwrap();
            truth.insert(format!("default/{name}"), map.metadata.resource_version.unwrap());
        }
        assert_eq!(self.maps.cached(), truth, "{}", self.maps.report());
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
    world.assert_true(&["b", "c"]).await;
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
        world.assert_true(&["b", "c"]).await;
        let expired = |exchange: &crate::recorded::Exchange| {
            exchange.is_watch() && exchange.text().contains(r#""code":410"#)
        };
        assert!(world.maps.exchanges().iter().any(expired), "{}", world.maps.report());
        world.maps.stop().await;
    }
}

#[actix::test]
async fn a_server_that_was_killed_is_watched_again() {
    let mut world = World::start(&[], StreamingLists::WherePossible).await;
    world.plane.api_server.kill().await;
    world.maps.until_condition().await;
    world.plane.start_api_server().await;
    world.create("c").await;
    assert_eq!(world.maps.next().await, "added default/c (Watch)");
    world.plane.api_server.kill().await;
    world.plane.start_api_server().await;
    world.delete("a").await;
    assert_eq!(world.maps.next().await, "deleted default/a (Watch)");
    world.assert_true(&["b", "c"]).await;
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
    world.assert_true(&["a", "b", "c"]).await;
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
        world.assert_true(&["b", "c"]).await;
        world.create("d").await;
        assert_eq!(world.maps.next().await, "added default/d (Watch)");
        world.maps.stop().await;
    }
}

#[actix::test]
async fn a_storage_restored_from_a_backup_is_believed() {
    let mut world = World::start(&[], StreamingLists::WherePossible).await;
    let backup = world.plane.back_up().await;
    world.delete("a").await;
    for name in ["c", "d", "e"] {
        world.create(name).await;
    }
    for event in ["deleted default/a", "added default/c", "added default/d", "added default/e"] {
        assert_eq!(world.maps.next().await, format!("{event} (Watch)"));
    }
    let position = world.maps.position();
    world.plane.restore(&backup).await;
    world
        .maps
        .expect(&[
            "added default/a (Rewind)",
            "deleted default/c (Rewind)",
            "deleted default/d (Rewind)",
            "deleted default/e (Rewind)",
        ])
        .await;
    assert!(world.maps.position() < position, "versions went back: {}", world.maps.report());
    world.assert_true(&["a", "b"]).await;
    assert_eq!(world.maps.reflector.status().oddities.rewinds, 1);
    world.create("f").await;
    assert_eq!(world.maps.next().await, "added default/f (Watch)");
    world.maps.stop().await;
}
