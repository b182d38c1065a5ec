use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

use super::model::Model;
use super::mutation::now;
use super::resources::ResourceId;
use super::{ApiServer, lock};
use crate::object::{Kind, ObjectKey, Scope};

const NODES: [&str; 3] = ["node-1", "node-2", "node-3"];
/// Namespace, name and wanted pods: 20 in all.
const DEPLOYMENTS: [(&str, &str, usize); 5] = [
    ("shop", "web", 5),
    ("shop", "api", 4),
    ("shop", "worker", 6),
    ("platform", "cache", 3),
    ("platform", "gateway", 2),
];
const MOST_REPLICAS: u64 = 8;

/// A small cluster with something going on.
impl ApiServer {
    /// A server with 3 nodes, 5 deployments and their 20 pods. Which pod is where follows from the seed.
    pub fn demo_cluster(seed: u64) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        // Clusters are told apart by their versions, as real ones are: who knows one and finds another has to notice.
        let model = Model::beginning_at(random.u64(1..1_000_000), seed);
        let mut demo = Demo { server: Self { model: Arc::new(Mutex::new(model)) }, random };
        // A demo runs for days; who resumes after a pause may list again.
        demo.server.limit_history(5_000);
        demo.furnish();
        demo.server
    }

    /// Changes the demo cluster `changes_per_second` times a second, as a real one might change. Never ends by itself.
    pub async fn run_demo(self, changes_per_second: f64) {
        let seed = lock(&self.model).random.u64(..);
        let mut demo = Demo { server: self, random: fastrand::Rng::with_seed(seed) };
        let period = Duration::try_from_secs_f64(changes_per_second.recip());
        let mut ticks = tokio::time::interval(period.unwrap_or(Duration::from_secs(1)));
        loop {
            ticks.tick().await;
            demo.change_something();
        }
    }

    fn values(&self, kind: &Kind) -> Vec<Value> {
        let model = lock(&self.model);
        let collection = model.collection(&ResourceId::of(kind));
        let objects = collection.into_iter().flat_map(|collection| collection.objects.values());
        objects.map(|object| object.to_value()).collect()
    }
}

/// Plays scheduler, kubelet and deployment controller at once.
struct Demo {
    server: ApiServer,
    random: fastrand::Rng,
}

impl Demo {
    fn furnish(&mut self) {
        for namespace in ["default", "shop", "platform"] {
            self.apply(json!({
                "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": namespace },
                "status": { "phase": "Active" },
            }));
        }
        for name in NODES {
            self.apply(node(name));
        }
        for (namespace, name, replicas) in DEPLOYMENTS {
            self.apply(deployment(namespace, name, replicas));
        }
        for deployment in self.server.values(&deployments()) {
            for _ in 0..deployment["spec"]["replicas"].as_u64().unwrap_or_default() {
                let pod = self.new_pod(&deployment);
                self.run(pod);
            }
        }
        let pods = self.server.values(&pods());
        for deployment in self.server.values(&deployments()) {
            let there = pods_of(&deployment, &pods).len() as u64;
            self.report(deployment, there);
        }
    }

    fn change_something(&mut self) {
        match self.random.u32(..10) {
            0 => self.heartbeat(),
            1 => self.scale(),
            2 => self.finish_a_pod(),
            _ => self.work_towards_what_is_wanted(),
        }
    }

    fn heartbeat(&mut self) {
        let name = NODES[self.random.usize(..NODES.len())];
        let key = ObjectKey::cluster_scoped(name);
        let Some(mut node) = self.server.get_object(&nodes(), &key) else { return };
        node["status"]["conditions"][0]["lastHeartbeatTime"] = json!(now());
        let used = self.random.u64(20..90);
        node["metadata"]["annotations"]["demo.kubeflect.dev/used-percent"] =
            json!(used.to_string());
        self.apply(node);
    }

    fn scale(&mut self) {
        let deployments = self.server.values(&deployments());
        let Some(mut deployment) = self.random.choice(deployments) else { return };
        let replicas = deployment["spec"]["replicas"].as_u64().unwrap_or(1);
        let scaled = if self.random.bool() { replicas + 1 } else { replicas.saturating_sub(1) };
        deployment["spec"]["replicas"] = json!(scaled.clamp(1, MOST_REPLICAS));
        self.apply(deployment);
    }

    /// A worker has done its work and says so; any other pod is evicted.
    fn finish_a_pod(&mut self) {
        let mut pods = self.server.values(&pods());
        pods.retain(|pod| is_in(pod, "Running"));
        let Some(mut pod) = self.random.choice(pods) else { return };
        if pod["metadata"]["labels"]["app"] == "worker" {
            pod["status"]["phase"] = json!("Succeeded");
            pod["status"]["containerStatuses"][0]["ready"] = json!(false);
            self.apply(pod);
        } else {
            self.delete(&pod);
        }
    }

    /// Does the first thing there is to do; a cluster at rest has heartbeats only.
    fn work_towards_what_is_wanted(&mut self) {
        let pods = self.server.values(&pods());
        if let Some(pod) = pods.iter().find(|pod| is_in(pod, "Succeeded")) {
            return self.delete(pod);
        }
        if let Some(pod) = pods.iter().find(|pod| is_in(pod, "Pending")) {
            return self.run(pod.clone());
        }
        let deployments = self.server.values(&deployments());
        let exists = |uid: &str| deployments.iter().any(|other| other["metadata"]["uid"] == uid);
        if let Some(orphan) = pods.iter().find(|pod| owner_of(pod).is_some_and(|uid| !exists(uid)))
        {
            return self.delete(orphan);
        }
        for deployment in deployments {
            let wanted = deployment["spec"]["replicas"].as_u64().unwrap_or(1);
            let pods = pods_of(&deployment, &pods);
            let there = pods.len() as u64;
            if there < wanted {
                let pod = self.new_pod(&deployment);
                return self.apply(pod);
            }
            if there > wanted
                && let Some(pod) = self.random.choice(pods)
            {
                return self.delete(pod);
            }
            if deployment["status"]["readyReplicas"] != json!(there) {
                return self.report(deployment, there);
            }
        }
        self.heartbeat();
    }

    fn report(&self, mut deployment: Value, there: u64) {
        deployment["status"] = json!({
            "replicas": there, "readyReplicas": there, "availableReplicas": there, "updatedReplicas": there,
        });
        self.apply(deployment);
    }

    /// The kubelet's part: a scheduled pod gets an address and runs.
    fn run(&mut self, mut pod: Value) {
        pod["status"] = json!({
            "phase": "Running",
            "podIP": format!("10.{}.{}.{}", self.random.u8(..), self.random.u8(..), self.random.u8(1..)),
            "startTime": now(),
            "conditions": [{ "type": "Ready", "status": "True" }],
            "containerStatuses": [{ "name": "main", "ready": true, "restartCount": 0 }],
        });
        self.apply(pod);
    }

    fn new_pod(&mut self, deployment: &Value) -> Value {
        let (namespace, app) = place_of(deployment);
        let suffix: String = (0..5).map(|_| self.random.lowercase()).collect();
        let node = NODES[self.random.usize(..NODES.len())];
        json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {
                "namespace": namespace, "name": format!("{app}-{suffix}"), "labels": { "app": app },
                "ownerReferences": [{
                    "apiVersion": "apps/v1", "kind": "Deployment", "name": app, "controller": true,
                    "uid": deployment["metadata"]["uid"],
                }],
            },
            "spec": {
                "nodeName": node, "restartPolicy": "Always", "schedulerName": "default-scheduler",
                "containers": [{ "name": "main", "image": format!("registry.example/{app}:1.0") }],
            },
            "status": { "phase": "Pending" },
        })
    }

    fn apply(&self, object: Value) {
        if let Err(status) = self.server.apply(object) {
            tracing::warn!(reason = status.reason, "the demo cluster did not take a change");
        }
    }

    fn delete(&self, pod: &Value) {
        let (namespace, name) = place_of(pod);
        if let Err(status) = self.server.delete(&pods(), &ObjectKey::new(namespace, name)) {
            tracing::debug!(reason = status.reason, "somebody else deleted the pod first");
        }
    }
}

fn place_of(object: &Value) -> (&str, &str) {
    let text = |name: &str| object["metadata"][name].as_str().unwrap_or_default();
    (text("namespace"), text("name"))
}

fn is_in(pod: &Value, phase: &str) -> bool {
    pod["status"]["phase"] == phase
}

fn pods_of<'a>(deployment: &Value, pods: &'a [Value]) -> Vec<&'a Value> {
    pods.iter().filter(|pod| owner_of(pod) == deployment["metadata"]["uid"].as_str()).collect()
}

fn owner_of(pod: &Value) -> Option<&str> {
    pod["metadata"]["ownerReferences"][0]["uid"].as_str()
}

fn pods() -> Kind {
    Kind::new("", "v1", "Pod", "pods", Scope::Namespaced)
}

fn nodes() -> Kind {
    Kind::new("", "v1", "Node", "nodes", Scope::Cluster)
}

fn deployments() -> Kind {
    Kind::new("apps", "v1", "Deployment", "deployments", Scope::Namespaced)
}

fn node(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": { "name": name, "labels": { "kubernetes.io/hostname": name, "node-role.kubernetes.io/worker": "" }, "annotations": {} },
        "status": {
            "capacity": { "cpu": "8", "memory": "32Gi", "pods": "110" },
            "conditions": [{ "type": "Ready", "status": "True", "lastHeartbeatTime": now() }],
            "nodeInfo": { "kubeletVersion": "v1.37.0" },
        },
    })
}

fn deployment(namespace: &str, name: &str, replicas: usize) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": { "namespace": namespace, "name": name, "labels": { "app": name } },
        "spec": {
            "replicas": replicas,
            "selector": { "matchLabels": { "app": name } },
            "template": {
                "metadata": { "labels": { "app": name } },
                "spec": { "containers": [{ "name": "main", "image": format!("registry.example/{name}:1.0") }] },
            },
        },
    })
}

#[cfg(test)]
mod tests {
    use futures::StreamExt as _;

    use super::*;
    use crate::client::Request;

    #[test]
    fn a_demo_cluster_has_nodes_deployments_and_their_pods() {
        let server = ApiServer::demo_cluster(7);
        assert_eq!(server.objects(&nodes()).len(), 3);
        assert_eq!(server.objects(&deployments()).len(), 5);
        assert_eq!(server.objects(&pods()).len(), 20);
        assert_eq!(server.objects(&pods()), ApiServer::demo_cluster(7).objects(&pods()));
    }

    #[tokio::test]
    async fn who_knows_the_cluster_of_another_seed_has_to_list_again() {
        let known: Vec<u64> = (1..=9)
            .map(|seed| ApiServer::demo_cluster(seed).resource_version().parse().unwrap())
            .collect();
        for (at, one) in known.iter().enumerate() {
            assert!(known[at + 1..].iter().all(|other| one.abs_diff(*other) > 500), "{known:?}");
        }
        let newest = known.iter().max().unwrap();
        let at = known.iter().position(|version| version == newest).unwrap();
        let server = ApiServer::demo_cluster(at as u64 + 1);
        let status = async |version: u64| {
            let query =
                vec![("watch", "true".to_owned()), ("resourceVersion", version.to_string())];
            let request = Request { query, ..Request::get("/api/v1/pods") };
            let response = server.handle(request).await;
            let first = response.body.take(1).collect::<Vec<_>>();
            let first = tokio::time::timeout(Duration::from_millis(200), first).await;
            first.map(|chunks| format!("{:?}", chunks[0]).contains("Expired")).unwrap_or_default()
        };
        assert!(!status(*newest).await, "its own");
        assert!(status(known[(at + 1) % 9]).await, "that of another");
    }

    #[tokio::test(start_paused = true)]
    async fn a_running_demo_changes_and_stays_plausible() {
        let server = ApiServer::demo_cluster(7);
        let before = server.objects(&pods());
        let demo = server.clone().run_demo(10.0);
        assert!(tokio::time::timeout(Duration::from_secs(60), demo).await.is_err());
        let after = server.objects(&pods());
        assert!((5..=45).contains(&after.len()), "{}", after.len());
        assert!(after.keys().any(|key| !before.contains_key(key)));
        let version = |server: &ApiServer| server.resource_version().parse::<u64>().unwrap();
        assert!(version(&server) > version(&ApiServer::demo_cluster(7)) + 300);
    }
}
