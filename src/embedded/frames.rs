use serde_json::{Value, json};

use super::failure::Failure;
use super::resources::Served;
use super::stored::{Form, Stored};
use super::table;

/// One event of a watch, as it is sent.
pub(super) fn write_event(chunk: &mut Vec<u8>, event_type: &str, object: &Stored, form: Form) {
    begin_frame(chunk, event_type);
    object.write_into(chunk, form);
    chunk.extend_from_slice(b"}\n");
}

pub(super) fn write_frame(chunk: &mut Vec<u8>, event_type: &str, object: &[u8]) {
    begin_frame(chunk, event_type);
    chunk.extend_from_slice(object);
    chunk.extend_from_slice(b"}\n");
}

fn begin_frame(chunk: &mut Vec<u8>, event_type: &str) {
    for part in [r#"{"type":""#, event_type, r#"","object":"#] {
        chunk.extend_from_slice(part.as_bytes());
    }
}

pub(super) fn error_frame(failure: &Failure) -> Vec<u8> {
    let mut frame = Vec::new();
    write_frame(&mut frame, "ERROR", failure.body().to_string().as_bytes());
    frame
}

pub(super) fn bookmark(
    served: &Served,
    form: Form,
    revision: u64,
    ends_initial_events: bool,
) -> Value {
    let mut metadata =
        json!({ "resourceVersion": revision.to_string(), "creationTimestamp": null });
    if ends_initial_events {
        metadata["annotations"] = json!({ "k8s.io/initial-events-end": "true" });
    }
    match form {
        Form::MetadataOnly => json!({
            "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": metadata,
        }),
        Form::Table(_) => json!({
            "kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": metadata,
            "columnDefinitions": table::columns(&served.kind), "rows": [],
        }),
        Form::TableWithoutColumns(_) => json!({
            "kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": metadata,
            "columnDefinitions": null, "rows": [],
        }),
        Form::Whole => {
            let kind = &served.kind;
            let mut object = json!({
                "kind": kind.kind, "apiVersion": kind.api_version(), "metadata": metadata,
            });
            // Go writes mandatory fields even if they are empty: no bookmark is a whole object.
            if kind.group.is_empty() && kind.plural == "pods" {
                object["spec"] = json!({ "containers": null });
                object["status"] = json!({});
            }
            object
        }
    }
}
