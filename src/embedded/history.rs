use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use super::stored::Stored;
use crate::object::ObjectKey;

/// How many events are kept for resuming watches: what the watch cache of Kubernetes keeps at most.
pub(super) const DEFAULT_LIMIT: usize = 102_400;

/// The objects of a resource at one revision.
pub(super) type Objects = BTreeMap<ObjectKey, Arc<Stored>>;

/// What happened to one object at one revision. At least one of `before` and `after` is there.
#[derive(Debug)]
pub(super) struct Event {
    pub(super) revision: u64,
    pub(super) key: ObjectKey,
    pub(super) before: Option<Arc<Stored>>,
    pub(super) after: Option<Arc<Stored>>,
    /// Whether watches are shown it. The objects changed all the same.
    pub(super) lost: bool,
}

/// What happened to the objects of one resource, oldest first.
#[derive(Debug)]
pub(super) struct History {
    /// In increasing order of revision.
    events: VecDeque<Event>,
    limit: usize,
    /// Nobody may begin to read before this revision. Never less than `dropped`.
    floor: u64,
    /// The last revision that is not in `events` any more.
    dropped: u64,
}

/// A reader is so far behind that events it needs are gone.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Overtaken;

impl History {
    pub(super) fn new(now: u64, limit: usize) -> Self {
        Self { events: VecDeque::new(), limit, floor: now, dropped: now }
    }

    pub(super) fn push(&mut self, event: Event) {
        self.events.push_back(event);
        self.trim();
    }

    pub(super) fn set_limit(&mut self, limit: usize) {
        self.limit = limit;
        self.trim();
    }

    fn trim(&mut self) {
        while self.events.len() > self.limit {
            self.dropped = self.events.pop_front().map_or(self.dropped, |event| event.revision);
        }
        self.floor = self.floor.max(self.dropped);
    }

    /// Lets nobody begin before `now`. Who already reads may read on.
    pub(super) fn forget(&mut self, now: u64) {
        self.floor = now;
    }

    /// The oldest revision to begin at.
    pub(super) fn floor(&self) -> u64 {
        self.floor
    }

    /// What happened after a revision.
    pub(super) fn after(
        &self,
        revision: u64,
    ) -> Result<impl DoubleEndedIterator<Item = &Event>, Overtaken> {
        if revision < self.dropped {
            return Err(Overtaken);
        }
        let start = self.events.partition_point(|event| event.revision <= revision);
        Ok(self.events.range(start..))
    }

    /// `objects` as they were at a revision, by undoing what happened since.
    pub(super) fn rewind<'a>(
        &self,
        objects: &'a Objects,
        revision: u64,
    ) -> Result<Cow<'a, Objects>, Overtaken> {
        if revision < self.floor {
            return Err(Overtaken);
        }
        self.past(objects, revision)
    }

    /// The same, for who never learned that the past was to be forgotten: a replica that lags behind.
    pub(super) fn past<'a>(
        &self,
        objects: &'a Objects,
        revision: u64,
    ) -> Result<Cow<'a, Objects>, Overtaken> {
        let mut objects = Cow::Borrowed(objects);
        for event in self.after(revision)?.rev() {
            match &event.before {
                Some(before) => objects.to_mut().insert(event.key.clone(), Arc::clone(before)),
                None => objects.to_mut().remove(&event.key),
            };
        }
        Ok(objects)
    }

    /// Begins anew, as if nothing had happened up to `now`.
    pub(super) fn restart(&mut self, now: u64) {
        *self = Self::new(now, self.limit);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn deletion(revision: u64) -> Event {
        Event {
            revision,
            key: ObjectKey::cluster_scoped("a"),
            before: None,
            after: None,
            lost: false,
        }
    }

    #[test]
    fn reading_begins_strictly_after_a_revision() {
        let mut history = History::new(1, DEFAULT_LIMIT);
        for revision in [2, 5, 9] {
            history.push(deletion(revision));
        }
        let after = |revision| -> Vec<u64> {
            history.after(revision).unwrap().map(|event| event.revision).collect()
        };
        assert_eq!(after(1), [2, 5, 9]);
        assert_eq!(after(5), [9]);
        assert_eq!(after(6), [9]);
        assert_eq!(after(1000), [0_u64; 0]);
    }

    #[test]
    fn a_reader_overtaken_by_the_limit_is_told() {
        let mut history = History::new(1, DEFAULT_LIMIT);
        history.set_limit(2);
        for revision in [2, 3, 4, 5] {
            history.push(deletion(revision));
        }
        assert!(history.after(2).is_err());
        assert_eq!(history.after(3).unwrap().count(), 2);
        assert_eq!(history.floor(), 3);
    }

    #[test]
    fn forgetting_stops_those_who_begin_but_not_those_who_read() {
        let mut history = History::new(1, DEFAULT_LIMIT);
        history.push(deletion(2));
        history.forget(2);
        assert_eq!(history.floor(), 2);
        assert_eq!(history.after(1).unwrap().count(), 1);
        assert!(history.rewind(&Objects::new(), 1).is_err());
    }
}
