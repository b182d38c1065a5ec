//! kubectl is content with the embedded server: the same commands, and no flags but the address.

use std::time::Duration;

use kubeflect::embedded::{ApiServer, ServingApiServer};
use kubeflect::object::{Kind, Scope};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, BufReader};

use crate::console::{Kubectl, words};
use crate::server::{Server, Setup};
use crate::support::LONG;
use crate::users::User;

/// An embedded server, and a kubectl that knows of no other.
struct World {
    serving: ServingApiServer,
    kubectl: Kubectl,
}

impl World {
    async fn start() -> Self {
        Self::start_in("default").await
    }

    async fn start_in(namespace: &str) -> Self {
        let serving = ApiServer::new().start().await.unwrap();
        let kubectl = Kubectl::new(&["--server", &serving.url(), "--namespace", namespace]).await;
        Self { serving, kubectl }
    }

    fn server(&self) -> &ApiServer {
        self.serving.server()
    }

    async fn stop(self) {
        self.serving.stop().await;
    }
}

impl std::ops::Deref for World {
    type Target = Kubectl;

    fn deref(&self) -> &Kubectl {
        &self.kubectl
    }
}

fn pod(name: &str, image: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": { "name": name, "labels": { "app": "web" } },
        "spec": { "nodeName": "node-1", "containers": [
            { "name": "main", "image": image, "ports": [{ "containerPort": 80 }] },
            { "name": "side", "image": "side" },
        ] },
        "status": { "phase": "Running", "containerStatuses": [{ "ready": true, "restartCount": 2 }] },
    })
}

#[actix::test]
async fn objects_are_printed_as_a_real_server_would_have_them_printed() {
    let world = World::start().await;
    world.server().create(pod("a", "app")).unwrap();
    let mut other = pod("b", "app");
    other["metadata"] = json!({ "name": "b", "namespace": "other" });
    other["spec"]["nodeName"] = json!("node-2");
    world.server().create(other).unwrap();

    let all = world.say("get pods -A -o wide").await;
    let heading = ["NAMESPACE", "NAME", "READY", "STATUS", "RESTARTS", "AGE", "IP", "NODE"];
    assert_eq!(words(&all)[0][..8], heading);
    assert_eq!(words(&all)[1][..5], ["default", "a", "1/2", "Running", "2"]);
    assert_eq!(words(&all)[2][..2], ["other", "b"]);
    for (selection, names) in [
        ("-l app=web", "pod/a\n"),
        ("-l app!=web", "pod/b\n"),
        ("--field-selector spec.nodeName=node-2", "pod/b\n"),
        ("--chunk-size 1", "pod/a\npod/b\n"),
        ("--sort-by .spec.nodeName", "pod/a\npod/b\n"),
    ] {
        let command = format!("get pods -A -o name {selection}");
        assert_eq!(world.say(&command).await, names, "{command}");
    }
    let list: Value = serde_json::from_str(&world.say("get pods -o json").await).unwrap();
    assert_eq!(list["items"][0]["spec"]["containers"][0]["image"], "app");
    assert!(world.say("get pod a -o yaml").await.contains("\n  - image: app\n"));
    assert!(world.say("describe pod a").await.contains("node-1"));
    assert_eq!(world.say("get configmaps").await, "No resources found in default namespace.\n");
    assert_eq!(world.say("get crd").await, "No resources found\n");
    assert_eq!(words(&world.say("get all").await)[1][0], "pod/a");
    let complaint = world.fail("get pod none", &Value::Null).await;
    assert_eq!(complaint, "Error from server (NotFound): pods \"none\" not found\n");
    world.stop().await;
}

#[actix::test]
async fn what_is_applied_twice_is_merged_as_kubernetes_merges_it() {
    let world = World::start().await;
    assert_eq!(world.feed("apply -f -", &pod("a", "app:1")).await, "pod/a created\n");
    assert_eq!(world.feed("apply -f -", &pod("a", "app:1")).await, "pod/a unchanged\n");
    let dry = "apply --dry-run=server -f -";
    assert_eq!(world.feed(dry, &pod("a", "app:2")).await, "pod/a configured (server dry run)\n");
    assert_eq!(world.feed("apply -f -", &pod("a", "app:2")).await, "pod/a configured\n");
    let mut alone = pod("a", "app:2");
    let containers =
        "{.spec.containers[*].name} {.spec.containers[0].image} {.spec.containers[0].ports}";
    let shown = ["get", "pod", "a", "-o", &format!("jsonpath={containers}")];
    let told = world.run(&shown, &Value::Null).await.stdout;
    assert_eq!(String::from_utf8(told).unwrap(), "main side app:2 [{\"containerPort\":80}]");
    alone["spec"]["containers"] = json!([{ "name": "side", "image": "side" }]);
    assert_eq!(world.feed("apply -f -", &alone).await, "pod/a configured\n");
    let names = world.say("get pod a -o jsonpath={.spec.containers[*].name}").await;
    assert_eq!(names, "side");
    let refused = world.fail("apply --server-side -f -", &alone).await;
    assert!(refused.contains("Server-side apply not available on the server"), "{refused}");
    world.stop().await;
}

#[actix::test]
async fn objects_are_created_changed_and_deleted() {
    let world = World::start().await;
    let map = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "a" }, "data": { "x": "1" },
    });
    for (command, said) in [
        ("create -f -", "configmap/a created"),
        ("label configmap a tier=front", "configmap/a labeled"),
        ("annotate configmap a note=yes", "configmap/a annotated"),
        (r#"patch configmap a --type=merge -p {"data":{"y":"2"}}"#, "configmap/a patched"),
        (
            r#"patch configmap a --type=json -p [{"op":"remove","path":"/data/x"}]"#,
            "configmap/a patched",
        ),
        (r#"patch configmap a -p {"data":{"z":"3"}}"#, "configmap/a patched"),
    ] {
        assert_eq!(world.feed(command, &map).await.trim_end(), said, "{command}");
    }
    let data = world.say("get configmap a -o jsonpath={.metadata.labels.tier}{.data}").await;
    assert_eq!(data, r#"front{"y":"2","z":"3"}"#);
    assert_eq!(world.feed("replace -f -", &map).await, "configmap/a replaced\n");
    let complaint = world.fail("create -f -", &map).await;
    assert!(complaint.starts_with("Error from server (AlreadyExists)"), "{complaint}");
    let deleted = world.say("delete configmap a").await;
    assert_eq!(deleted, "configmap \"a\" deleted from default namespace\n");
    world.stop().await;
}

#[actix::test]
async fn a_watch_prints_what_is_created_changed_and_deleted() {
    let world = World::start().await;
    world.server().create(pod("a", "app")).unwrap();
    let arguments = ["get", "pods", "-w", "--output-watch-events", "--no-headers"];
    let mut child = world.command(&arguments).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut next = async || {
        let line = tokio::time::timeout(LONG, lines.next_line()).await;
        let line = line.expect("kubectl prints it").unwrap().expect("kubectl goes on");
        let words: Vec<&str> = line.split_whitespace().collect();
        words[..4].join(" ")
    };
    assert_eq!(next().await, "ADDED a 1/2 Running");
    world.feed("create -f -", &pod("b", "app")).await;
    assert_eq!(next().await, "ADDED b 1/2 Running");
    world.say(r#"patch pod b --type=merge -p {"status":{"phase":"Failed"}}"#).await;
    assert_eq!(next().await, "MODIFIED b 1/2 Failed");
    world.say("delete pod b").await;
    assert_eq!(next().await, "DELETED b 1/2 Failed");
    child.kill().await.unwrap();
    world.stop().await;
}

#[actix::test]
async fn the_embedded_server_makes_kubectl_say_what_the_real_one_makes_it_say() {
    let server = Server::real(Setup::Shared).await;
    let (kubeconfig, namespace) = (server.kubeconfig(User::Admin), server.namespace.as_str());
    let kubeconfig = kubeconfig.to_str().unwrap();
    let real = Kubectl::new(&["--kubeconfig", kubeconfig, "--namespace", namespace]).await;
    let embedded = World::start_in(namespace).await;
    let space =
        json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": namespace } });
    embedded.server().create(space).unwrap();
    let map = |value: &str| {
        json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": { "name": "a", "labels": { "tier": "front" } }, "data": { "x": value },
        })
    };
    let mut differences = Vec::new();
    for (command, input) in [
        ("get configmaps", Value::Null),
        ("get configmap a", Value::Null),
        ("apply -f -", map("1")),
        ("apply -f -", map("1")),
        ("apply -f -", map("2")),
        ("create -f -", map("1")),
        ("apply --dry-run=server -f -", map("3")),
        ("get configmap a -o jsonpath={.data}", Value::Null),
        ("get configmaps -l tier=front -o name", Value::Null),
        ("get configmaps -l tier=back -o name", Value::Null),
        ("get configmaps --field-selector metadata.name=a -o name", Value::Null),
        ("get configmaps --field-selector data.x=a", Value::Null),
        ("get pods --field-selector spec.nodeName=a,status.phase!=Running", Value::Null),
        ("label configmap a colour=blue", Value::Null),
        ("label configmap a colour=red", Value::Null),
        ("label --overwrite configmap a colour=red", Value::Null),
        ("annotate configmap a note=yes", Value::Null),
        (r#"patch configmap a -p {"data":{"y":"2"}}"#, Value::Null),
        (r#"patch configmap a -p {"data":{"y":"2"}}"#, Value::Null),
        (r#"patch configmap a --type=merge -p {"data":{"z":"3"}}"#, Value::Null),
        (r#"patch configmap a --type=merge -p {"data":{"y":null}}"#, Value::Null),
        (r#"patch configmap a --type=json -p [{"op":"remove","path":"/data/none"}]"#, Value::Null),
        (r#"patch configmap a --type=json -p [{"op":"remove","path":"/data/x"}]"#, Value::Null),
        (r#"patch configmap none -p {"data":{"y":"2"}}"#, Value::Null),
        ("get configmap a -o jsonpath={.data}{.metadata.labels}", Value::Null),
        ("replace -f -", map("4")),
        ("delete configmap a --dry-run=server", Value::Null),
        ("delete configmap a", Value::Null),
        ("delete configmap a", Value::Null),
        ("delete configmap a --ignore-not-found", Value::Null),
        ("replace -f -", map("4")),
        ("get nothings", Value::Null),
        ("get crd", Value::Null),
        ("get crd none", Value::Null),
        ("get pods,configmaps -A -l tier=none", Value::Null),
        ("get --raw /readyz", Value::Null),
        ("get --raw /nothing", Value::Null),
        ("get --raw /api/v1/namespaces/default/configmaps/none", Value::Null),
        ("scale deployment none --replicas=2", Value::Null),
        ("rollout restart deployment none", Value::Null),
        ("logs none", Value::Null),
    ] {
        let (truth, imitation) =
            (real.speak(command, &input).await, embedded.speak(command, &input).await);
        if truth != imitation {
            differences
                .push(format!("{command} {input}\n  real     {truth}\n  embedded {imitation}"));
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
    embedded.stop().await;
}

#[actix::test]
async fn kinds_and_the_server_describe_themselves() {
    let world = World::start().await;
    world.server().register(Kind::new("example.com", "v1", "Gadget", "gadgets", Scope::Namespaced));
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "widgets.example.com" },
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": { "kind": "Widget", "plural": "widgets", "singular": "widget", "shortNames": ["wd"] },
            "versions": [{ "name": "v1", "served": true, "storage": true, "schema": { "openAPIV3Schema": {
                "type": "object", "properties": { "size": { "type": "integer", "description": "How large." } },
            } } }],
        },
    });
    world.feed("apply -f -", &definition).await;
    let widget = |size: u8| {
        json!({
            "apiVersion": "example.com/v1", "kind": "Widget", "metadata": { "name": "a" }, "size": size,
        })
    };
    // Definitions may be newer than what kubectl remembers.
    let invalidated = tokio::time::timeout(LONG, async {
        while !world.run(&["apply", "-f", "-"], &widget(1)).await.status.success() {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    });
    invalidated.await.expect("kubectl finds the new kind");
    assert_eq!(world.feed("apply -f -", &widget(2)).await, "widget.example.com/a configured\n");
    assert_eq!(world.say("get wd a -o jsonpath={.size}").await, "2");
    assert_eq!(words(&world.say("get crd").await)[1][0], "widgets.example.com");
    assert_eq!(world.say("get gadgets").await, "No resources found in default namespace.\n");

    let kinds = world.say("api-resources --no-headers").await;
    for line in [
        vec!["pods", "po", "v1", "true", "Pod"],
        vec!["gadgets", "example.com/v1", "true", "Gadget"],
        vec!["widgets", "wd", "example.com/v1", "true", "Widget"],
    ] {
        assert!(words(&kinds).contains(&line), "{kinds}");
    }
    assert!(world.say("explain pods").await.contains("metadata\t<Object>"));
    assert!(world.say("explain widgets.size").await.contains("How large."));
    assert!(world.say("version").await.contains("Server Version: v1.37.0+kubeflect"));
    assert_eq!(world.say("get --raw /readyz").await, "ok");
    world.stop().await;
}
