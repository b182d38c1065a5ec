use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::{Freshness, Phase};
use crate::api::{
    ApiError, ListRequest, Recovery, Selection, VersionMatch, WatchRequest, WatchStart,
};
use crate::object::ResourceVersion;
use crate::supervision::{Backoff, BackoffOptions};

/// A watch that lived so long ended in peace.
const HEALTHY_LIFE: Duration = Duration::from_secs(60);
/// For so long a server that could not stream a list is not asked to.
const STREAMING_PAUSE: Duration = Duration::from_secs(3600);
/// After so much nonsense told to a watch that got no further, its position is not trusted any more.
const FAILURES_IN_PLACE: u32 = 3;

/// Decides what a reflector does next: state × input → effects. Does nothing itself, and reads no clock.
#[derive(Debug)]
pub(super) struct Machine {
    settings: Settings,
    state: State,
    /// Up to where the cache has come.
    position: Option<ResourceVersion>,
    read: Read,
    streaming: Streaming,
    backoff: Backoff,
    rng: fastrand::Rng,
    /// Watches that were told nonsense since the last one that got further, or ended cleanly.
    failures_in_place: u32,
    freshness: Freshness,
}

#[derive(Debug, Clone)]
pub(super) struct Settings {
    pub(super) selection: Arc<Selection>,
    pub(super) page_size: u32,
    /// A watch is asked to last for this to twice this.
    pub(super) watch_timeout: Duration,
    pub(super) streaming: Streaming,
    pub(super) backoff: BackoffOptions,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Idle,
    Listing,
    StreamingList,
    OpeningWatch { since: Instant },
    Watching { since: Instant },
    Waiting { until: Instant, next: Next },
    Stopped,
}

/// What follows a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    Snapshot,
    /// A list that is not streamed.
    PlainList,
    Watch,
}

/// How new the next list must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Read {
    /// No older than the cache. The newest, while the cache is empty.
    NotOlderThanPosition,
    /// The newest: the server does not have our position.
    Newest,
}

/// Whether lists may be streamed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Streaming {
    Possible,
    NotBefore(Instant),
    Never,
}

/// What happened.
#[derive(Debug)]
pub(super) enum Input {
    /// The reflector was started, or restarted after a crash. The cache has come up to `position`.
    Start { position: Option<ResourceVersion> },
    /// A list has been applied.
    Listed { resource_version: ResourceVersion },
    /// A list failed; nothing of it has been applied.
    ListFailed(ApiError),
    /// The server answers a watch.
    WatchOpened,
    /// A streamed list has been applied; its stream goes on as a watch.
    InitialEventsEnded { resource_version: ResourceVersion },
    /// A watch, or a list being streamed, ended. The cache has come up to `position`.
    WatchEnded { end: WatchEnd, position: Option<ResourceVersion> },
    /// The child that listed or watched panicked. The cache has come up to `position`.
    ChildPanicked { panic: String, position: Option<ResourceVersion> },
    /// The wait is over.
    WaitOver,
    /// The actor that applies changes was restarted: changes may be lost.
    StoreRestarted,
    /// The reflector is to stop.
    Stop,
}

#[derive(Debug)]
pub(super) enum WatchEnd {
    Closed,
    Failed(ApiError),
    /// No end of the initial events came.
    NoEndOfInitialEvents,
}

/// What to do now.
#[derive(Debug)]
pub(super) enum Effect {
    /// Tell everybody what went wrong.
    Report(ApiError),
    List(ListRequest),
    StreamList(WatchRequest),
    Watch(WatchRequest),
    Wait(Duration),
    /// End the child that lists or watches.
    Abort,
}

impl Machine {
    pub(super) fn new(settings: Settings, mut rng: fastrand::Rng) -> Self {
        Self {
            state: State::Idle,
            position: None,
            read: Read::NotOlderThanPosition,
            streaming: settings.streaming,
            backoff: Backoff::new(settings.backoff, rng.fork()),
            rng,
            failures_in_place: 0,
            freshness: Freshness::Unknown,
            settings,
        }
    }

    pub(super) fn phase(&self) -> Phase {
        match self.state {
            State::Idle => Phase::Starting,
            State::Listing => Phase::Listing,
            State::StreamingList => Phase::StreamingList,
            State::OpeningWatch { .. } => Phase::OpeningWatch,
            State::Watching { .. } => Phase::Watching,
            State::Waiting { .. } => Phase::BackingOff,
            State::Stopped => Phase::Stopped,
        }
    }

    pub(super) fn freshness(&self) -> &Freshness {
        &self.freshness
    }

    pub(super) fn next_attempt(&self) -> Option<Instant> {
        match self.state {
            State::Waiting { until, .. } => Some(until),
            _ => None,
        }
    }

    pub(super) fn step(&mut self, input: Input, now: Instant) -> Vec<Effect> {
        if self.state == State::Stopped {
            return Vec::new();
        }
        match input {
            Input::Start { position } => {
                self.state = State::Idle;
                self.position = position;
                if self.position.is_some() { self.watch(now) } else { self.snapshot(now) }
            }
            Input::Listed { resource_version } => {
                self.synchronised(resource_version);
                self.freshness = Freshness::Fresh;
                self.watch(now)
            }
            Input::InitialEventsEnded { resource_version } => {
                self.synchronised(resource_version);
                self.freshness = Freshness::Fresh;
                self.state = State::Watching { since: now };
                Vec::new()
            }
            Input::ListFailed(error) => self.list_failed(error, now),
            Input::WatchOpened => {
                if let State::OpeningWatch { since } = self.state {
                    self.state = State::Watching { since };
                    self.freshness = Freshness::Fresh;
                }
                Vec::new()
            }
            Input::WatchEnded { end, position } => match self.state {
                State::StreamingList => self.streaming_list_ended(end, now),
                _ => self.watch_ended(end, position, now),
            },
            Input::ChildPanicked { panic, position } => {
                let error = ApiError::Broken { panic };
                match self.state {
                    State::OpeningWatch { .. } | State::Watching { .. } => {
                        self.watch_ended(WatchEnd::Failed(error), position, now)
                    }
                    _ => self.list_failed(error, now),
                }
            }
            Input::WaitOver => match self.state {
                // The end of an earlier wait, which something cut short.
                State::Waiting { until, .. } if now < until => Vec::new(),
                State::Waiting { next: Next::Snapshot, .. } => self.snapshot(now),
                State::Waiting { next: Next::PlainList, .. } => self.list(),
                State::Waiting { next: Next::Watch, .. } => self.watch(now),
                _ => Vec::new(),
            },
            Input::StoreRestarted => {
                self.leave_watch(now);
                self.stale("the cache was rebuilt", now);
                let mut effects = vec![Effect::Abort];
                effects.extend(self.snapshot(now));
                effects
            }
            Input::Stop => {
                self.state = State::Stopped;
                vec![Effect::Abort]
            }
        }
    }

    fn synchronised(&mut self, resource_version: ResourceVersion) {
        self.position = Some(resource_version);
        self.read = Read::NotOlderThanPosition;
        self.failures_in_place = 0;
    }

    fn list_failed(&mut self, error: ApiError, now: Instant) -> Vec<Effect> {
        self.stale(&error.to_string(), now);
        let effects = match error.recovery() {
            Recovery::Relist | Recovery::ReadNewest if self.asked_for_position() => {
                self.read = Read::Newest;
                match error.retry_after() {
                    None => self.snapshot(now),
                    Some(delay) => self.wait(delay, Next::Snapshot, now),
                }
            }
            _ => {
                // The whole at once may be what is too much; the newest comes in pages.
                if matches!(error, ApiError::Timeout { .. } | ApiError::Malformed { .. }) {
                    self.read = Read::Newest;
                }
                self.back_off(error.retry_after(), Next::Snapshot, now)
            }
        };
        reporting(error, effects)
    }

    fn streaming_list_ended(&mut self, end: WatchEnd, now: Instant) -> Vec<Effect> {
        let error = match end {
            WatchEnd::Failed(error) => error,
            WatchEnd::NoEndOfInitialEvents => {
                // The server took the request for something else.
                self.streaming = Streaming::NotBefore(now + STREAMING_PAUSE);
                return self.snapshot(now);
            }
            WatchEnd::Closed => {
                self.stale("the stream ended before the list was complete", now);
                // Should the server never say that a list is complete, a plain list will.
                return self.back_off(None, Next::PlainList, now);
            }
        };
        match &error {
            ApiError::Invalid { .. } => {
                self.streaming = Streaming::NotBefore(now + STREAMING_PAUSE);
                self.snapshot(now)
            }
            // The server, or the right to it, may still do for a plain list, which will tell.
            ApiError::Internal { .. }
            | ApiError::Forbidden { .. }
            | ApiError::NotAllowed { .. }
            | ApiError::Malformed { .. }
            | ApiError::Broken { .. } => self.list(),
            _ => self.list_failed(error, now),
        }
    }

    fn watch_ended(
        &mut self,
        end: WatchEnd,
        position: Option<ResourceVersion>,
        now: Instant,
    ) -> Vec<Effect> {
        let lived = self.leave_watch(now);
        let got_further = position != self.position;
        self.position = position;
        let error = match end {
            WatchEnd::Closed | WatchEnd::NoEndOfInitialEvents => {
                self.failures_in_place = 0;
                if lived >= HEALTHY_LIFE {
                    let delay = self.first_delay();
                    return self.wait(delay, Next::Watch, now);
                }
                self.stale("the watch ended early", now);
                return self.back_off(None, Next::Watch, now);
            }
            WatchEnd::Failed(error) => error,
        };
        self.stale(&error.to_string(), now);
        self.count_failure(&error, got_further);
        let next = match error.recovery() {
            Recovery::Retry if self.failures_in_place >= FAILURES_IN_PLACE => Next::Snapshot,
            Recovery::Retry | Recovery::Wait => Next::Watch,
            Recovery::Relist | Recovery::WaitAndRelist => Next::Snapshot,
            Recovery::ReadNewest => {
                self.read = Read::Newest;
                Next::Snapshot
            }
        };
        let effects = if error.recovery() == Recovery::Relist && lived >= HEALTHY_LIFE {
            let delay = self.first_delay();
            self.wait(delay, next, now)
        } else {
            self.back_off(error.retry_after(), next, now)
        };
        reporting(error, effects)
    }

    /// Says how long a watch lived, however it ended, and lets the backoff know.
    fn leave_watch(&mut self, now: Instant) -> Duration {
        let lived = match self.state {
            State::Watching { since } => now - since,
            // One that never opened did not live, however long it was waited for.
            _ => Duration::ZERO,
        };
        self.backoff.calm(lived);
        lived
    }

    /// Counts what a watch was told that made no sense. A server out of reach tells nothing.
    fn count_failure(&mut self, error: &ApiError, got_further: bool) {
        let is_nonsense = matches!(
            error,
            ApiError::Internal { .. } | ApiError::Malformed { .. } | ApiError::Broken { .. }
        );
        if got_further {
            self.failures_in_place = 0;
        } else if is_nonsense {
            self.failures_in_place += 1;
        }
    }

    fn snapshot(&mut self, now: Instant) -> Vec<Effect> {
        if let Streaming::NotBefore(then) = self.streaming
            && now >= then
        {
            self.streaming = Streaming::Possible;
        }
        if self.streaming != Streaming::Possible {
            return self.list();
        }
        self.state = State::StreamingList;
        let start = WatchStart::InitialEvents { not_older_than: self.wanted_version() };
        vec![Effect::StreamList(self.watch_request(start))]
    }

    fn list(&mut self) -> Vec<Effect> {
        self.state = State::Listing;
        let version = self.wanted_version().map(VersionMatch::NotOlderThan);
        // With a version, paging would make the server read its storage instead of its cache.
        let limit = version.is_none().then_some(self.settings.page_size);
        let selection = Arc::clone(&self.settings.selection);
        vec![Effect::List(ListRequest { selection, limit, continue_token: None, version })]
    }

    fn watch(&mut self, now: Instant) -> Vec<Effect> {
        let Some(position) = self.position.clone() else { return self.snapshot(now) };
        self.state = State::OpeningWatch { since: now };
        vec![Effect::Watch(self.watch_request(WatchStart::After(position)))]
    }

    fn watch_request(&mut self, start: WatchStart) -> WatchRequest {
        let timeout = self.settings.watch_timeout.mul_f64(1.0 + self.rng.f64());
        WatchRequest {
            selection: Arc::clone(&self.settings.selection),
            start,
            timeout: Duration::from_secs(timeout.as_secs()),
            bookmarks: true,
        }
    }

    fn asked_for_position(&self) -> bool {
        self.wanted_version().is_some()
    }

    fn wanted_version(&self) -> Option<ResourceVersion> {
        match self.read {
            Read::NotOlderThanPosition => self.position.clone(),
            Read::Newest => None,
        }
    }

    /// Spreads what many reflectors do at the same moment.
    fn first_delay(&mut self) -> Duration {
        Duration::from_secs(1).mul_f64(self.rng.f64())
    }

    fn back_off(&mut self, at_least: Option<Duration>, next: Next, now: Instant) -> Vec<Effect> {
        let delay = self.backoff.next(now).max(at_least.unwrap_or_default());
        self.wait(delay, next, now)
    }

    fn wait(&mut self, delay: Duration, next: Next, now: Instant) -> Vec<Effect> {
        self.state = State::Waiting { until: now + delay, next };
        vec![Effect::Wait(delay)]
    }

    /// Nothing is stale before the first list.
    fn stale(&mut self, reason: &str, now: Instant) {
        let since = match &self.freshness {
            Freshness::Unknown => return,
            Freshness::Fresh => now,
            Freshness::Stale { since, .. } => *since,
        };
        self.freshness = Freshness::Stale { since, reason: reason.to_owned() };
    }
}

fn reporting(error: ApiError, effects: Vec<Effect>) -> Vec<Effect> {
    std::iter::once(Effect::Report(error)).chain(effects).collect()
}

#[cfg(test)]
#[path = "machine_tests.rs"]
mod tests;
