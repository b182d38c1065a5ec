mod input;
mod nonsense;
mod presence;

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

pub(super) use self::input::{Effect, Input, WatchEnd};
use self::nonsense::{Nonsense, Reply};
use self::presence::Presence;
use super::history::Older;
use super::vigil::{PROOF_LASTS, Record, Vigilance};
use super::{Freshness, Phase};
use crate::api::{
    ApiError, ListRequest, Recovery, Selection, Verb, VersionMatch, WatchRequest, WatchStart,
};
use crate::object::ResourceVersion;
use crate::supervision::{Backoff, BackoffOptions};

/// A watch that lived so long ended in peace.
const HEALTHY_LIFE: Duration = Duration::from_secs(60);
/// For so long a server that could not stream a list is not asked to.
const STREAMING_PAUSE: Duration = Duration::from_secs(3600);
/// So many objects are listed at once where pages cost the server nothing.
const PAGE: u32 = 500;
/// So much silence of a watch is believed before the server is asked, and up to so much more by chance: bookmarks come
/// each minute where they come, and many reflectors are not to ask at once.
const PATIENCE: Duration = Duration::from_secs(75);
const MORE_PATIENCE: Duration = Duration::from_secs(20);
/// Within this after it came back, a server is asked how far it has come.
const VERIFY_WITHIN: Duration = Duration::from_secs(10);
/// So much longer than it was asked to last a watch may take to end.
const WATCH_GRACE: Duration = Duration::from_secs(15);

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
    /// Told at this position.
    nonsense: Nonsense,
    presence: Presence,
    trust: Trust,
    /// What all watches so far left.
    record: Record,
    freshness: Freshness,
}

#[derive(Debug, Clone)]
pub(super) struct Settings {
    pub(super) selection: Arc<Selection>,
    /// How many objects to list at once, if somebody said so.
    pub(super) page_size: Option<u32>,
    /// A watch is asked to last for this to twice this.
    pub(super) watch_timeout: Duration,
    pub(super) streaming: Streaming,
    pub(super) backoff: BackoffOptions,
    /// For so long the objects of a kind are kept that is not served any more.
    pub(super) keep_unserved: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Idle,
    Listing,
    StreamingList(Reply),
    OpeningWatch {
        since: Instant,
    },
    Watching {
        since: Instant,
    },
    /// Asking whether the kind is served.
    Discovering,
    Waiting {
        until: Instant,
        next: Next,
    },
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
    /// The newest, even if it is older than the cache: the server showed signs of having gone back.
    NewestEvenIfOlder,
}

/// Whether the server that answers next is the one that answered before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Trust {
    Kept,
    /// It was out of reach: it may have been restored from a backup meanwhile.
    Lost,
}

/// Whether lists may be streamed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Streaming {
    Possible,
    NotBefore(Instant),
    Never,
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
            nonsense: Nonsense::default(),
            presence: Presence::Served,
            trust: Trust::Kept,
            record: Record::default(),
            freshness: Freshness::Unknown,
            settings,
        }
    }

    pub(super) fn phase(&self) -> Phase {
        match self.state {
            State::Idle => Phase::Starting,
            State::Listing => Phase::Listing,
            State::StreamingList(_) => Phase::StreamingList,
            State::OpeningWatch { .. } => Phase::OpeningWatch,
            State::Watching { .. } => Phase::Watching,
            State::Discovering => Phase::Discovering,
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
            Input::Start { position } => self.start(position, now),
            Input::Listed { resource_version } => {
                self.synchronised(resource_version, now);
                self.watch(now)
            }
            Input::InitialEventsEnded { resource_version } => {
                self.synchronised(resource_version, now);
                self.state = State::Watching { since: now };
                Vec::new()
            }
            Input::ListFailed(error) => self.list_failed(error, now),
            Input::WatchOpened => {
                self.watch_opened(now);
                Vec::new()
            }
            Input::Heard => {
                self.prove(now);
                Vec::new()
            }
            Input::Overdue => {
                self.stale("the server has proved nothing for too long", now);
                Vec::new()
            }
            Input::WatchEnded { end, position, record } => {
                self.record.proven = self.record.proven.max(record.proven);
                self.record.attended = self.record.attended.max(record.attended);
                match self.state {
                    State::StreamingList(reply) => self.streaming_list_ended(end, reply, now),
                    _ => self.watch_ended(end, position, now),
                }
            }
            Input::ChildPanicked { panic, position } => {
                let error = ApiError::Broken { panic };
                match self.state {
                    State::OpeningWatch { .. } | State::Watching { .. } => {
                        self.watch_ended(WatchEnd::Failed(error), position, now)
                    }
                    State::StreamingList(reply) => {
                        self.streaming_list_ended(WatchEnd::Failed(error), reply, now)
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
            Input::Served(answer) => self.served(answer, now),
            Input::StoreRestarted { position } => {
                if position > self.position {
                    self.position = position;
                }
                self.start_over("the cache was rebuilt", now)
            }
            Input::Drifted => self.drifted(now),
            Input::Stop => {
                self.stale("it was stopped", now);
                self.state = State::Stopped;
                vec![Effect::Abort]
            }
        }
    }

    /// A list that was owed before a crash is owed after it: nothing else may tell what was missed.
    fn start(&mut self, position: Option<ResourceVersion>, now: Instant) -> Vec<Effect> {
        let owes_list = !matches!(
            self.state,
            State::Idle
                | State::OpeningWatch { .. }
                | State::Watching { .. }
                | State::Waiting { next: Next::Watch, .. }
        );
        self.stale("the reflector was restarted", now);
        self.state = State::Idle;
        self.position = position;
        if owes_list { self.snapshot(now) } else { self.watch(now) }
    }

    fn watch_opened(&mut self, now: Instant) {
        match self.state {
            State::OpeningWatch { since } => {
                self.state = State::Watching { since };
                // A server that answers has not proved yet that it tells.
                if self.is_proven(now) {
                    self.freshness = Freshness::Fresh;
                }
            }
            State::StreamingList(_) => self.state = State::StreamingList(Reply::Begun),
            _ => {}
        }
    }

    fn prove(&mut self, now: Instant) {
        self.record = Record { proven: Some(now), attended: Some(now) };
        self.freshness = Freshness::Fresh;
    }

    /// Whether something proved not long ago that the cache keeps up.
    fn is_proven(&self, now: Instant) -> bool {
        self.record.proven.is_some_and(|proven| now - proven < PROOF_LASTS)
    }

    /// Only what the server's own storage has can tell, and only while nothing else is being mended.
    fn drifted(&mut self, now: Instant) -> Vec<Effect> {
        match self.state {
            State::OpeningWatch { .. } | State::Watching { .. } => {
                self.read = Read::Newest;
                self.start_over("the cache was found to differ from the server", now)
            }
            _ => Vec::new(),
        }
    }

    fn synchronised(&mut self, resource_version: ResourceVersion, now: Instant) {
        self.position = Some(resource_version);
        self.read = Read::NotOlderThanPosition;
        self.nonsense = Nonsense::default();
        self.presence = Presence::Served;
        self.trust = Trust::Kept;
        self.prove(now);
    }

    fn start_over(&mut self, reason: &str, now: Instant) -> Vec<Effect> {
        self.leave_watch(now);
        self.stale(reason, now);
        let mut effects = vec![Effect::Abort];
        effects.extend(self.snapshot(now));
        effects
    }

    fn list_failed(&mut self, error: ApiError, now: Instant) -> Vec<Effect> {
        let verb = self.verb();
        self.stale(&error.to_string(), now);
        let asked_for_position = self.wanted_version().is_some();
        let mut effects = match &error {
            ApiError::Expired { .. } if asked_for_position => {
                self.read = Read::Newest;
                self.snapshot(now)
            }
            ApiError::NotYetServed { .. } if asked_for_position => {
                self.read = Read::NewestEvenIfOlder;
                match error.retry_after() {
                    None => self.snapshot(now),
                    Some(delay) => self.wait(delay, Next::Snapshot, now),
                }
            }
            ApiError::Older { .. } => {
                self.read = Read::NewestEvenIfOlder;
                self.back_off(&error, Next::Snapshot, now)
            }
            // The whole at once may be what is too much, or our version no version: the newest comes in pages.
            ApiError::Timeout { .. } | ApiError::Malformed { .. } | ApiError::Invalid { .. }
                if asked_for_position =>
            {
                self.read = Read::Newest;
                self.back_off(&error, Next::Snapshot, now)
            }
            // Who may not list may still be allowed to watch.
            ApiError::Forbidden { .. } | ApiError::NotAllowed { .. }
                if matches!(self.streaming, Streaming::NotBefore(_)) =>
            {
                self.streaming = Streaming::Possible;
                self.back_off(&error, Next::Snapshot, now)
            }
            _ => self.back_off(&error, Next::Snapshot, now),
        };
        match error {
            ApiError::NotFound { .. } => effects.extend(self.miss(now)),
            _ => self.presence.doubt(now),
        }
        reporting(verb, error, effects)
    }

    /// The kind is not served. Should its objects have been given up, and that got lost, they are again.
    fn miss(&mut self, now: Instant) -> Option<Effect> {
        self.presence.miss(now);
        (self.presence == Presence::Removed).then_some(Effect::Forget)
    }

    fn served(&mut self, answer: Result<bool, ApiError>, now: Instant) -> Vec<Effect> {
        if self.state != State::Discovering {
            return Vec::new();
        }
        match answer {
            Ok(true) => {
                self.presence = Presence::Served;
                self.snapshot(now)
            }
            Ok(false) => {
                let is_final = self.presence.deny();
                let delay = self.backoff.next(now);
                let mut effects = self.wait(delay, Next::Snapshot, now);
                if is_final {
                    self.position = None;
                    self.read = Read::NotOlderThanPosition;
                    effects.push(Effect::Forget);
                }
                effects
            }
            Err(error) => self.list_failed(error, now),
        }
    }

    fn streaming_list_ended(&mut self, end: WatchEnd, reply: Reply, now: Instant) -> Vec<Effect> {
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
                let delay = self.backoff.next(now);
                return self.wait(delay, Next::PlainList, now);
            }
        };
        match &error {
            ApiError::Invalid { .. } => {
                self.streaming = Streaming::NotBefore(now + STREAMING_PAUSE);
                self.snapshot(now)
            }
            // Who may not watch may still list, which will tell.
            ApiError::Forbidden { .. } | ApiError::NotAllowed { .. } => self.list(),
            // The server may still do for a plain list.
            ApiError::Internal { .. } | ApiError::Malformed { .. } | ApiError::Broken { .. } => {
                self.list_instead(error, now)
            }
            // What is always cut off on the way may come page by page.
            ApiError::Connection(_) | ApiError::Timeout { .. } if reply == Reply::Begun => {
                self.list_instead(error, now)
            }
            _ => self.list_failed(error, now),
        }
    }

    fn list_instead(&mut self, error: ApiError, now: Instant) -> Vec<Effect> {
        self.stale(&error.to_string(), now);
        let effects = self.back_off(&error, Next::PlainList, now);
        reporting(Verb::Watch, error, effects)
    }

    fn watch_ended(
        &mut self,
        end: WatchEnd,
        position: Option<ResourceVersion>,
        now: Instant,
    ) -> Vec<Effect> {
        let reply = match self.state {
            State::Watching { .. } => Reply::Begun,
            _ => Reply::Awaited,
        };
        let lived = self.leave_watch(now);
        if position != self.position || lived >= HEALTHY_LIFE {
            self.nonsense = Nonsense::default();
        }
        self.position = position;
        let error = match end {
            WatchEnd::Closed | WatchEnd::NoEndOfInitialEvents if lived >= HEALTHY_LIFE => {
                let delay = self.first_delay();
                return self.wait(delay, Next::Watch, now);
            }
            WatchEnd::Closed | WatchEnd::NoEndOfInitialEvents => {
                self.stale("the watch ended early", now);
                self.trust = Trust::Lost;
                let delay = self.backoff.next(now);
                return self.wait(delay, Next::Watch, now);
            }
            WatchEnd::Failed(error) => error,
        };
        self.stale(&error.to_string(), now);
        self.trust_less(&error);
        let is_enough = self.nonsense.note(&error, reply, now);
        let next = match error.recovery() {
            Recovery::Retry if is_enough => Next::Snapshot,
            Recovery::Retry | Recovery::Wait => Next::Watch,
            Recovery::Relist | Recovery::WaitAndRelist | Recovery::Mend => Next::Snapshot,
            Recovery::ReadNewest => {
                self.read = Read::NewestEvenIfOlder;
                Next::Snapshot
            }
        };
        let mut effects = if error.recovery() == Recovery::Relist && lived >= HEALTHY_LIFE {
            let delay = self.first_delay();
            self.wait(delay, next, now)
        } else {
            self.back_off(&error, next, now)
        };
        if let ApiError::NotFound { .. } = error {
            effects.extend(self.miss(now));
        }
        reporting(Verb::Watch, error, effects)
    }

    /// A server that could not be reached may be another one when it can.
    fn trust_less(&mut self, error: &ApiError) {
        if matches!(
            error,
            ApiError::Connection(_) | ApiError::Timeout { .. } | ApiError::Unavailable { .. }
        ) {
            self.trust = Trust::Lost;
        }
    }

    /// Says how long a watch lived, however it ended, and lets the backoff know.
    fn leave_watch(&mut self, now: Instant) -> Duration {
        let lived = match self.state {
            State::Watching { since } => now - since,
            // One that never opened did not live, however long it was waited for.
            _ => Duration::ZERO,
        };
        self.backoff.calm(lived);
        if lived >= HEALTHY_LIFE {
            self.trust = Trust::Kept;
        }
        lived
    }

    fn snapshot(&mut self, now: Instant) -> Vec<Effect> {
        let keep = self.settings.keep_unserved;
        if self.position.is_some() && self.presence.is_doubtful(keep, now) {
            self.state = State::Discovering;
            return vec![Effect::AskWhetherServed(self.list_request())];
        }
        if let Streaming::NotBefore(then) = self.streaming
            && now >= then
        {
            self.streaming = Streaming::Possible;
        }
        if self.streaming != Streaming::Possible {
            return self.list();
        }
        self.state = State::StreamingList(Reply::Awaited);
        let start = WatchStart::InitialEvents { not_older_than: self.wanted_version() };
        vec![self.watch_from(start)]
    }

    fn list(&mut self) -> Vec<Effect> {
        self.state = State::Listing;
        vec![Effect::List { request: self.list_request(), older: self.older() }]
    }

    fn list_request(&self) -> ListRequest {
        let version = self.wanted_version().map(VersionMatch::NotOlderThan);
        // With a version, paging would make the server read its storage instead of its cache.
        let limit = self.settings.page_size.or(version.is_none().then_some(PAGE));
        let selection = Arc::clone(&self.settings.selection);
        ListRequest { selection, limit, continue_token: None, version }
    }

    fn watch(&mut self, now: Instant) -> Vec<Effect> {
        let Some(position) = self.position.clone() else { return self.snapshot(now) };
        self.state = State::OpeningWatch { since: now };
        vec![self.watch_from(WatchStart::After(position))]
    }

    fn watch_from(&mut self, start: WatchStart) -> Effect {
        let timeout = self.settings.watch_timeout.mul_f64(1.0 + self.rng.f64());
        let timeout = Duration::from_secs(timeout.as_secs());
        let vigilance = Vigilance {
            record: self.record,
            patience: PATIENCE + MORE_PATIENCE.mul_f64(self.rng.f64()),
            verify_after: match self.trust {
                Trust::Kept => None,
                Trust::Lost => Some(VERIFY_WITHIN.mul_f64(self.rng.f64())),
            },
            longest: timeout + WATCH_GRACE,
        };
        let selection = Arc::clone(&self.settings.selection);
        let request = WatchRequest { selection, start, timeout, bookmarks: true };
        Effect::Watch { request, older: self.older(), vigilance }
    }

    fn wanted_version(&self) -> Option<ResourceVersion> {
        match self.read {
            Read::NotOlderThanPosition => self.position.clone(),
            Read::Newest | Read::NewestEvenIfOlder => None,
        }
    }

    fn older(&self) -> Older {
        match self.read {
            Read::NotOlderThanPosition | Read::Newest => Older::Refused,
            Read::NewestEvenIfOlder => Older::Accepted,
        }
    }

    /// What is being asked for.
    fn verb(&self) -> Verb {
        match self.state {
            State::StreamingList(_) | State::OpeningWatch { .. } | State::Watching { .. } => {
                Verb::Watch
            }
            _ => Verb::List,
        }
    }

    /// Spreads what many reflectors do at the same moment.
    fn first_delay(&mut self) -> Duration {
        Duration::from_secs(1).mul_f64(self.rng.f64())
    }

    fn back_off(&mut self, error: &ApiError, next: Next, now: Instant) -> Vec<Effect> {
        let delay = match error.recovery() {
            Recovery::Mend => self.backoff.next_at_cap(now),
            _ => self.backoff.next(now),
        };
        self.wait(delay.max(error.retry_after().unwrap_or_default()), next, now)
    }

    fn wait(&mut self, delay: Duration, next: Next, now: Instant) -> Vec<Effect> {
        self.state = State::Waiting { until: now + delay, next };
        vec![Effect::Wait(delay)]
    }

    fn stale(&mut self, reason: &str, now: Instant) {
        self.freshness.spoil(reason, now);
    }
}

fn reporting(verb: Verb, error: ApiError, effects: Vec<Effect>) -> Vec<Effect> {
    std::iter::once(Effect::Report(verb, error)).chain(effects).collect()
}

#[cfg(test)]
mod tests;
