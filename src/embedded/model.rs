use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Map, Value, json};
use tokio::sync::watch;

use super::failure::Failure;
use super::faults::{Faults, SeenRequest};
use super::history::{DEFAULT_LIMIT, Event, History, Objects, Overtaken};
use super::resources::{ResourceId, Served, built_in, defined_by, established};
use super::stored::{Content, Stored};
use crate::api::StatusCause;
use crate::object::{Kind, ObjectKey};

/// All the server knows: objects, their history, who watches, and what goes wrong on purpose.
///
/// One counter numbers all writes, as etcd does: the versions of one resource have gaps.
#[derive(Debug)]
pub(super) struct Model {
    revision: watch::Sender<u64>,
    pub(super) collections: BTreeMap<ResourceId, Collection>,
    pub(super) open_watches: BTreeMap<u64, OpenWatch>,
    pub(super) faults: Faults,
    pub(super) requests: VecDeque<SeenRequest>,
    pub(super) random: fastrand::Rng,
    history_limit: usize,
}

/// The objects of one resource, and how they came to be.
#[derive(Debug)]
pub(super) struct Collection {
    pub(super) served: Arc<Served>,
    /// Whether requests find it. A removed kind keeps its history until the last watch has read it.
    pub(super) open: bool,
    pub(super) objects: Objects,
    pub(super) history: History,
    /// Wakes the watches of this resource.
    pub(super) wake: watch::Sender<()>,
}

/// A watch somebody reads.
#[derive(Debug)]
pub(super) struct OpenWatch {
    pub(super) resource: ResourceId,
    /// What is to happen to the stream once it has shown a revision.
    pub(super) interruptions: VecDeque<(u64, Interruption)>,
}

/// What happens to a watch apart from events.
#[derive(Debug, Clone)]
pub(super) enum Interruption {
    /// These bytes are sent as they are.
    Raw(Bytes),
    /// The stream ends.
    End,
    /// The connection breaks.
    Break,
}

/// What a write depends on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Preconditions {
    pub(super) uid: Option<String>,
    pub(super) resource_version: Option<String>,
}

impl Model {
    pub(super) fn new(seed: u64) -> Self {
        let mut model = Self {
            revision: watch::Sender::new(1),
            collections: BTreeMap::new(),
            open_watches: BTreeMap::new(),
            faults: Faults::default(),
            requests: VecDeque::new(),
            random: fastrand::Rng::with_seed(seed),
            history_limit: DEFAULT_LIMIT,
        };
        built_in().for_each(|served| model.register(served));
        model
    }

    pub(super) fn revision(&self) -> u64 {
        *self.revision.borrow()
    }

    /// To wait for a revision.
    pub(super) fn revisions(&self) -> watch::Receiver<u64> {
        self.revision.subscribe()
    }

    pub(super) fn collection(&self, resource: &ResourceId) -> Option<&Collection> {
        self.collections.get(resource).filter(|collection| collection.open)
    }

    pub(super) fn resource_of(&self, api_version: &str, kind: &str) -> Option<ResourceId> {
        let mut open = self.collections.iter().filter(|(_, collection)| collection.open);
        let found = open.find(|(_, collection)| collection.served.kind.is_of(api_version, kind));
        found.map(|(resource, _)| resource.clone())
    }

    // === kinds ===

    pub(super) fn register(&mut self, served: Served) {
        let (now, limit) = (self.revision(), self.history_limit);
        let resource = ResourceId::of(&served.kind);
        let collection = self.collections.entry(resource).or_insert_with(|| Collection {
            served: Arc::new(served.clone()),
            open: false,
            objects: Objects::new(),
            history: History::new(now, limit),
            wake: watch::Sender::new(()),
        });
        collection.served = Arc::new(served);
        if !collection.open {
            collection.open = true;
            collection.history.forget(now);
        }
    }

    /// Deletes the objects of a kind, then stops serving it.
    pub(super) fn unregister(&mut self, kind: &Kind) {
        let resource = ResourceId::of(kind);
        let Some(collection) = self.collection(&resource) else { return };
        let keys: Vec<ObjectKey> = collection.objects.keys().cloned().collect();
        for key in keys {
            self.record(&resource, key, None);
        }
        if let Some(collection) = self.collections.get_mut(&resource) {
            collection.open = false;
        }
        self.interrupt(&Interruption::End, |watched| *watched == resource);
    }

    fn definition_changed(&mut self, before: Option<&Value>, after: Option<&Value>) {
        let kinds = |definition: Option<&Value>| {
            definition.and_then(Value::as_object).map(defined_by).unwrap_or_default()
        };
        let wanted = kinds(after);
        for served in kinds(before) {
            if !wanted
                .iter()
                .any(|other| ResourceId::of(&other.kind) == ResourceId::of(&served.kind))
            {
                self.unregister(&served.kind);
            }
        }
        wanted.into_iter().for_each(|served| self.register(served));
    }

    // === writes ===

    pub(super) fn create(
        &mut self,
        resource: &ResourceId,
        namespace: &str,
        mut object: Map<String, Value>,
    ) -> Result<Value, Failure> {
        let collection = self.collection(resource).ok_or_else(|| unknown(resource))?;
        let served = Arc::clone(&collection.served);
        let metadata = metadata_of(&mut object)?;
        if metadata.get("resourceVersion").is_some_and(|version| version != "") {
            let message = "resourceVersion should not be set on objects to be created";
            return Err(Failure::bad_request(message));
        }
        let name = match (text(metadata, "name"), text(metadata, "generateName")) {
            ("", "") => return Err(name_required(&served)),
            ("", prefix) => format!("{prefix}{}", suffix(&mut self.random)),
            (name, _) => name.to_owned(),
        };
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
        check(
            &served,
            key,
            &existing,
            &Preconditions {
                uid: given(metadata, "uid"),
                resource_version: given(metadata, "resourceVersion")
                    .filter(|version| version != "0"),
            },
        )?;
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
        check(&served, key, &existing, preconditions)?;

        let mut value = existing.to_value();
        if let Some(object) = value.as_object_mut()
            && let metadata = metadata_of(object)?
            && has_finalizers(metadata)
        {
            metadata.entry("deletionTimestamp").or_insert_with(|| json!(now()));
            let object = std::mem::take(object);
            return Ok(self.store(resource, &served, key.clone(), object));
        }
        self.drop_object(resource, key);
        Ok(value)
    }

    fn drop_object(&mut self, resource: &ResourceId, key: &ObjectKey) {
        let before = self.record(resource, key.clone(), None).map(|stored| stored.to_value());
        if *resource == ResourceId::definitions() {
            self.definition_changed(before.as_ref(), None);
        }
        if *resource == ResourceId::namespaces() {
            self.empty_namespace(key.name());
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
            match key.namespace() {
                Some(namespace) => metadata.insert("namespace".to_owned(), json!(namespace)),
                None => metadata.remove("namespace"),
            };
        }
        let content = Content::of(&object);
        let unchanged = self.object(resource, &key).filter(|existing| existing.has(&content));
        let revision = match unchanged {
            Some(existing) => existing.revision,
            None => {
                let revision = self.revision() + 1;
                let stored = Stored::new(served, &object, &content, revision);
                let before = self.record(resource, key, Some(stored));
                if *resource == ResourceId::definitions() {
                    let before = before.map(|stored| stored.to_value());
                    self.definition_changed(before.as_ref(), Some(&Value::Object(object.clone())));
                }
                revision
            }
        };
        if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.insert("resourceVersion".to_owned(), json!(revision.to_string()));
        }
        Value::Object(object)
    }

    /// The only place where anything changes. Returns the state before.
    fn record(
        &mut self,
        resource: &ResourceId,
        key: ObjectKey,
        after: Option<Stored>,
    ) -> Option<Arc<Stored>> {
        let revision = self.revision() + 1;
        let collection = self.collections.get_mut(resource)?;
        let after = after.map(Arc::new);
        let before = match &after {
            Some(after) => collection.objects.insert(key.clone(), Arc::clone(after)),
            None => collection.objects.remove(&key),
        };
        collection.history.push(Event { revision, key, before: before.clone(), after });
        self.revision.send_replace(revision);
        collection.wake.send_replace(());
        before
    }

    // === history ===

    pub(super) fn limit_history(&mut self, events: usize) {
        self.history_limit = events;
        for collection in self.collections.values_mut() {
            collection.history.set_limit(events);
        }
    }

    /// Undoes all that happened after a revision, and counts on from there.
    pub(super) fn restore(&mut self, revision: u64) -> Result<(), Failure> {
        if revision > self.revision() {
            return Err(Failure::too_large(revision, self.revision()));
        }
        let restored: Vec<Objects> = self
            .collections
            .values()
            .map(|collection| {
                let past = collection.history.rewind(&collection.objects, revision);
                past.map(Cow::into_owned).map_err(|Overtaken| Failure::list_too_old())
            })
            .collect::<Result<_, _>>()?;
        for (collection, objects) in self.collections.values_mut().zip(restored) {
            collection.objects = objects;
            collection.history.restart(revision);
        }
        self.revision.send_replace(revision);
        self.interrupt(&Interruption::End, |_| true);
        Ok(())
    }

    // === reads ===

    pub(super) fn object(&self, resource: &ResourceId, key: &ObjectKey) -> Option<&Arc<Stored>> {
        self.collection(resource).and_then(|collection| collection.objects.get(key))
    }

    pub(super) fn existing(
        &self,
        resource: &ResourceId,
        key: &ObjectKey,
    ) -> Result<Arc<Stored>, Failure> {
        let served = self.served(resource)?;
        let object = self.object(resource, key).map(Arc::clone);
        object.ok_or_else(|| Failure::not_found(&served, key.name()))
    }

    pub(super) fn served(&self, resource: &ResourceId) -> Result<Arc<Served>, Failure> {
        let collection = self.collection(resource).ok_or_else(|| unknown(resource))?;
        Ok(Arc::clone(&collection.served))
    }

    // === watches ===

    /// Lets something happen to all open watches of some resources, after what they are still to show.
    pub(super) fn interrupt(
        &mut self,
        interruption: &Interruption,
        concerns: impl Fn(&ResourceId) -> bool,
    ) {
        let now = self.revision();
        for watch in self.open_watches.values_mut().filter(|watch| concerns(&watch.resource)) {
            watch.interruptions.push_back((now, interruption.clone()));
        }
        self.wake_watches();
    }

    pub(super) fn wake_watches(&self) {
        for collection in self.collections.values() {
            collection.wake.send_replace(());
        }
    }
}

fn unknown(resource: &ResourceId) -> Failure {
    Failure::bad_request(format!("{resource} is not served"))
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

fn check(
    served: &Served,
    key: &ObjectKey,
    existing: &Stored,
    preconditions: &Preconditions,
) -> Result<(), Failure> {
    if let Some(uid) = preconditions.uid.as_ref().filter(|uid| **uid != existing.uid) {
        let problem = format!(
            "Precondition failed: UID in precondition: {uid}, UID in object meta: {}",
            existing.uid
        );
        return Err(Failure::conflict(served, key.name(), &problem));
    }
    match &preconditions.resource_version {
        Some(version) if *version != existing.revision.to_string() => {
            Err(Failure::modified_meanwhile(served, key.name()))
        }
        _ => Ok(()),
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
