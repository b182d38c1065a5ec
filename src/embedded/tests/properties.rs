//! Any course of events, seen in any way, is the same course of events.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{PODS, get, key, pod, pods, watch};
use crate::embedded::ApiServer;

/// Name and version of each object.
type Seen = BTreeMap<String, String>;

fn now(server: &ApiServer) -> Seen {
    let objects = server.objects(&pods());
    objects.into_iter().map(|(key, (_, version))| (key.name().to_owned(), version)).collect()
}

fn see(object: &Value) -> (String, String) {
    let text = |name: &str| object["metadata"][name].as_str().unwrap().to_owned();
    (text("name"), text("resourceVersion"))
}

/// Creates, changes and deletes pods at random, and remembers how it looked after each step.
fn live(server: &ApiServer, random: &mut fastrand::Rng) -> BTreeMap<u64, Seen> {
    let mut past = BTreeMap::new();
    for step in 0..60 {
        let name = format!("p{}", random.u32(..6));
        if random.u32(..3) == 0 {
            drop(server.delete(&pods(), &key(&name)));
        } else {
            server.apply(pod(&name, json!({ "step": step.to_string() }))).unwrap();
        }
        past.insert(server.resource_version().parse().unwrap(), now(server));
    }
    past
}

#[tokio::test(start_paused = true)]
async fn every_past_version_can_be_listed_in_pages_of_any_size() {
    for seed in 0..10 {
        let mut random = fastrand::Rng::with_seed(seed);
        let server = ApiServer::seeded(seed);
        for (revision, expected) in live(&server, &mut random) {
            let (version, limit) = (revision.to_string(), random.u32(1..4).to_string());
            let mut query = vec![("resourceVersion", version), ("limit", limit.clone())];
            let mut listed = Seen::new();
            loop {
                let borrowed: Vec<_> =
                    query.iter().map(|(name, value)| (*name, value.as_str())).collect();
                let (_, page) = get(&server, PODS, &borrowed).await;
                assert_eq!(page["metadata"]["resourceVersion"], revision.to_string());
                listed.extend(page["items"].as_array().unwrap().iter().map(see));
                let Some(token) = page["metadata"]["continue"].as_str() else { break };
                query = vec![("continue", token.to_owned()), ("limit", limit.clone())];
            }
            assert_eq!(listed, expected, "seed {seed}, revision {revision}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_watch_from_any_past_version_leads_to_now() {
    for seed in 0..10 {
        let server = ApiServer::seeded(seed);
        for (revision, mut seen) in live(&server, &mut fastrand::Rng::with_seed(seed)) {
            let mut reader =
                watch(&server, PODS, &[("resourceVersion", &revision.to_string())]).await;
            server.cut_watches();
            let mut last = revision;
            while let Some(event) = reader.event().await {
                let (name, version) = see(&event["object"]);
                let previous = std::mem::replace(&mut last, version.parse().unwrap());
                assert!(previous < last, "events come in order, and once");
                let known = match event["type"].as_str().unwrap() {
                    "DELETED" => seen.remove(&name).is_some(),
                    "ADDED" => seen.insert(name, version).is_none(),
                    _ => seen.insert(name, version).is_some(),
                };
                assert!(known, "{event}");
            }
            assert_eq!(seen, now(&server), "seed {seed}, revision {revision}");
        }
    }
}
