use std::collections::{BTreeMap, VecDeque};

use serde_json::{Value, json};

use super::DashboardOptions;
use crate::object::{Kind, ObjectKey};

/// So many seconds of rates are kept.
const RATES: usize = 60;

/// What was seen of objects: the newest events of all, and the newest changes of each object that changed lately.
///
/// Readers come with the number of the last event they know: nobody's slowness costs memory, what they were too slow
/// for is gone.
pub(super) struct Journal {
    reflectors: BTreeMap<u64, Observed>,
    recent: VecDeque<Recorded>,
    newest: u64,
    histories: BTreeMap<(u64, ObjectKey), History>,
    /// Which object has which number as its newest event. Holds the same objects as `histories`.
    by_age: BTreeMap<u64, (u64, ObjectKey)>,
    limits: Limits,
}

struct Limits {
    recent: usize,
    histories: usize,
    changes: usize,
}

/// Gives the metadata of a cached object.
type Find = Box<dyn Fn(&ObjectKey) -> Option<Value> + Send>;

struct Observed {
    kind: Kind,
    find: Find,
    rates: Rates,
}

/// Changes per second, the last one being that of `second`.
struct Rates {
    counts: VecDeque<u32>,
    second: i64,
}

struct History {
    newest: u64,
    changes: VecDeque<Change>,
}

struct Recorded {
    number: u64,
    reflector: u64,
    change: Change,
}

/// One event, without its object.
#[derive(Debug, Clone)]
pub(super) struct Change {
    pub(super) at: i64,
    pub(super) change_type: ChangeType,
    pub(super) cause: &'static str,
    /// None if it is of no object.
    pub(super) key: Option<ObjectKey>,
    pub(super) uid: Box<str>,
    pub(super) resource_version: Box<str>,
    /// What of the object changed.
    pub(super) what: Box<str>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ChangeType {
    Added,
    Updated,
    Deleted,
    Synced,
}

/// What came after some event.
pub(super) struct News {
    pub(super) newest: u64,
    /// Events that came too fast for the reader and are not told.
    pub(super) missed: u64,
    pub(super) changes: Vec<Value>,
}

impl Journal {
    pub(super) fn new(options: &DashboardOptions) -> Self {
        let limits = Limits {
            recent: options.recent_events.max(1),
            histories: options.histories,
            changes: options.changes_per_object.max(1),
        };
        Self {
            reflectors: BTreeMap::new(),
            recent: VecDeque::new(),
            newest: 0,
            histories: BTreeMap::new(),
            by_age: BTreeMap::new(),
            limits,
        }
    }

    pub(super) fn observe(&mut self, reflector: u64, kind: Kind, find: Find) {
        let rates = Rates { counts: VecDeque::from([0; RATES]), second: 0 };
        self.reflectors.entry(reflector).or_insert(Observed { kind, find, rates });
    }

    pub(super) fn record(&mut self, reflector: u64, change: Change) {
        self.newest += 1;
        let number = self.newest;
        if let Some(observed) = self.reflectors.get_mut(&reflector) {
            observed.rates.count(change.at);
        }
        if let Some(key) = &change.key {
            self.remember(number, (reflector, key.clone()), change.clone());
        }
        if self.recent.len() == self.limits.recent {
            self.recent.pop_front();
        }
        self.recent.push_back(Recorded { number, reflector, change });
    }

    fn remember(&mut self, number: u64, object: (u64, ObjectKey), change: Change) {
        let history = self
            .histories
            .entry(object.clone())
            .or_insert_with(|| History { newest: number, changes: VecDeque::new() });
        self.by_age.remove(&history.newest);
        history.newest = number;
        if history.changes.len() == self.limits.changes {
            history.changes.pop_front();
        }
        history.changes.push_back(change);
        self.by_age.insert(number, object);
        if self.by_age.len() > self.limits.histories
            && let Some((_, oldest)) = self.by_age.pop_first()
        {
            self.histories.remove(&oldest);
        }
    }

    pub(super) fn newest(&self) -> u64 {
        self.newest
    }

    /// What came after the event of number `known`, the newest `most` of it.
    pub(super) fn since(&self, known: u64, most: usize) -> News {
        let new = usize::try_from(self.newest.saturating_sub(known)).unwrap_or(usize::MAX);
        let told = new.min(most).min(self.recent.len());
        let changes = self.recent.range(self.recent.len() - told..);
        News {
            newest: self.newest,
            missed: (new - told) as u64,
            changes: changes.map(|recorded| self.recorded(recorded)).collect(),
        }
    }

    fn recorded(&self, recorded: &Recorded) -> Value {
        let mut told = recorded.change.to_json();
        told["number"] = recorded.number.into();
        told["reflector"] = recorded.reflector.into();
        if let Some(observed) = self.reflectors.get(&recorded.reflector) {
            told["resource"] = observed.kind.to_string().into();
        }
        told
    }

    /// Changes per second of the last minute, the newest last; none for a reflector that is not observed.
    pub(super) fn rates(&mut self, reflector: u64, now: i64) -> Option<&VecDeque<u32>> {
        let rates = &mut self.reflectors.get_mut(&reflector)?.rates;
        rates.advance(now);
        Some(&rates.counts)
    }

    /// What is known of an object: its metadata if it is cached, and its history; none if neither.
    pub(super) fn object(&self, reflector: u64, key: &ObjectKey) -> Option<Value> {
        let observed = self.reflectors.get(&reflector)?;
        let metadata = (observed.find)(key);
        let history = self.histories.get(&(reflector, key.clone()));
        if metadata.is_none() && history.is_none() {
            return None;
        }
        let changes = history.into_iter().flat_map(|history| &history.changes);
        Some(json!({
            "reflector": reflector,
            "apiVersion": observed.kind.api_version(),
            "kind": observed.kind.kind,
            "resource": observed.kind.to_string(),
            "namespace": key.namespace(),
            "name": key.name(),
            "metadata": metadata,
            "history": changes.map(Change::to_json).collect::<Vec<_>>(),
        }))
    }

    /// Forgets reflectors that are gone, and all that was seen by them.
    pub(super) fn retain(&mut self, is_there: impl Fn(u64) -> bool) {
        if self.reflectors.keys().all(|id| is_there(*id)) {
            return;
        }
        self.reflectors.retain(|id, _| is_there(*id));
        self.histories.retain(|(id, _), _| is_there(*id));
        self.by_age.retain(|_, (id, _)| is_there(*id));
    }
}

impl Rates {
    fn count(&mut self, now: i64) {
        self.advance(now);
        if let Some(last) = self.counts.back_mut() {
            *last = last.saturating_add(1);
        }
    }

    fn advance(&mut self, now: i64) {
        let second = now.div_euclid(1_000);
        let passed = usize::try_from(second - self.second).unwrap_or_default();
        for _ in 0..passed.min(RATES) {
            self.counts.pop_front();
            self.counts.push_back(0);
        }
        self.second = self.second.max(second);
    }
}

impl Change {
    fn to_json(&self) -> Value {
        json!({
            "at": self.at,
            "type": self.change_type.name(),
            "cause": self.cause,
            "namespace": self.key.as_ref().and_then(ObjectKey::namespace),
            "name": self.key.as_ref().map(ObjectKey::name),
            "uid": self.uid,
            "resourceVersion": self.resource_version,
            "what": self.what,
        })
    }
}

impl ChangeType {
    fn name(self) -> &'static str {
        match self {
            Self::Added => "ADDED",
            Self::Updated => "UPDATED",
            Self::Deleted => "DELETED",
            Self::Synced => "SYNCED",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::Scope;

    fn journal(recent_events: usize, histories: usize, changes_per_object: usize) -> Journal {
        let options = DashboardOptions {
            recent_events,
            histories,
            changes_per_object,
            ..DashboardOptions::default()
        };
        let mut journal = Journal::new(&options);
        let kind = Kind::new("", "v1", "Pod", "pods", Scope::Namespaced);
        journal.observe(1, kind, Box::new(|_| None));
        journal
    }

    fn touched(name: &str, at: i64) -> Change {
        Change {
            at,
            change_type: ChangeType::Updated,
            cause: "Watch",
            key: Some(ObjectKey::new("shop", name)),
            uid: "u".into(),
            resource_version: at.to_string().into(),
            what: "".into(),
        }
    }

    fn versions(history: &Value) -> Vec<&str> {
        let changes = history["history"].as_array().unwrap();
        changes.iter().filter_map(|change| change["resourceVersion"].as_str()).collect()
    }

    #[test]
    fn a_reader_is_told_what_it_does_not_know_and_how_much_it_missed() {
        let mut journal = journal(3, 10, 10);
        (1..=5).for_each(|at| journal.record(1, touched("web", at)));
        let numbers = |news: &News| -> Vec<u64> {
            news.changes.iter().filter_map(|change| change["number"].as_u64()).collect()
        };
        let news = journal.since(0, 100);
        assert_eq!((news.newest, news.missed, numbers(&news)), (5, 2, vec![3, 4, 5]));
        let news = journal.since(4, 100);
        assert_eq!((news.missed, numbers(&news)), (0, vec![5]));
        let news = journal.since(2, 1);
        assert_eq!((news.missed, numbers(&news)), (2, vec![5]));
        assert!(journal.since(5, 100).changes.is_empty());
        assert!(journal.since(77, 100).changes.is_empty(), "a number it never gave");
    }

    #[test]
    fn only_the_newest_changes_of_an_object_are_kept() {
        let mut journal = journal(1, 10, 3);
        (1..=5).for_each(|at| journal.record(1, touched("web", at)));
        let object = journal.object(1, &ObjectKey::new("shop", "web")).unwrap();
        assert_eq!(versions(&object), ["3", "4", "5"]);
    }

    #[test]
    fn the_object_that_changed_longest_ago_loses_its_history_first() {
        let mut journal = journal(1, 2, 3);
        for (at, name) in ["a", "b", "a", "c"].into_iter().enumerate() {
            journal.record(1, touched(name, at as i64));
        }
        let is_known = |name| journal.object(1, &ObjectKey::new("shop", name)).is_some();
        assert_eq!(["a", "b", "c"].map(is_known), [true, false, true]);
        assert_eq!(journal.by_age.len(), 2);
        assert_eq!(journal.histories.len(), 2);
    }

    #[test]
    fn rates_are_per_second_and_move_on() {
        let mut journal = journal(1, 1, 1);
        [10, 20, 1_010].into_iter().for_each(|at| journal.record(1, touched("web", at)));
        let last = |journal: &mut Journal, now| -> Vec<u32> {
            journal.rates(1, now).unwrap().iter().rev().take(3).copied().collect()
        };
        assert_eq!(last(&mut journal, 1_500), [1, 2, 0]);
        assert_eq!(last(&mut journal, 2_500), [0, 1, 2]);
        assert_eq!(last(&mut journal, 999_000), [0, 0, 0]);
        assert_eq!(journal.rates(1, 999_000).unwrap().len(), RATES);
        assert!(journal.rates(2, 0).is_none(), "not observed");
    }

    #[test]
    fn what_a_reflector_saw_is_forgotten_with_it() {
        let mut journal = journal(1, 2, 3);
        journal.record(1, touched("web", 1));
        journal.retain(|_| false);
        assert!(journal.object(1, &ObjectKey::new("shop", "web")).is_none());
        assert!(journal.histories.is_empty() && journal.by_age.is_empty());
    }
}
