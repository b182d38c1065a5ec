use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt as _;
use tokio::sync::watch::Receiver;
use tokio::time::Instant;

use super::failure::{Failure, JSON};
use super::faults::{Replica, Switch};
use super::frames::{bookmark, error_frame, write_event, write_frame};
use super::history::{Event, Overtaken};
use super::model::{Interruption, Model, OpenWatch};
use super::options::{Begin, ListVersion, Query, WatchOptions, negotiate};
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
    replica: Replica,
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
        version: ListVersion,
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
    /// Not even its end is shown.
    Silence,
    Chunk(Vec<u8>),
    /// The last chunk.
    Last(Vec<u8>),
    Broken,
    /// Nothing comes any more, and no end.
    Lost,
}

impl ApiServer {
    pub(super) fn watch(
        &self,
        call: &Call,
        resource: &ResourceId,
        namespace: Option<&str>,
    ) -> Result<Response, Failure> {
        let query = Query(&call.query);
        let form = negotiate(&call.accept, Query(&call.query))?;
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
            Begin::InitialEvents { version, marked_end } => {
                (0, Opening::InitialEvents { version, marked_end })
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
            replica: model.faults.next_replica(),
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
        self.until_audible().await?;
        match std::mem::replace(&mut self.opening, Opening::Done) {
            Opening::Done => {}
            Opening::Expired(failure) => return Some((Ok(error_frame(&failure).into()), None)),
            Opening::InitialEvents { version, marked_end } => {
                match self.initial_events(version, marked_end).await {
                    Ok(chunk) if chunk.is_empty() => {}
                    Ok(chunk) => return Some((Ok(chunk.into()), Some(self))),
                    Err(failure) => return Some((Ok(error_frame(&failure).into()), None)),
                }
            }
        }
        let server = self.seat.server.clone();
        loop {
            self.changed.mark_unchanged();
            let (look, next) = {
                let mut model = lock(&server.model);
                (self.look(&mut model), model.next_shown_by(self.replica))
            };
            match look {
                Look::Chunk(chunk) => return Some((Ok(chunk.into()), Some(self))),
                Look::Last(chunk) if chunk.is_empty() => return None,
                Look::Last(chunk) => return Some((Ok(chunk.into()), None)),
                Look::Broken => {
                    let error = std::io::Error::from(std::io::ErrorKind::ConnectionReset);
                    return Some((Err(ApiError::connection(error)), None));
                }
                Look::Lost => std::future::pending().await,
                Look::Silence => {
                    self.until_audible().await?;
                    continue;
                }
                Look::Nothing => {}
            }
            let due = self.bookmarks.due().unwrap_or(self.deadline);
            tokio::select! {
                biased;
                changed = self.changed.changed() => changed.ok()?,
                () = tokio::time::sleep_until(next.map_or(due, |next| next.min(due))) => {}
            }
        }
    }

    /// Waits while watches are silenced.
    async fn until_audible(&mut self) -> Option<()> {
        let server = self.seat.server.clone();
        loop {
            self.changed.mark_unchanged();
            if !lock(&server.model).faults.is_on(Switch::WatchesSilenced) {
                return Some(());
            }
            self.changed.changed().await.ok()?;
        }
    }

    async fn initial_events(
        &mut self,
        version: ListVersion,
        marked_end: bool,
    ) -> Result<Vec<u8>, Failure> {
        let server = self.seat.server.clone();
        let shown = server.shown_to(version).await?;
        let model = lock(&server.model);
        let mut chunk = Vec::new();
        let collection = &model.collections[&self.seat.resource];
        let (revision, objects) = collection.as_shown(shown, model.revision());
        for (key, object) in objects.iter() {
            if self.selection.matches(key, object) {
                self.write_event(&mut chunk, "ADDED", object);
            }
        }
        self.shown = revision;
        if marked_end {
            self.bookmarks = Bookmarks::EndOfInitialEvents;
        }
        // A quick end bookmark travels with the events it ends.
        self.write_due_bookmark(&mut chunk, &model, revision);
        Ok(chunk)
    }

    /// Takes what is ready: events, interruptions, a bookmark, the end; in this order.
    fn look(&mut self, model: &mut Model) -> Look {
        if model.faults.is_on(Switch::WatchesSilenced) {
            return Look::Silence;
        }
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
                Some((_, Interruption::Lose)) if chunk.is_empty() => return Look::Lost,
                Some((_, Interruption::Break | Interruption::Lose)) => return Look::Chunk(chunk),
                Some((_, Interruption::Raw(bytes))) => chunk.extend_from_slice(bytes),
            }
            interruptions.pop_front();
        }
        self.write_due_bookmark(&mut chunk, model, model.shown_by(self.replica));
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
        let until = until.unwrap_or(u64::MAX).min(model.shown_by(self.replica));
        let events = model.collections[&self.seat.resource].history.after(self.shown)?;
        for event in events.take_while(|event| event.revision <= until) {
            if !event.lost {
                self.write_change(chunk, event);
            }
            self.shown = event.revision;
            if chunk.len() >= CHUNK_SIZE {
                break;
            }
        }
        Ok(())
    }

    /// What an event is depends on whether the object was, and is, selected.
    fn write_change(&mut self, chunk: &mut Vec<u8>, event: &Event) {
        let selected = |object: &&Stored| self.selection.matches(&event.key, object);
        let before = event.before.as_deref().filter(selected);
        let after = event.after.as_deref().filter(selected);
        match (before, after) {
            (None, None) => {}
            (None, Some(after)) => self.write_event(chunk, "ADDED", after),
            (Some(_), Some(after)) => self.write_event(chunk, "MODIFIED", after),
            (Some(before), None) => {
                self.write_event(chunk, "DELETED", &before.at(event.revision));
            }
        }
    }

    fn write_event(&mut self, chunk: &mut Vec<u8>, event_type: &str, object: &Stored) {
        write_event(chunk, event_type, object, self.form);
        // The columns of a table are told once.
        if let Form::Table(row_object) = self.form {
            self.form = Form::TableWithoutColumns(row_object);
        }
    }

    fn write_due_bookmark(&mut self, chunk: &mut Vec<u8>, model: &Model, revision: u64) {
        let held = model.faults.is_on(Switch::BookmarksHeld);
        let now = Instant::now();
        let ends_initial_events = match self.bookmarks {
            Bookmarks::Never => return,
            Bookmarks::EndOfInitialEvents if held => return,
            Bookmarks::EndOfInitialEvents => true,
            Bookmarks::At(due) if now < due => return,
            Bookmarks::At(_) => false,
        };
        self.bookmarks = Bookmarks::after(now, self.deadline);
        // Less than what was shown is a server that went back: it has nothing to say before it is there again.
        if !held && revision > self.start && revision >= self.shown {
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
