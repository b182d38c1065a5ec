use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Value, json};

use crate::object::Resource;

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

/// What changed between two states of an object, as far as its metadata tells.
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
    what.join(", ")
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
}
