use serde_json::{Map, Value};

/// Why a patch can not be merged.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct NoMergeKey {
    field: String,
    key: &'static str,
}

impl NoMergeKey {
    pub(super) fn message(&self) -> String {
        format!("an element of {} does not contain its merge key: {}", self.field, self.key)
    }
}

/// Merges a patch as Kubernetes merges built-in kinds: as JSON merge does, but lists of named things by their names, and
/// with directives (`$patch`, `$retainKeys`, `$setElementOrder/…`, `$deleteFromPrimitiveList/…`).
///
/// Kubernetes finds the names in the schema of each kind. Here they are known by the name of the list, which tells the
/// same for all kinds this server has of its own.
pub(super) fn merge(target: &mut Value, patch: &Value) -> Result<(), NoMergeKey> {
    let Value::Object(patch) = patch else {
        patch.clone_into(target);
        return Ok(());
    };
    match patch.get("$patch").and_then(Value::as_str) {
        Some("delete") => {
            *target = Value::Object(Map::new());
            return Ok(());
        }
        Some("replace") => *target = Value::Object(Map::new()),
        _ => {}
    }
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let Value::Object(target) = target else { return Ok(()) };
    if let Some(retained) = patch.get("$retainKeys").and_then(Value::as_array) {
        target.retain(|name, _| retained.iter().any(|key| key == name));
    }
    for (name, deleted) in patch {
        if let Some(field) = name.strip_prefix("$deleteFromPrimitiveList/") {
            remove_elements(target.get_mut(field), deleted);
        }
    }
    for (name, change) in patch.iter().filter(|(name, _)| !name.starts_with('$')) {
        match change {
            Value::Null => drop(target.remove(name)),
            Value::Array(changes) => {
                merge_list(name, target.entry(name).or_insert(Value::Null), changes)?;
            }
            _ => merge(target.entry(name).or_insert(Value::Null), change)?,
        }
    }
    for (name, order) in patch {
        if let Some(field) = name.strip_prefix("$setElementOrder/") {
            sort_elements(field, target.get_mut(field), order);
        }
    }
    Ok(())
}

fn merge_list(field: &str, target: &mut Value, changes: &[Value]) -> Result<(), NoMergeKey> {
    let Some(identity) = Identity::of(field, changes) else {
        *target = Value::Array(changes.to_vec());
        return Ok(());
    };
    let directive = |change: &Value, name: &str| change["$patch"] == name;
    if !target.is_array() || changes.iter().any(|change| directive(change, "replace")) {
        *target = Value::Array(Vec::new());
    }
    let Value::Array(elements) = target else { return Ok(()) };
    for change in changes.iter().filter(|change| !directive(change, "replace")) {
        let name = identity.name(field, change)?;
        if directive(change, "delete") {
            elements.retain(|element| identity.name(field, element).ok() != Some(name));
            continue;
        }
        let same = |element: &&mut Value| identity.name(field, element).ok() == Some(name);
        match elements.iter_mut().find(same) {
            Some(element) => merge(element, change)?,
            None => {
                let mut element = Value::Null;
                merge(&mut element, change)?;
                elements.push(element);
            }
        }
    }
    Ok(())
}

/// What makes two elements of a list the same.
#[derive(Debug, Clone, Copy)]
enum Identity {
    Key(&'static str),
    Value,
}

impl Identity {
    /// None if the list is replaced as a whole.
    fn of(field: &str, changes: &[Value]) -> Option<Self> {
        Some(Self::Key(match field {
            "containers"
            | "ephemeralContainers"
            | "env"
            | "imagePullSecrets"
            | "initContainers"
            | "resourceClaims"
            | "schedulingGates"
            | "secrets"
            | "volumes" => "name",
            "addresses" | "conditions" => "type",
            "hostAliases" | "hostIPs" | "podIPs" => "ip",
            "ownerReferences" => "uid",
            "topologySpreadConstraints" => "topologyKey",
            "volumeDevices" => "devicePath",
            "volumeMounts" => "mountPath",
            // Of a container, or of a service.
            "ports" if changes.iter().any(|change| change.get("containerPort").is_some()) => {
                "containerPort"
            }
            "ports" => "port",
            "finalizers" => return Some(Self::Value),
            _ => return None,
        }))
    }

    fn name<'a>(&self, field: &str, element: &'a Value) -> Result<&'a Value, NoMergeKey> {
        match *self {
            Self::Value => Ok(element),
            Self::Key(key) => {
                element.get(key).ok_or_else(|| NoMergeKey { field: field.to_owned(), key })
            }
        }
    }
}

fn remove_elements(list: Option<&mut Value>, removed: &Value) {
    if let (Some(Value::Array(elements)), Some(removed)) = (list, removed.as_array()) {
        elements.retain(|element| !removed.contains(element));
    }
}

/// The elements that the order names change places among themselves; the others stay where they are.
fn sort_elements(field: &str, list: Option<&mut Value>, order: &Value) {
    let (Some(Value::Array(elements)), Some(order)) = (list, order.as_array()) else { return };
    let identity = Identity::of(field, order).unwrap_or(Identity::Value);
    let place = |element: &Value| {
        let name = identity.name(field, element).ok()?;
        order.iter().position(|other| identity.name(field, other).ok() == Some(name))
    };
    let places: Vec<usize> =
        (0..elements.len()).filter(|&index| place(&elements[index]).is_some()).collect();
    let mut named: Vec<Value> = places.iter().map(|&index| elements[index].take()).collect();
    named.sort_by_key(place);
    for (index, element) in places.into_iter().zip(named) {
        elements[index] = element;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[track_caller]
    fn check(before: Value, patch: &Value, after: &Value) {
        let mut merged = before;
        merge(&mut merged, patch).unwrap();
        assert_eq!(merged, *after);
    }

    #[test]
    fn members_are_merged_and_null_removes_them() {
        check(
            json!({ "data": { "a": "1", "b": "2" } }),
            &json!({ "data": { "b": null, "c": "3" }, "more": { "none": null } }),
            &json!({ "data": { "a": "1", "c": "3" }, "more": {} }),
        );
    }

    #[test]
    fn containers_are_merged_by_name_and_other_lists_are_replaced() {
        check(
            json!({ "containers": [{ "name": "a", "image": "1", "args": ["x", "y"] }, { "name": "b" }] }),
            &json!({ "containers": [{ "name": "a", "image": "2", "args": ["z"] }, { "name": "c" }] }),
            &json!({ "containers": [{ "name": "a", "image": "2", "args": ["z"] }, { "name": "b" }, { "name": "c" }] }),
        );
    }

    #[test]
    fn directives_delete_replace_retain_and_sort() {
        check(
            json!({ "volumes": [{ "name": "a", "emptyDir": {} }, { "name": "b" }, { "name": "c" }] }),
            &json!({
                "$setElementOrder/volumes": [{ "name": "d" }, { "name": "a" }],
                "volumes": [
                    { "name": "b", "$patch": "delete" },
                    { "name": "a", "$retainKeys": ["name", "secret"], "secret": {} },
                    { "name": "d" },
                ],
            }),
            &json!({ "volumes": [{ "name": "d" }, { "name": "c" }, { "name": "a", "secret": {} }] }),
        );
        check(
            json!({ "env": [{ "name": "a" }], "strategy": { "type": "x", "rolling": {} } }),
            &json!({
                "env": [{ "$patch": "replace" }, { "name": "b" }],
                "strategy": { "$patch": "replace", "type": "y" },
            }),
            &json!({ "env": [{ "name": "b" }], "strategy": { "type": "y" } }),
        );
    }

    #[test]
    fn finalizers_are_a_set() {
        check(
            json!({ "finalizers": ["a", "b"] }),
            &json!({ "$deleteFromPrimitiveList/finalizers": ["a"], "finalizers": ["b", "c"] }),
            &json!({ "finalizers": ["b", "c"] }),
        );
    }

    #[test]
    fn an_element_without_a_name_is_refused() {
        let refused = merge(&mut json!({}), &json!({ "containers": [{ "image": "1" }] }));
        assert_eq!(
            refused.unwrap_err().message(),
            "an element of containers does not contain its merge key: name"
        );
    }
}
