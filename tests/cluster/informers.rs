//! Informers of three makes on the embedded server come to the same cache, whatever it does to them.

use std::path::PathBuf;
use std::time::Duration;
use std::{env, fs};

use k8s_openapi::api::core::v1::ConfigMap;
use kubeflect::embedded::{ApiServer, Filter, SeenRequest, ServingApiServer, Verb};
use kubeflect::object::{Kind, ObjectKey, StaticKind as _};
use serde_json::json;

use crate::clients::{Contents, Informer, LABELS, contents_of, difference};
use crate::support::{Followed, LONG, eventually, quick};
use crate::users::{User, load};

/// The embedded server, and all who follow it.
struct World {
    serving: ServingApiServer,
    kubeconfig: PathBuf,
    ours: Followed<ConfigMap>,
    others: [Informer; 2],
    rng: fastrand::Rng,
}

impl World {
    async fn start() -> Self {
        let serving = ApiServer::new().start().await.unwrap();
        let kubeconfig = User::Admin.write_kubeconfig(&env::temp_dir(), &serving.url());
        let others = [Informer::client_go(&kubeconfig).await, Informer::kube_rs(&kubeconfig).await];
        let ours = Followed::start(load(&kubeconfig), quick().labels(LABELS)).await;
        let rng = fastrand::Rng::with_seed(1);
        Self { serving, kubeconfig, ours, others, rng }
    }

    fn server(&self) -> &ApiServer {
        self.serving.server()
    }

    /// Creates, changes, deletes, and deletes and creates again, in and out of the selection.
    fn change(&mut self, times: usize) {
        for _ in 0..times {
            let name = format!("map-{}", self.rng.usize(..40));
            let namespace = ["default", "other"][self.rng.usize(..2)];
            let tier = ["front", "front", "front", "back"][self.rng.usize(..4)];
            let (fate, value) = (self.rng.usize(..4), self.rng.u64(..));
            if fate < 2 {
                self.server().delete(&maps(), &ObjectKey::new(namespace, &name)).ok();
            }
            if fate > 0 {
                let map = json!({
                    "apiVersion": "v1", "kind": "ConfigMap",
                    "metadata": { "name": name, "namespace": namespace, "labels": { "tier": tier } },
                    "data": { "value": value.to_string() },
                });
                self.server().apply(map).unwrap();
            }
        }
    }

    /// Breaks all watches, changes something, and forgets how it came about before anybody can watch again.
    fn forget_positions(&mut self) {
        let watches = Filter::verb(Verb::Watch);
        self.server().delay(watches.clone(), Duration::from_secs(1));
        self.server().break_watches();
        self.change(100);
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

    /// Everybody knows the truth after a while.
    async fn assert_true(&mut self, when: &str) {
        let truth = self.truth();
        let contents = || contents_of(&self.ours.reflector);
        let came = eventually(LONG, || contents() == truth).await;
        assert!(came, "{when}: {}\n{}", difference(&contents(), &truth), self.ours.report());
        for other in &mut self.others {
            other.until(&truth).await;
        }
    }
}

fn maps() -> Kind {
    ConfigMap::static_kind()
}

#[actix::test]
async fn informers_of_three_makes_come_to_the_same_cache() {
    let mut world = World::start().await;
    world.change(100);
    for other in &mut world.others {
        other.synced().await;
    }
    world.ours.reflector.synced().await.unwrap();
    world.assert_true("at the beginning").await;

    world.change(300);
    world.assert_true("while the watches run").await;

    world.server().cut_watches();
    world.change(100);
    world.assert_true("after the watches were cut").await;

    world.forget_positions();
    world.assert_true("after their positions were forgotten").await;

    world.server().forget_history();
    world.change(100);
    world.assert_true("after what they knew already was forgotten").await;

    world.server().allow_streaming_lists(false);
    world.forget_positions();
    world.assert_true("after lists were no longer streamed").await;

    assert_eq!(world.others[1].told["synced"], 3, "two positions were forgotten");
    let streamed =
        |request: &SeenRequest| request.query.iter().any(|(name, _)| name == "sendInitialEvents");
    let (requests, counts) = (world.server().requests(), world.server().request_counts());
    let streamed = requests.into_iter().filter(streamed).count();
    println!("{counts:?}, of them {streamed} streaming lists");
    for other in &world.others {
        println!("{:?} {:#?}", other.told, other.failures);
    }
    world.ours.stop().await;
    world.serving.stop().await;
    fs::remove_file(&world.kubeconfig).ok();
}
