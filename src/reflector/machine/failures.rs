//! What follows when something fails.

use std::time::Duration;

use tokio::time::Instant;

use super::nonsense::{Nonsense, Reply};
use super::presence::Presence;
use super::{
    Effect, HEALTHY_LIFE, Machine, Next, Read, STREAMING_PAUSE, State, Streaming, Trust, WatchEnd,
};
use crate::api::{ApiError, Recovery, Verb};
use crate::object::ResourceVersion;

impl Machine {
    pub(super) fn list_failed(&mut self, error: ApiError, now: Instant) -> Vec<Effect> {
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
    pub(super) fn miss(&mut self, now: Instant) -> Option<Effect> {
        self.presence.miss(now);
        (self.presence == Presence::Removed).then_some(Effect::Forget)
    }

    pub(super) fn served(&mut self, answer: Result<bool, ApiError>, now: Instant) -> Vec<Effect> {
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

    pub(super) fn streaming_list_ended(
        &mut self,
        end: WatchEnd,
        reply: Reply,
        now: Instant,
    ) -> Vec<Effect> {
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

    pub(super) fn list_instead(&mut self, error: ApiError, now: Instant) -> Vec<Effect> {
        self.stale(&error.to_string(), now);
        let effects = self.back_off(&error, Next::PlainList, now);
        reporting(Verb::Watch, error, effects)
    }

    pub(super) fn watch_ended(
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
    pub(super) fn trust_less(&mut self, error: &ApiError) {
        if matches!(
            error,
            ApiError::Connection(_) | ApiError::Timeout { .. } | ApiError::Unavailable { .. }
        ) {
            self.trust = Trust::Lost;
        }
    }

    /// Says how long a watch lived, however it ended, and lets the backoff know.
    pub(super) fn leave_watch(&mut self, now: Instant) -> Duration {
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
}

fn reporting(verb: Verb, error: ApiError, effects: Vec<Effect>) -> Vec<Effect> {
    std::iter::once(Effect::Report(verb, error)).chain(effects).collect()
}
