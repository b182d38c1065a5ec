use serde_json::{Map, Value, json};

use super::failure::{Failure, json_response};
use super::model::Model;
use super::mutation::{Preconditions, metadata_of, text};
use super::options::Query;
use super::resources::{Origin, ResourceId, Served};
use super::route::Call;
use super::selection::Selection;
use super::strategic_merge;
use crate::client::{Method, Response};
use crate::object::ObjectKey;

pub(super) fn create(
    model: &mut Model,
    call: &Call,
    resource: &ResourceId,
    namespace: Option<&str>,
) -> Result<Response, Failure> {
    let served = model.served(resource)?;
    if served.is_namespaced() && namespace.is_none() {
        return Err(Failure::method_not_allowed());
    }
    let mut object = read_object(call, &served)?;
    let namespace = namespace.unwrap_or_default();
    check_namespace(&mut object, namespace)?;
    let created = model.create(resource, namespace, object)?;
    Ok(json_response(201, &created))
}

pub(super) fn replace(
    model: &mut Model,
    call: &Call,
    resource: &ResourceId,
    key: &ObjectKey,
) -> Result<Response, Failure> {
    let mut object = read_object(call, &*model.served(resource)?)?;
    check_namespace(&mut object, key.namespace().unwrap_or_default())?;
    check_name(&mut object, key)?;
    Ok(json_response(200, &model.replace(resource, key, object)?))
}

pub(super) fn patch(
    model: &mut Model,
    call: &Call,
    resource: &ResourceId,
    key: &ObjectKey,
) -> Result<Response, Failure> {
    let served = model.served(resource)?;
    let value = patched(model.existing(resource, key)?.to_value(), call, &served)?;
    let Value::Object(mut object) = value else {
        return Err(Failure::rejected_patch());
    };
    check_name(&mut object, key)?;
    Ok(json_response(200, &model.replace(resource, key, object)?))
}

/// A value with the patch that a request brings.
pub(super) fn patched(mut value: Value, call: &Call, served: &Served) -> Result<Value, Failure> {
    let format = PatchFormat::of(call, served)?;
    let change: Value = serde_json::from_slice(&call.body).map_err(|error| undecodable(&error))?;
    match format {
        PatchFormat::Merge => json_patch::merge(&mut value, &change),
        PatchFormat::StrategicMerge => strategic_merge::merge(&mut value, &change)
            .map_err(|problem| Failure::bad_request(problem.message()))?,
        PatchFormat::Json => {
            let change: json_patch::Patch =
                serde_json::from_value(change).map_err(|error| undecodable(&error))?;
            json_patch::patch(&mut value, &change).map_err(|_unfit| Failure::rejected_patch())?;
        }
    }
    Ok(value)
}

pub(super) fn delete(
    model: &mut Model,
    call: &Call,
    resource: &ResourceId,
    key: &ObjectKey,
) -> Result<Response, Failure> {
    let served = model.served(resource)?;
    let last = model.remove(resource, key, &preconditions(call)?)?;
    let still_there = model.object(resource, key).is_some() && !model.rehearsing;
    if still_there || served.returns_deleted_object() {
        return Ok(json_response(200, &last));
    }
    let mut details =
        json!({ "name": key.name(), "kind": served.kind.plural, "uid": last["metadata"]["uid"] });
    if !served.kind.group.is_empty() {
        details["group"] = json!(served.kind.group);
    }
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details,
    });
    Ok(json_response(200, &status))
}

pub(super) fn delete_collection(
    model: &mut Model,
    call: &Call,
    resource: &ResourceId,
    namespace: Option<&str>,
) -> Result<Response, Failure> {
    let served = model.served(resource)?;
    let everywhere = served.is_namespaced() && namespace.is_none();
    if everywhere || !served.is_deleted_together() {
        return Err(Failure::method_not_allowed());
    }
    let query = Query(&call.query);
    let (labels, fields) = (query.text("labelSelector"), query.text("fieldSelector"));
    let selection = Selection::parse(&served, namespace, labels, fields)?;
    let objects = &model.collections[resource].objects;
    let selected = objects.iter().filter(|(key, object)| selection.matches(key, object));
    let keys: Vec<ObjectKey> = selected.map(|(key, _)| key.clone()).collect();
    let mut items = Vec::with_capacity(keys.len());
    for key in keys {
        items.push(model.remove(resource, &key, &Preconditions::default())?);
    }
    let list = json!({
        "kind": format!("{}List", served.kind.kind), "apiVersion": served.kind.api_version(),
        "metadata": { "resourceVersion": model.revision().to_string() }, "items": items,
    });
    Ok(json_response(200, &list))
}

/// How a patch is written down.
#[derive(Debug, Clone, Copy)]
enum PatchFormat {
    Json,
    Merge,
    /// Only for kinds whose lists the server knows.
    StrategicMerge,
}

impl PatchFormat {
    fn of(call: &Call, served: &Served) -> Result<Self, Failure> {
        match (media_type(call), served.origin) {
            ("application/json-patch+json", _) => Ok(Self::Json),
            ("application/merge-patch+json", _) => Ok(Self::Merge),
            ("application/strategic-merge-patch+json", Origin::BuiltIn) => Ok(Self::StrategicMerge),
            ("application/strategic-merge-patch+json", Origin::Custom) => {
                let accepted = "application/json-patch+json, application/merge-patch+json";
                Err(Failure::unsupported_media_type(accepted))
            }
            _ => Err(Failure::unsupported_patch()),
        }
    }
}

/// Deletions say it in their body, or as all others do in the query.
pub(super) fn asks_for_a_dry_run(call: &Call) -> Result<bool, Failure> {
    let options = match call.method {
        Method::Delete => deletion_options(call)?,
        _ => Value::Null,
    };
    let wish = options["dryRun"][0].as_str().unwrap_or(Query(&call.query).text("dryRun"));
    match wish {
        "" => Ok(false),
        "All" => Ok(true),
        other => Err(Failure::bad_request(format!(
            "dryRun: Unsupported value: {other:?}: supported values: \"All\""
        ))),
    }
}

fn media_type(call: &Call) -> &str {
    call.content_type.split(';').next().unwrap_or_default().trim()
}

fn read_object(call: &Call, served: &Served) -> Result<Map<String, Value>, Failure> {
    if !matches!(media_type(call), "" | "application/json") {
        return Err(Failure::unsupported_media_type("application/json"));
    }
    let object: Map<String, Value> =
        serde_json::from_slice(&call.body).map_err(|error| undecodable(&error))?;
    let (api_version, kind) = (text(&object, "apiVersion"), text(&object, "kind"));
    let untyped = api_version.is_empty() && kind.is_empty();
    if !untyped && !served.kind.is_of(api_version, kind) {
        return Err(Failure::bad_request(format!(
            "{kind} in version {api_version:?} cannot be handled as a {}: expected {} in version {:?}",
            served.kind.kind,
            served.kind.kind,
            served.kind.api_version(),
        )));
    }
    Ok(object)
}

pub(super) fn undecodable(error: &serde_json::Error) -> Failure {
    Failure::bad_request(format!("the object provided is unrecognized: {error}"))
}

fn check_namespace(object: &mut Map<String, Value>, namespace: &str) -> Result<(), Failure> {
    let stated = text(metadata_of(object)?, "namespace");
    if stated.is_empty() || stated == namespace {
        return Ok(());
    }
    let message =
        "the namespace of the provided object does not match the namespace sent on the request";
    Err(Failure::bad_request(message))
}

fn check_name(object: &mut Map<String, Value>, key: &ObjectKey) -> Result<(), Failure> {
    let stated = text(metadata_of(object)?, "name");
    if stated == key.name() {
        return Ok(());
    }
    let name = key.name();
    Err(Failure::bad_request(format!(
        "the name of the object ({stated}) does not match the name on the URL ({name})"
    )))
}

/// The body of a deletion may say what must be true of the object.
fn preconditions(call: &Call) -> Result<Preconditions, Failure> {
    let options = deletion_options(call)?;
    let given = |name: &str| options["preconditions"][name].as_str().map(str::to_owned);
    Ok(Preconditions { uid: given("uid"), resource_version: given("resourceVersion") })
}

fn deletion_options(call: &Call) -> Result<Value, Failure> {
    match call.body.is_empty() {
        true => Ok(Value::Null),
        false => serde_json::from_slice(&call.body).map_err(|error| undecodable(&error)),
    }
}
