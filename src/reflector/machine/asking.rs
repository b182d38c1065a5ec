//! What is asked for, and how.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::nonsense::Reply;
use super::{
    Effect, MORE_PATIENCE, Machine, PAGE, PATIENCE, Read, State, Streaming, Trust, VERIFY_WITHIN,
    WATCH_GRACE,
};
use crate::api::{ListRequest, Verb, VersionMatch, WatchRequest, WatchStart};
use crate::object::ResourceVersion;
use crate::reflector::history::Older;
use crate::reflector::vigil::Vigilance;

impl Machine {
    pub(super) fn snapshot(&mut self, now: Instant) -> Vec<Effect> {
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

    pub(super) fn list(&mut self) -> Vec<Effect> {
        self.state = State::Listing;
        vec![Effect::List { request: self.list_request(), older: self.older() }]
    }

    pub(super) fn list_request(&self) -> ListRequest {
        let version = self.wanted_version().map(VersionMatch::NotOlderThan);
        // With a version, paging would make the server read its storage instead of its cache.
        let limit = self.settings.page_size.or(version.is_none().then_some(PAGE));
        let selection = Arc::clone(&self.settings.selection);
        ListRequest { selection, limit, continue_token: None, version }
    }

    pub(super) fn watch(&mut self, now: Instant) -> Vec<Effect> {
        let Some(position) = self.position.clone() else { return self.snapshot(now) };
        self.state = State::OpeningWatch { since: now };
        vec![self.watch_from(WatchStart::After(position))]
    }

    pub(super) fn watch_from(&mut self, start: WatchStart) -> Effect {
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

    pub(super) fn wanted_version(&self) -> Option<ResourceVersion> {
        match self.read {
            Read::NotOlderThanPosition => self.position.clone(),
            Read::Newest | Read::NewestEvenIfOlder => None,
        }
    }

    pub(super) fn older(&self) -> Older {
        match self.read {
            Read::NotOlderThanPosition | Read::Newest => Older::Refused,
            Read::NewestEvenIfOlder => Older::Accepted,
        }
    }

    /// What is being asked for.
    pub(super) fn verb(&self) -> Verb {
        match self.state {
            State::StreamingList(_) | State::OpeningWatch { .. } | State::Watching { .. } => {
                Verb::Watch
            }
            _ => Verb::List,
        }
    }
}
