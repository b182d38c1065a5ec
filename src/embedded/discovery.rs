use std::cmp::Reverse;
use std::collections::BTreeMap;

use kube_core::Version;
use serde_json::{Value, json};

use super::failure::{Failure, json_response, text_response};
use super::model::Model;
use super::openapi;
use super::resources::Served;
use crate::client::Response;

const VERBS: [&str; 8] =
    ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];

/// Answers everything that is not about objects.
pub(super) fn answer(model: &Model, path: &[String]) -> Response {
    let path: Vec<&str> = path.iter().map(String::as_str).collect();
    let found = match path.as_slice() {
        ["readyz" | "livez" | "healthz", ..] => return text_response(200, "ok"),
        ["version"] => Some(version()),
        ["openapi", "v3"] => Some(openapi::index(model)),
        ["openapi", "v3", rest @ ..] => openapi::description(model, &rest.join("/")),
        ["api"] => Some(core_versions()),
        ["apis"] => Some(group_list(model)),
        ["apis", group] => groups(model).get(group).map(|versions| {
            let mut body = api_group(group, versions);
            body["kind"] = json!("APIGroup");
            body["apiVersion"] = json!("v1");
            body
        }),
        ["api", version] => resource_list(model, "", version),
        ["apis", group, version] => resource_list(model, group, version),
        _ => None,
    };
    match found {
        Some(body) => json_response(200, &body),
        None => text_response(404, "404 page not found\n"),
    }
}

pub(super) fn refuse_to_write() -> Response {
    Failure::method_not_allowed().response()
}

fn version() -> Value {
    json!({
        "major": "1", "minor": "34", "gitVersion": "v1.34.0+kubeflect", "gitCommit": "", "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z", "goVersion": "", "compiler": "rustc", "platform": "memory",
    })
}

fn core_versions() -> Value {
    json!({ "kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": [] })
}

fn open_kinds(model: &Model) -> impl Iterator<Item = &Served> {
    let open = model.collections.values().filter(|collection| collection.open);
    open.map(|collection| collection.served.as_ref())
}

/// The groups that have a name, each with its versions.
fn groups(model: &Model) -> BTreeMap<&str, Vec<&str>> {
    let mut groups: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for served in open_kinds(model).filter(|served| !served.kind.group.is_empty()) {
        let versions = groups.entry(&served.kind.group).or_default();
        if !versions.contains(&served.kind.version.as_ref()) {
            versions.push(&served.kind.version);
        }
    }
    // The first one is preferred: the stablest, then the newest.
    for versions in groups.values_mut() {
        versions.sort_by_key(|version| Reverse(Version::parse(version).priority()));
    }
    groups
}

fn group_list(model: &Model) -> Value {
    let groups: Vec<Value> =
        groups(model).iter().map(|(group, versions)| api_group(group, versions)).collect();
    json!({ "kind": "APIGroupList", "apiVersion": "v1", "groups": groups })
}

fn api_group(group: &str, versions: &[&str]) -> Value {
    let version = |version: &&str| json!({ "groupVersion": format!("{group}/{version}"), "version": version });
    json!({
        "name": group,
        "versions": versions.iter().map(version).collect::<Vec<_>>(),
        "preferredVersion": versions.first().map(version),
    })
}

fn resource_list(model: &Model, group: &str, version: &str) -> Option<Value> {
    let here = |served: &&Served| served.kind.group == group && served.kind.version == version;
    let resources: Vec<Value> = open_kinds(model)
        .filter(here)
        .flat_map(|served| [resource(served), status(served)])
        .collect();
    let group_version =
        if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
    (!resources.is_empty()).then(|| {
        json!({ "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": resources })
    })
}

fn resource(served: &Served) -> Value {
    let mut resource = json!({
        "name": served.kind.plural,
        "singularName": served.singular,
        "namespaced": served.is_namespaced(),
        "kind": served.kind.kind,
        "verbs": VERBS,
    });
    if !served.short_names.is_empty() {
        resource["shortNames"] = json!(served.short_names);
    }
    resource
}

fn status(served: &Served) -> Value {
    json!({
        "name": format!("{}/status", served.kind.plural),
        "singularName": "",
        "namespaced": served.is_namespaced(),
        "kind": served.kind.kind,
        "verbs": ["get", "patch", "update"],
    })
}
