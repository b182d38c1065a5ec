use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use super::json::{Member, Members, NoObject, text};
use super::{DecodeError, Kind, ObjectKey};

/// What every object begins with: enough to name it, to place it in history, and to say why the rest was not read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Head<'a> {
    /// `v1`; items of built-in lists have none.
    pub api_version: Option<Cow<'a, str>>,
    /// `Pod`; items of built-in lists have none.
    pub kind: Option<Cow<'a, str>>,
    /// The part that identifies.
    pub metadata: HeadMetadata<'a>,
}

/// The identifying part of an object's metadata.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HeadMetadata<'a> {
    /// `metadata.name`.
    pub name: Option<Cow<'a, str>>,
    /// `metadata.namespace`.
    pub namespace: Option<Cow<'a, str>>,
    /// `metadata.uid`.
    pub uid: Option<Cow<'a, str>>,
    /// `metadata.resourceVersion`.
    pub resource_version: Option<Cow<'a, str>>,
}

/// What of an object's metadata is not kept. It is cut out of the JSON before the object is read.
///
/// ```
/// use k8s_openapi::api::core::v1::Pod;
/// use kubeflect::Options;
/// use kubeflect::object::{Lazy, Prune};
///
/// let small = Options::<Lazy<Pod>>::all().prune(Prune::ManagedFields);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Prune {
    /// Everything is kept.
    #[default]
    Nothing,
    /// `managedFields` is left out: who set which field. Often a third of an object or more.
    ManagedFields,
    /// And the annotation in which `kubectl apply` keeps what was applied last.
    LastApplied,
}

/// The JSON of one object, of which the head has been read.
#[derive(Debug)]
pub struct ObjectJson<'a> {
    json: Cow<'a, [u8]>,
    head: Head<'a>,
    places: Places,
    key: Option<ObjectKey>,
    kind: &'a Arc<Kind>,
}

/// Where the parts of an object stand in its JSON.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Places {
    pub(super) uid: Range<usize>,
    pub(super) resource_version: Range<usize>,
    pub(super) labels: Range<usize>,
    annotations: Range<usize>,
    /// As a member, to be cut out.
    managed_fields: Range<usize>,
}

const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

impl<'a> Head<'a> {
    /// Reads the head of an object. The rest is passed over: it may be anything with matching brackets.
    ///
    /// # Errors
    /// When that is no object, or a part of its head is not a text, or there twice.
    pub fn read(json: &'a [u8]) -> Result<Self, DecodeError> {
        locate(&mut Members::of(json, 0).map_err(no_object)?).map(|(head, _)| head)
    }

    /// Which object this is, if it says so.
    pub fn key(&self) -> Option<ObjectKey> {
        let name = self.metadata.name.as_deref().filter(|name| !name.is_empty())?;
        Some(ObjectKey::new(self.metadata.namespace.as_deref().unwrap_or_default(), name))
    }
}

impl<'a> ObjectJson<'a> {
    /// Looks at the JSON of an object of this kind.
    ///
    /// # Errors
    /// As [`Head::read`].
    pub fn new(json: &'a [u8], kind: &'a Arc<Kind>) -> Result<Self, DecodeError> {
        Self::beginning(json, kind)
    }

    /// Of bytes that begin with the JSON of an object.
    pub(crate) fn beginning(bytes: &'a [u8], kind: &'a Arc<Kind>) -> Result<Self, DecodeError> {
        let mut members = Members::of(bytes, 0).map_err(no_object)?;
        let (head, places) = locate(&mut members)?;
        let json = Cow::Borrowed(&bytes[..members.at()]);
        Ok(Self { json, places, key: head.key(), head, kind })
    }

    /// Which object this is, if it says so.
    pub fn key(&self) -> Option<ObjectKey> {
        self.key.clone()
    }

    /// All of it.
    pub fn json(&self) -> &[u8] {
        &self.json
    }

    /// The part that identifies.
    pub fn head(&self) -> &Head<'a> {
        &self.head
    }

    /// The kind it was sent for.
    pub fn kind(&self) -> &Arc<Kind> {
        self.kind
    }

    /// All of it, to be kept: copied, unless something was cut out of it, which has been copied then.
    pub(super) fn into_json(self) -> Vec<u8> {
        self.json.into_owned()
    }

    pub(super) fn places(&self) -> &Places {
        &self.places
    }

    /// The same object without what is not to be kept. Where nothing is, nothing is copied.
    #[must_use]
    pub fn without(self, prune: Prune) -> Self {
        let mut cuts = [0..0, 0..0];
        if prune != Prune::Nothing {
            cuts[0] = self.places.managed_fields.clone();
        }
        if prune == Prune::LastApplied {
            cuts[1] = self.last_applied().unwrap_or_default();
        }
        cuts.sort_by_key(|cut| cut.start);
        let length: usize = cuts.iter().map(ExactSizeIterator::len).sum();
        if length == 0 {
            return self;
        }
        let mut kept = Vec::with_capacity(self.json.len() - length);
        let mut from = 0;
        for cut in &cuts {
            kept.extend_from_slice(&self.json[from..cut.start.max(from)]);
            from = cut.end.max(from);
        }
        kept.extend_from_slice(&self.json[from..]);
        Self { json: Cow::Owned(kept), places: self.places.without(&cuts), ..self }
    }

    fn last_applied(&self) -> Option<Range<usize>> {
        if self.places.annotations.is_empty() {
            return None;
        }
        let mut members = Members::of(&self.json, self.places.annotations.start).ok()?;
        while let Ok(Some(member)) = members.next() {
            members.value().ok()?;
            if member.key == LAST_APPLIED {
                return members.whole(&member).ok();
            }
        }
        None
    }
}

impl Places {
    /// After these parts, none of which holds one of the places, have been cut out.
    fn without(mut self, cuts: &[Range<usize>]) -> Self {
        let moved = |place: &mut Range<usize>| {
            let before = |at: usize| -> usize {
                cuts.iter().filter(|cut| cut.end <= at).map(ExactSizeIterator::len).sum()
            };
            *place = place.start - before(place.start)..place.end - before(place.end);
        };
        self.managed_fields = 0..0;
        for place in
            [&mut self.uid, &mut self.resource_version, &mut self.labels, &mut self.annotations]
        {
            moved(place);
        }
        self
    }
}

/// Walks through the object once.
fn locate<'a>(members: &mut Members<'a>) -> Result<(Head<'a>, Places), DecodeError> {
    let mut head = Head::default();
    let mut places = Places::default();
    let mut has_metadata = false;
    while let Some(member) = members.next().map_err(no_object)? {
        match &*member.key {
            "apiVersion" => {
                take(members, &member, &mut head.api_version)?;
            }
            "kind" => {
                take(members, &member, &mut head.kind)?;
            }
            "metadata" if std::mem::replace(&mut has_metadata, true) => return Err(twice(&member)),
            "metadata" => {
                let no_metadata = |NoObject| DecodeError::new("its metadata is no object");
                let mut metadata = members.enter().map_err(no_metadata)?;
                locate_metadata(&mut metadata, &mut head.metadata, &mut places)?;
                members.leave(&metadata);
            }
            _ => {
                members.value().map_err(no_object)?;
            }
        }
    }
    Ok((head, places))
}

fn locate_metadata<'a>(
    members: &mut Members<'a>,
    head: &mut HeadMetadata<'a>,
    places: &mut Places,
) -> Result<(), DecodeError> {
    while let Some(member) = members.next().map_err(no_object)? {
        match &*member.key {
            "name" => {
                take(members, &member, &mut head.name)?;
            }
            "namespace" => {
                take(members, &member, &mut head.namespace)?;
            }
            "uid" => places.uid = take(members, &member, &mut head.uid)?,
            "resourceVersion" => {
                places.resource_version = take(members, &member, &mut head.resource_version)?;
            }
            "labels" => places.labels = members.value().map_err(no_object)?,
            "annotations" => places.annotations = members.value().map_err(no_object)?,
            "managedFields" => {
                members.value().map_err(no_object)?;
                places.managed_fields = members.whole(&member).map_err(no_object)?;
            }
            _ => {
                members.value().map_err(no_object)?;
            }
        }
    }
    Ok(())
}

/// Takes a text, and gives the place between its quotes; `null` is none.
fn take<'a>(
    members: &mut Members<'a>,
    member: &Member<'_>,
    found: &mut Option<Cow<'a, str>>,
) -> Result<Range<usize>, DecodeError> {
    let place = members.value().map_err(no_object)?;
    let value = members.json(place.clone());
    if found.is_some() {
        return Err(twice(member));
    }
    if value == b"null" {
        return Ok(0..0);
    }
    let said = text(value);
    *found = Some(said.ok_or_else(|| DecodeError::new(format!("its {} is no text", member.key)))?);
    Ok(place.start + 1..place.end - 1)
}

fn twice(member: &Member<'_>) -> DecodeError {
    DecodeError::new(format!("it has its {} twice", member.key))
}

fn no_object(_: NoObject) -> DecodeError {
    DecodeError::new("it is no JSON object")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::object::Scope;

    fn kind() -> Arc<Kind> {
        Arc::new(Kind::new("", "v1", "Pod", "pods", Scope::Namespaced))
    }

    fn pod() -> Value {
        json!({
            "kind": "Pod", "apiVersion": "v1",
            "metadata": {
                "name": "a&b", "namespace": "n", "uid": "u", "resourceVersion": "7",
                "labels": { "app": "web" },
                "annotations": { LAST_APPLIED: "{\"large\":[]}", "other": "kept" },
                "managedFields": [{ "fieldsV1": { "f:metadata": {} } }],
            },
            "spec": { "name": "not the name", "metadata": { "uid": "not this" } },
        })
    }

    #[test]
    fn the_head_is_read_wherever_it_stands() {
        // serde_json writes members in order of their names, a server as its types have them.
        let written = r#"{"metadata":{"resourceVersion":"7","uid":"u","name":"a\u0026b","namespace":"n"},"x":[{}],"kind":"Pod"}"#;
        let read = Head::read(written.as_bytes()).unwrap();
        assert_eq!((read.kind.as_deref(), read.api_version), (Some("Pod"), None));
        assert_eq!(read.metadata.name.as_deref(), Some("a&b"));
        assert_eq!(read.metadata.resource_version.as_deref(), Some("7"));
        let pod = pod().to_string();
        let read = Head::read(pod.as_bytes()).unwrap();
        assert_eq!(read.key().unwrap().to_string(), "n/a&b");
        assert_eq!(read.metadata.uid.as_deref(), Some("u"));
    }

    #[test]
    fn a_head_that_can_mean_two_things_is_refused() {
        for (json, problem) in [
            ("[]", "it is no JSON object"),
            (r#"{"metadata":{"name":"a"}"#, "it is no JSON object"),
            (r#"{"metadata":7}"#, "its metadata is no object"),
            (r#"{"metadata":{"name":7}}"#, "its name is no text"),
            (r#"{"metadata":{"name":"a","na\u006de":"b"}}"#, "it has its name twice"),
            (r#"{"metadata":{},"metadata":{"name":"b"}}"#, "it has its metadata twice"),
        ] {
            assert_eq!(Head::read(json.as_bytes()).unwrap_err().to_string(), problem, "{json}");
        }
    }

    #[test]
    fn what_is_pruned_is_gone_and_nothing_else() {
        let kind = kind();
        for pretty in [false, true] {
            let json = if pretty { format!("{:#}", pod()) } else { pod().to_string() };
            let whole = || ObjectJson::new(json.as_bytes(), &kind).unwrap();
            let mut expected = pod();
            let pruned = |prune| {
                let object = whole().without(prune);
                let place = object.places().resource_version.clone();
                assert_eq!(&object.json()[place], b"7");
                assert_eq!(&object.json()[object.places().labels.clone()][..1], b"{");
                serde_json::from_slice::<Value>(object.json()).unwrap()
            };
            assert_eq!(pruned(Prune::Nothing), expected);
            expected["metadata"].as_object_mut().unwrap().remove("managedFields");
            assert_eq!(pruned(Prune::ManagedFields), expected);
            expected["metadata"]["annotations"].as_object_mut().unwrap().remove(LAST_APPLIED);
            assert_eq!(pruned(Prune::LastApplied), expected);
        }
    }

    #[test]
    fn what_only_has_the_name_of_what_is_pruned_is_kept() {
        let kind = kind();
        let json =
            format!(r#"{{"metadata":{{"name":"a"}},"{LAST_APPLIED}":1,"managedFields":[]}}"#);
        let object = ObjectJson::new(json.as_bytes(), &kind).unwrap().without(Prune::LastApplied);
        assert_eq!(object.json(), json.as_bytes());
    }

    #[test]
    fn an_object_without_what_is_pruned_is_not_copied() {
        let (kind, json) = (kind(), br#"{"metadata":{"name":"a"}}"#);
        let object = ObjectJson::new(json, &kind).unwrap().without(Prune::LastApplied);
        assert!(matches!(object.json, Cow::Borrowed(_)));
    }
}
