use serde_json::{Map, Value, json};

use super::discovery::open_kinds;
use super::model::Model;
use super::resources::{ResourceId, Served};
use crate::object::ObjectKey;

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

/// Describes the kinds of one group and version: hardly what is in them, but that the server looks after validation
/// itself. Without this, kubectl insists on validating, for want of schemas can not, and refuses to write anything.
pub(super) fn description(model: &Model, path: &str) -> Option<Value> {
    let here = || open_kinds(model).filter(|served| path_of(served) == path);
    let paths: Map<String, Value> =
        here().map(|served| (object_path(served), patch(served))).collect();
    let schemas: Map<String, Value> =
        here().map(|served| (schema_name(served), schema(model, served))).collect();
    (!paths.is_empty()).then(|| {
        let info = json!({ "title": "Kubernetes", "version": "v1.37.0" });
        json!({ "openapi": "3.0.0", "info": info, "paths": paths, "components": { "schemas": schemas } })
    })
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

fn schema_name(served: &Served) -> String {
    let kind = &served.kind;
    [&kind.group, &kind.version, &kind.kind]
        .map(AsRef::as_ref)
        .join(".")
        .trim_matches('.')
        .to_owned()
}

/// What its definition says, or what all objects have in common: enough for `kubectl explain`.
fn schema(model: &Model, served: &Served) -> Value {
    let kind = &served.kind;
    let string = |description: &str| json!({ "type": "string", "description": description });
    let object =
        |description: &str| json!({ "type": "object", "description": description, "default": {} });
    let mut schema = defined_schema(model, served).unwrap_or_else(|| {
        json!({
            "type": "object",
            "description": "Of this kind the server knows what all kinds have in common.",
            "properties": { "spec": object("What is wanted."), "status": object("What is.") },
        })
    });
    schema["properties"]["apiVersion"] = string("The group and version of this kind.");
    schema["properties"]["kind"] = string("The name of this kind.");
    schema["properties"]["metadata"] = object("Name, labels, version and the like.");
    schema["x-kubernetes-group-version-kind"] =
        json!([{ "group": kind.group, "version": kind.version, "kind": kind.kind }]);
    schema
}

fn defined_schema(model: &Model, served: &Served) -> Option<Value> {
    let name = format!("{}.{}", served.kind.plural, served.kind.group);
    let definition =
        model.object(&ResourceId::definitions(), &ObjectKey::new("", &name))?.to_value();
    let versions = definition["spec"]["versions"].as_array()?;
    let version = versions.iter().find(|version| version["name"] == *served.kind.version)?;
    let schema = &version["schema"]["openAPIV3Schema"];
    schema.is_object().then(|| schema.clone())
}
