use std::io;

use kubeflect::object::Resource;
use kubeflect::{Cause, Kind, ResourceEvent};
use serde::Serialize;
use serde_json::ser::{Formatter, Serializer};

use super::screen::{Colour, Screen, one_line};

/// An object that can be written as JSON, whatever is kept of it.
pub(crate) trait Shown: Resource + Serialize {}

impl<K: Resource + Serialize> Shown for K {}

/// One change as a line of JSON: what `watch -o json` prints and sinks are told. Every line has every key.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Line<'a, K> {
    event: &'static str,
    cause: Option<&'static str>,
    api_version: &'a str,
    kind: &'a str,
    namespace: Option<&'a str>,
    name: Option<&'a str>,
    uid: Option<&'a str>,
    resource_version: Option<&'a str>,
    object: Option<&'a K>,
}

/// Adds a change as a line of JSON.
pub(crate) fn push_json<K: Shown>(lines: &mut Vec<u8>, kind: &Kind, event: &ResourceEvent<K>) {
    let object = object_of(event);
    let key = object.map(Resource::key);
    let mut line = Line {
        event: event_name(event),
        cause: event.cause().map(cause_name),
        api_version: &kind.api_version(),
        kind: &kind.kind,
        namespace: key.as_ref().and_then(|key| key.namespace()),
        name: key.as_ref().map(|key| key.name()),
        uid: object.and_then(Resource::uid),
        resource_version: object.and_then(Resource::resource_version),
        object,
    };
    let start = lines.len();
    if let Err(error) = line.serialize(&mut Serializer::with_formatter(&mut *lines, AsText)) {
        // One that was kept as it came and is not what it should be. What is known of it is told.
        tracing::warn!(%kind, key = %key.as_ref().map(ToString::to_string).unwrap_or_default(), %error, "an object can not be read");
        lines.truncate(start);
        line.object = None;
        let mut serializer = Serializer::with_formatter(&mut *lines, AsText);
        line.serialize(&mut serializer).expect("texts go as JSON");
    }
    lines.push(b'\n');
}

/// Writes JSON that a terminal takes for text: JSON has no need to escape all that terminals obey.
struct AsText;

impl Formatter for AsText {
    fn write_string_fragment<W: io::Write + ?Sized>(
        &mut self,
        writer: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        let mut rest = fragment;
        while let Some(at) = rest.find(|c| ('\u{7f}'..='\u{9f}').contains(&c)) {
            let (before, after) = rest.split_at(at);
            let control = after.chars().next().unwrap_or_default();
            write!(writer, "{before}\\u{:04x}", u32::from(control))?;
            rest = &after[control.len_utf8()..];
        }
        writer.write_all(rest.as_bytes())
    }

    /// Of objects that were kept as they came: these stand in their texts, and nowhere else.
    fn write_raw_fragment<W: io::Write + ?Sized>(
        &mut self,
        writer: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        self.write_string_fragment(writer, fragment)
    }
}

/// Adds a change as a line for people.
pub(crate) fn push_text<K: Resource>(
    lines: &mut Vec<u8>,
    kind: &Kind,
    event: &ResourceEvent<K>,
    screen: &Screen,
) {
    let happened = event_name(event).to_lowercase();
    let happened = screen.paint(colour_of(event), &format!("{happened:<10}"));
    let kind = kind.to_string();
    let key =
        object_of(event).map(|object| one_line(&object.key().to_string())).unwrap_or_default();
    let cause = event.cause().map(|cause| format!("  {}", cause_name(cause))).unwrap_or_default();
    let line = format!("{happened} {kind:<17} {key}{}", screen.paint(Colour::Dim, &cause));
    lines.extend_from_slice(line.trim_end().as_bytes());
    lines.push(b'\n');
}

/// The object a change is about, as it is or was.
pub(crate) fn object_of<K: Resource>(event: &ResourceEvent<K>) -> Option<&K> {
    match event {
        ResourceEvent::Added { object, .. }
        | ResourceEvent::Updated { new: object, .. }
        | ResourceEvent::Deleted { last_known: object, .. } => Some(object),
        ResourceEvent::Synced => None,
    }
}

pub(crate) fn event_name<K: Resource>(event: &ResourceEvent<K>) -> &'static str {
    match event {
        ResourceEvent::Added { .. } => "ADDED",
        ResourceEvent::Updated { .. } => "UPDATED",
        ResourceEvent::Deleted { .. } => "DELETED",
        ResourceEvent::Synced => "SYNCED",
    }
}

pub(crate) fn colour_of<K: Resource>(event: &ResourceEvent<K>) -> Colour {
    match event {
        ResourceEvent::Added { .. } => Colour::Green,
        ResourceEvent::Updated { .. } => Colour::Yellow,
        ResourceEvent::Deleted { .. } => Colour::Red,
        ResourceEvent::Synced => Colour::Plain,
    }
}

fn cause_name(cause: Cause) -> &'static str {
    match cause {
        Cause::InitialList => "InitialList",
        Cause::Watch => "Watch",
        Cause::Rewind => "Rewind",
        Cause::Resync => "Resync",
        // What is not known to this program was not seen by a watch either.
        _ => "Relist",
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use k8s_openapi::api::core::v1::Node;
    use kubeflect::object::StaticKind as _;
    use serde_json::{Value, json};

    use super::*;

    fn line(event: &ResourceEvent<Node>) -> Value {
        let mut lines = Vec::new();
        push_json(&mut lines, &Node::static_kind(), event);
        assert_eq!(lines.iter().filter(|byte| **byte == b'\n').count(), 1);
        serde_json::from_slice(&lines).unwrap()
    }

    #[test]
    fn every_line_has_every_key() {
        let node = json!({ "metadata": { "name": "a\nb", "uid": "u", "resourceVersion": "7" } });
        let node: Arc<Node> = Arc::new(serde_json::from_value(node).unwrap());
        assert_eq!(
            line(&ResourceEvent::Added { object: node, cause: Cause::InitialList }),
            json!({
                "event": "ADDED", "cause": "InitialList", "apiVersion": "v1", "kind": "Node",
                "namespace": null, "name": "a\nb", "uid": "u", "resourceVersion": "7",
                "object": {
                    "apiVersion": "v1", "kind": "Node",
                    "metadata": { "name": "a\nb", "uid": "u", "resourceVersion": "7" },
                },
            })
        );
        assert_eq!(
            line(&ResourceEvent::Synced),
            json!({
                "event": "SYNCED", "cause": null, "apiVersion": "v1", "kind": "Node", "namespace": null,
                "name": null, "uid": null, "resourceVersion": null, "object": null,
            })
        );
    }
}
