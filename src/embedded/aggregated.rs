use serde_json::{Value, json};

use super::discovery::{STATUS_VERBS, in_order, open_kinds};
use super::model::Model;
use super::resources::{Origin, Served};

/// What a client puts into `Accept` to have all groups in one answer, and the answer into `Content-Type`.
pub(super) const MEDIA_TYPE: &str =
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// Whether this form of discovery comes first among those that a client takes and we can give.
pub(super) fn is_wanted(accept: &str) -> bool {
    let known = accept.split(',').map(|range| {
        let mut parts: Vec<&str> = range.split(';').map(str::trim).collect();
        parts.sort_unstable();
        parts
    });
    let mut wanted: Vec<&str> = MEDIA_TYPE.split(';').collect();
    wanted.sort_unstable();
    { known }.find(|parts| *parts == wanted || *parts == ["application/json"]) == Some(wanted)
}

/// The group without a name, as `/api` tells it.
pub(super) fn core(model: &Model) -> Value {
    list(&[group(model, "", &["v1"])])
}

/// The groups that have a name, as `/apis` tells them.
pub(super) fn named(model: &Model) -> Value {
    let groups = in_order(model);
    list(&groups.iter().map(|(name, versions)| group(model, name, versions)).collect::<Vec<_>>())
}

fn list(items: &[Value]) -> Value {
    json!({
        "kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items,
    })
}

fn group(model: &Model, name: &str, versions: &[&str]) -> Value {
    let version = |version: &&str| {
        let here =
            open_kinds(model).filter(|it| it.kind.group == name && it.kind.version == *version);
        json!({
            "version": version, "freshness": "Current", "resources": here.map(resource).collect::<Vec<_>>(),
        })
    };
    let metadata = if name.is_empty() { json!({}) } else { json!({ "name": name }) };
    json!({ "metadata": metadata, "versions": versions.iter().map(version).collect::<Vec<_>>() })
}

fn resource(served: &Served) -> Value {
    let kind = &served.kind;
    // That of the list, where it is not said.
    let response_kind = match served.origin {
        Origin::BuiltIn => json!({ "group": "", "version": "", "kind": kind.kind }),
        Origin::Custom => {
            json!({ "group": kind.group, "version": kind.version, "kind": kind.kind })
        }
    };
    let mut resource = json!({
        "resource": kind.plural,
        "responseKind": response_kind,
        "scope": if served.is_namespaced() { "Namespaced" } else { "Cluster" },
        "singularResource": served.singular,
        "verbs": served.verbs(),
    });
    let mut subresources = Vec::new();
    if served.is_scalable() {
        let scale = json!({ "group": "autoscaling", "version": "v1", "kind": "Scale" });
        subresources
            .push(json!({ "subresource": "scale", "responseKind": scale, "verbs": STATUS_VERBS }));
    }
    if served.has_status() {
        subresources.push(
            json!({ "subresource": "status", "responseKind": response_kind, "verbs": STATUS_VERBS }),
        );
    }
    if !subresources.is_empty() {
        resource["subresources"] = json!(subresources);
    }
    if !served.short_names.is_empty() {
        resource["shortNames"] = json!(served.short_names);
    }
    if !served.categories().is_empty() {
        resource["categories"] = json!(served.categories());
    }
    resource
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_in_one_is_given_to_who_prefers_it() {
        let second = "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList";
        assert!(is_wanted(&format!("{MEDIA_TYPE},{second},application/json")));
        assert!(is_wanted(
            "application/json;as=APIGroupDiscoveryList;v=v2;g=apidiscovery.k8s.io, application/json"
        ));
        assert!(!is_wanted(&format!("application/json,{MEDIA_TYPE}")));
        assert!(!is_wanted(&format!("{second},application/json")));
        assert!(!is_wanted(""));
    }
}
