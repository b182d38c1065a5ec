use std::any::Any;
use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::object::{DynamicObject, Lazy, Resource};

/// Holds the whole object as it was applied, a Secret's data included.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// What may be shown of an object: its metadata, without what may hold the rest of it.
pub(super) fn of<K: Resource>(object: &K) -> Value {
    let meta = object.object_meta();
    let mut shown = json!({
        "uid": object.uid(),
        "resourceVersion": object.resource_version(),
        "labels": object.labels(),
    });
    if let Some(meta) = meta {
        let owners = meta.owner_references.iter().flatten();
        shown["generation"] = json!(meta.generation);
        shown["creationTimestamp"] = json!(meta.creation_timestamp);
        shown["deletionTimestamp"] = json!(meta.deletion_timestamp);
        shown["finalizers"] = json!(meta.finalizers);
        shown["owners"] =
            owners.map(|owner| format!("{}/{}", owner.kind, owner.name)).collect::<Vec<_>>().into();
        shown["annotations"] = annotations(&meta);
    }
    shown
}

fn annotations(meta: &ObjectMeta) -> Value {
    let shown = meta.annotations.iter().flatten().map(|(name, value)| {
        let value = if name == LAST_APPLIED { "(not shown)" } else { value.as_str() };
        (name.as_str(), value)
    });
    json!(shown.collect::<BTreeMap<_, _>>())
}

/// What changed between two states of an object, as far as its type tells.
pub(super) fn difference<K: Resource>(old: &K, new: &K) -> String {
    let mut what = Vec::new();
    if old.labels() != new.labels() {
        what.push("labels".to_owned());
    }
    if let (Some(old), Some(new)) = (old.object_meta(), new.object_meta()) {
        if old.annotations != new.annotations {
            what.push("annotations".to_owned());
        }
        if let (Some(before), Some(after)) = (old.generation, new.generation)
            && before != after
        {
            what.push(format!("generation {before} → {after}"));
        }
        if old.finalizers != new.finalizers {
            what.push("finalizers".to_owned());
        }
        if old.deletion_timestamp.is_none() && new.deletion_timestamp.is_some() {
            what.push("deletion asked for".to_owned());
        }
    }
    what.extend(changed_parts(old, new));
    what.join(", ")
}

/// Which of its parts beside the metadata are others: `spec`, `status`, `data`. Nothing of a type that is not kept as
/// it was written.
fn changed_parts<K: Resource>(old: &K, new: &K) -> Vec<String> {
    let (Some(mut old), Some(new)) = (parts(old), parts(new)) else { return Vec::new() };
    let is_other = |(name, value): (String, String)| {
        (old.remove(&name).as_ref() != Some(&value)).then_some(name)
    };
    let mut changed: Vec<String> = new.into_iter().filter_map(is_other).collect();
    changed.extend(old.into_keys());
    changed
}

/// Each part with its JSON.
fn parts<K: Resource>(object: &K) -> Option<BTreeMap<String, String>> {
    let object = object as &dyn Any;
    if let Some(object) = object.downcast_ref::<DynamicObject>() {
        let parts = object.data.as_object()?.iter();
        return Some(parts.map(|(name, value)| (name.clone(), value.to_string())).collect());
    }
    let object = object.downcast_ref::<Lazy<DynamicObject>>()?;
    let parts: BTreeMap<String, &RawValue> = object.read().ok()?;
    let is_body = |name: &str| !matches!(name, "metadata" | "apiVersion" | "kind");
    let body = parts.into_iter().filter(|(name, _)| is_body(name));
    Some(body.map(|(name, value)| (name, value.get().to_owned())).collect())
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Secret;

    use super::*;
    use crate::object::StaticKind as _;

    fn secret(metadata: &Value) -> Secret {
        let object = json!({ "metadata": metadata, "data": { "password": "aHVudGVyMg==" } });
        Secret::decode(object.to_string().as_bytes(), &Secret::static_kind()).unwrap()
    }

    #[test]
    fn neither_data_nor_what_was_applied_last_is_shown() {
        let metadata = json!({
            "name": "login", "namespace": "shop", "uid": "u", "resourceVersion": "7",
            "labels": { "app": "web" },
            "annotations": { LAST_APPLIED: "{\"data\":{\"password\":\"aHVudGVyMg==\"}}", "team": "a" },
            "managedFields": [{ "manager": "kubectl" }],
            "generation": 3,
        });
        let shown = of(&secret(&metadata));
        assert!(!shown.to_string().contains("aHVudGVyMg"), "{shown}");
        assert!(!shown.to_string().contains("managedFields"), "{shown}");
        assert_eq!(shown["annotations"][LAST_APPLIED], "(not shown)");
        assert_eq!(
            (&shown["annotations"]["team"], &shown["labels"]["app"]),
            (&json!("a"), &json!("web"))
        );
        assert_eq!((&shown["uid"], &shown["generation"]), (&json!("u"), &json!(3)));
    }

    #[test]
    fn a_difference_names_what_changed_and_quotes_nothing() {
        let old = secret(&json!({ "name": "a", "generation": 1, "labels": { "a": "1" } }));
        let new = secret(&json!({
            "name": "a", "generation": 2, "labels": { "a": "2" }, "annotations": { "k": "hunter2" },
        }));
        assert_eq!(difference(&old, &new), "labels, annotations, generation 1 → 2");
        assert_eq!(difference(&old, &old), "");
    }

    #[test]
    fn a_difference_names_the_parts_that_changed_and_quotes_nothing() {
        let object = |body: &str| {
            format!(r#"{{"apiVersion":"v1","kind":"Secret","metadata":{{"name":"a"}},{body}}}"#)
        };
        let old = object(r#""data":{"password":"b2xk"},"type":"Opaque","immutable":false"#);
        let new = object(r#""data":{"password":"aHVudGVyMg=="},"type":"Opaque","stringData":{}"#);
        let kind = Secret::static_kind();
        let dynamic = |json: &str| DynamicObject::decode(json.as_bytes(), &kind).unwrap();
        let lazy = |json: &str| Lazy::<DynamicObject>::decode(json.as_bytes(), &kind).unwrap();
        let expected = "data, stringData, immutable";
        assert_eq!(difference(&dynamic(&old), &dynamic(&new)), expected);
        assert_eq!(difference(&lazy(&old), &lazy(&new)), expected);
        assert_eq!(difference(&lazy(&new), &lazy(&new)), "");
    }
}
