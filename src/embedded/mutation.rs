use bytes::Bytes;
use serde_json::{Map, Value, json};

use super::failure::Failure;
use super::model::{Collection, Model};
use super::resources::{ResourceId, Served, established};
use super::stored::{Content, Stored};
use crate::api::StatusCause;
use crate::object::ObjectKey;

/// What a write depends on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Preconditions {
    pub(super) uid: Option<String>,
    pub(super) resource_version: Option<String>,
}

/// How objects change. Everything ends in [`Model::record`].
impl Model {
    pub(super) fn create(
        &mut self,
        resource: &ResourceId,
        namespace: &str,
        mut object: Map<String, Value>,
    ) -> Result<Value, Failure> {
        let served = self.served(resource)?;
        let metadata = metadata_of(&mut object)?;
        if metadata.get("resourceVersion").is_some_and(|version| version != "") {
            let message = "resourceVersion should not be set on objects to be created";
            return Err(Failure::unmapped(message));
        }
        let name = match (text(metadata, "name"), text(metadata, "generateName")) {
            ("", "") => return Err(name_required(&served)),
            ("", prefix) => format!("{prefix}{}", suffix(&mut self.random)),
            (name, _) => name.to_owned(),
        };
        if !is_valid_name(&name) {
            return Err(name_invalid(&served, &name));
        }
        let key = ObjectKey::new(if served.is_namespaced() { namespace } else { "" }, &name);
        if self.object(resource, &key).is_some() {
            return Err(Failure::already_exists(&served, &name));
        }
        metadata.insert("name".to_owned(), json!(name));
        metadata.insert("uid".to_owned(), json!(random_uid(&mut self.random)));
        metadata.insert("creationTimestamp".to_owned(), json!(now()));
        if *resource == ResourceId::definitions() {
            let status = established(&object, &now());
            object.insert("status".to_owned(), status);
        }
        Ok(self.store(resource, &served, key, object))
    }

    pub(super) fn replace(
        &mut self,
        resource: &ResourceId,
        key: &ObjectKey,
        mut object: Map<String, Value>,
    ) -> Result<Value, Failure> {
        let existing = self.existing(resource, key)?;
        let served = self.served(resource)?;
        let metadata = metadata_of(&mut object)?;
        let preconditions = Preconditions {
            uid: given(metadata, "uid"),
            resource_version: given(metadata, "resourceVersion").filter(|version| version != "0"),
        };
        if let Some(version) = &preconditions.resource_version
            && version.parse::<u64>().is_err()
        {
            let problem = format!("strconv.ParseUint: parsing {version:?}: invalid syntax");
            return Err(Failure::unmapped(problem));
        }
        check_replaced(&served, key, &existing, &preconditions)?;
        metadata.insert("name".to_owned(), json!(key.name()));
        metadata.insert("uid".to_owned(), json!(existing.uid));
        metadata.insert("creationTimestamp".to_owned(), json!(existing.created));
        let finished = !text(metadata, "deletionTimestamp").is_empty()
            && !has_finalizers(metadata)
            && existing.to_value()["metadata"].as_object().is_some_and(has_finalizers);
        if *resource == ResourceId::definitions() && !object.contains_key("status") {
            let status = established(&object, &now());
            object.insert("status".to_owned(), status);
        }
        let stored = self.store(resource, &served, key.clone(), object);
        if finished {
            self.drop_object(resource, key);
        }
        Ok(stored)
    }

    /// Deletes an object, or marks it for deletion while finalizers hold it. Returns its last state.
    pub(super) fn remove(
        &mut self,
        resource: &ResourceId,
        key: &ObjectKey,
        preconditions: &Preconditions,
    ) -> Result<Value, Failure> {
        let existing = self.existing(resource, key)?;
        let served = self.served(resource)?;
        check_removed(&served, key, &existing, preconditions)?;

        let mut value = existing.to_value();
        if value["metadata"].as_object().is_some_and(has_finalizers)
            && let Some(object) = value.as_object_mut()
        {
            let metadata = metadata_of(object)?;
            metadata.entry("deletionTimestamp").or_insert_with(|| json!(now()));
            let object = std::mem::take(object);
            return Ok(self.store(resource, &served, key.clone(), object));
        }
        if *resource == ResourceId::namespaces()
            && let Some(object) = value.as_object_mut()
        {
            // There is no controller to finish it: what it would do is done at once, and told as it would be.
            metadata_of(object)?.insert("deletionTimestamp".to_owned(), json!(now()));
            object.insert("status".to_owned(), json!({ "phase": "Terminating" }));
            value = self.store(resource, &served, key.clone(), std::mem::take(object));
        }
        self.drop_object(resource, key);
        Ok(value)
    }

    fn drop_object(&mut self, resource: &ResourceId, key: &ObjectKey) {
        if *resource == ResourceId::namespaces() {
            self.empty_namespace(key.name());
        }
        let before = self.record(resource, key.clone(), None).map(|stored| stored.to_value());
        if *resource == ResourceId::definitions() {
            self.definition_changed(before.as_ref(), None);
        }
    }

    fn empty_namespace(&mut self, namespace: &str) {
        let (from, to) = ObjectKey::bounds_of(namespace);
        let inside = |collection: &Collection| -> Vec<ObjectKey> {
            collection.objects.range(from.clone()..to.clone()).map(|(key, _)| key.clone()).collect()
        };
        let doomed: Vec<_> = self
            .collections
            .iter()
            .flat_map(|(resource, collection)| {
                inside(collection).into_iter().map(move |key| (resource.clone(), key))
            })
            .collect();
        for (resource, key) in doomed {
            self.record(&resource, key, None);
        }
    }

    /// Serves `text` for an object from now on, whatever it is.
    pub(super) fn corrupt(
        &mut self,
        resource: &ResourceId,
        key: &ObjectKey,
        text: Bytes,
    ) -> Result<(), Failure> {
        let existing = self.existing(resource, key)?;
        let corrupted = existing.corrupted(text, self.revision() + 1);
        self.record(resource, key.clone(), Some(corrupted));
        Ok(())
    }

    /// Writes an object down unless nothing changed, and returns it as it is now.
    fn store(
        &mut self,
        resource: &ResourceId,
        served: &Served,
        key: ObjectKey,
        mut object: Map<String, Value>,
    ) -> Value {
        object.insert("kind".to_owned(), json!(served.kind.kind));
        object.insert("apiVersion".to_owned(), json!(served.kind.api_version()));
        if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            // What is empty is not kept.
            metadata
                .retain(|name, value| !CAN_BE_EMPTY.contains(&name.as_str()) || !is_empty(value));
            match key.namespace() {
                Some(namespace) => metadata.insert("namespace".to_owned(), json!(namespace)),
                None => metadata.remove("namespace"),
            };
        }
        let content = Content::of(&object);
        let unchanged = self.object(resource, &key).filter(|existing| existing.has(&content));
        let revision = match unchanged {
            Some(existing) => Some(existing.revision),
            None if self.rehearsing => self.object(resource, &key).map(|it| it.revision),
            None => {
                let revision = self.revision() + 1;
                let stored = Stored::new(served, &object, &content, revision);
                let before = self.record(resource, key, Some(stored));
                if *resource == ResourceId::definitions() {
                    let before = before.map(|stored| stored.to_value());
                    self.definition_changed(before.as_ref(), Some(&Value::Object(object.clone())));
                }
                Some(revision)
            }
        };
        if let (Some(metadata), Some(revision)) =
            (object.get_mut("metadata").and_then(Value::as_object_mut), revision)
        {
            metadata.insert("resourceVersion".to_owned(), json!(revision.to_string()));
        }
        Value::Object(object)
    }
}

const CAN_BE_EMPTY: [&str; 4] = ["annotations", "finalizers", "labels", "ownerReferences"];

fn is_empty(value: &Value) -> bool {
    value.is_null()
        || value.as_object().is_some_and(Map::is_empty)
        || value.as_array().is_some_and(Vec::is_empty)
}

/// What Kubernetes calls a DNS-1123 subdomain. Some kinds are stricter there.
fn is_valid_name(name: &str) -> bool {
    let alphanumeric = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let is_label = |label: &str| {
        let bytes = label.as_bytes();
        bytes.first().is_some_and(|&first| alphanumeric(first))
            && bytes.last().is_some_and(|&last| alphanumeric(last))
            && bytes.iter().all(|&byte| alphanumeric(byte) || byte == b'-')
    };
    name.len() <= 253 && name.split('.').all(is_label)
}

fn name_invalid(served: &Served, name: &str) -> Failure {
    const LABEL: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
    let message = format!(
        "Invalid value: {name:?}: a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, \
         '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for \
         validation is '{LABEL}(\\.{LABEL})*')"
    );
    let reason = "FieldValueInvalid".to_owned();
    let cause = StatusCause { reason, message, field: "metadata.name".to_owned() };
    Failure::invalid_object(served, name, cause)
}

fn name_required(served: &Served) -> Failure {
    Failure::invalid_object(
        served,
        "",
        StatusCause {
            reason: "FieldValueRequired".to_owned(),
            message: "Required value: name or generateName is required".to_owned(),
            field: "metadata.name".to_owned(),
        },
    )
}

fn check_replaced(
    served: &Served,
    key: &ObjectKey,
    existing: &Stored,
    preconditions: &Preconditions,
) -> Result<(), Failure> {
    let found = existing.revision.to_string();
    if let Some(uid) = preconditions.uid.as_ref().filter(|uid| **uid != existing.uid) {
        return Err(Failure::replaces_another(served, key, uid, &existing.uid));
    }
    match preconditions.resource_version.as_ref().filter(|version| **version != found) {
        Some(_other) => Err(Failure::modified_meanwhile(served, key.name())),
        None => Ok(()),
    }
}

fn check_removed(
    served: &Served,
    key: &ObjectKey,
    existing: &Stored,
    preconditions: &Preconditions,
) -> Result<(), Failure> {
    let found = existing.revision.to_string();
    if let Some(uid) = preconditions.uid.as_ref().filter(|uid| **uid != existing.uid) {
        return Err(Failure::removes_another(served, key, ("UID", uid, &existing.uid)));
    }
    match preconditions.resource_version.as_ref().filter(|version| **version != found) {
        Some(other) => {
            Err(Failure::removes_another(served, key, ("ResourceVersion", other, &found)))
        }
        None => Ok(()),
    }
}

/// An object's metadata, made if there is none.
pub(super) fn metadata_of(
    object: &mut Map<String, Value>,
) -> Result<&mut Map<String, Value>, Failure> {
    let metadata = object.entry("metadata").or_insert_with(|| json!({}));
    metadata.as_object_mut().ok_or_else(|| Failure::bad_request("metadata is not an object"))
}

pub(super) fn text<'a>(object: &'a Map<String, Value>, name: &str) -> &'a str {
    object.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn given(object: &Map<String, Value>, name: &str) -> Option<String> {
    Some(text(object, name)).filter(|text| !text.is_empty()).map(str::to_owned)
}

fn has_finalizers(metadata: &Map<String, Value>) -> bool {
    metadata.get("finalizers").and_then(Value::as_array).is_some_and(|names| !names.is_empty())
}

pub(super) fn now() -> String {
    k8s_openapi::jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// What Kubernetes puts behind `generateName`: no vowels, hence no words.
fn suffix(random: &mut fastrand::Rng) -> String {
    const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
    (0..5).map(|_| char::from(LETTERS[random.usize(..LETTERS.len())])).collect()
}

fn random_uid(random: &mut fastrand::Rng) -> String {
    let bits = random.u128(..);
    format!(
        "{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}",
        bits as u32,
        (bits >> 32) as u16,
        (bits >> 48) as u16 & 0xfff,
        (bits >> 64) as u16 & 0x3fff | 0x8000,
        (bits >> 80) as u64 & 0xffff_ffff_ffff,
    )
}
