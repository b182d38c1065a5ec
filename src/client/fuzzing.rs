//! What the fuzz targets of `tests/fuzz` call. Not for programs, and not stable.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::frames::{Attempt, Frames};
use super::list::{Found, ListDecoder, ListEnvelope, ListLimits};
use crate::object::json::{Members, NoObject};
use crate::object::{Head, Kind, ObjectJson, Prune, Scope};

const CAP: usize = 1 << 20;

/// Cuts `bytes` into frames, `size` at a time and all at once.
///
/// # Panics
/// When that makes a difference, or when the frames are not what serde finds in a good stream.
pub fn frames(bytes: &[u8], size: usize) {
    let whole = cut(bytes, bytes.len());
    assert_eq!(cut(bytes, size), whole, "pieces of {size}");
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let values = serde_json::Deserializer::from_str(text).into_iter::<&RawValue>();
    let Ok(values) = values.map(|value| value.map(RawValue::get)).collect::<Result<Vec<_>, _>>()
    else {
        return;
    };
    if values.iter().all(|value| value.starts_with('{')) {
        let values = values.into_iter().map(|value| value.as_bytes().to_vec()).collect();
        assert_eq!(whole, (values, true));
    }
}

/// The frames up to the first error, and whether there was none.
fn cut(bytes: &[u8], size: usize) -> (Vec<Vec<u8>>, bool) {
    let mut frames = Frames::new(CAP);
    let mut found = Vec::new();
    for piece in bytes.chunks(size.max(1)) {
        frames.push(bytes::Bytes::copy_from_slice(piece));
        while let Some(frame) = frames.next(object) {
            match frame {
                Ok(Some(frame)) => found.push(frame),
                Ok(None) | Err(_) => return (found, false),
            }
        }
    }
    (found, true)
}

/// The object that the bytes begin with; none if that is no object.
fn object(bytes: &[u8]) -> Attempt<Option<Vec<u8>>> {
    let walk = || -> Result<usize, NoObject> {
        let mut members = Members::of(bytes, 0)?;
        while members.next()?.is_some() {
            members.value()?;
        }
        Ok(members.at())
    };
    match walk() {
        Ok(length) => Attempt::Read { value: Some(bytes[..length].to_vec()), length },
        Err(NoObject) => Attempt::Failed(None),
    }
}

/// Takes `bytes` apart as a list, `size` at a time and all at once.
///
/// # Panics
/// When that makes a difference, or when serde reads the whole of it in another way.
pub fn list(bytes: &[u8], size: usize) {
    let whole = take_apart(bytes, bytes.len());
    assert_eq!(take_apart(bytes, size), whole, "pieces of {size}");
    assert_eq!(whole, read_at_once(bytes));
}

/// Reads any JSON, and a pod.
///
/// # Panics
/// When serde reads what it accepts in another way, or refuses what serde accepts.
pub fn read(bytes: &[u8]) {
    use k8s_openapi::api::core::v1::Pod;
    if let Ok(value) = serde_json::from_slice::<Value>(bytes) {
        assert_eq!(crate::object::read::<Value>(bytes).ok(), Some(value));
    }
    if let Ok(pod) = serde_json::from_slice::<Pod>(bytes) {
        assert_eq!(crate::object::read::<Pod>(bytes).ok(), Some(pod));
    }
}

/// Looks at the head of an object, and cuts out what can be pruned.
///
/// # Panics
/// When serde reads the head in another way, or misses something else after it.
pub fn head(bytes: &[u8]) {
    #[derive(Deserialize, Default)]
    #[serde(rename_all = "camelCase", default)]
    struct Whole {
        api_version: Option<String>,
        kind: Option<String>,
        metadata: Metadata,
    }
    #[derive(Deserialize, Default)]
    #[serde(rename_all = "camelCase", default)]
    struct Metadata {
        name: Option<String>,
        namespace: Option<String>,
        uid: Option<String>,
        resource_version: Option<String>,
    }
    let found = Head::read(bytes);
    // Serde takes an array for a struct, too.
    if !bytes.trim_ascii_start().starts_with(b"{") {
        return;
    }
    let (Ok(whole), Ok(Value::Object(mut value))) =
        (serde_json::from_slice::<Whole>(bytes), serde_json::from_slice(bytes))
    else {
        return;
    };
    let metadata = value.get_mut("metadata").and_then(Value::as_object_mut);
    let found = found.expect("what serde reads can be looked at");
    let read = |text: &Option<std::borrow::Cow<'_, str>>| text.as_deref().map(str::to_owned);
    assert_eq!(read(&found.api_version), whole.api_version);
    assert_eq!(read(&found.kind), whole.kind);
    assert_eq!(read(&found.metadata.name), whole.metadata.name);
    assert_eq!(read(&found.metadata.namespace), whole.metadata.namespace);
    assert_eq!(read(&found.metadata.uid), whole.metadata.uid);
    assert_eq!(read(&found.metadata.resource_version), whole.metadata.resource_version);
    if let Some(metadata) = metadata {
        metadata.remove("managedFields");
        if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
            annotations.remove("kubectl.kubernetes.io/last-applied-configuration");
        }
    }
    let kind = Arc::new(Kind::new("", "v1", "Pod", "pods", Scope::Namespaced));
    let pruned = ObjectJson::new(bytes, &kind).expect("as above").without(Prune::LastApplied);
    let pruned: Value = serde_json::from_slice(pruned.json()).expect("what is left is JSON");
    assert_eq!(pruned, Value::Object(value));
}

type Parts = (Vec<String>, ListEnvelope);

fn take_apart(bytes: &[u8], size: usize) -> Option<Parts> {
    let mut decoder = ListDecoder::new(ListLimits { item: CAP, envelope: CAP, total: 4 << 20 });
    let mut items = Vec::new();
    for piece in bytes.chunks(size.max(1)) {
        decoder.push(piece).ok()?;
        while let Some(item) = decoder.next_item().ok()? {
            let Found::Item(item) = item else { return None };
            serde_json::from_str::<&RawValue>(item).ok()?;
            items.push(item.to_owned());
        }
    }
    Some((items, decoder.finish().ok()?))
}

fn read_at_once(bytes: &[u8]) -> Option<Parts> {
    #[derive(Deserialize)]
    struct Items<'a> {
        // Null is fine, absence is not.
        #[serde(borrow, deserialize_with = "Option::deserialize")]
        items: Option<Vec<&'a RawValue>>,
    }
    let text = std::str::from_utf8(bytes).ok()?;
    // A list is an object; serde takes an array for a struct, too.
    text.trim_start().starts_with('{').then_some(())?;
    let envelope: ListEnvelope = serde_json::from_str(text).ok()?;
    let items: Items<'_> = serde_json::from_str(text).ok()?;
    let items = items.items.unwrap_or_default().into_iter().map(|item| item.get().to_owned());
    envelope.kind.ends_with("List").then(|| (items.collect(), envelope))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::test_runner::RngSeed;
    use serde_json::{Map, json};

    use super::*;

    fn text() -> impl Strategy<Value = String> {
        "[a-z&<\"\\\\{}é\n ]{0,40}"
    }

    fn metadata() -> impl Strategy<Value = Value> {
        let key = prop::sample::select(vec![
            "name",
            "namespace",
            "uid",
            "resourceVersion",
            "labels",
            "annotations",
            "managedFields",
            "x\"y",
        ]);
        let value = prop_oneof![
            text().prop_map(Value::from),
            Just(Value::Null),
            prop::collection::btree_map(text(), text(), 0..4).prop_map(|map| json!(map)),
            text().prop_map(|text| json!([{ "fieldsV1": { text.as_str(): {} } }])),
            text().prop_map(|text| {
                json!({ "kubectl.kubernetes.io/last-applied-configuration": text, "other": text })
            }),
        ];
        prop::collection::vec((key, value), 0..8).prop_map(|members| {
            members.into_iter().map(|(k, v)| (k.to_owned(), v)).collect::<Map<_, _>>().into()
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 3000, rng_seed: RngSeed::Fixed(1), failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn a_head_is_what_serde_reads(metadata in metadata(), rest in text(), pretty: bool) {
            let object = json!({ "apiVersion": "v1", "kind": rest, "metadata": metadata, "spec": { "a": rest } });
            let written = if pretty { format!("{object:#}") } else { object.to_string() };
            head(written.as_bytes());
            head(written.replace('&', "\\u0026").as_bytes());
            head(&written.as_bytes()[..written.len() - 1]);
        }
    }
}
