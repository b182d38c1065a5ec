use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt as _;
use serde_json::{Value, json};
use tokio::sync::watch::Receiver;
use tokio::time::Instant;

use super::failure::{Failure, JSON};
use super::faults::Switch;
use super::history::{Event, Overtaken};
use super::model::{Interruption, Model, OpenWatch};
use super::options::{Begin, Query, WatchOptions, negotiate};
use super::resources::{ResourceId, Served};
use super::route::Call;
use super::selection::Selection;
use super::stored::{Form, Stored};
use super::{ApiServer, lock};
use crate::api::ApiError;
use crate::client::Response;

const BOOKMARK_PERIOD: Duration = Duration::from_secs(60);
/// How long before the end of a watch its last bookmark is sent.
const LAST_BOOKMARK: Duration = Duration::from_secs(2);
/// Enough to batch well, little enough to hold.
const CHUNK_SIZE: usize = 256 * 1024;

/// One watch, from its first event to its end.
struct Watch {
    seat: Seat,
    served: Arc<Served>,
    selection: Selection,
    form: Form,
    opening: Opening,
    /// Everything up to this revision has been shown.
    shown: u64,
    /// Bookmarks up to this revision tell nothing new.
    start: u64,
    bookmarks: Bookmarks,
    deadline: Instant,
    changed: Receiver<()>,
}

/// The place of a watch in the server's books; given up when dropped.
struct Seat {
    server: ApiServer,
    resource: ResourceId,
    number: u64,
}

/// What comes before the live events.
enum Opening {
    Done,
    InitialEvents {
        not_older_than: u64,
        marked_end: bool,
    },
    /// The version asked for is gone. Kubernetes says so in the stream.
    Expired(Box<Failure>),
}

/// When a bookmark is due.
#[derive(Debug, Clone, Copy)]
enum Bookmarks {
    /// Not wanted, or the last one is out.
    Never,
    At(Instant),
    /// The initial events are out, and the bookmark that ends them goes out as soon as it may.
    EndOfInitialEvents,
}

/// What a look at the model gave.
enum Look {
    Nothing,
    Chunk(Vec<u8>),
    /// The last chunk.
    Last(Vec<u8>),
    Broken,
}

impl ApiServer {
    pub(super) fn watch(
        &self,
        call: &Call,
        resource: &ResourceId,
        namespace: Option<&str>,
    ) -> Result<Response, Failure> {
        let query = Query(&call.query);
        let form = negotiate(&call.accept)?;
        let mut model = lock(&self.model);
        let streaming_lists = !model.faults.is_on(Switch::StreamingListsOff);
        let options = WatchOptions::parse(query, streaming_lists)?;
        let served = model.served(resource)?;
        let (labels, fields) = (query.text("labelSelector"), query.text("fieldSelector"));
        let selection = Selection::parse(&served, namespace, labels, fields)?;

        let timeout =
            options.timeout.unwrap_or_else(|| Duration::from_secs(model.random.u64(1800..3600)));
        let now = Instant::now();
        let deadline = now + timeout;
        let floor = model.collections[resource].history.floor();
        let (start, opening) = match options.begin {
            Begin::After(revision) if revision < floor => {
                (revision, Opening::Expired(Box::new(Failure::too_old(revision, floor))))
            }
            Begin::After(revision) => (revision, Opening::Done),
            Begin::Now => (model.revision(), Opening::Done),
            Begin::InitialEvents { not_older_than, marked_end } => {
                (0, Opening::InitialEvents { not_older_than, marked_end })
            }
        };
        let watch = Watch {
            seat: Seat::take(self, &mut model, resource),
            served,
            selection,
            form,
            opening,
            shown: start,
            start,
            bookmarks: match options.bookmarks {
                true => Bookmarks::after(now, deadline),
                false => Bookmarks::Never,
            },
            deadline,
            changed: model.collections[resource].wake.subscribe(),
        };
        drop(model);
        let body = futures::stream::unfold(Some(watch), |watch| async {
            let (chunk, watch) = watch?.next_chunk().await?;
            Some((chunk, watch))
        });
        Ok(Response {
            status: 200,
            content_type: JSON.to_owned(),
            retry_after: None,
            fairness: None,
            body: body.boxed_local(),
        })
    }
}

impl Watch {
    /// The next bytes, and the watch if it goes on.
    async fn next_chunk(mut self) -> Option<(Result<Bytes, ApiError>, Option<Self>)> {
        match std::mem::replace(&mut self.opening, Opening::Done) {
            Opening::Done => {}
            Opening::Expired(failure) => return Some((Ok(error_frame(&failure).into()), None)),
            Opening::InitialEvents { not_older_than, marked_end } => {
                match self.initial_events(not_older_than, marked_end).await {
                    Ok(chunk) if chunk.is_empty() => {}
                    Ok(chunk) => return Some((Ok(chunk.into()), Some(self))),
                    Err(failure) => return Some((Ok(error_frame(&failure).into()), None)),
                }
            }
        }
        let server = self.seat.server.clone();
        loop {
            self.changed.mark_unchanged();
            let look = self.look(&mut lock(&server.model));
            match look {
                Look::Chunk(chunk) => return Some((Ok(chunk.into()), Some(self))),
                Look::Last(chunk) if chunk.is_empty() => return None,
                Look::Last(chunk) => return Some((Ok(chunk.into()), None)),
                Look::Broken => {
                    let error = std::io::Error::from(std::io::ErrorKind::ConnectionReset);
                    return Some((Err(ApiError::connection(error)), None));
                }
                Look::Nothing => {}
            }
            tokio::select! {
                biased;
                changed = self.changed.changed() => changed.ok()?,
                () = tokio::time::sleep_until(self.bookmarks.due().unwrap_or(self.deadline)) => {}
            }
        }
    }

    async fn initial_events(
        &mut self,
        not_older_than: u64,
        marked_end: bool,
    ) -> Result<Vec<u8>, Failure> {
        let server = self.seat.server.clone();
        server.wait_for(not_older_than).await?;
        let model = lock(&server.model);
        let mut chunk = Vec::new();
        for (key, object) in &model.collections[&self.seat.resource].objects {
            if self.selection.matches(key, object) {
                write_event(&mut chunk, "ADDED", object, self.form);
            }
        }
        self.shown = model.revision();
        if marked_end {
            self.bookmarks = Bookmarks::EndOfInitialEvents;
        }
        // A quick end bookmark travels with the events it ends.
        self.write_due_bookmark(&mut chunk, &model);
        Ok(chunk)
    }

    /// Takes what is ready: events, interruptions, a bookmark, the end; in this order.
    fn look(&mut self, model: &mut Model) -> Look {
        let mut chunk = Vec::new();
        loop {
            let interrupted_at = self.seat.interruptions(model).front().map(|(at, _)| *at);
            if self.write_changes(&mut chunk, model, interrupted_at).is_err() {
                // Too slow. The reader learns why when it comes back.
                return Look::Last(chunk);
            }
            if chunk.len() >= CHUNK_SIZE {
                return Look::Chunk(chunk);
            }
            let interruptions = self.seat.interruptions(model);
            match interruptions.front() {
                None => break,
                Some((_, Interruption::End)) => return Look::Last(chunk),
                Some((_, Interruption::Break)) if chunk.is_empty() => return Look::Broken,
                Some((_, Interruption::Break)) => return Look::Chunk(chunk),
                Some((_, Interruption::Raw(bytes))) => chunk.extend_from_slice(bytes),
            }
            interruptions.pop_front();
        }
        self.write_due_bookmark(&mut chunk, model);
        if Instant::now() >= self.deadline {
            return Look::Last(chunk);
        }
        if chunk.is_empty() { Look::Nothing } else { Look::Chunk(chunk) }
    }

    /// Writes the events not shown yet, up to a revision or as many as fit.
    fn write_changes(
        &mut self,
        chunk: &mut Vec<u8>,
        model: &Model,
        until: Option<u64>,
    ) -> Result<(), Overtaken> {
        let until = until.unwrap_or(u64::MAX);
        let events = model.collections[&self.seat.resource].history.after(self.shown)?;
        for event in events.take_while(|event| event.revision <= until) {
            self.write_change(chunk, event);
            self.shown = event.revision;
            if chunk.len() >= CHUNK_SIZE {
                break;
            }
        }
        Ok(())
    }

    /// What an event is depends on whether the object was, and is, selected.
    fn write_change(&self, chunk: &mut Vec<u8>, event: &Event) {
        let selected = |object: &&Stored| self.selection.matches(&event.key, object);
        let before = event.before.as_deref().filter(selected);
        let after = event.after.as_deref().filter(selected);
        match (before, after) {
            (None, None) => {}
            (None, Some(after)) => write_event(chunk, "ADDED", after, self.form),
            (Some(_), Some(after)) => write_event(chunk, "MODIFIED", after, self.form),
            (Some(before), None) => {
                write_event(chunk, "DELETED", &before.at(event.revision), self.form);
            }
        }
    }

    fn write_due_bookmark(&mut self, chunk: &mut Vec<u8>, model: &Model) {
        let held = model.faults.is_on(Switch::BookmarksHeld);
        let (revision, now) = (model.revision(), Instant::now());
        let ends_initial_events = match self.bookmarks {
            Bookmarks::Never => return,
            Bookmarks::EndOfInitialEvents if held => return,
            Bookmarks::EndOfInitialEvents => true,
            Bookmarks::At(due) if now < due => return,
            Bookmarks::At(_) => false,
        };
        self.bookmarks = Bookmarks::after(now, self.deadline);
        if !held && revision > self.start {
            self.shown = revision;
            let bookmark = bookmark(&self.served, self.form, revision, ends_initial_events);
            write_frame(chunk, "BOOKMARK", bookmark.to_string().as_bytes());
        }
    }
}

impl Bookmarks {
    /// One each minute, and one shortly before the end.
    fn after(now: Instant, deadline: Instant) -> Self {
        match deadline.checked_sub(LAST_BOOKMARK) {
            Some(last) if last > now => Self::At(last.min(now + BOOKMARK_PERIOD)),
            _ => Self::Never,
        }
    }

    fn due(self) -> Option<Instant> {
        match self {
            Self::At(due) => Some(due),
            Self::Never | Self::EndOfInitialEvents => None,
        }
    }
}

impl Seat {
    fn take(server: &ApiServer, model: &mut Model, resource: &ResourceId) -> Self {
        let number = model.open_watches.last_key_value().map_or(0, |(number, _)| number + 1);
        let watch = OpenWatch { resource: resource.clone(), interruptions: VecDeque::new() };
        model.open_watches.insert(number, watch);
        Self { server: server.clone(), resource: resource.clone(), number }
    }

    fn interruptions<'a>(&self, model: &'a mut Model) -> &'a mut VecDeque<(u64, Interruption)> {
        let watch = model.open_watches.get_mut(&self.number);
        &mut watch.expect("a watch is in the books until it gives up its seat").interruptions
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        lock(&self.server.model).open_watches.remove(&self.number);
    }
}

fn write_event(chunk: &mut Vec<u8>, event_type: &str, object: &Stored, form: Form) {
    begin_frame(chunk, event_type);
    object.write_into(chunk, form);
    chunk.extend_from_slice(b"}\n");
}

fn write_frame(chunk: &mut Vec<u8>, event_type: &str, object: &[u8]) {
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

fn bookmark(served: &Served, form: Form, revision: u64, ends_initial_events: bool) -> Value {
    let mut metadata =
        json!({ "resourceVersion": revision.to_string(), "creationTimestamp": null });
    if ends_initial_events {
        metadata["annotations"] = json!({ "k8s.io/initial-events-end": "true" });
    }
    match form {
        Form::MetadataOnly => json!({
            "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": metadata,
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
