use serde::de::DeserializeOwned;

use crate::api::Undecodable;
use crate::object::json::ValueScan;
use crate::object::{Kind, ObjectKey, ResourceVersion, Scope};

/// Says which object it is of which only the beginning was kept.
///
/// None when that can not be said: then it could be any of those that are cached.
pub(super) fn report(beginning: &[u8], kind: &Kind, reason: String) -> Option<Undecodable> {
    let (metadata, is_whole) = member(beginning, "metadata")?;
    let text = |name| member(metadata, name).and_then(|(value, _)| read::<String>(value));
    let name = text("name").filter(|name| !name.is_empty())?;
    let namespace = text("namespace");
    // What may still come could be its namespace.
    if namespace.is_none() && !is_whole && kind.scope != Scope::Cluster {
        return None;
    }
    let key = ObjectKey::new(namespace.as_deref().unwrap_or_default(), &name);
    let resource_version = text("resourceVersion").as_deref().and_then(ResourceVersion::new);
    Some(Undecodable { key: Some(key), resource_version, reason })
}

fn read<T: DeserializeOwned>(json: &[u8]) -> Option<T> {
    serde_json::from_slice(json).ok()
}

/// The value of a member of an object, and whether all of it is there.
fn member<'a>(object: &'a [u8], name: &str) -> Option<(&'a [u8], bool)> {
    let mut rest = after(object, b'{')?;
    loop {
        let (key, is_whole) = value(rest)?;
        if !is_whole {
            return None;
        }
        let at_value = after(&rest[key.len()..], b':')?;
        let (found, is_whole) = value(at_value)?;
        if read::<String>(key)? == name {
            return Some((found, is_whole));
        }
        if !is_whole {
            return None;
        }
        rest = after(&at_value[found.len()..], b',')?;
    }
}

/// The value at the beginning, or as much of it as there is.
fn value(bytes: &[u8]) -> Option<(&[u8], bool)> {
    let mut scan = ValueScan::beginning_with(*bytes.first()?);
    Some(match scan.advance(bytes) {
        Ok(length) => (&bytes[..length], true),
        Err(_unfinished) => (bytes, false),
    })
}

/// What comes after this byte, which must come next.
fn after(bytes: &[u8], byte: u8) -> Option<&[u8]> {
    let rest = bytes.trim_ascii_start().strip_prefix(&[byte])?;
    Some(rest.trim_ascii_start())
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::{Node, Pod};

    use super::*;
    use crate::object::StaticKind;

    fn named<K: StaticKind>(beginning: &str) -> Option<String> {
        let report = report(beginning.as_bytes(), &K::static_kind(), "large".to_owned())?;
        let version = report.resource_version.map(|version| format!("@{version}"));
        Some(format!("{}{}", report.key?, version.unwrap_or_default()))
    }

    #[test]
    fn the_beginning_of_an_object_names_it() {
        let whole = r#"{"metadata":{"name":"a","namespace":"b","resourceVersion":"7"},"spec":{"#;
        assert_eq!(named::<Pod>(whole).as_deref(), Some("b/a@7"));
        let after_others = r#" { "apiVersion" : "v1", "data":{"x":["}"]}, "metadata": {"annotations":{"name":"no"},"namespace":"b", "name" :"a", "uid"#;
        assert_eq!(named::<Pod>(after_others).as_deref(), Some("b/a"));
    }

    #[test]
    fn what_is_not_told_is_not_guessed() {
        for beginning in [
            "",
            "{",
            r#"["metadata"]"#,
            r#"{"spec":{"long":"#,
            r#"{"metadata":{"labels":{"#,
            r#"{"metadata":{"name":"a""#,
            r#"{"metadata":{"namespace":"b"}"#,
            r#"{"metadata":{"name":7,"namespace":"b"}"#,
            r#"{"metadata":{"name":"a","namespace":"b"#,
        ] {
            assert_eq!(named::<Pod>(beginning), None, "{beginning}");
        }
        assert_eq!(named::<Node>(r#"{"metadata":{"name":"a","#).as_deref(), Some("a"));
    }

    #[test]
    fn no_end_of_a_beginning_is_misread() {
        let whole = r#"{"metadata":{"name":"a","namespace":"b"},"spec":{}}"#;
        for end in 0..whole.len() {
            let found = named::<Pod>(&whole[..end]);
            assert!(found.is_none() || found.as_deref() == Some("b/a"), "{end}: {found:?}");
        }
    }
}
