//! What somebody believes to be there, to be compared with what is.

use std::collections::BTreeMap;

use kubeflect::Reflector;
use kubeflect::object::Resource;
use serde_json::Value;

/// Uid and version of each object, by `namespace/name`.
pub(crate) type Contents = BTreeMap<String, (String, String)>;

/// What a list says, of those objects that are selected.
pub(crate) fn of_list(list: &Value, selected: impl Fn(&Value) -> bool) -> Contents {
    let objects = list["items"].as_array().unwrap().iter().filter(|object| selected(object));
    objects.map(of_object).collect()
}

fn of_object(object: &Value) -> (String, (String, String)) {
    let text = |name: &str| object["metadata"][name].as_str().unwrap().to_owned();
    let key = format!("{}/{}", text("namespace"), text("name"));
    (key, (text("uid"), text("resourceVersion")))
}

/// What a cache has.
pub(crate) fn of_reflector<K: Resource>(reflector: &Reflector<K>) -> Contents {
    let snapshot = reflector.store().snapshot();
    snapshot.iter().map(|(key, object)| (key.to_string(), identity(&**object))).collect()
}

pub(crate) fn identity(object: &impl Resource) -> (String, String) {
    let text = |value: Option<&str>| value.unwrap_or_default().to_owned();
    (text(object.uid()), text(object.resource_version()))
}

/// What one has and the other has not.
pub(crate) fn difference(believed: &Contents, truth: &Contents) -> String {
    let missing: Vec<_> =
        truth.iter().filter(|(key, value)| believed.get(*key) != Some(value)).collect();
    let wrong: Vec<_> =
        believed.iter().filter(|(key, value)| truth.get(*key) != Some(value)).collect();
    format!("missing {missing:?}, wrong {wrong:?}")
}
