mod asking;
mod failures;
mod input;
mod nonsense;
mod presence;
mod told;

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

pub(super) use self::input::{Effect, Input, WatchEnd};
use self::nonsense::{Nonsense, Reply};
use self::presence::Presence;
use super::vigil::{PROOF_LASTS, Record};
use super::{Freshness, Phase};
use crate::api::{ApiError, Recovery, Selection};
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

#[cfg(test)]
mod tests;
