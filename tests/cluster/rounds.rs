//! Many pods, and round after round of changes and one fault: afterwards the cache is what kubectl sees, and so is what
//! every subscriber was told.
//!
//! `KUBEFLECT_PODS` and `KUBEFLECT_ROUNDS` make it larger: 10000 and 20 take a quarter of an hour. `KUBEFLECT_SEED` chooses
//! the changes and the order of the faults; without it chance does, and the seed is printed.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use actix::Actor as _;
use futures::{StreamExt as _, stream};
use k8s_openapi::api::core::v1::Pod;
use kubeflect::SubscribeOptions;
use kubeflect::client::{DeleteOptions, Objects, Patch};
use kubeflect::reflector::Delivery;
use serde_json::{Value, json};

use crate::console::Kubectl;
use crate::contents::{self, Contents};
use crate::folds::{Fold, Folder};
use crate::recorded::Exchange;
use crate::server::{Make, Server, Setup};
use crate::support::{Followed, eventually, number, pod, quick};
use crate::users::User;

/// Whatever happened, the truth is known by then.
const TRUTH: Duration = Duration::from_secs(240);
/// So many requests of ours are under way at once.
const AT_ONCE: usize = 32;

struct World {
    server: Server,
    kubectl: Kubectl,
    pods: Followed<Pod>,
    /// What each subscriber makes of what it is told.
    folds: Vec<(String, Arc<Mutex<Fold>>)>,
    writer: Objects<Pod>,
    rng: fastrand::Rng,
    created: usize,
    /// What is still to be gone through before any fault comes again.
    faults: Vec<Fault>,
}

/// Something terrible.
#[derive(Debug, Clone, Copy)]
enum Fault {
    LineCut,
    MadeAgainOutOfSight,
    ApiServerKilled,
    ApiServerStopped,
    StorageKilled,
    HistoryForgotten,
    StorageRestored,
}

const FAULTS: [Fault; 7] = [
    Fault::LineCut,
    Fault::MadeAgainOutOfSight,
    Fault::ApiServerKilled,
    Fault::ApiServerStopped,
    Fault::StorageKilled,
    Fault::HistoryForgotten,
    Fault::StorageRestored,
];

fn now() -> DeleteOptions {
    DeleteOptions { grace_period_seconds: Some(0), ..DeleteOptions::default() }
}

impl World {
    async fn start(pods: usize, seed: u64) -> Self {
        let server = Server::real(Setup::Alone).await;
        let kubeconfig = server.kubeconfig(User::Admin);
        let kubectl = Kubectl::new(&["--kubeconfig", kubeconfig.to_str().unwrap()]).await;
        let (writer, followed) = (server.objects(), server.follow(quick()).await);
        let mut world = Self {
            server,
            kubectl,
            pods: followed,
            folds: Vec::new(),
            writer,
            rng: fastrand::Rng::with_seed(seed),
            created: 0,
            faults: Vec::new(),
        };
        let options = SubscribeOptions::default;
        let (instantly, slowly) = (Duration::ZERO, Duration::from_millis(2));
        world.subscribe("a fast one", instantly, options()).await;
        world.subscribe("a slow one", slowly, options()).await;
        let latest = options().delivery(Delivery::Latest);
        world.subscribe("one for the newest state", slowly, latest).await;
        let (folder, fold) = Folder::new(Duration::from_millis(50));
        world.pods.reflector.subscribe_batches(folder.start(), options()).await.unwrap();
        world.folds.push(("one for batches".to_owned(), fold));
        world.create(pods).await;
        world
    }

    async fn subscribe(&mut self, name: &str, pace: Duration, options: SubscribeOptions) {
        let (folder, fold) = Folder::new(pace);
        self.pods.reflector.subscribe_with(folder.start(), options).await.unwrap();
        self.folds.push((name.to_owned(), fold));
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
                    writer.delete(&name, &now()).await.ok();
                } else {
                    writer.patch(&name, &Patch::Merge(mark.clone())).await.ok();
                }
            })
            .await;
    }

    /// Deletes some, and creates others of the same names.
    async fn make_again(&mut self, count: usize) {
        for _ in 0..count {
            let name = format!("pod-{}", self.rng.usize(..self.created));
            // It may not be there.
            self.writer.delete(&name, &now()).await.ok();
            self.writer.create(&pod(&name)).await.unwrap();
        }
    }

    fn next_fault(&mut self) -> Fault {
        if self.faults.is_empty() {
            self.faults = FAULTS.to_vec();
            self.rng.shuffle(&mut self.faults);
        }
        self.faults.pop().expect("they were just filled up")
    }

    async fn suffer(&mut self, fault: Fault) {
        match fault {
            Fault::LineCut => {
                self.server.link.cut();
                self.churn(50).await;
                self.server.link.mend();
            }
            Fault::MadeAgainOutOfSight => {
                self.server.link.cut();
                self.make_again(20).await;
                self.server.link.mend();
            }
            Fault::ApiServerKilled => {
                self.server.kill().await;
                self.server.start().await;
            }
            Fault::ApiServerStopped => {
                self.server.stop().await;
                self.server.start().await;
            }
            Fault::StorageKilled => {
                let Make::Real(lease) = &mut self.server.make else { unreachable!("it is real") };
                lease.mine().restart_etcd().await;
            }
            Fault::HistoryForgotten => {
                self.server.link.cut();
                self.churn(50).await;
                self.make_again(20).await;
                self.server.compact().await;
                self.server.stop().await;
                self.server.start().await;
                self.server.link.mend();
            }
            Fault::StorageRestored => {
                let backup = self.server.back_up().await;
                // So far behind that a server that starts does not make up for it by what it writes itself.
                self.churn(600).await;
                self.server.restore(&backup).await;
            }
        }
    }

    /// What kubectl sees.
    async fn truth(&self) -> Contents {
        let command = format!("get pods -n {} -o json", self.server.namespace);
        let list: Value = serde_json::from_str(&self.kubectl.say(&command).await).unwrap();
        contents::of_list(&list, |_| true)
    }

    /// Who does not know the truth.
    fn ignorant(&self, truth: &Contents) -> Option<String> {
        let cached = contents::of_reflector(&self.pods.reflector);
        if cached != *truth {
            return Some(format!("the cache: {}", contents::difference(&cached, truth)));
        }
        self.folds.iter().find_map(|(name, fold)| {
            let told = &fold.lock().unwrap().contents;
            let ignorant = told != truth;
            ignorant.then(|| format!("{name}: {}", contents::difference(told, truth)))
        })
    }

    /// Whoever was told what can not be.
    fn assert_possible(&self, when: &str) {
        for (name, fold) in &self.folds {
            let impossible = &fold.lock().unwrap().impossible;
            assert!(impossible.is_empty(), "{when}: {name} was told {impossible:#?}");
        }
    }

    /// How often everything was listed, how often that failed, and how often the position was lost.
    fn lists(&self) -> (usize, usize, usize) {
        let exchanges = self.pods.exchanges();
        let lists = exchanges.iter().filter(|it| it.lists_everything());
        let (listed, failed): (Vec<&Exchange>, Vec<&Exchange>) =
            lists.partition(|it| it.succeeded());
        let expired = exchanges.iter().filter(|it| it.is_expired()).count();
        let rewinds = self.pods.reflector.status().oddities.rewinds as usize;
        (listed.len(), failed.len(), expired + rewinds)
    }
}

#[actix::test]
async fn after_every_round_the_cache_and_its_subscribers_are_what_kubectl_sees() {
    let (pods, rounds) = (number("KUBEFLECT_PODS", 1000), number("KUBEFLECT_ROUNDS", 7));
    let seed = number("KUBEFLECT_SEED", fastrand::u64(..));
    eprintln!("KUBEFLECT_SEED={seed}");
    let mut world = World::start(pods, seed).await;
    for round in 0..rounds {
        world.churn(pods / 10).await;
        let fault = world.next_fault();
        let when = format!("seed {seed}, round {round}, {fault:?}");
        world.suffer(fault).await;
        let late = format!("one who came in round {round}");
        world.subscribe(&late, Duration::ZERO, SubscribeOptions::default()).await;
        world.churn(50).await;
        let truth = world.truth().await;
        let known = eventually(TRUTH, || world.ignorant(&truth).is_none()).await;
        assert!(known, "{when}: {:?}\n{}", world.ignorant(&truth), world.pods.report());
        world.assert_possible(&when);
        let (lists, failed, lost) = world.lists();
        assert!(lists <= 1 + lost, "{when}: {lists} lists, {lost} positions were lost");
        eprintln!(
            "{when}; {} pods; {lists} lists, {failed} that failed, {lost} lost positions",
            truth.len()
        );
    }
    world.pods.stop().await;
}
