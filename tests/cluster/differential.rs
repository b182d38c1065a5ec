//! Informers of three makes side by side on a real server that is changed all the time, cut off, restarted and compacted.
//!
//! `KUBEFLECT_SECONDS` makes it longer: incidents come until so much time has passed, and each of them once at least.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;
use std::{env, fs};

use actix_rt::task::JoinHandle;
use k8s_openapi::api::core::v1::ConfigMap;
use kubeflect::client::{DeleteOptions, Objects, Patch, Request};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::clients::{Informers, build_informers};
use crate::contents::{self, Contents};
use crate::leases::Lease;
use crate::questions::read;
use crate::server::Server;
use crate::support::number;
use crate::users::User;

/// How long the server is changed before an incident, and after it.
const CHURN: Duration = Duration::from_secs(7);

/// What happens while the server is changed.
#[derive(Debug, Clone, Copy)]
enum Incident {
    LineCut,
    ApiServerStopped,
    /// Out of sight: who comes back finds nothing of the history.
    HistoryForgotten,
    ApiServerKilled,
}

const INCIDENTS: [Incident; 4] = [
    Incident::LineCut,
    Incident::ApiServerStopped,
    Incident::HistoryForgotten,
    Incident::ApiServerKilled,
];

struct World {
    server: Server,
    audit: PathBuf,
    informers: Informers,
    changes: usize,
}

impl World {
    async fn start() -> Self {
        build_informers().await;
        let audit = env::temp_dir().join(format!("kubeflect-audit-{:x}", fastrand::u64(..)));
        let mut flags = audit_flags(&audit);
        // Who speaks HTTP/2 is sent away now and then. We do not.
        flags.push("--goaway-chance=0.02".to_owned());
        let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        let server = Server::of(Lease::alone(&flags).await).await;
        let informers = Informers::start(&server.kubeconfig(User::Admin)).await;
        Self { server, audit, informers, changes: 0 }
    }

    /// Changes go on while it happens, before it and after it. Then everybody knows the truth after a while.
    async fn suffer(&mut self, incident: Incident) {
        let churn = Churn::start(self.server.objects(), self.changes as u64);
        tokio::time::sleep(CHURN).await;
        match incident {
            Incident::LineCut => {
                self.server.link.cut();
                tokio::time::sleep(Duration::from_secs(2)).await;
                self.server.link.mend();
            }
            Incident::ApiServerStopped => {
                self.server.stop().await;
                self.server.start().await;
            }
            Incident::HistoryForgotten => {
                self.server.link.cut();
                tokio::time::sleep(Duration::from_secs(2)).await;
                self.server.compact().await;
                self.server.kill().await;
                self.server.start().await;
                self.server.link.mend();
            }
            Incident::ApiServerKilled => {
                self.server.kill().await;
                self.server.start().await;
            }
        }
        tokio::time::sleep(CHURN).await;
        self.changes += churn.stop().await;
        let truth = self.truth().await;
        let when = format!("after {incident:?}");
        assert!(truth.len() > 10, "{when}: there is something to know: {truth:?}");
        self.informers.assert_know(&truth, &when).await;
    }

    async fn truth(&self) -> Contents {
        // Without a selector: the informers are known by theirs.
        let path = format!("/api/v1/namespaces/{}/configmaps", self.server.namespace);
        let list = read(&self.server.admin, Request::get(path)).await;
        contents::of_list(&list, |map| map["metadata"]["labels"]["tier"] == "front")
    }

    /// How often we were told that our position is lost.
    fn lost(&self) -> usize {
        self.informers.ours.exchanges().iter().filter(|it| it.is_expired()).count()
    }
}

/// Changes that go on, whatever happens to the server.
struct Churn {
    task: JoinHandle<usize>,
    over: Rc<Cell<bool>>,
}

impl Churn {
    fn start(maps: Objects<ConfigMap>, seed: u64) -> Self {
        let over = Rc::<Cell<bool>>::default();
        let end = Rc::clone(&over);
        let task = actix_rt::spawn(async move {
            let (mut rng, mut changes) = (fastrand::Rng::with_seed(seed), 0);
            while !end.get() {
                match change(&maps, &mut rng).await {
                    true => changes += 1,
                    false => tokio::time::sleep(Duration::from_millis(5)).await,
                }
            }
            changes
        });
        Self { task, over }
    }

    /// Ends it, and says how many changes there were.
    async fn stop(self) -> usize {
        self.over.set(true);
        self.task.await.unwrap()
    }
}

/// Creates, changes or deletes an object, in or out of the selection. Tells whether it did: what is there can not be
/// created, what is not there can not be changed, and the server may be down.
async fn change(maps: &Objects<ConfigMap>, rng: &mut fastrand::Rng) -> bool {
    let name = format!("map-{}", rng.usize(..60));
    let tier = ["front", "front", "front", "back"][rng.usize(..4)];
    let mut map = json!({ "metadata": { "name": name, "labels": { "tier": tier } } });
    match rng.usize(..5) {
        0 => maps.delete(&name, &DeleteOptions::default()).await.is_ok(),
        1 | 2 => maps.create(&serde_json::from_value(map).unwrap()).await.is_ok(),
        _ => {
            map["data"] = json!({ "value": rng.u64(..).to_string() });
            maps.patch(&name, &Patch::Merge(map)).await.is_ok()
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

/// How often each program listed everything, looked at one object, and watched.
fn requests(log: &Path) -> BTreeMap<String, BTreeMap<&'static str, usize>> {
    let (mut seen, mut requests) = (BTreeSet::new(), BTreeMap::<String, BTreeMap<_, _>>::new());
    for line in fs::read_to_string(log).unwrap_or_default().lines() {
        let Ok(event) = serde_json::from_str::<Value>(line) else { continue };
        let text = |name: &str| event[name].as_str().unwrap_or_default();
        let asks = |part: &str| text("requestURI").contains(part);
        if !asks("labelSelector") || !seen.insert(text("auditID").to_owned()) {
            continue;
        }
        let agent = text("userAgent").split('/').next().unwrap_or_default();
        let what = match text("verb") {
            "list" if asks("limit=1&") || text("requestURI").ends_with("limit=1") => "look",
            "list" if asks("continue=") => "page",
            "watch" if !asks("sendInitialEvents=true") => "watch",
            _ => "list",
        };
        *requests.entry(agent.to_owned()).or_default().entry(what).or_default() += 1;
    }
    requests
}

#[actix::test]
async fn informers_of_three_makes_agree_with_a_real_server() {
    let mut world = World::start().await;
    world.informers.synced().await;
    let length = Duration::from_secs(number("KUBEFLECT_SECONDS", 90));
    let (begun, mut round) = (Instant::now(), 0);
    while round < INCIDENTS.len() || begun.elapsed() < length {
        let incident = INCIDENTS[round % INCIDENTS.len()];
        let lost = world.lost();
        world.suffer(incident).await;
        let is_lost = world.lost() > lost;
        match incident {
            Incident::LineCut => assert!(!is_lost, "nothing was forgotten"),
            Incident::HistoryForgotten => assert!(is_lost, "everything was forgotten"),
            // It begins with the version it finds: that of our position, or a later one that it wrote itself.
            Incident::ApiServerStopped | Incident::ApiServerKilled => {}
        }
        println!("{incident:?}; {} changes; {:?}", world.changes, begun.elapsed());
        round += 1;
    }
    assert!(world.changes > 50 * round, "{} changes", world.changes);

    let requests = requests(&world.audit);
    println!("{requests:#?}\n{}", world.informers.report());
    let lists = |agent: &str| requests[agent]["list"];
    assert!(lists("kubeflect") <= 1 + world.lost(), "each list was needed: {requests:#?}");
    // Whether a restart takes a position along is chance, for each of them anew. kube-rs does not say who it is.
    let restarts = round / 2;
    for other in ["informer", ""] {
        assert!(lists("kubeflect") <= lists(other) + restarts, "{other}: {requests:#?}");
    }
    fs::remove_file(world.audit.with_extension("policy")).ok();
    fs::remove_file(&world.audit).ok();
    world.informers.ours.stop().await;
}
