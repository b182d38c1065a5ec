use std::cmp::Reverse;
use std::collections::BTreeMap;

use kube_core::Version;
use serde_json::{Value, json};

use super::failure::{Failure, TEXT, json_response, whole_response};
use super::model::Model;
use super::resources::{Origin, Served};
use super::route::Call;
use super::{aggregated, openapi};
use crate::client::{Method, Response};

pub(super) const STATUS_VERBS: [&str; 3] = ["get", "patch", "update"];

/// Answers everything that is not about objects.
pub(super) fn answer(model: &Model, call: &Call, path: &[String]) -> Response {
    let path: Vec<&str> = path.iter().map(String::as_str).collect();
    let found = find(model, &path);
    if found.is_some() && call.method != Method::Get {
        return Failure::method_not_allowed().response();
    }
    if aggregated::is_wanted(&call.accept)
        && let ["api"] | ["apis"] = path.as_slice()
    {
        let all = if path == ["api"] { aggregated::core(model) } else { aggregated::named(model) };
        return whole_response(200, aggregated::MEDIA_TYPE, all.to_string().into());
    }
    match found {
        Some(Value::String(text)) => whole_response(200, TEXT, text.into()),
        Some(body) => json_response(200, &body),
        None if is_built_in(model, &path) => Failure::no_such_resource().response(),
        None => whole_response(404, TEXT, "404 page not found\n".into()),
    }
}

/// Whether a path leads into a group that the server has of its own.
fn is_built_in(model: &Model, path: &[&str]) -> bool {
    let group = match path {
        ["api", _, _, ..] => "",
        ["apis", group, _, ..] => group,
        _ => return false,
    };
    open_kinds(model).any(|it| it.kind.group == group && it.origin == Origin::BuiltIn)
}

/// What is at a path: an object, or plain text.
fn find(model: &Model, path: &[&str]) -> Option<Value> {
    match path {
        ["readyz" | "livez" | "healthz", ..] => Some(json!("ok")),
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
    }
}

fn version() -> Value {
    json!({
        "major": "1", "minor": "37", "gitVersion": "v1.37.0+kubeflect", "gitCommit": "", "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z", "goVersion": "", "compiler": "rustc", "platform": "memory",
    })
}

fn core_versions() -> Value {
    json!({ "kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": [] })
}

pub(super) fn open_kinds(model: &Model) -> impl Iterator<Item = &Served> {
    let open = model.collections.values().filter(|collection| collection.open);
    open.map(|collection| collection.served.as_ref())
}

/// The groups that have a name, in the order in which a server tells them: its own, then the others by name.
pub(super) fn in_order(model: &Model) -> Vec<(&str, Vec<&str>)> {
    const OWN: [&str; 6] = [
        "apps",
        "batch",
        "networking.k8s.io",
        "rbac.authorization.k8s.io",
        "apiextensions.k8s.io",
        "coordination.k8s.io",
    ];
    let mut groups: Vec<_> = groups(model).into_iter().collect();
    groups.sort_by_key(|(group, _)| OWN.iter().position(|own| own == group).unwrap_or(OWN.len()));
    groups
}

/// The groups that have a name, each with its versions.
pub(super) fn groups(model: &Model) -> BTreeMap<&str, Vec<&str>> {
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
        in_order(model).iter().map(|(group, versions)| api_group(group, versions)).collect();
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
        .flat_map(|served| {
            [Some(resource(served)), scale(served), served.has_status().then(|| status(served))]
        })
        .flatten()
        .collect();
    let group_version =
        if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
    (!resources.is_empty()).then(|| {
        let mut list = json!({
            "kind": "APIResourceList", "groupVersion": group_version, "resources": resources,
        });
        // The oldest group does not say it.
        if !group.is_empty() {
            list["apiVersion"] = json!("v1");
        }
        list
    })
}

fn resource(served: &Served) -> Value {
    let mut resource = json!({
        "name": served.kind.plural,
        "singularName": served.singular,
        "namespaced": served.is_namespaced(),
        "kind": served.kind.kind,
        "verbs": served.verbs(),
    });
    if !served.short_names.is_empty() {
        resource["shortNames"] = json!(served.short_names);
    }
    if !served.categories().is_empty() {
        resource["categories"] = json!(served.categories());
    }
    resource
}

fn scale(served: &Served) -> Option<Value> {
    served.is_scalable().then(|| {
        json!({
            "name": format!("{}/scale", served.kind.plural), "singularName": "", "namespaced": true,
            "group": "autoscaling", "version": "v1", "kind": "Scale", "verbs": STATUS_VERBS,
        })
    })
}

fn status(served: &Served) -> Value {
    json!({
        "name": format!("{}/status", served.kind.plural),
        "singularName": "",
        "namespaced": served.is_namespaced(),
        "kind": served.kind.kind,
        "verbs": STATUS_VERBS,
    })
}
