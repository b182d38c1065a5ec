//! Made-up objects, and changes to them.

use kubeflect::embedded::ApiServer;
use kubeflect::object::Scope;
use kubeflect::{Kind, ObjectKey};
use serde_json::{Value, json};

const NAMESPACES: [&str; 3] = ["default", "shop", "platform"];

/// The objects of one kind, some of which are always there.
pub(crate) struct Population {
    server: ApiServer,
    kind: Kind,
    /// The next one's number.
    next: usize,
    there: Vec<ObjectKey>,
    random: fastrand::Rng,
}

impl Population {
    /// Creates so many.
    pub(crate) fn new(server: &ApiServer, kind: Kind, count: usize, seed: u64) -> Self {
        let mut population = Self {
            server: server.clone(),
            kind,
            next: 1,
            there: Vec::with_capacity(count),
            random: fastrand::Rng::with_seed(seed),
        };
        (0..count).for_each(|_| population.create());
        population
    }

    /// Changes one object, mostly; else one goes and another comes.
    pub(crate) fn change(&mut self) {
        if self.there.is_empty() {
            return;
        }
        let at = self.random.usize(..self.there.len());
        if self.random.u8(..10) == 0 {
            let key = self.there.swap_remove(at);
            // Somebody else may have been faster.
            self.server.delete(&self.kind, &key).ok();
            self.create();
        } else {
            self.touch(&self.there[at].clone());
        }
    }

    fn create(&mut self) {
        let name = format!("{}-{:05}", self.kind.kind.to_lowercase(), self.next);
        let namespace = match self.kind.scope {
            Scope::Cluster => "",
            Scope::Namespaced | Scope::Unknown => NAMESPACES[self.next % NAMESPACES.len()],
        };
        self.next += 1;
        let key = ObjectKey::new(namespace, &name);
        let object = self.object(&key);
        if self.server.apply(object).is_ok() {
            self.there.push(key);
        }
    }

    fn touch(&mut self, key: &ObjectKey) {
        let Some(mut object) = self.server.get_object(&self.kind, key) else { return };
        object["metadata"]["annotations"] =
            json!({ "kubeflect.dev/changed": self.random.u32(..).to_string() });
        if self.kind.kind == "Pod" {
            let restarts = &mut object["status"]["containerStatuses"][0]["restartCount"];
            *restarts = json!(restarts.as_u64().unwrap_or_default() + 1);
        }
        self.server.apply(object).ok();
    }

    fn object(&mut self, key: &ObjectKey) -> Value {
        let app = ["web", "api", "worker"][self.random.usize(..3)];
        let mut object = json!({
            "apiVersion": self.kind.api_version(), "kind": self.kind.kind,
            "metadata": { "name": key.name(), "labels": { "app": app } },
        });
        if let Some(namespace) = key.namespace() {
            object["metadata"]["namespace"] = json!(namespace);
        }
        match self.kind.kind.as_ref() {
            "Pod" => {
                object["spec"] = json!({
                    "nodeName": format!("node-{:05}", self.random.u8(1..10)), "restartPolicy": "Always",
                    "containers": [{ "name": "main", "image": format!("registry.example/{app}:1.0") }],
                });
                object["status"] = json!({
                    "phase": "Running", "conditions": [{ "type": "Ready", "status": "True" }],
                    "containerStatuses": [{ "name": "main", "ready": true, "restartCount": 0 }],
                });
            }
            "Node" => {
                object["status"] = json!({
                    "capacity": { "cpu": "8", "memory": "32Gi", "pods": "110" },
                    "conditions": [{ "type": "Ready", "status": "True" }],
                    "nodeInfo": { "kubeletVersion": "v1.34.0" },
                });
            }
            "Deployment" => {
                object["spec"] =
                    json!({ "replicas": 1, "selector": { "matchLabels": { "app": app } } });
                object["status"] = json!({ "replicas": 1, "readyReplicas": 1, "availableReplicas": 1, "updatedReplicas": 1 });
            }
            _ => {}
        }
        object
    }
}
