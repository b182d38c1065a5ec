use serde_json::{Map, Value, json};

use super::failure::{Failure, json_response};
use super::model::Model;
use super::resources::ResourceId;
use super::route::Call;
use super::writes;
use crate::client::{Method, Response};
use crate::object::ObjectKey;

/// How many replicas an object has and is to have, as a `Scale`.
pub(super) fn read(
    model: &Model,
    resource: &ResourceId,
    key: &ObjectKey,
) -> Result<Response, Failure> {
    Ok(json_response(200, &scale_of(&model.existing(resource, key)?.to_value())))
}

/// Sets how many it is to have. Everything else of a `Scale` follows from the object.
pub(super) fn write(
    model: &mut Model,
    call: &Call,
    resource: &ResourceId,
    key: &ObjectKey,
) -> Result<Response, Failure> {
    let mut object = model.existing(resource, key)?.to_value();
    let scale = match call.method {
        Method::Patch => writes::patched(scale_of(&object), call, &*model.served(resource)?)?,
        _ => serde_json::from_slice(&call.body).map_err(|error| writes::undecodable(&error))?,
    };
    let Some(replicas) = scale["spec"]["replicas"].as_u64() else {
        return Err(Failure::bad_request(
            "spec.replicas of a Scale is a number that is not negative",
        ));
    };
    let expected = &scale["metadata"]["resourceVersion"];
    if !expected.is_null() {
        object["metadata"]["resourceVersion"] = expected.clone();
    }
    object["spec"]["replicas"] = json!(replicas);
    let object: Map<String, Value> = object.as_object().cloned().unwrap_or_default();
    let scaled = model.replace(resource, key, object)?;
    Ok(json_response(200, &scale_of(&json!(scaled))))
}

fn scale_of(object: &Value) -> Value {
    let metadata = &object["metadata"];
    let labels = object["spec"]["selector"]["matchLabels"].as_object().into_iter().flatten();
    let selector: Vec<String> = labels
        .map(|(name, value)| format!("{name}={}", value.as_str().unwrap_or_default()))
        .collect();
    json!({
        "kind": "Scale", "apiVersion": "autoscaling/v1",
        "metadata": {
            "name": metadata["name"], "namespace": metadata["namespace"], "uid": metadata["uid"],
            "resourceVersion": metadata["resourceVersion"],
            "creationTimestamp": metadata["creationTimestamp"],
        },
        "spec": { "replicas": object["spec"]["replicas"].as_u64().unwrap_or(1) },
        "status": {
            "replicas": object["status"]["replicas"].as_u64().unwrap_or_default(),
            "selector": selector.join(","),
        },
    })
}
