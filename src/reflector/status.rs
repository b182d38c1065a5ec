use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

use super::{Cause, Condition, Delivery, ResourceEvent};
use crate::api::{ApiError, Selection, Undecodable, Verb};
use crate::cache::Store;
use crate::object::{Kind, ObjectKey, Resource, ResourceVersion};
use crate::supervision::{MemberState, MemberStatus};

/// Everything there is to know about a reflector.
#[derive(Debug, Clone)]
pub struct ReflectorStatus {
    /// Tells it from all others of this process.
    pub id: u64,
    /// What its options call it, if anything.
    pub name: Option<Arc<str>>,
    /// What it reflects.
    pub kind: Kind,
    /// Which objects of that kind.
    pub selection: Arc<Selection>,
    /// What it is doing.
    pub phase: Phase,
    /// Whether the cache keeps up with the server.
    pub freshness: Freshness,
    /// Whether the first list has been applied.
    pub synced: bool,
    /// How many objects are cached.
    pub objects: usize,
    /// The server's version of the cache.
    pub resource_version: Option<ResourceVersion>,
    /// How many changes wait to be applied.
    pub queue: usize,
    /// What stands in the way, until something works again.
    pub condition: Option<Condition>,
    /// When the next attempt is due, while it waits for one.
    pub next_attempt: Option<Instant>,
    /// What it asked the server for, and what went wrong.
    pub requests: Requests,
    /// What changed in the cache so far.
    pub changes: Changes,
    /// Its actors, and how often each was restarted.
    pub actors: Vec<MemberStatus>,
    /// Objects the server has but that could not be taken.
    pub quarantined: Quarantined,
    /// What the server told that can not be, or should not.
    pub oddities: Oddities,
    /// What comparing the cache with the server gave.
    pub audits: Audits,
    /// Its subscribers.
    pub subscribers: Vec<SubscriberStatus>,
}

/// What a reflector is doing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Phase {
    /// It has just been started.
    Starting,
    /// It asks for all objects, page by page.
    Listing,
    /// It asks for all objects and their changes in one stream.
    StreamingList,
    /// It asks for changes.
    OpeningWatch,
    /// It is being told of changes.
    Watching,
    /// It asks whether the server has this kind of object any more.
    Discovering,
    /// It waits before it asks again.
    BackingOff,
    /// One of its actors was restarted too often. It is tried again at the longest delay.
    Failed,
    /// It is over.
    Stopped,
}

/// Whether the cache keeps up with the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Freshness {
    /// Nothing has been listed yet.
    Unknown,
    /// Not long ago, 150 s at most, the server proved that the cache has all it has.
    Fresh,
    /// Changes may have been missed.
    Stale {
        /// Since then.
        since: Instant,
        /// Why.
        reason: String,
    },
}

/// What a reflector asked the server for, by temporary actors: a lister or a watcher for each request.
#[derive(Debug, Clone, Default)]
pub struct Requests {
    /// Lists begun.
    pub lists: u64,
    /// Watches begun, streaming lists among them.
    pub watches: u64,
    /// How many of them failed.
    pub failures: u64,
    /// The last of those, oldest first; at most [`Requests::KEPT`].
    pub last_failures: VecDeque<Failure>,
}

/// A list or watch that failed.
#[derive(Debug, Clone)]
pub struct Failure {
    /// When.
    pub at: Instant,
    /// What was asked for.
    pub verb: Verb,
    /// What came back.
    pub error: ApiError,
}

/// How often the cache changed, as subscribers were told. What a crash ate and a comparison made up for is not counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Changes {
    /// Objects that entered it.
    pub added: u64,
    /// Objects that got another state.
    pub updated: u64,
    /// Objects that left it.
    pub deleted: u64,
    /// Objects told again without a change.
    pub resynced: u64,
}

/// Objects the server has but that could not be taken: not decoded, or refused by the transform.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Quarantined {
    /// Why, per object; at most [`Quarantined::KEPT`].
    pub objects: BTreeMap<ObjectKey, String>,
    /// How many reports could not be kept, or were of objects without a name.
    pub others: u64,
    /// The newest of those.
    pub last_other: Option<String>,
}

/// How often the server told what can not be, or should not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Oddities {
    /// Events older than those before them. What is not news of its object was left out.
    pub late_events: u64,
    /// Bookmarks older than the events before them.
    pub late_bookmarks: u64,
    /// Events of objects that were told to be deleted since. They were left out.
    pub resurrections: u64,
    /// Lists older than the cache. They were refused.
    pub older_lists: u64,
    /// Times the server's history went back to an earlier version.
    pub rewinds: u64,
    /// Events of a type we do not know.
    pub unknown_events: u64,
}

/// What comparing the cache with the server gave. See [`Options::audit`](super::Options::audit).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Audits {
    /// How often they were compared.
    pub done: u64,
    /// How often that could not be done: the server had forgotten the version, or could not be asked.
    pub skipped: u64,
    /// How many objects were found to differ, over all.
    pub differences: u64,
    /// Of the last comparison that found any: how the first of them differ.
    pub last_found: Vec<String>,
}

/// How one subscriber is doing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubscriberStatus {
    /// Which subscription.
    pub id: u64,
    /// What it was called when it subscribed, if anything.
    pub name: Option<Arc<str>>,
    /// How changes reach it when it does not keep up.
    pub delivery: Delivery,
    /// Events it has not been sent yet.
    pub pending: usize,
    /// Events it was sent.
    pub delivered: u64,
    /// Events that were joined with an earlier one because it was slow.
    pub coalesced: u64,
    /// Whether it has handled everything of its first snapshot.
    pub synced: bool,
}

/// What the actors of a reflector tell the world, shared with its handles.
#[derive(Debug)]
pub(crate) struct Shared<K> {
    id: u64,
    name: Option<Arc<str>>,
    pub(super) kind: Kind,
    selection: Arc<Selection>,
    pub(super) store: Store<K>,
    pub(super) queue: AtomicUsize,
    pub(super) progress: watch::Sender<Progress>,
    pub(super) requests: Mutex<Requests>,
    pub(super) changes: Mutex<Changes>,
    pub(super) quarantine: Mutex<Quarantined>,
    pub(super) oddities: Mutex<Oddities>,
    pub(super) audits: Mutex<Audits>,
    pub(super) subscribers: Mutex<BTreeMap<u64, Arc<SubscriberCounters>>>,
}

/// The part of the status that somebody may wait for.
#[derive(Debug, Clone)]
pub(super) struct Progress {
    pub(super) phase: Phase,
    pub(super) freshness: Freshness,
    pub(super) synced: bool,
    pub(super) condition: Option<Condition>,
    pub(super) next_attempt: Option<Instant>,
}

/// Counted by the delivery of one subscription, read by everybody.
#[derive(Debug)]
pub(super) struct SubscriberCounters {
    pub(super) state: Mutex<SubscriberStatus>,
}

impl Freshness {
    /// Nothing is stale before the first list.
    pub(super) fn spoil(&mut self, reason: &str, now: Instant) {
        let since = match self {
            Self::Unknown => return,
            Self::Fresh => now,
            Self::Stale { since, .. } => *since,
        };
        *self = Self::Stale { since, reason: reason.to_owned() };
    }
}

impl Requests {
    /// No more failures are kept.
    pub const KEPT: usize = 10;

    pub(super) fn failed(&mut self, verb: Verb, error: ApiError) {
        self.failures += 1;
        if self.last_failures.len() == Self::KEPT {
            self.last_failures.pop_front();
        }
        self.last_failures.push_back(Failure { at: Instant::now(), verb, error });
    }
}

impl Changes {
    /// All of them, resyncs left out: nothing changed by those.
    pub fn total(&self) -> u64 {
        self.added + self.updated + self.deleted
    }

    pub(super) fn count<K: Resource>(&mut self, events: &[ResourceEvent<K>]) {
        for event in events {
            match event {
                ResourceEvent::Added { .. } => self.added += 1,
                ResourceEvent::Updated { cause: Cause::Resync, .. } => self.resynced += 1,
                ResourceEvent::Updated { .. } => self.updated += 1,
                ResourceEvent::Deleted { .. } => self.deleted += 1,
                ResourceEvent::Synced => {}
            }
        }
    }
}

impl Quarantined {
    /// No more reasons are kept: a status has to stay readable.
    pub const KEPT: usize = 100;

    /// Whether every object could be taken.
    pub fn is_empty(&self) -> bool {
        self.objects.is_empty() && self.others == 0
    }

    pub(super) fn report(&mut self, undecodable: &Undecodable) {
        match &undecodable.key {
            Some(key) if self.objects.len() < Self::KEPT || self.objects.contains_key(key) => {
                self.objects.insert(key.clone(), undecodable.reason.clone());
            }
            _ => {
                self.others += 1;
                self.last_other = Some(undecodable.to_string());
            }
        }
    }
}

impl SubscriberCounters {
    pub(super) fn is_synced(&self) -> bool {
        lock(&self.state).synced
    }
}

impl<K> Shared<K> {
    pub(super) fn new(
        name: Option<Arc<str>>,
        kind: Kind,
        selection: Arc<Selection>,
        store: Store<K>,
    ) -> Self {
        static NEXT_ID: AtomicU64 = AtomicU64::new(1);
        let progress = Progress {
            phase: Phase::Starting,
            freshness: Freshness::Unknown,
            synced: false,
            condition: None,
            next_attempt: None,
        };
        Self {
            id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
            kind,
            name,
            selection,
            store,
            queue: AtomicUsize::new(0),
            progress: watch::Sender::new(progress),
            requests: Mutex::default(),
            changes: Mutex::default(),
            quarantine: Mutex::default(),
            oddities: Mutex::default(),
            audits: Mutex::default(),
            subscribers: Mutex::default(),
        }
    }

    pub(super) fn status(&self, actors: Vec<MemberStatus>) -> ReflectorStatus {
        self.notice_the_dead(&actors);
        let progress = self.progress.borrow().clone();
        let is_failed =
            actors.iter().any(|actor| matches!(actor.state, MemberState::Escalated { .. }));
        let snapshot = self.store.snapshot();
        let subscribers = lock(&self.subscribers);
        ReflectorStatus {
            id: self.id,
            kind: self.kind.clone(),
            name: self.name.clone(),
            selection: Arc::clone(&self.selection),
            phase: if is_failed { Phase::Failed } else { progress.phase },
            freshness: progress.freshness,
            synced: progress.synced,
            objects: snapshot.len(),
            resource_version: snapshot.resource_version().cloned(),
            queue: self.queue.load(Ordering::Relaxed),
            condition: progress.condition,
            next_attempt: progress.next_attempt,
            requests: lock(&self.requests).clone(),
            changes: *lock(&self.changes),
            actors,
            quarantined: lock(&self.quarantine).clone(),
            oddities: *lock(&self.oddities),
            audits: lock(&self.audits).clone(),
            subscribers: subscribers
                .values()
                .map(|counters| lock(&counters.state).clone())
                .collect(),
        }
    }
}

impl<K> Shared<K> {
    /// Should the thread of the actors have ended, none of them could say so.
    fn notice_the_dead(&self, actors: &[MemberStatus]) {
        let is_over = |actor: &MemberStatus| matches!(actor.state, MemberState::Stopped(_));
        self.progress.send_if_modified(|progress| {
            let is_news = progress.phase != Phase::Stopped && actors.iter().any(is_over);
            if is_news {
                progress.phase = Phase::Stopped;
                progress.freshness.spoil("its thread ended", Instant::now());
            }
            is_news
        });
    }
}

/// What these locks guard is written in whole values, so it is whole even if somebody panicked meanwhile.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Starting => "starting",
            Self::Listing => "listing",
            Self::StreamingList => "streaming list",
            Self::OpeningWatch => "opening watch",
            Self::Watching => "watching",
            Self::Discovering => "discovering",
            Self::BackingOff => "backing off",
            Self::Failed => "failed",
            Self::Stopped => "stopped",
        })
    }
}

impl ReflectorStatus {
    /// How long until the next attempt, while it waits for one.
    pub fn next_attempt_in(&self) -> Option<Duration> {
        self.next_attempt.map(|at| at.saturating_duration_since(Instant::now()))
    }
}
