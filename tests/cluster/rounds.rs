//! Many pods, and round after round of changes and one fault: afterwards the cache is what kubectl sees, and so is what
//! every subscriber was told.
//!
//! `KUBEFLECT_PODS` and `KUBEFLECT_ROUNDS` make it larger: 10000 and 20 take a quarter of an hour.

use std::collections::BTreeMap;
use std::env;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use actix::{Actor, Context, Handler};
use futures::{StreamExt as _, stream};
use k8s_openapi::api::core::v1::Pod;
use kubeflect::ResourceEvent;
use kubeflect::client::{DeleteOptions, Objects, Patch};
use kubeflect::object::Resource as _;
use serde_json::{Value, json};

use crate::console::Kubectl;
use crate::server::{Backup, Make, Server, Setup};
use crate::support::{Followed, eventually, pod, quick};
use crate::users::User;

/// Whatever happened, the truth is known by then.
const TRUTH: Duration = Duration::from_secs(240);
/// So many requests of ours are under way at once.
const AT_ONCE: usize = 32;

/// Names, uids and versions.
type Contents = BTreeMap<String, (String, String)>;

struct World {
    server: Server,
    kubectl: Kubectl,
    pods: Followed<Pod>,
    told: Arc<Mutex<Contents>>,
    writer: Objects<Pod>,
    rng: fastrand::Rng,
    created: usize,
    backup: Option<Backup>,
}

/// A subscriber that applies what it is told.
struct Folder(Arc<Mutex<Contents>>);

impl Actor for Folder {
    type Context = Context<Self>;
}

impl Handler<ResourceEvent<Pod>> for Folder {
    type Result = ();

    fn handle(&mut self, event: ResourceEvent<Pod>, _: &mut Context<Self>) {
        let mut told = self.0.lock().unwrap();
        match event {
            ResourceEvent::Added { object, .. } | ResourceEvent::Updated { new: object, .. } => {
                told.insert(object.key().to_string(), identity(&object));
            }
            ResourceEvent::Deleted { last_known, .. } => {
                told.remove(&last_known.key().to_string());
            }
            ResourceEvent::Synced => {}
        }
    }
}

fn identity(pod: &Pod) -> (String, String) {
    let text = |text: Option<&str>| text.unwrap_or_default().to_owned();
    (text(pod.uid()), text(pod.resource_version()))
}

fn number(variable: &str, otherwise: usize) -> usize {
    env::var(variable).ok().map_or(otherwise, |text| text.parse().expect("it is a number"))
}

impl World {
    async fn start(pods: usize) -> Self {
        let server = Server::real(Setup::Alone).await;
        let kubeconfig = server.kubeconfig(User::Admin);
        let kubectl = Kubectl::new(&["--kubeconfig", kubeconfig.to_str().unwrap()]).await;
        let (writer, followed) = (server.objects(), server.follow(quick()).await);
        let told = Arc::<Mutex<Contents>>::default();
        followed.reflector.subscribe(Folder(Arc::clone(&told)).start()).await.unwrap();
        let rng = fastrand::Rng::with_seed(1);
        let mut world =
            Self { server, kubectl, pods: followed, told, writer, rng, created: 0, backup: None };
        world.create(pods).await;
        world
    }

    async fn create(&mut self, count: usize) {
        let names = (self.created..self.created + count).map(|number| format!("pod-{number}"));
        self.created += count;
        let writer = &self.writer;
        stream::iter(names)
            .for_each_concurrent(AT_ONCE, |name| async move {
                writer.create(&pod(&name)).await.unwrap();
            })
            .await;
    }

    /// Creates some, changes some, deletes some.
    async fn churn(&mut self, changes: usize) {
        self.create(changes / 10).await;
        let victims: Vec<(bool, String)> = (0..changes)
            .map(|_| (self.rng.u8(..5) == 0, format!("pod-{}", self.rng.usize(..self.created))))
            .collect();
        let mark =
            json!({ "metadata": { "annotations": { "mark": self.rng.u32(..).to_string() } } });
        let (writer, mark) = (&self.writer, &mark);
        stream::iter(victims)
            .for_each_concurrent(AT_ONCE, |(delete, name)| async move {
                // It may be gone by now.
                if delete {
                    let now = DeleteOptions { grace_period_seconds: Some(0), ..Default::default() };
                    writer.delete(&name, &now).await.ok();
                } else {
                    writer.patch(&name, &Patch::Merge(mark.clone())).await.ok();
                }
            })
            .await;
    }

    /// Does something terrible, and says what.
    async fn fault(&mut self, round: usize) -> &'static str {
        match round % 7 {
            0 => {
                self.server.link.cut();
                self.churn(50).await;
                self.server.link.mend();
                "the line was cut"
            }
            1 => {
                self.server.kill().await;
                self.server.start().await;
                "the API server was killed"
            }
            2 => {
                self.backup = Some(self.server.back_up().await);
                self.server.stop().await;
                self.server.start().await;
                "the API server was stopped"
            }
            3 => {
                let Make::Real(lease) = &mut self.server.make else { unreachable!("it is real") };
                lease.mine().etcd.kill();
                lease.mine().etcd.start_again();
                lease.mine().ready().await;
                "etcd was killed"
            }
            4 => {
                self.server.link.cut();
                self.churn(50).await;
                self.server.compact().await;
                self.server.stop().await;
                self.server.start().await;
                self.server.link.mend();
                "etcd was compacted"
            }
            5 => {
                // So far behind that a server that starts does not make up for it by what it writes itself.
                self.churn(400).await;
                let Some(backup) = self.backup.take() else { return "nothing" };
                self.server.restore(&backup).await;
                "etcd was restored from a backup"
            }
            _ => "nothing",
        }
    }

    /// What kubectl sees.
    async fn truth(&self) -> Contents {
        let command = format!("get pods -n {} -o json", self.server.namespace);
        let list = self.kubectl.say(&command).await;
        let list: Value = serde_json::from_str(&list).unwrap();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let items = list["items"].as_array().unwrap().iter().map(|item| {
            let metadata = &item["metadata"];
            let key = format!("{}/{}", text(&metadata["namespace"]), text(&metadata["name"]));
            (key, (text(&metadata["uid"]), text(&metadata["resourceVersion"])))
        });
        items.collect()
    }

    fn cached(&self) -> Contents {
        let snapshot = self.pods.reflector.store().snapshot();
        snapshot.iter().map(|(key, pod)| (key.to_string(), identity(pod))).collect()
    }

    /// How often everything was listed, and how often the server said that the position was lost.
    fn lists(&self) -> (usize, usize) {
        let exchanges = self.pods.exchanges();
        let lists = exchanges.iter().filter(|it| it.is_streaming_list()).count();
        let lost = exchanges.iter().filter(|it| it.is_watch() && it.is_expired()).count();
        (lists, lost + self.pods.reflector.status().oddities.rewinds as usize)
    }
}

#[actix::test]
async fn after_every_round_the_cache_and_its_subscribers_are_what_kubectl_sees() {
    let (pods, rounds) = (number("KUBEFLECT_PODS", 1000), number("KUBEFLECT_ROUNDS", 7));
    let mut world = World::start(pods).await;
    for round in 0..rounds {
        world.churn(pods / 10).await;
        let fault = world.fault(round).await;
        world.churn(50).await;
        let truth = world.truth().await;
        let is_known =
            eventually(TRUTH, || world.cached() == truth && *world.told.lock().unwrap() == truth);
        assert!(is_known.await, "round {round}, {fault}: {}", world.pods.report());
        let (lists, lost) = world.lists();
        assert!(lists <= 1 + lost, "round {round}, {fault}: {lists} lists, {lost} were needed");
        eprintln!("round {round}: {fault}; {} pods; {lists} lists", truth.len());
    }
    world.pods.stop().await;
}
