use std::collections::BTreeMap;
use std::fmt::Display;
use std::io::Write as _;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::resources::{Origin, Served};
use super::table;

/// One state of one object, as it is sent, and what it can be selected by.
///
/// The text begins with type and version, so that both can be left out or replaced without parsing:
/// `{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"7",` and then the content.
#[derive(Debug, Clone)]
pub(super) struct Stored {
    pub(super) revision: u64,
    pub(super) uid: String,
    /// `metadata.creationTimestamp`.
    pub(super) created: String,
    pub(super) labels: BTreeMap<String, String>,
    /// Values of [`Served::field_labels`], in that order.
    pub(super) fields: Vec<String>,
    text: Bytes,
    /// Where `"metadata"` begins; 0 if the text is not ours.
    type_end: usize,
    /// Where what is not type and version begins; 0 if the text is not ours.
    content_start: usize,
}

/// How much of an object is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Whole,
    /// `PartialObjectMetadata`.
    MetadataOnly,
    /// `Table`: what kubectl prints.
    Table(RowObject),
    /// A `Table` to somebody who knows the columns already.
    TableWithoutColumns(RowObject),
}

/// How much of its object a row of a table carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RowObject {
    None,
    Metadata,
    Whole,
}

/// An object's text without type and version: equal contents are equal objects.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Content(Vec<u8>);

impl Content {
    /// Writes down what `object` says. Its metadata holds a uid at least.
    pub(super) fn of(object: &Map<String, Value>) -> Self {
        let mut text = Vec::with_capacity(1024);
        let metadata = object.get("metadata").and_then(Value::as_object);
        let metadata =
            metadata.into_iter().flatten().filter(|(name, _)| *name != "resourceVersion");
        write_members(&mut text, metadata);
        text.push(b'}');
        let typed = ["kind", "apiVersion", "metadata"];
        for member in object.iter().filter(|(name, _)| !typed.contains(&name.as_str())) {
            text.push(b',');
            write_members(&mut text, std::iter::once(member));
        }
        text.push(b'}');
        Self(text)
    }
}

fn write_members<'a>(text: &mut Vec<u8>, members: impl Iterator<Item = (&'a String, &'a Value)>) {
    for (index, (name, value)) in members.enumerate() {
        if index > 0 {
            text.push(b',');
        }
        write_json(text, name);
        text.push(b':');
        write_json(text, value);
    }
}

fn write_json(text: &mut Vec<u8>, value: &impl Serialize) {
    serde_json::to_writer(text, value).expect("JSON trees and texts can always be written");
}

fn write(text: &mut Vec<u8>, value: impl Display) {
    write!(text, "{value}").expect("a Vec takes whatever is written");
}

impl Stored {
    pub(super) fn new(
        served: &Served,
        object: &Map<String, Value>,
        content: &Content,
        revision: u64,
    ) -> Self {
        let kind = &served.kind;
        let mut text = Vec::with_capacity(content.0.len() + 128);
        write(
            &mut text,
            format_args!(r#"{{"kind":"{}","apiVersion":"{}","#, kind.kind, kind.api_version()),
        );
        let type_end = text.len();
        write(&mut text, format_args!(r#""metadata":{{"resourceVersion":"{revision}","#));
        let content_start = text.len();
        text.extend_from_slice(&content.0);

        let metadata = object.get("metadata").unwrap_or(&Value::Null);
        let text_of = |name: &str| metadata[name].as_str().unwrap_or_default().to_owned();
        Self {
            revision,
            uid: text_of("uid"),
            created: text_of("creationTimestamp"),
            labels: labels(metadata),
            fields: served.field_labels().iter().map(|label| field(object, label)).collect(),
            text: text.into(),
            type_end,
            content_start,
        }
    }

    /// The same object, but its text is whatever a test wants it to be.
    pub(super) fn corrupted(&self, text: Bytes, revision: u64) -> Self {
        Self { revision, text, type_end: 0, content_start: 0, ..self.clone() }
    }

    /// The same object at another version.
    pub(super) fn at(&self, revision: u64) -> Self {
        if self.type_end == 0 {
            return Self { revision, ..self.clone() };
        }
        let mut text = Vec::with_capacity(self.text.len() + 8);
        text.extend_from_slice(&self.text[..self.type_end]);
        write(&mut text, format_args!(r#""metadata":{{"resourceVersion":"{revision}","#));
        let content_start = text.len();
        text.extend_from_slice(&self.text[self.content_start..]);
        Self { revision, text: text.into(), content_start, ..self.clone() }
    }

    pub(super) fn has(&self, content: &Content) -> bool {
        self.type_end > 0 && self.text[self.content_start..] == content.0
    }

    /// The object as a tree; `Null` if its text was corrupted beyond JSON.
    pub(super) fn to_value(&self) -> Value {
        serde_json::from_slice(&self.text).unwrap_or_default()
    }

    /// The object alone, as GET answers.
    pub(super) fn text(&self, form: Form) -> Bytes {
        if form == Form::Whole {
            return self.text.clone();
        }
        let mut text = Vec::new();
        self.write_into(&mut text, form);
        text.into()
    }

    /// The object as in a watch event.
    pub(super) fn write_into(&self, out: &mut Vec<u8>, form: Form) {
        if let Form::Table(row_object) | Form::TableWithoutColumns(row_object) = form {
            let mut table = table::of_one(&self.to_value(), row_object);
            if form == Form::TableWithoutColumns(row_object) {
                table["columnDefinitions"] = Value::Null;
            }
            return write(out, table);
        }
        let metadata = (form == Form::MetadataOnly).then(|| metadata_of(&self.text)).flatten();
        match metadata {
            Some(metadata) => write(
                out,
                format_args!(
                    r#"{{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{metadata}}}"#
                ),
            ),
            None => out.extend_from_slice(&self.text),
        }
    }

    /// The object as an item of a list.
    pub(super) fn write_item_into(&self, out: &mut Vec<u8>, form: Form, origin: Origin) {
        if let Form::Table(row_object) = form {
            write(out, table::row(&self.to_value(), row_object));
        } else if form == Form::Whole && origin == Origin::BuiltIn && self.type_end > 0 {
            out.push(b'{');
            out.extend_from_slice(&self.text[self.type_end..]);
        } else {
            self.write_into(out, form);
        }
    }
}

fn metadata_of(text: &[u8]) -> Option<&RawValue> {
    #[derive(Deserialize)]
    struct Object<'a> {
        #[serde(borrow)]
        metadata: &'a RawValue,
    }
    serde_json::from_slice(text).ok().map(|object: Object<'_>| object.metadata)
}

fn labels(metadata: &Value) -> BTreeMap<String, String> {
    let labels = metadata["labels"].as_object().into_iter().flatten();
    labels
        .map(|(name, value)| (name.clone(), value.as_str().unwrap_or_default().to_owned()))
        .collect()
}

/// The value of a field label such as `spec.nodeName`; empty if the object has none.
fn field(object: &Map<String, Value>, label: &str) -> String {
    let mut parts = label.split('.');
    let first = parts.next().and_then(|part| object.get(part));
    match parts.fold(first, |value, part| value.and_then(|value| value.get(part))) {
        Some(Value::String(text)) => text.clone(),
        Some(value @ (Value::Bool(_) | Value::Number(_))) => value.to_string(),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::embedded::resources::built_in;

    fn stored(object: &Value, revision: u64) -> Stored {
        let pods = built_in().find(|served| served.kind.plural == "pods").unwrap();
        let object = object.as_object().unwrap();
        Stored::new(&pods, object, &Content::of(object), revision)
    }

    fn pod() -> Value {
        json!({
            "kind": "Pod", "apiVersion": "v1",
            "metadata": { "name": "a", "uid": "u", "labels": { "app": "web" }, "resourceVersion": "1" },
            "spec": { "nodeName": "node-1", "hostNetwork": true },
        })
    }

    #[test]
    fn a_stored_object_reads_back_at_its_version() {
        let mut expected = pod();
        expected["metadata"]["resourceVersion"] = json!("7");
        assert_eq!(stored(&pod(), 7).to_value(), expected);
        assert_eq!(stored(&pod(), 99).at(7).to_value(), expected);
    }

    #[test]
    fn an_item_of_a_built_in_list_has_no_type() {
        let mut item = Vec::new();
        stored(&pod(), 7).write_item_into(&mut item, Form::Whole, Origin::BuiltIn);
        let item: Value = serde_json::from_slice(&item).unwrap();
        assert_eq!((item.get("kind"), item.get("apiVersion")), (None, None));
        assert_eq!(item["metadata"]["resourceVersion"], "7");
    }

    #[test]
    fn two_objects_are_the_same_if_only_their_versions_differ() {
        let mut changed = pod();
        changed["metadata"]["resourceVersion"] = json!("8");
        assert!(stored(&pod(), 7).has(&Content::of(changed.as_object().unwrap())));
        changed["spec"]["nodeName"] = json!("node-2");
        assert!(!stored(&pod(), 7).has(&Content::of(changed.as_object().unwrap())));
    }

    #[test]
    fn metadata_only_leaves_the_rest_out() {
        let text = stored(&pod(), 7).text(Form::MetadataOnly);
        let partial: Value = serde_json::from_slice(&text).unwrap();
        assert_eq!(partial["kind"], "PartialObjectMetadata");
        assert_eq!(partial["metadata"]["labels"]["app"], "web");
        assert_eq!(partial.get("spec"), None);
    }

    #[test]
    fn fields_are_kept_as_selectors_compare_them() {
        let fields = stored(&pod(), 7).fields;
        assert!(fields.contains(&"node-1".to_owned()) && fields.contains(&"true".to_owned()));
    }
}
