//! The files in `config/` are what they say.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use kubeflect::config::Config;
use kubeflect::embedded::ApiServer;
use serde_json::Value;

use crate::support::{Served, output, repository};

/// The documents of a file, by kind.
fn documents(file: &str) -> BTreeMap<String, Value> {
    let text = fs::read_to_string(repository("config").join(file)).unwrap();
    let parsed = text.split("\n---\n").map(|part| serde_saphyr::from_str::<Value>(part).unwrap());
    parsed.map(|object| (object["kind"].as_str().unwrap().to_owned(), object)).collect()
}

#[test]
fn the_role_suffices_for_the_default_configuration_and_grants_nothing_else() {
    let role = &documents("rbac.yaml")["ClusterRole"];
    let api = ApiServer::demo_cluster(1);
    api.allow_only(role);
    let served = Served::start(&api);
    let config = repository("config/kubeflect.toml").display().to_string();
    let check = output(&["check", "--config", &config, "--server", &served.url]);
    let table = String::from_utf8(check.stdout).unwrap();
    assert_eq!(check.status.code(), Some(0), "{table}");

    let rules = role["rules"].as_array().unwrap();
    let granted: usize = rules.iter().map(|rule| rule["resources"].as_array().unwrap().len()).sum();
    assert_eq!(granted, Config::default().reflectors.len());
    for rule in rules {
        assert_eq!(rule["verbs"], serde_json::json!(["list", "watch"]));
    }

    let mut less = role.clone();
    less["rules"].as_array_mut().unwrap().pop();
    api.allow_only(&less);
    let check = output(&["check", "--config", &config, "--server", &served.url]);
    assert_eq!(check.status.code(), Some(1), "a right less is too few");
}

#[test]
fn the_deployment_runs_what_the_role_lets_it() {
    let (rights, documents) = (documents("rbac.yaml"), documents("deployment.yaml"));
    let subject = &rights["ClusterRoleBinding"]["subjects"][0];
    let account = &documents["ServiceAccount"]["metadata"];
    assert_eq!(
        (&subject["name"], &subject["namespace"]),
        (&account["name"], &account["namespace"])
    );

    let pod = &documents["Deployment"]["spec"]["template"]["spec"];
    assert_eq!(pod["serviceAccountName"], account["name"]);
    let text = documents["ConfigMap"]["data"]["kubeflect.toml"].as_str().unwrap();
    let config = Config::parse(Path::new("kubeflect.toml"), text).unwrap();
    let kinds = |config: &Config| -> Vec<String> {
        config.reflectors.values().map(|reflector| reflector.full_kind()).collect()
    };
    assert_eq!(kinds(&config), kinds(&Config::default()));

    let container = &pod["containers"][0];
    let port = config.page.listen.unwrap().port();
    assert_eq!(container["ports"][0]["containerPort"], port);
    assert_eq!(container["livenessProbe"]["httpGet"]["path"], "/livez");
    assert_eq!(container["readinessProbe"]["httpGet"]["path"], "/readyz");
    assert!(container["resources"]["requests"]["memory"].is_string());
    assert!(container["resources"]["limits"]["memory"].is_string());
}

#[test]
fn the_network_policy_lets_the_named_namespace_reach_the_page_s_port_and_nobody_else() {
    let documents = documents("deployment.yaml");
    let (policy, deployment) = (&documents["NetworkPolicy"], &documents["Deployment"]);
    assert_eq!(policy["metadata"]["namespace"], deployment["metadata"]["namespace"]);
    assert_eq!(policy["spec"]["podSelector"], deployment["spec"]["selector"]);
    assert_eq!(policy["spec"]["policyTypes"], serde_json::json!(["Ingress"]));
    let ingress = policy["spec"]["ingress"].as_array().unwrap();
    assert_eq!(ingress.len(), 1);
    let from = ingress[0]["from"].as_array().unwrap();
    assert!(!from.is_empty() && from.iter().all(|peer| peer["namespaceSelector"].is_object()));
    let container = &deployment["spec"]["template"]["spec"]["containers"][0];
    let port = &container["ports"][0]["containerPort"];
    assert_eq!(ingress[0]["ports"], serde_json::json!([{ "protocol": "TCP", "port": port }]));
}

#[test]
fn the_embedded_server_takes_every_manifest() {
    let api = ApiServer::new();
    for file in ["rbac.yaml", "deployment.yaml"] {
        for (kind, object) in documents(file) {
            assert!(api.create(object).is_ok(), "{file}: {kind}");
        }
    }
}

/// What the standard for restricted pods asks for.
#[test]
fn the_deployment_is_restricted() {
    let documents = documents("deployment.yaml");
    let pod = &documents["Deployment"]["spec"]["template"]["spec"];
    let (of_pod, of_container) =
        (&pod["securityContext"], &pod["containers"][0]["securityContext"]);
    assert_eq!(of_pod["runAsNonRoot"], true);
    assert_ne!(of_pod["runAsUser"], 0);
    assert_eq!(of_pod["seccompProfile"]["type"], "RuntimeDefault");
    assert_eq!(of_container["allowPrivilegeEscalation"], false);
    assert_eq!(of_container["readOnlyRootFilesystem"], true);
    assert_eq!(of_container["capabilities"]["drop"], serde_json::json!(["ALL"]));
    let volumes = pod["volumes"].as_array().unwrap();
    assert!(volumes.iter().all(|volume| volume["configMap"].is_object()));
}
