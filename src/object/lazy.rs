use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::str::Utf8Error;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use kube_core::ObjectMeta;
use serde::ser::Error as _;
use serde::{Deserialize, Serialize, Serializer};

use super::head::ObjectJson;
use super::{DecodeError, Kind, ObjectKey, Resource, StaticKind, read};

/// An object that is kept as the server wrote it, and read when somebody asks.
///
/// Costs its JSON in one allocation and about a hundred bytes, an eighth of a decoded pod, and next to nothing when it
/// changes and nobody looks. Whether the JSON is what `K` wants is known only when it is [read](Self::get).
///
/// ```
/// use k8s_openapi::api::core::v1::Pod;
/// use kubeflect::object::{Lazy, Resource, StaticKind};
///
/// let json = br#"{"metadata":{"name":"a","namespace":"b"},"spec":{"containers":[],"nodeName":"n1"}}"#;
/// let pod = Lazy::<Pod>::decode(json, &Pod::static_kind())?;
/// assert_eq!(pod.key().to_string(), "b/a");
/// assert_eq!(pod.get()?.spec.as_ref().unwrap().node_name.as_deref(), Some("n1"));
///
/// // Of a large object, often a few fields are enough.
/// #[derive(serde::Deserialize)]
/// struct Placed<'a> { #[serde(borrow)] spec: Spec<'a> }
/// #[derive(serde::Deserialize)]
/// struct Spec<'a> { #[serde(rename = "nodeName")] node_name: Option<&'a str> }
/// assert_eq!(pod.read::<Placed<'_>>()?.spec.node_name, Some("n1"));
/// # Ok::<(), kubeflect::object::DecodeError>(())
/// ```
pub struct Lazy<K> {
    json: Box<str>,
    key: ObjectKey,
    uid: Text,
    resource_version: Text,
    labels: Place,
    kind: Arc<Kind>,
    /// What somebody holds who asked before.
    decoded: Mutex<Weak<K>>,
}

/// A part of the head.
enum Text {
    /// Stands in the JSON as it is meant. What is empty is not there.
    At(Place),
    /// Is written there with escapes.
    Escaped(Box<str>),
}

#[derive(Clone, Copy)]
struct Place {
    from: u32,
    to: u32,
}

impl<K: Resource> Lazy<K> {
    /// The whole object. Who asks while another holds it gets the same.
    ///
    /// Of what nobody holds any more, the room of the struct itself stays taken until it is asked for again or the object
    /// changes; all that it pointed to is gone. [`read`](Self::read) leaves nothing behind.
    ///
    /// # Errors
    /// When the JSON is not such an object.
    pub fn get(&self) -> Result<Arc<K>, DecodeError> {
        let mut decoded = self.decoded.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(object) = decoded.upgrade() {
            return Ok(object);
        }
        let object = Arc::new(K::decode(self.json.as_bytes(), &self.kind)?);
        *decoded = Arc::downgrade(&object);
        Ok(object)
    }
}

impl<K> Lazy<K> {
    /// Some of the object, into a struct that may borrow from it.
    ///
    /// # Errors
    /// When the JSON does not have what `T` wants.
    pub fn read<'a, T: Deserialize<'a>>(&'a self) -> Result<T, DecodeError> {
        read(self.json.as_bytes())
    }

    /// As the server wrote it, without what was pruned.
    pub fn json(&self) -> &str {
        &self.json
    }

    /// What kind of object it is.
    pub fn kind(&self) -> &Kind {
        &self.kind
    }

    fn at(&self, place: Place) -> &str {
        &self.json[place.from as usize..place.to as usize]
    }

    fn text<'a>(&'a self, text: &'a Text) -> Option<&'a str> {
        let text = match text {
            Text::At(place) => self.at(*place),
            Text::Escaped(text) => text,
        };
        (!text.is_empty()).then_some(text)
    }
}

impl<K: Resource> Resource for Lazy<K> {
    fn key(&self) -> ObjectKey {
        self.key.clone()
    }

    fn uid(&self) -> Option<&str> {
        self.text(&self.uid)
    }

    fn resource_version(&self) -> Option<&str> {
        self.text(&self.resource_version)
    }

    fn decode(json: &[u8], kind: &Kind) -> Result<Self, DecodeError> {
        Self::decode_object(ObjectJson::new(json, &Arc::new(kind.clone()))?)
    }

    fn decode_object(object: ObjectJson<'_>) -> Result<Self, DecodeError> {
        if u32::try_from(object.json().len()).is_err() {
            return Err(DecodeError::new("it is larger than 4 GiB"));
        }
        Ok(Self {
            key: object.key().ok_or_else(|| DecodeError::new("the object has no name"))?,
            uid: Text::of(object.head().metadata.uid.as_ref(), &object.places().uid),
            resource_version: Text::of(
                object.head().metadata.resource_version.as_ref(),
                &object.places().resource_version,
            ),
            labels: (&object.places().labels).into(),
            kind: Arc::clone(object.kind()),
            decoded: Mutex::new(Weak::new()),
            json: String::from_utf8(object.into_json())
                .map_err(|error| no_text(error.utf8_error()))?
                .into_boxed_str(),
        })
    }

    fn labels(&self) -> Option<Cow<'_, BTreeMap<String, String>>> {
        let labels = self.at(self.labels);
        if labels.is_empty() {
            return Some(Cow::Owned(BTreeMap::new()));
        }
        // Those that can not be read are not known, which is another thing than none.
        read::<Option<_>>(labels.as_bytes())
            .ok()
            .map(|labels| Cow::Owned(labels.unwrap_or_default()))
    }

    fn object_meta(&self) -> Option<Cow<'_, ObjectMeta>> {
        #[derive(Deserialize)]
        struct Metadata {
            metadata: ObjectMeta,
        }
        self.read::<Metadata>().ok().map(|read| Cow::Owned(read.metadata))
    }

    fn metadata_only() -> bool {
        K::metadata_only()
    }
}

impl<K: StaticKind> StaticKind for Lazy<K> {
    fn static_kind() -> Kind {
        K::static_kind()
    }
}

/// As the object itself is written.
impl<K: Resource + Serialize> Serialize for Lazy<K> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.get().map_err(S::Error::custom)?.serialize(serializer)
    }
}

fn no_text(error: Utf8Error) -> DecodeError {
    DecodeError::new(format!("no UTF-8 at byte {}", error.valid_up_to()))
}

impl Text {
    fn of(text: Option<&Cow<'_, str>>, place: &Range<usize>) -> Self {
        match text {
            Some(Cow::Owned(escaped)) => Self::Escaped(escaped.as_str().into()),
            Some(Cow::Borrowed(_)) | None => Self::At(place.into()),
        }
    }
}

impl From<&Range<usize>> for Place {
    /// The JSON has been found to be smaller than 4 GiB.
    fn from(place: &Range<usize>) -> Self {
        let narrow = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        Self { from: narrow(place.start), to: narrow(place.end) }
    }
}

impl<K> fmt::Debug for Lazy<K> {
    /// Not what it says: that may be a Secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Lazy({} of {} bytes)", self.kind.kind, self.json.len())
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::{Pod, Secret};

    use super::*;
    use crate::object::Prune;

    const POD: &str = r#"{"kind":"Pod","apiVersion":"v1","metadata":{"managedFields":[{"a":[]}],"name":"a","namespace":"b","uid":"u","resourceVersion":"7","labels":{"app":"web"}},"spec":{"containers":[]}}"#;

    fn lazy(json: &str) -> Lazy<Pod> {
        Lazy::decode(json.as_bytes(), &Pod::static_kind()).unwrap()
    }

    #[test]
    fn a_lazy_object_knows_who_it_is() {
        let pod = lazy(POD);
        assert_eq!(pod.key(), ObjectKey::new("b", "a"));
        assert_eq!((pod.uid(), pod.resource_version()), (Some("u"), Some("7")));
        assert_eq!(pod.labels().unwrap()["app"], "web");
        let bare = lazy(r#"{"metadata":{"name":"a"}}"#);
        assert_eq!((bare.uid(), bare.resource_version()), (None, None));
        assert!(bare.labels().unwrap().is_empty());
    }

    #[test]
    fn a_name_with_escapes_is_what_it_means() {
        let pod = lazy(
            r#"{"metadata":{"name":"a\u0026b","namespace":"n","uid":"u","resourceVersion":"7"}}"#,
        );
        assert_eq!(pod.key().to_string(), "n/a&b");
        assert_eq!((pod.uid(), pod.resource_version()), (Some("u"), Some("7")));
    }

    #[test]
    fn it_is_read_once_for_all_who_hold_it() {
        let pod = lazy(POD);
        let held = pod.get().unwrap();
        assert!(Arc::ptr_eq(&held, &pod.get().unwrap()));
        drop(held);
        assert_eq!(pod.get().unwrap().metadata.name.as_deref(), Some("a"));
        assert!(pod.decoded.lock().unwrap().upgrade().is_none(), "nobody holds it any more");
    }

    #[test]
    fn a_pruned_object_knows_who_it_is_too() {
        let kind = Arc::new(Pod::static_kind());
        let object = ObjectJson::new(POD.as_bytes(), &kind).unwrap();
        let pod = Lazy::<Pod>::decode_object(object.without(Prune::ManagedFields)).unwrap();
        assert!(!pod.json().contains("managedFields"));
        assert_eq!(pod.key(), ObjectKey::new("b", "a"));
        assert_eq!((pod.uid(), pod.resource_version()), (Some("u"), Some("7")));
        assert_eq!(pod.get().unwrap().metadata.managed_fields, None);
    }

    #[test]
    fn labels_that_can_not_be_read_are_not_taken_for_none() {
        let labels = |json: &str| lazy(json).labels().map(|labels| labels.len());
        assert_eq!(labels(r#"{"metadata":{"name":"a"}}"#), Some(0));
        assert_eq!(labels(r#"{"metadata":{"name":"a","labels":null}}"#), Some(0));
        assert_eq!(labels(r#"{"metadata":{"name":"a","labels":{"b":"c"}}}"#), Some(1));
        assert_eq!(labels(r#"{"metadata":{"name":"a","labels":{"b":null}}}"#), None);
    }

    #[test]
    fn what_its_type_does_not_want_is_told_when_it_is_read() {
        let pod = lazy(r#"{"metadata":{"name":"a"},"spec":{"containers":"none"}}"#);
        assert!(pod.get().unwrap_err().to_string().starts_with("expected "));
        let broken = b"{\"metadata\":{\"name\":\"a\"},\"x\":\"\xff\"}";
        let error = Lazy::<Pod>::decode(broken, &Pod::static_kind()).unwrap_err();
        assert_eq!(error.to_string(), "no UTF-8 at byte 30");
    }

    #[test]
    fn its_metadata_and_the_whole_are_there_for_those_who_show_it() {
        let pod = lazy(POD);
        assert_eq!(pod.object_meta().unwrap().uid.as_deref(), Some("u"));
        let written: serde_json::Value = serde_json::to_value(&pod).unwrap();
        assert_eq!(written["kind"], "Pod");
        assert!(serde_json::to_value(lazy(r#"{"metadata":{"name":"a"},"spec":7}"#)).is_err());
    }

    #[test]
    fn a_secret_is_not_printed() {
        let json = r#"{"metadata":{"name":"a"},"data":{"key":"aHVudGVyMg=="}}"#;
        let secret = Lazy::<Secret>::decode(json.as_bytes(), &Secret::static_kind()).unwrap();
        assert!(!format!("{secret:?}").contains("aHVudGVyMg"));
    }
}
