//! Informers of three makes and kubectl on the embedded server come to the same contents, whatever it does to them.

use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;
use std::{cell::Cell, env, fs};

use actix_rt::task::JoinHandle;
use k8s_openapi::api::core::v1::ConfigMap;
use kubeflect::embedded::{ApiServer, Filter, SeenRequest, ServingApiServer, Verb};
use kubeflect::object::{Kind, ObjectKey, StaticKind as _};
use serde_json::json;

use crate::clients::{Informers, LABELS, build_informers};
use crate::console::{Kubectl, KubectlWatch};
use crate::contents::{Contents, difference};
use crate::support::{LONG, eventually};
use crate::users::User;

/// How long changes go on around a fault.
const A_WHILE: Duration = Duration::from_secs(1);

/// The embedded server, and all who follow it.
struct World {
    serving: ServingApiServer,
    kubeconfig: PathBuf,
    informers: Informers,
    kubectl: KubectlWatch,
    churns: u64,
}

impl World {
    async fn start() -> Self {
        build_informers().await;
        let serving = ApiServer::new().start().await.unwrap();
        let kubeconfig = User::Admin.write_kubeconfig(&env::temp_dir(), &serving.url());
        let informers = Informers::start(&kubeconfig).await;
        let kubectl = Kubectl::new(&["--server", &serving.url()]).await;
        let kubectl = KubectlWatch::start(kubectl, &["configmaps", "-A", "-l", LABELS]);
        Self { serving, kubeconfig, informers, kubectl, churns: 0 }
    }

    fn server(&self) -> &ApiServer {
        self.serving.server()
    }

    /// Changes something all the time, until told to stop.
    fn churn(&mut self) -> Churn {
        self.churns += 1;
        let (server, mut rng) = (self.server().clone(), fastrand::Rng::with_seed(self.churns));
        let over = Rc::<Cell<bool>>::default();
        let end = Rc::clone(&over);
        let task = actix_rt::spawn(async move {
            while !end.get() {
                change(&server, &mut rng, 3);
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        });
        Churn { task, over }
    }

    /// Breaks all watches, changes something, and forgets how it came about before anybody can watch again.
    fn forget_positions(&self) {
        let watches = Filter::verb(Verb::Watch);
        self.server().delay(watches.clone(), Duration::from_secs(1));
        self.server().break_watches();
        change(self.server(), &mut fastrand::Rng::with_seed(0), 100);
        self.server().forget_history();
        self.server().delay(watches, Duration::ZERO);
    }

    fn truth(&self) -> Contents {
        let objects = self.server().objects(&maps()).into_iter();
        let selected = objects.filter(|(key, _)| {
            let object = self.server().get_object(&maps(), key);
            object.is_some_and(|object| object["metadata"]["labels"]["tier"] == "front")
        });
        selected.map(|(key, value)| (key.to_string(), value)).collect()
    }

    /// Something is done to the server while it changes. Everybody knows the truth after a while.
    async fn suffer(&mut self, what: &str, fault: impl FnOnce(&Self)) {
        let churn = self.churn();
        tokio::time::sleep(A_WHILE).await;
        fault(self);
        tokio::time::sleep(A_WHILE).await;
        churn.stop().await;
        let truth = self.truth();
        assert!(truth.len() > 10, "{what}: there is something to know: {truth:?}");
        self.informers.assert_know(&truth, what).await;
        let seen = || self.kubectl.contents();
        let came = eventually(LONG, || seen() == truth).await;
        assert!(came, "{what}: kubectl differs: {}", difference(&seen(), &truth));
    }
}

/// Changes that go on. They end with [`stop`](Self::stop).
struct Churn {
    task: JoinHandle<()>,
    over: Rc<Cell<bool>>,
}

impl Churn {
    async fn stop(self) {
        self.over.set(true);
        self.task.await.unwrap();
    }
}

/// Creates, changes, deletes, and deletes and creates again, in and out of the selection.
fn change(server: &ApiServer, rng: &mut fastrand::Rng, times: usize) {
    for _ in 0..times {
        let name = format!("map-{}", rng.usize(..40));
        let namespace = ["default", "other"][rng.usize(..2)];
        let tier = ["front", "front", "front", "back"][rng.usize(..4)];
        let (fate, value) = (rng.usize(..4), rng.u64(..));
        if fate < 2 {
            // It may not be there.
            server.delete(&maps(), &ObjectKey::new(namespace, &name)).ok();
        }
        if fate > 0 {
            let map = json!({
                "apiVersion": "v1", "kind": "ConfigMap",
                "metadata": { "name": name, "namespace": namespace, "labels": { "tier": tier } },
                "data": { "value": value.to_string() },
            });
            server.apply(map).unwrap();
        }
    }
}

fn maps() -> Kind {
    ConfigMap::static_kind()
}

#[actix::test]
async fn informers_of_three_makes_and_kubectl_come_to_the_same_contents() {
    let mut world = World::start().await;
    world.informers.synced().await;
    world.suffer("while the watches run", |_| {}).await;
    assert_eq!(world.kubectl.runs(), 1, "it watches on");
    world.suffer("after the watches were cut", |world| world.server().cut_watches()).await;
    world.suffer("after their positions were forgotten", World::forget_positions).await;
    let forget = |world: &World| world.server().forget_history();
    world.suffer("after what they knew already was forgotten", forget).await;
    world.server().allow_streaming_lists(false);
    world.suffer("after lists were no longer streamed", World::forget_positions).await;
    assert_eq!(world.kubectl.runs(), 4, "it ended with each watch that was cut");

    assert_eq!(world.informers.others[1].told["synced"], 3, "two positions were forgotten");
    let (requests, counts) = (world.server().requests(), world.server().request_counts());
    let streamed = |request: &&SeenRequest| request.parameter("sendInitialEvents").is_some();
    let streamed = requests.iter().filter(streamed).count();
    println!("{counts:?}, of them {streamed} streaming lists\n{}", world.informers.report());
    world.informers.ours.stop().await;
    world.serving.stop().await;
    fs::remove_file(&world.kubeconfig).ok();
}
