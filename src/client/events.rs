use std::borrow::Cow;
use std::sync::Arc;

use futures::stream::{self, StreamExt as _};
use serde::Deserialize;

use super::answer::status_in;
use super::frames::{Attempt, Frames};
use super::item::Reading;
use super::slice::Slice;
use super::transport::BodyStream;
use crate::api::{ApiError, Status, WatchEvent, WatchStream};
use crate::object::json::{Members, text};
use crate::object::{DecodeError, Head, Kind, ObjectJson, Resource, ResourceVersion};

/// Events until the body ends or something is wrong with it; then nothing more.
pub(super) fn read_events<K: Resource>(
    body: BodyStream,
    reading: Reading<K>,
    cap: usize,
) -> WatchStream<K> {
    let events = Events { body, frames: Frames::new(cap), reading, slice: Slice::begin() };
    stream::unfold(Some(events), |events| async move {
        let mut events = events?;
        let event = events.next().await?;
        let rest = event.is_ok().then_some(events);
        Some((event, rest))
    })
    .boxed_local()
}

struct Events<K> {
    body: BodyStream,
    frames: Frames,
    reading: Reading<K>,
    slice: Slice,
}

impl<K: Resource> Events<K> {
    async fn next(&mut self) -> Option<Result<WatchEvent<K>, ApiError>> {
        loop {
            match self.frames.next(|bytes| read_event(bytes, &self.reading)) {
                Some(Ok(event)) => {
                    if let Ok(WatchEvent::Bookmark { ends_initial_events: true, .. }) = event {
                        // What comes now has changed.
                        (self.reading.known, self.reading.room) = (None, None);
                    }
                    self.slice.count().await;
                    return Some(event);
                }
                Some(Err(error)) => return Some(Err(error)),
                None => {}
            }
            match self.body.next().await? {
                Ok(chunk) => self.frames.push(chunk),
                Err(error) => return Some(Err(error)),
            }
        }
    }
}

/// Reads the event that the bytes begin with.
fn read_event<K: Resource>(
    bytes: &[u8],
    reading: &Reading<K>,
) -> Attempt<Result<WatchEvent<K>, ApiError>> {
    let kind = &reading.kind;
    match Envelope::read(bytes, kind) {
        Ok(envelope) => {
            let length = envelope.length;
            Attempt::Read { value: envelope.event(reading), length }
        }
        Err(problem) => {
            let problem = format!("a watch event of {kind} {problem}");
            Attempt::Failed(Err(ApiError::malformed(problem)))
        }
    }
}

/// An event, of whose object the head was read on the way.
struct Envelope<'a> {
    event_type: &'a str,
    json: &'a [u8],
    object: Result<ObjectJson<'a>, DecodeError>,
    /// Of all of it.
    length: usize,
}

impl<'a> Envelope<'a> {
    fn read(bytes: &'a [u8], kind: &'a Arc<Kind>) -> Result<Self, &'static str> {
        let unreadable = |_no_object| "can not be read: it is no JSON object";
        let (mut event_type, mut found) = (None, None);
        let mut members = Members::of(bytes, 0).map_err(unreadable)?;
        while let Some(member) = members.next().map_err(unreadable)? {
            let is_twice = match &*member.key {
                "type" => event_type.replace(members.value().map_err(unreadable)?).is_some(),
                "object" => {
                    let start = members.at();
                    let object = ObjectJson::beginning(&bytes[start..], kind);
                    match &object {
                        Ok(object) => members.pass_value(object.json().len()),
                        Err(_) => {
                            members.value().map_err(unreadable)?;
                        }
                    }
                    found.replace((&bytes[start..members.at()], object)).is_some()
                }
                _ => {
                    members.value().map_err(unreadable)?;
                    false
                }
            };
            if is_twice {
                return Err("can not be read: it has its type or its object twice");
            }
        }
        let event_type = event_type.map(|place| &bytes[place]).and_then(text);
        let Some(Cow::Borrowed(event_type)) = event_type else { return Err("has no type") };
        let (json, object) = found.ok_or("has no object")?;
        Ok(Self { event_type, json, object, length: members.at() })
    }

    fn event<K: Resource>(self, reading: &Reading<K>) -> Result<WatchEvent<K>, ApiError> {
        let Self { event_type, json, object, .. } = self;
        match event_type {
            "ADDED" => Ok(WatchEvent::Added(reading.located(object))),
            "MODIFIED" => Ok(WatchEvent::Modified(reading.located(object))),
            "DELETED" => Ok(WatchEvent::Deleted(reading.located(object))),
            "BOOKMARK" => read_bookmark(json, &reading.kind),
            "ERROR" => Err(status_in(json)
                .unwrap_or_else(|| Status {
                    code: 500,
                    message: "the server reported an error that is no status".to_owned(),
                    ..Status::default()
                })
                .into_error(None)),
            other => Ok(WatchEvent::Unknown { event_type: other.to_owned() }),
        }
    }
}

/// A bookmark is metadata only: its empty object would not be valid as a whole one.
fn read_bookmark<K>(object: &[u8], kind: &Kind) -> Result<WatchEvent<K>, ApiError> {
    #[derive(Deserialize, Default)]
    #[serde(default)]
    struct Bookmark {
        metadata: BookmarkMetadata,
    }
    #[derive(Deserialize, Default)]
    #[serde(default)]
    struct BookmarkMetadata {
        annotations: Option<std::collections::BTreeMap<String, String>>,
    }
    let problem = |what: &str| ApiError::malformed(format!("a bookmark of {kind} {what}"));
    let head = Head::read(object).map_err(|_error| problem("can not be read"))?;
    let bookmark: Bookmark =
        serde_json::from_slice(object).map_err(|_error| problem("can not be read"))?;
    let resource_version = head.metadata.resource_version.as_deref().and_then(ResourceVersion::new);
    let annotations = bookmark.metadata.annotations.unwrap_or_default();
    Ok(WatchEvent::Bookmark {
        resource_version: resource_version.ok_or_else(|| problem("has no version"))?,
        ends_initial_events: annotations
            .get("k8s.io/initial-events-end")
            .is_some_and(|value| value == "true"),
    })
}
