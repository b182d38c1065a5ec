//! A server out of reach, ended, and with less history than a watch would need.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kubeflect::Options;
use kubeflect::client::{DeleteOptions, Patch, Request};
use kubeflect::reflector::StreamingLists;
use serde_json::json;

use crate::recorded::Exchange;
use crate::server::{Make, Server, Setup, on_both_servers, until};
use crate::support::{Followed, LONG, config_map, eventually, quick};

on_both_servers! {
    what_happened_while_the_line_was_cut_is_told_when_it_is_mended: Shared,
    what_was_deleted_and_made_again_out_of_sight_is_another_object: Shared,
    a_server_that_forgot_the_position_in_a_restart_is_listed_again: Alone,
    a_server_that_ended_is_watched_again: Alone,
    what_was_written_just_before_the_server_ended_is_told_once: Alone,
    a_compacted_history_is_listed_again: WithoutWatchCache,
    a_history_that_is_overrun_is_listed_again: SmallHistory,
    a_storage_restored_from_a_backup_is_believed: Alone,
    a_restored_storage_that_has_overtaken_the_position_is_found_by_an_audit: Alone,
}

const BOTH_WAYS: [StreamingLists; 2] = [StreamingLists::WherePossible, StreamingLists::Never];

/// A server with two objects, and a reflector that has them over a line that can be cut.
struct World {
    server: Server,
    maps: Followed<ConfigMap>,
}

impl World {
    async fn start(server: Server, options: Options<ConfigMap>) -> Self {
        for name in ["a", "b"] {
            server.objects::<ConfigMap>().create(&config_map(name)).await.unwrap();
        }
        let mut maps = server.follow(options).await;
        maps.expect(&["added a (InitialList)", "added b (InitialList)"]).await;
        maps.expect(&["synced"]).await;
        maps.until_watching().await;
        Self { server, maps }
    }

    /// Ends the reflector, and makes all as it was at the beginning.
    async fn end(self) -> Server {
        let names: Vec<String> = self.maps.cached().into_keys().collect();
        for name in names {
            self.delete(&name).await;
        }
        self.maps.stop().await;
        self.server
    }

    async fn create(&self, name: &str) {
        self.server.objects::<ConfigMap>().create(&config_map(name)).await.unwrap();
    }

    async fn delete(&self, name: &str) {
        let maps = self.server.objects::<ConfigMap>();
        maps.delete(name, &DeleteOptions::default()).await.unwrap();
    }

    async fn change(&self, name: &str, times: usize) {
        for round in 0..times {
            let change = Patch::Merge(json!({ "data": { "round": round.to_string() } }));
            self.server.objects::<ConfigMap>().patch(name, &change).await.unwrap();
        }
    }

    /// The server has objects of these names, and so has the cache, soon.
    async fn until_true(&self, names: &[&str], limit: Duration) {
        let mut truth = BTreeMap::new();
        for name in names {
            let map = self.server.objects::<ConfigMap>().get(name).await.unwrap();
            truth.insert((*name).to_owned(), map.metadata.resource_version.unwrap());
        }
        let came = eventually(limit, || self.maps.cached() == truth).await;
        assert!(came, "{:?} is not {truth:?}\n{}", self.maps.cached(), self.maps.report());
    }
}

async fn what_happened_while_the_line_was_cut_is_told_when_it_is_mended(server: Server) {
    let mut world = World::start(server, quick()).await;
    world.server.link.cut();
    world.delete("a").await;
    world.create("c").await;
    world.server.link.mend();
    world.maps.expect(&["deleted a (Watch)", "added c (Watch)"]).await;
    world.until_true(&["b", "c"], LONG).await;
    let lists = world.maps.exchanges().iter().filter(|it| it.lists_everything()).count();
    assert_eq!(lists, 1, "the watch went on where it was: {}", world.maps.report());
    world.maps.stop().await;
}

async fn what_was_deleted_and_made_again_out_of_sight_is_another_object(mut server: Server) {
    for streaming in BOTH_WAYS {
        let mut world = World::start(server, quick().streaming_lists(streaming)).await;
        world.server.link.cut();
        world.delete("a").await;
        world.create("a").await;
        world.server.link.mend();
        assert_eq!(world.maps.next().await, "deleted a (Watch)");
        assert_eq!(world.maps.next().await, "added a (Watch)");
        world.until_true(&["a", "b"], LONG).await;
        server = world.end().await;
    }
}

async fn a_server_that_forgot_the_position_in_a_restart_is_listed_again(mut server: Server) {
    for streaming in BOTH_WAYS {
        let mut world = World::start(server, quick().streaming_lists(streaming)).await;
        world.server.link.cut();
        world.delete("a").await;
        world.create("c").await;
        world.server.stop().await;
        world.server.start().await;
        world.server.link.mend();
        world.maps.expect(&["deleted a (Relist)", "added c (Relist)"]).await;
        world.until_true(&["b", "c"], LONG).await;
        let expired = world.maps.exchanges().iter().any(|it| it.is_watch() && it.is_expired());
        assert!(expired, "{}", world.maps.report());
        server = world.end().await;
    }
}

/// A real server begins with the version of the whole storage, which is later than any position but the newest: after a
/// restart it has almost always forgotten where a watch was, even if nothing of its kind happened. It says so in a watch
/// that has begun: what is created meanwhile is told by that watch or by the list after it.
async fn a_server_that_ended_is_watched_again(server: Server) {
    let mut world = World::start(server, quick()).await;
    world.server.kill().await;
    world.maps.until_condition().await;
    world.server.start().await;
    world.maps.until_recovered().await;
    world.create("c").await;
    assert_eq!(world.maps.next_change().await, "added c", "nothing else is told");

    world.server.stop().await;
    world.maps.until_condition().await;
    world.server.start().await;
    world.maps.until_recovered().await;
    world.delete("a").await;
    assert_eq!(world.maps.next_change().await, "deleted a", "nothing else is told");
    world.until_true(&["b", "c"], LONG).await;
    world.maps.stop().await;
}

/// By the watch that ends, or by the list after it.
async fn what_was_written_just_before_the_server_ended_is_told_once(server: Server) {
    let mut world = World::start(server, quick()).await;
    world.create("c").await;
    world.delete("a").await;
    world.server.stop().await;
    world.server.start().await;
    let mut told = [world.maps.next_change().await, world.maps.next_change().await];
    told.sort();
    assert_eq!(told, ["added c", "deleted a"]);
    world.maps.until_recovered().await;
    world.until_true(&["b", "c"], LONG).await;
    world.create("d").await;
    assert_eq!(world.maps.next_change().await, "added d", "nothing else is told");
    world.maps.stop().await;
}

async fn a_compacted_history_is_listed_again(mut server: Server) {
    for streaming in BOTH_WAYS {
        let mut world = World::start(server, quick().streaming_lists(streaming)).await;
        world.server.link.cut();
        world.delete("a").await;
        world.delete("b").await;
        world.create("b").await;
        world.create("c").await;
        world.server.compact().await;
        world.server.link.mend();
        let mut told = Vec::new();
        for _ in 0..4 {
            told.push(world.maps.next().await);
        }
        let of_b: Vec<&String> = told.iter().filter(|event| event.contains(" b ")).collect();
        assert_eq!(of_b, ["deleted b (Relist)", "added b (Relist)"], "it is another object");
        told.sort();
        let others = ["added c (Relist)", "deleted a (Relist)"];
        assert_eq!(told, ["added b (Relist)", others[0], others[1], "deleted b (Relist)"]);
        world.until_true(&["b", "c"], LONG).await;
        world.create("d").await;
        assert_eq!(world.maps.next().await, "added d (Watch)");
        server = world.end().await;
    }
}

/// Nobody tells the server to forget.
async fn a_history_that_is_overrun_is_listed_again(mut server: Server) {
    for streaming in BOTH_WAYS {
        let mut world = World::start(server, quick().streaming_lists(streaming)).await;
        let position = world.maps.position().to_string();
        world.server.link.cut();
        world.delete("a").await;
        world.create("c").await;
        world.change("c", 50).await;
        until("the position is forgotten", async || {
            let version = ("resourceVersion", position.clone());
            let query = vec![version, ("resourceVersionMatch", "Exact".to_owned())];
            let path = format!("/api/v1/namespaces/{}/configmaps", world.server.namespace);
            let past = Request { query, ..Request::get(path) };
            world.server.admin.send(past).await.unwrap().status == 410
        })
        .await;
        world.server.link.mend();
        world.maps.expect(&["deleted a (Relist)", "added c (Relist)"]).await;
        world.until_true(&["b", "c"], LONG).await;
        world.create("d").await;
        assert_eq!(world.maps.next().await, "added d (Watch)");
        let exchanges = world.maps.exchanges();
        let expired = exchanges.iter().filter(|it| it.is_expired()).count();
        let lists = exchanges.iter().filter(|it| it.lists_everything() && it.succeeded()).count();
        assert_eq!((expired, lists), (1, 2), "{}", world.maps.report());
        server = world.end().await;
    }
}

/// The server is asked how far it has come when it is back, and is far behind.
async fn a_storage_restored_from_a_backup_is_believed(server: Server) {
    let mut world = World::start(server, quick()).await;
    let backup = world.server.back_up().await;
    world.delete("a").await;
    world.create("c").await;
    // A real server that starts writes for itself: leave it no way to catch up meanwhile.
    world.change("c", 300).await;
    world.create("d").await;
    world.until_true(&["b", "c", "d"], LONG).await;
    while world.maps.next().await != "added d (Watch)" {}
    let position = world.maps.position();
    world.server.restore(&backup).await;
    // The same version may be of another state: also of b.
    let changes = ["added a (Rewind)", "deleted c (Rewind)", "deleted d (Rewind)"];
    world.maps.expect(&[changes[0], changes[1], changes[2], "updated b (Rewind)"]).await;
    world.maps.until("versions that went back", |maps| maps.position() < position).await;
    world.until_true(&["a", "b"], LONG).await;
    assert_eq!(world.maps.reflector.status().oddities.rewinds, 1);
    world.create("f").await;
    assert_eq!(world.maps.next().await, "added f (Watch)");
    world.maps.stop().await;
}

/// A restored server soon has newer versions than it had before. Then nothing it says shows that its history is another
/// one: only comparing everything does.
async fn a_restored_storage_that_has_overtaken_the_position_is_found_by_an_audit(server: Server) {
    let audit = Duration::from_secs(60);
    let mut world = World::start(server, quick().audit(audit)).await;
    let backup = world.server.back_up().await;
    world.delete("a").await;
    world.create("c").await;
    // A real server that starts writes for itself, and knows nothing of what was before: the position is to come later.
    world.change("c", 300).await;
    world.until_true(&["b", "c"], LONG).await;
    let position = world.maps.position();
    world.server.link.cut();
    world.server.restore(&backup).await;
    world.change("b", 500).await;
    let now = world.server.objects::<ConfigMap>().get("b").await.unwrap();
    let now: u64 = now.metadata.resource_version.unwrap().parse().unwrap();
    assert!(now > position, "{now} has overtaken {position}");
    world.server.link.mend();
    world.until_true(&["a", "b"], audit * 3).await;
    let status = world.maps.reflector.status();
    let found = (status.audits.differences, status.oddities.rewinds);
    assert_eq!(found, (2, 0), "a was missed, c was believed in: {}", world.maps.report());
    let expired = world.maps.exchanges().iter().any(Exchange::is_expired);
    assert!(!expired, "the server did not say so: {}", world.maps.report());
    world.maps.stop().await;
}

#[actix::test]
async fn a_storage_that_was_killed_comes_back_without_a_gap() {
    let mut world = World::start(Server::real(Setup::Alone).await, quick()).await;
    let Make::Real(lease) = &mut world.server.make else { unreachable!("it was asked for") };
    lease.mine().restart_etcd().await;
    world.create("c").await;
    assert_eq!(world.maps.next_change().await, "added c", "{}", world.maps.report());
    world.until_true(&["a", "b", "c"], LONG).await;
    world.maps.stop().await;
}
