use std::cell::Cell;
use std::fmt;
use std::hint::black_box;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;

use crate::api::{Item, Known, Undecodable};
use crate::object::{
    DecodeError, Head, Kind, ObjectJson, ObjectKey, Prune, Resource, ResourceVersion,
};

/// How the objects of an answer are read.
pub(super) struct Reading<K> {
    pub(super) kind: Arc<Kind>,
    pub(super) prune: Prune,
    /// What need not be read again.
    pub(super) known: Option<Rc<dyn Known<K>>>,
    /// For all that is there. What changes later takes the place of what was.
    pub(super) room: Option<Room>,
}

impl<K: Resource> Reading<K> {
    /// Reads one object. What can not be read, or is of another kind, or has no name, becomes a report instead.
    pub(super) fn item(&self, json: &[u8]) -> Item<K> {
        self.located(ObjectJson::new(json, &self.kind))
    }

    /// The same, for who has looked at the head already.
    pub(super) fn located(&self, object: Result<ObjectJson<'_>, DecodeError>) -> Item<K> {
        let object = match object {
            Ok(object) => object,
            Err(error) => {
                let reason = format!("it has no metadata that can be read: {error}");
                return undecodable(None, None, reason);
            }
        };
        let head = object.head();
        if let (Some(api_version), Some(stated)) = (&head.api_version, &head.kind)
            && !self.is_expected(api_version, stated)
        {
            return refused(head, self.kind.mismatch(api_version, stated));
        }
        let Some(key) = object.key() else {
            return refused(head, "the object has no name".to_owned());
        };
        if let Some(cached) = self.unchanged(&key, head) {
            return Item::Object(cached);
        }
        if let Some(room) = &self.room {
            room.count();
        }
        let version = head.metadata.resource_version.clone();
        let object = object.without(self.prune);
        // A decoder that panics leaves nothing behind.
        let problem = match catch_unwind(AssertUnwindSafe(|| K::decode_object(object))) {
            Ok(Ok(read)) => return Item::Object(Arc::new(read)),
            Ok(Err(error)) => error.to_string(),
            Err(_) => "decoding it panicked".to_owned(),
        };
        undecodable(Some(key), version.as_deref(), problem)
    }

    /// The cached state, if it is this one.
    fn unchanged(&self, key: &ObjectKey, head: &Head<'_>) -> Option<Arc<K>> {
        let known = self.known.as_ref()?;
        let (uid, version) =
            (head.metadata.uid.as_deref()?, head.metadata.resource_version.as_deref()?);
        if uid.is_empty() || version.is_empty() {
            return None;
        }
        let cached = known.cached(key)?;
        (cached.uid() == Some(uid) && cached.resource_version() == Some(version)).then_some(cached)
    }

    fn is_expected(&self, api_version: &str, stated: &str) -> bool {
        let metadata_only = K::metadata_only() && stated == "PartialObjectMetadata";
        metadata_only || self.kind.is_of(api_version, stated)
    }
}

/// Lets the heap of this thread grow in large steps. glibc asks the kernel for one page after the other on all threads
/// but the first, which is a fifth of what a list of large objects costs.
#[derive(Debug, Default)]
pub(super) struct Room(Cell<usize>);

impl Room {
    /// So much is asked for at once,
    const SIZE: usize = 1 << 20;
    /// and asked for again after so many objects.
    const OBJECTS: usize = 16;

    fn count(&self) {
        let objects = self.0.get();
        self.0.set(objects + 1);
        if objects.is_multiple_of(Self::OBJECTS) {
            drop(black_box(Vec::<u8>::with_capacity(Self::SIZE)));
        }
    }
}

fn refused<K>(head: &Head<'_>, reason: String) -> Item<K> {
    undecodable(head.key(), head.metadata.resource_version.as_deref(), reason)
}

fn undecodable<K>(key: Option<ObjectKey>, version: Option<&str>, reason: String) -> Item<K> {
    let resource_version = version.and_then(ResourceVersion::new);
    Item::Undecodable(Undecodable { key, resource_version, reason })
}

impl<K> fmt::Debug for Reading<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reading")
            .field("kind", &self.kind)
            .field("prune", &self.prune)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Pod;

    use super::*;
    use crate::object::StaticKind as _;

    fn reading(known: Option<Rc<dyn Known<Pod>>>) -> Reading<Pod> {
        Reading { kind: Arc::new(Pod::static_kind()), prune: Prune::Nothing, known, room: None }
    }

    struct One(Arc<Pod>);

    impl Known<Pod> for One {
        fn cached(&self, key: &ObjectKey) -> Option<Arc<Pod>> {
            (self.0.key() == *key).then(|| Arc::clone(&self.0))
        }
    }

    #[test]
    fn a_cached_state_is_not_read_again() {
        let json = |name: &str, uid: &str, version: &str| {
            format!(
                r#"{{"metadata":{{"name":"{name}","uid":"{uid}","resourceVersion":"{version}"}},"spec":"not read"}}"#
            )
        };
        let cached = r#"{"metadata":{"name":"a","uid":"u","resourceVersion":"7"}}"#;
        let cached = Arc::new(Pod::decode(cached.as_bytes(), &Pod::static_kind()).unwrap());
        let reading = reading(Some(Rc::new(One(Arc::clone(&cached)))));
        match reading.item(json("a", "u", "7").as_bytes()) {
            Item::Object(same) => assert!(Arc::ptr_eq(&same, &cached)),
            Item::Undecodable(report) => panic!("{report}"),
        }
        let nothing = r#"{"metadata":{"name":"a","uid":"","resourceVersion":""},"spec":"read"}"#;
        let anonymous = r#"{"metadata":{"name":"a","uid":"","resourceVersion":""}}"#;
        let anonymous = Arc::new(Pod::decode(anonymous.as_bytes(), &Pod::static_kind()).unwrap());
        let item = self::reading(Some(Rc::new(One(anonymous)))).item(nothing.as_bytes());
        assert!(matches!(item, Item::Undecodable(_)), "who does not say so is not the same");
        for other in [json("a", "u", "8"), json("a", "v", "7"), json("b", "u", "7")] {
            assert!(matches!(reading.item(other.as_bytes()), Item::Undecodable(_)), "{other}");
        }
    }

    fn problem(json: &str) -> String {
        match reading(None).item(json.as_bytes()) {
            Item::Object(_) => "none".to_owned(),
            Item::Undecodable(undecodable) => undecodable.to_string(),
        }
    }

    #[test]
    fn an_object_with_or_without_its_type_is_read() {
        assert_eq!(problem(r#"{"metadata":{"name":"a"}}"#), "none");
        assert_eq!(problem(r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"}}"#), "none");
    }

    #[test]
    fn an_object_of_another_kind_is_refused() {
        let service =
            r#"{"apiVersion":"v1","kind":"Service","metadata":{"name":"a","namespace":"b"}}"#;
        assert_eq!(problem(service), "b/a: it is a Service of v1, not a Pod of v1");
    }

    #[test]
    fn an_object_without_a_name_is_refused() {
        assert_eq!(
            problem(r#"{"metadata":{}}"#),
            "an object without a name: the object has no name"
        );
        assert!(problem(r#""text""#).contains("no metadata that can be read"));
    }

    #[test]
    fn an_object_that_can_not_be_read_keeps_its_name() {
        let broken = r#"{"metadata":{"name":"a","namespace":"b"},"spec":{"containers":"none"}}"#;
        assert!(problem(broken).starts_with("b/a: expected "), "{}", problem(broken));
    }
}
