//! Servers that have too much to do, or want their clients elsewhere.

use std::time::Duration;

use actix_rt::task::JoinHandle;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::api::flowcontrol::v1::{FlowSchema, PriorityLevelConfiguration};
use kubeflect::client::{Patch, Request};
use kubeflect::embedded::{Filter, RawAnswer, Verb};
use kubeflect::object::StaticKind as _;
use serde_json::{Value, json};

use crate::access::grant;
use crate::clients::Informer;
use crate::contents;
use crate::leases::Lease;
use crate::questions::read;
use crate::server::{Make, Server, on_both_servers, unlimited, until};
use crate::support::{Followed, LONG, config_map, eventually, quick};
use crate::users::User;

on_both_servers! {
    a_server_that_has_too_much_to_do_is_left_alone_as_long_as_it_asks: Shared,
}

/// Who is refused. An administrator never is.
const CROWD: User = User::Token("crowd-token");

/// What keeps a server busy. It ends with the value.
struct Load(Option<JoinHandle<()>>);

impl Drop for Load {
    fn drop(&mut self) {
        self.0.iter().for_each(JoinHandle::abort);
    }
}

/// A level of the crowd's own. Others can not lend it their seats.
fn level(seats: u32) -> Value {
    json!({ "spec": { "type": "Limited", "limited": {
        "nominalConcurrencyShares": seats, "borrowingLimitPercent": 0,
        "limitResponse": { "type": "Reject" },
    } } })
}

/// Refuses what the crowd asks.
async fn overload(server: &Server) -> Load {
    if let Make::Embedded { server, .. } = &server.make {
        let answer = RawAnswer::text(429, "Too many requests, please try again later.\n");
        for verb in [Verb::List, Verb::Watch] {
            let filter = Filter::verb(verb).of(&ConfigMap::static_kind());
            server.answer_with(filter, answer.clone().retry_after(1), usize::MAX);
        }
        return Load(None);
    }
    let mut crowded = level(0);
    crowded["metadata"] = json!({ "name": "crowd" });
    let crowded = serde_json::from_value(crowded).unwrap();
    server.cluster_objects::<PriorityLevelConfiguration>().create(&crowded).await.unwrap();
    let schema = json!({
        "metadata": { "name": "crowd" },
        "spec": {
            "priorityLevelConfiguration": { "name": "crowd" }, "matchingPrecedence": 100,
            "rules": [{
                "subjects": [{ "kind": "User", "user": { "name": "crowd" } }],
                "resourceRules": [{
                    "verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "namespaces": ["*"],
                }],
            }],
        },
    });
    let schema = serde_json::from_value(schema).unwrap();
    server.cluster_objects::<FlowSchema>().create(&schema).await.unwrap();
    let load = Load(Some(actix_rt::spawn(wait_for_the_future(server))));
    let (crowd, path) = (unlimited(server.connection(CROWD)), path(server));
    until("the crowd is refused", async || {
        crowd.send(Request::get(&path)).await.unwrap().status == 429
    })
    .await;
    load
}

fn path(server: &Server) -> String {
    format!("/api/v1/namespaces/{}/configmaps", server.namespace)
}

/// Even where there is no seat, one request at a time is let in: one that takes three seconds, again and again.
fn wait_for_the_future(server: &Server) -> impl Future<Output = ()> + use<> {
    let (crowd, path) = (unlimited(server.connection(CROWD)), path(server));
    async move {
        loop {
            let query = vec![("resourceVersion", "999999999".to_owned())];
            crowd.send(Request { query, ..Request::get(&path) }).await.ok();
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

/// Has a little room again.
async fn relieve(server: &Server, load: Load) {
    drop(load);
    match &server.make {
        Make::Embedded { server, .. } => server.heal(),
        Make::Real(_) => {
            let levels = server.cluster_objects::<PriorityLevelConfiguration>();
            levels.patch("crowd", &Patch::Merge(level(1))).await.unwrap();
        }
    }
}

async fn a_server_that_has_too_much_to_do_is_left_alone_as_long_as_it_asks(server: Server) {
    server.objects::<ConfigMap>().create(&config_map("a")).await.unwrap();
    grant(&server, "crowd").await;
    let load = overload(&server).await;
    let mut crowd = Vec::new();
    for _ in 0..10 {
        crowd.push(server.follow_as::<ConfigMap>(CROWD, quick()).await);
    }
    let refused = |maps: &Followed<ConfigMap>| {
        maps.exchanges().iter().filter(|it| it.status == Some(429)).count()
    };
    // One or the other may slip in.
    let most = || crowd.iter().filter(|maps| refused(maps) > 2).count() > crowd.len() / 2;
    assert!(eventually(LONG, most).await, "they are refused, and ask again: {}", crowd[0].report());
    relieve(&server, load).await;
    for maps in &mut crowd {
        maps.expect(&["added a (InitialList)"]).await;
        maps.expect(&["synced"]).await;
    }
    server.objects::<ConfigMap>().create(&config_map("b")).await.unwrap();
    for mut maps in crowd {
        assert_eq!(maps.next().await, "added b (Watch)");
        let exchanges = maps.exchanges();
        for (refused, next) in exchanges.iter().zip(&exchanges[1..]) {
            if refused.status == Some(429) {
                let words = "Too many requests, please try again later.";
                assert_eq!(refused.text().trim_end(), words);
                let pause = Duration::from_secs(refused.retry_after.expect("it says how long"));
                let asked_again = next.asked.duration_since(refused.answered.unwrap());
                assert!(asked_again >= pause, "{asked_again:?} < {pause:?}: {}", maps.report());
            }
        }
        maps.stop().await;
    }
}

/// Who speaks HTTP/2, as client-go does, is sent elsewhere by chance, and comes back over another connection. Who speaks
/// HTTP/1.1, as we do, is not: the server does nothing at all.
#[actix::test]
async fn a_server_that_sends_clients_away_leaves_us_where_we_are() {
    let server = Server::of(Lease::alone(&["--goaway-chance=0.02"]).await).await;
    let mut map = config_map("a");
    map.metadata.labels = Some([("tier".to_owned(), "front".to_owned())].into());
    server.objects::<ConfigMap>().create(&map).await.unwrap();
    let mut maps = server.follow::<ConfigMap>(quick()).await;
    maps.expect(&["added a (InitialList)"]).await;
    maps.expect(&["synced"]).await;
    let before = server.link.connections();
    let client = unlimited(server.connection(User::Admin));
    // That none of so many would be sent away has a chance of 2e-9.
    for _ in 0..1000 {
        read(&client, Request::get("/version")).await;
    }
    assert_eq!(server.link.connections() - before, 1, "all went over one connection");

    let before = server.link.connections();
    let mut client_go = Informer::client_go(&server.kubeconfig(User::Admin)).await;
    client_go.synced().await;
    client_go.ask().await;
    let connections = server.link.connections() - before;
    assert!(connections > 1, "{connections}: client-go was sent away, and came back");

    map.metadata.name = Some("b".to_owned());
    server.objects::<ConfigMap>().create(&map).await.unwrap();
    assert_eq!(maps.next().await, "added b (Watch)");
    client_go.until(&contents::of_reflector(&maps.reflector)).await;
    let exchanges = maps.exchanges();
    assert_eq!(exchanges.len(), 1, "one watch, and no list: {exchanges:?}");
    maps.stop().await;
}
