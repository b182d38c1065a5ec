use serde_json::{Map, Value, json};

use super::model::Model;
use super::resources::Served;

/// The groups and versions that have a description.
pub(super) fn index(model: &Model) -> Value {
    let paths: Map<String, Value> = open_kinds(model)
        .map(|served| {
            let path = path_of(served);
            let url = json!({ "serverRelativeURL": format!("/openapi/v3/{path}") });
            (path, url)
        })
        .collect();
    json!({ "paths": paths })
}

/// Describes the kinds of one group and version: no schemas, but that the server looks after validation itself.
/// Without this, kubectl insists on validating, for want of schemas can not, and refuses to write anything.
pub(super) fn description(model: &Model, path: &str) -> Option<Value> {
    let here = open_kinds(model).filter(|served| path_of(served) == path);
    let paths: Map<String, Value> =
        here.map(|served| (object_path(served), patch(served))).collect();
    (!paths.is_empty()).then(|| {
        let info = json!({ "title": "Kubernetes", "version": "v1.34.0" });
        json!({ "openapi": "3.0.0", "info": info, "paths": paths })
    })
}

fn open_kinds(model: &Model) -> impl Iterator<Item = &Served> {
    let open = model.collections.values().filter(|collection| collection.open);
    open.map(|collection| collection.served.as_ref())
}

fn path_of(served: &Served) -> String {
    match served.kind.group.as_ref() {
        "" => format!("api/{}", served.kind.version),
        group => format!("apis/{group}/{}", served.kind.version),
    }
}

fn object_path(served: &Served) -> String {
    let namespace = if served.is_namespaced() { "namespaces/{namespace}/" } else { "" };
    format!("/{}/{namespace}{}/{{name}}", path_of(served), served.kind.plural)
}

fn patch(served: &Served) -> Value {
    let kind = &served.kind;
    json!({
        "patch": {
            "parameters": [{ "name": "fieldValidation", "in": "query", "schema": { "type": "string" } }],
            "requestBody": { "content": { "application/merge-patch+json": {}, "application/json-patch+json": {} } },
            "responses": { "200": { "description": "OK" } },
            "x-kubernetes-group-version-kind": { "group": kind.group, "version": kind.version, "kind": kind.kind },
        },
    })
}
