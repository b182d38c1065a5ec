//! Informers of three makes side by side on a real server that is changed, cut off, restarted and compacted.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{env, fs};

use k8s_openapi::api::core::v1::ConfigMap;
use kubeflect::client::{DeleteOptions, Patch, Request};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::clients::{Contents, Informer, LABELS, contents_of, difference};
use crate::leases::Lease;
use crate::questions::read;
use crate::server::Server;
use crate::support::{Followed, LONG, eventually, quick};
use crate::users::User;

/// How long the server is changed between two incidents.
const CHURN: Duration = Duration::from_secs(20);

struct World {
    server: Server,
    audit: PathBuf,
    ours: Followed<ConfigMap>,
    others: [Informer; 2],
    rng: fastrand::Rng,
    changes: usize,
}

impl World {
    async fn start(flags: &[&str]) -> Self {
        let audit = env::temp_dir().join(format!("kubeflect-audit-{:x}", fastrand::u64(..)));
        let mut audited = audit_flags(&audit);
        audited.extend(flags.iter().map(|flag| (*flag).to_owned()));
        let audited: Vec<&str> = audited.iter().map(String::as_str).collect();
        let server = Server::of(Lease::alone(&audited).await).await;
        let kubeconfig = server.kubeconfig(User::Admin);
        let others = [Informer::client_go(&kubeconfig).await, Informer::kube_rs(&kubeconfig).await];
        let ours = Followed::start(server.connection(User::Admin), quick().labels(LABELS)).await;
        let rng = fastrand::Rng::with_seed(1);
        Self { server, audit, ours, others, rng, changes: 0 }
    }

    async fn churn(&mut self, duration: Duration) {
        let deadline = Instant::now() + duration;
        while Instant::now() < deadline {
            self.change().await;
        }
    }

    /// Creates, changes or deletes an object, in or out of the selection.
    async fn change(&mut self) {
        let maps = self.server.objects::<ConfigMap>();
        let name = format!("map-{}", self.rng.usize(..60));
        let tier = ["front", "front", "front", "back"][self.rng.usize(..4)];
        let labels = json!({ "metadata": { "name": name, "labels": { "tier": tier } } });
        // What is there can not be created, and what is not there can not be changed: no matter.
        match self.rng.usize(..5) {
            0 => drop(maps.delete(&name, &DeleteOptions::default()).await),
            1 | 2 => drop(maps.create(&serde_json::from_value(labels).unwrap()).await),
            _ => {
                let mut change = labels;
                change["data"] = json!({ "value": self.rng.u64(..).to_string() });
                drop(maps.patch(&name, &Patch::Merge(change)).await);
            }
        }
        self.changes += 1;
    }

    async fn truth(&self) -> Contents {
        // Without a selector: the informers are known by theirs.
        let path = format!("/api/v1/namespaces/{}/configmaps", self.server.namespace);
        let list = read(&self.server.admin, Request::get(path)).await;
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let entry = |map: &Value| {
            let metadata = &map["metadata"];
            let key = format!("{}/{}", text(&metadata["namespace"]), text(&metadata["name"]));
            (key, (text(&metadata["uid"]), text(&metadata["resourceVersion"])))
        };
        let selected = |map: &&Value| map["metadata"]["labels"]["tier"] == "front";
        list["items"].as_array().unwrap().iter().filter(selected).map(entry).collect()
    }

    /// Everybody knows the truth after a while.
    async fn assert_true(&mut self, when: &str) {
        let truth = self.truth().await;
        assert!(truth.len() > 10, "{when}: there is something to know: {truth:?}");
        let contents = || contents_of(&self.ours.reflector);
        let came = eventually(LONG, || contents() == truth).await;
        assert!(came, "{when}: {}\n{}", difference(&contents(), &truth), self.ours.report());
        for other in &mut self.others {
            other.until(&truth).await;
        }
    }
}

/// The server notes down who lists and watches the objects of the test.
fn audit_flags(log: &Path) -> Vec<String> {
    let policy = log.with_extension("policy");
    let rules = json!({
        "apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"],
        "rules": [
            {
                "level": "Metadata", "verbs": ["list", "watch"],
                "resources": [{ "group": "", "resources": ["configmaps"] }],
            },
            { "level": "None" },
        ],
    });
    fs::write(&policy, rules.to_string()).unwrap();
    vec![
        format!("--audit-policy-file={}", policy.display()),
        format!("--audit-log-path={}", log.display()),
    ]
}

/// How often each program listed and watched.
fn requests(log: &Path) -> BTreeMap<String, usize> {
    let (mut seen, mut requests) = (BTreeSet::new(), BTreeMap::new());
    for line in fs::read_to_string(log).unwrap_or_default().lines() {
        let Ok(event) = serde_json::from_str::<Value>(line) else { continue };
        let text = |name: &str| event[name].as_str().unwrap_or_default();
        let asks = |part: &str| text("requestURI").contains(part);
        if !asks("labelSelector") || !seen.insert(text("auditID").to_owned()) {
            continue;
        }
        let agent = text("userAgent").split('/').next().unwrap_or_default();
        let verb = match text("verb") {
            "list" if asks("limit=1&") || text("requestURI").ends_with("limit=1") => "list of one",
            "watch" if asks("sendInitialEvents=true") => "streaming list",
            verb => verb,
        };
        *requests.entry(format!("{agent}: {verb}")).or_default() += 1;
    }
    requests
}

#[actix::test]
async fn informers_of_three_makes_agree_with_a_real_server() {
    let mut world = World::start(&[]).await;
    for other in &mut world.others {
        other.synced().await;
    }
    world.ours.reflector.synced().await.unwrap();
    world.churn(CHURN).await;
    world.assert_true("while the watches run").await;

    world.server.stop().await;
    world.server.start().await;
    world.churn(CHURN).await;
    world.assert_true("after a restart").await;

    world.server.link.cut();
    world.churn(Duration::from_secs(2)).await;
    world.server.compact().await;
    world.server.link.mend();
    world.churn(CHURN).await;
    world.assert_true("after a compaction").await;

    world.server.link.cut();
    world.churn(Duration::from_secs(2)).await;
    world.server.kill().await;
    world.server.start().await;
    world.server.link.mend();
    world.churn(CHURN).await;
    world.assert_true("after a crash that took the positions along").await;

    println!("{} changes; {:#?}", world.changes, requests(&world.audit));
    for other in &world.others {
        println!("{:?} {:#?}", other.told, other.failures);
    }
    println!("{:?}", world.ours.reflector.status());
    fs::remove_file(world.audit.with_extension("policy")).ok();
    fs::remove_file(&world.audit).ok();
    world.ours.stop().await;
}
