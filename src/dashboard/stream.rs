use std::convert::Infallible;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use actix_web::http::header::HeaderName;
use actix_web::{HttpRequest, HttpResponse};
use bytes::Bytes;
use futures::stream;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::Instant;

use super::{Dashboard, lock};

/// Events are told no more often than this, and the status once a second.
const EVENTS_EVERY: Duration = Duration::from_millis(200);
const STATUS_EVERY: Duration = Duration::from_secs(1);
/// A reader that has gone is noticed when something is written to it.
const SIGN_OF_LIFE: Duration = Duration::from_secs(15);
/// So many events are told at once; of more, the newest.
const MOST_AT_ONCE: usize = 200;

/// The live stream of one browser, as server-sent events: `status` and `changes`.
pub(super) fn respond(dashboard: &Dashboard, request: &HttpRequest) -> HttpResponse {
    let Some(place) = Place::take(dashboard) else {
        return HttpResponse::ServiceUnavailable()
            .content_type("text/plain; charset=utf-8")
            .body("too many browsers follow the live stream: close some\n");
    };
    let last_known = HeaderName::from_static("last-event-id");
    let known = request.headers().get(last_known).and_then(|value| value.to_str().ok());
    let reader = Reader {
        known: known.and_then(|known| number_of(known, &dashboard.inner.boot)),
        newest: dashboard.inner.newest.subscribe(),
        shown: Value::Null,
        next_status: Instant::now(),
        next_events: Instant::now(),
        last_sign: Instant::now(),
        place,
    };
    let frames = stream::unfold(reader, |mut reader| async move {
        let frame = reader.next().await;
        Some((Ok::<_, Infallible>(frame), reader))
    });
    HttpResponse::Ok().content_type("text/event-stream").streaming(frames)
}

/// The number of an event by its id. What another dashboard told is not known here.
fn number_of(id: &str, boot: &str) -> Option<u64> {
    id.strip_prefix(boot)?.strip_prefix('-')?.parse().ok()
}

/// What one browser knows. Asked for more only when it has taken what it was told: then it is told what is news by
/// then.
struct Reader {
    place: Place,
    /// The number of the last event it was told of; none if it has just come.
    known: Option<u64>,
    newest: watch::Receiver<u64>,
    shown: Value,
    next_status: Instant,
    next_events: Instant,
    last_sign: Instant,
}

/// One of a limited number of places.
struct Place(Dashboard);

impl Place {
    fn take(dashboard: &Dashboard) -> Option<Self> {
        let most = dashboard.inner.options.streams;
        let taken = &dashboard.inner.streams;
        let free = |taken| (taken < most).then_some(taken + 1);
        taken.fetch_update(Ordering::AcqRel, Ordering::Acquire, free).ok()?;
        Some(Self(dashboard.clone()))
    }

    fn taken(&self) -> &AtomicUsize {
        &self.0.inner.streams
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.taken().fetch_sub(1, Ordering::AcqRel);
    }
}

impl Reader {
    async fn next(&mut self) -> Bytes {
        loop {
            if Instant::now() >= self.next_status
                && let Some(frame) = self.status()
            {
                return frame;
            }
            if Instant::now() >= self.next_events
                && let Some(frame) = self.changes()
            {
                return frame;
            }
            if self.last_sign.elapsed() >= SIGN_OF_LIFE {
                self.last_sign = Instant::now();
                return Bytes::from_static(b": still here\n\n");
            }
            self.wait().await;
        }
    }

    async fn wait(&mut self) {
        // The events that are there are told at their time; only those to come have to be waited for.
        let is_behind = *self.newest.borrow_and_update() > self.known.unwrap_or(0);
        let events = self.next_events;
        tokio::select! {
            () = tokio::time::sleep_until(self.next_status) => {}
            () = tokio::time::sleep_until(events), if is_behind => {}
            changed = self.newest.changed(), if !is_behind => {
                // The dashboard lives as long as its streams.
                drop(changed);
            }
        }
    }

    fn status(&mut self) -> Option<Bytes> {
        self.next_status = Instant::now() + STATUS_EVERY;
        let known = self.place.0.known();
        if known == self.shown {
            return None;
        }
        let status = self.place.0.status(&known);
        self.shown = known;
        Some(self.frame(&format!("event: status\ndata: {status}\n\n")))
    }

    fn changes(&mut self) -> Option<Bytes> {
        let inner = &self.place.0.inner;
        // Whoever has just come gets all there is, and missed nothing.
        let (known, most) = self.known.map_or((0, usize::MAX), |known| (known, MOST_AT_ONCE));
        let news = lock(&inner.journal).since(known, most);
        if known == news.newest {
            return None;
        }
        let missed = if self.known.is_some() { news.missed } else { 0 };
        self.known = Some(news.newest);
        self.next_events = Instant::now() + EVENTS_EVERY;
        let data = json!({ "now": inner.clock.now(), "missed": missed, "changes": news.changes });
        let id = format!("{}-{}", inner.boot, news.newest);
        let frame = format!("id: {id}\nevent: changes\ndata: {data}\n\n");
        Some(self.frame(&frame))
    }

    fn frame(&mut self, text: &str) -> Bytes {
        self.last_sign = Instant::now();
        Bytes::copy_from_slice(text.as_bytes())
    }
}
