use std::panic::catch_unwind;
use std::sync::Arc;

use crate::api::{Item, Undecodable};
use crate::object::{Head, Kind, Resource, ResourceVersion, describe};

/// Reads one object. What can not be read, or is of another kind, or has no name, becomes a report instead.
pub(super) fn decode<K: Resource>(json: &[u8], kind: &Kind) -> Item<K> {
    let head = match serde_json::from_slice::<Head<'_>>(json) {
        Ok(head) => head,
        Err(error) => {
            let reason = format!("it has no metadata that can be read: {}", describe(&error));
            return Item::Undecodable(Undecodable { key: None, resource_version: None, reason });
        }
    };
    let refuse = |reason: String| {
        let resource_version =
            head.metadata.resource_version.as_deref().and_then(ResourceVersion::new);
        Item::Undecodable(Undecodable { key: head.key(), resource_version, reason })
    };
    if let (Some(api_version), Some(stated)) = (&head.api_version, &head.kind)
        && !is_expected::<K>(kind, api_version, stated)
    {
        return refuse(kind.mismatch(api_version, stated));
    }
    if head.key().is_none() {
        return refuse("the object has no name".to_owned());
    }
    match catch_unwind(|| K::decode(json, kind)) {
        Ok(Ok(object)) => Item::Object(Arc::new(object)),
        Ok(Err(error)) => refuse(error.to_string()),
        Err(_) => refuse("decoding it panicked".to_owned()),
    }
}

fn is_expected<K: Resource>(kind: &Kind, api_version: &str, stated: &str) -> bool {
    let metadata_only = K::metadata_only() && stated == "PartialObjectMetadata";
    metadata_only || kind.is_of(api_version, stated)
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Pod;

    use super::*;
    use crate::object::StaticKind as _;

    fn problem(json: &str) -> String {
        match decode::<Pod>(json.as_bytes(), &Pod::static_kind()) {
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
