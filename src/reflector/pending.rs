use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use super::{Cause, ResourceEvent, ResourceEvents};
use crate::cache::Difference;
use crate::object::{ObjectKey, Resource, is_same_object};

/// Published together, fewer events than this are copied to be sent with others; more are sent as they are.
const FEW: usize = 32;
/// So many events are a part, where we make them.
const PART: usize = 512;

/// What one subscriber has not been told yet.
///
/// Keeps every event while there are few. Beyond `at_most` it keeps one entry per object, which joins what the
/// subscriber knows with what is true now, until all has been taken. Whatever was joined: a subscriber that applies
/// what it takes knows what one that saw every event knows.
///
/// What was published at once to a subscriber that knew everything, as a list is, is kept as it came however much it is:
/// there is nothing to join in it.
#[derive(Debug)]
pub(super) struct Pending<K: Resource> {
    waiting: Waiting<K>,
    at_most: usize,
    /// Events that were joined with an earlier one.
    coalesced: u64,
}

#[derive(Debug)]
enum Waiting<K: Resource> {
    InOrder(InOrder<K>),
    PerObject(PerObject<K>),
}

/// Events as they were published, shared with everybody else who is told of them. No part is empty, `len` is the sum of
/// theirs, and the end of the first snapshot is a part of its own.
#[derive(Debug)]
struct InOrder<K: Resource> {
    parts: VecDeque<ResourceEvents<K>>,
    len: usize,
    /// How many of the first were published at once when nothing waited.
    at_once: usize,
}

/// Each entry is in `order` under its own `place`, and `synced`, if set, is a place no entry has.
#[derive(Debug)]
struct PerObject<K: Resource> {
    entries: BTreeMap<ObjectKey, Entry<K>>,
    order: BTreeMap<u64, ObjectKey>,
    synced: Option<u64>,
    next_place: u64,
}

#[derive(Debug)]
struct Entry<K> {
    place: u64,
    known: Known<K>,
    now: Now<K>,
    cause: Cause,
}

/// What the subscriber knows of an object.
#[derive(Debug)]
enum Known<K> {
    Nothing,
    State(Arc<K>),
    /// A state before this one, which was its last.
    Before(Arc<K>),
}

#[derive(Debug)]
enum Now<K> {
    Cached(Arc<K>),
    Gone { last_known: Arc<K> },
}

impl<K: Resource> Pending<K> {
    /// Keeps up to `at_most` events in order before it joins them. None at all are kept so when it is 0.
    pub(super) fn new(at_most: usize) -> Self {
        let waiting = match at_most {
            0 => Waiting::PerObject(PerObject::default()),
            _ => Waiting::InOrder(InOrder::default()),
        };
        Self { waiting, at_most, coalesced: 0 }
    }

    /// How many events, or objects, wait.
    pub(super) fn len(&self) -> usize {
        match &self.waiting {
            Waiting::InOrder(events) => events.len,
            Waiting::PerObject(objects) => objects.entries.len(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        match &self.waiting {
            Waiting::InOrder(events) => events.parts.is_empty(),
            Waiting::PerObject(objects) => objects.is_empty(),
        }
    }

    pub(super) fn coalesced(&self) -> u64 {
        self.coalesced
    }

    /// Everything of the first snapshot is pending, or was.
    pub(super) fn push_synced(&mut self) {
        self.push(&vec![ResourceEvent::Synced].into());
    }

    /// Takes all that one publication tells.
    pub(super) fn push_all(&mut self, parts: &[ResourceEvents<K>]) {
        match &mut self.waiting {
            Waiting::InOrder(waiting) if waiting.parts.is_empty() => {
                parts.iter().for_each(|part| waiting.push(part.clone()));
                waiting.at_once = waiting.len;
            }
            Waiting::InOrder(_) | Waiting::PerObject(_) => {
                parts.iter().for_each(|part| self.push(part));
            }
        }
    }

    fn push(&mut self, events: &ResourceEvents<K>) {
        match &mut self.waiting {
            Waiting::InOrder(waiting)
                if waiting.len - waiting.at_once + events.len() <= self.at_most =>
            {
                waiting.push(events.clone());
            }
            Waiting::InOrder(_) | Waiting::PerObject(_) => {
                let objects = self.join();
                let joined = events.iter().filter(|event| objects.push((*event).clone())).count();
                self.coalesced += joined as u64;
            }
        }
    }

    /// Makes what is pending lead to another state, given how that differs from the one it led to.
    ///
    /// May be told of a difference that is pending already, wholly or in part: after a crash nobody knows.
    pub(super) fn rebase(&mut self, differences: &[Difference<K>], cause: Cause) {
        let entries = differences.iter().filter_map(|difference| Entry::of(difference, cause));
        if self.is_empty() {
            let events = entries.flat_map(Entry::events).collect();
            self.push_all(&ResourceEvents::in_parts(events, PART));
            return;
        }
        let objects = self.join();
        for Entry { known, now, cause, .. } in entries {
            objects.set(known, now, cause);
        }
    }

    /// Takes up to `most` events, oldest first. The end of the first snapshot is taken alone.
    pub(super) fn take(&mut self, most: usize) -> ResourceEvents<K> {
        match &mut self.waiting {
            Waiting::InOrder(events) => events.take(most),
            Waiting::PerObject(objects) => {
                let taken = objects.take(most);
                if objects.is_empty() && self.at_most > 0 {
                    self.waiting = Waiting::InOrder(InOrder::default());
                }
                taken.into()
            }
        }
    }

    fn join(&mut self) -> &mut PerObject<K> {
        if let Waiting::InOrder(events) = &mut self.waiting {
            let mut objects = PerObject::default();
            for event in events.parts.drain(..).flatten() {
                self.coalesced += u64::from(objects.push(event));
            }
            self.waiting = Waiting::PerObject(objects);
        }
        match &mut self.waiting {
            Waiting::PerObject(objects) => objects,
            Waiting::InOrder(_) => unreachable!("joined above"),
        }
    }
}

impl<K: Resource> Default for InOrder<K> {
    fn default() -> Self {
        Self { parts: VecDeque::new(), len: 0, at_once: 0 }
    }
}

impl<K: Resource> InOrder<K> {
    fn push(&mut self, part: ResourceEvents<K>) {
        self.len += part.len();
        if !part.is_empty() {
            self.parts.push_back(part);
        }
    }

    fn take(&mut self, most: usize) -> ResourceEvents<K> {
        let taken = match self.parts.pop_front() {
            None => Vec::new().into(),
            Some(mut first) if first.len() > most => {
                self.parts.push_front(first.split_off(most));
                first
            }
            Some(first) => self.take_with(first, most),
        };
        self.len -= taken.len();
        self.at_once = self.at_once.saturating_sub(taken.len());
        taken
    }

    /// A part that has been removed, and others after it if all of them are few.
    fn take_with(&mut self, first: ResourceEvents<K>, most: usize) -> ResourceEvents<K> {
        let are_few = |part: &ResourceEvents<K>| part.len() < FEW && !part.is_synced();
        let mut length = first.len();
        let along = self.parts.iter().take_while(|next| {
            length += next.len();
            length <= most && are_few(next)
        });
        let along = along.count();
        if along == 0 || !are_few(&first) {
            return first;
        }
        let mut together = first.to_vec();
        together.extend(self.parts.drain(..along).flatten());
        together.into()
    }
}

impl<K: Resource> Default for PerObject<K> {
    fn default() -> Self {
        Self { entries: BTreeMap::new(), order: BTreeMap::new(), synced: None, next_place: 0 }
    }
}

impl<K: Resource> PerObject<K> {
    fn is_empty(&self) -> bool {
        self.entries.is_empty() && self.synced.is_none()
    }

    /// Returns whether the event was joined with an earlier one.
    fn push(&mut self, event: ResourceEvent<K>) -> bool {
        match event {
            ResourceEvent::Added { object, cause } => {
                self.set(Known::Nothing, Now::Cached(object), cause)
            }
            ResourceEvent::Updated { old, new, cause } => {
                self.set(Known::State(old), Now::Cached(new), cause)
            }
            ResourceEvent::Deleted { last_known, cause } => {
                let known = Known::Before(Arc::clone(&last_known));
                self.set(known, Now::Gone { last_known }, cause)
            }
            ResourceEvent::Synced => {
                self.synced = Some(self.place());
                false
            }
        }
    }

    fn set(&mut self, known: Known<K>, now: Now<K>, cause: Cause) -> bool {
        let key = now.object().key();
        let Some(entry) = self.entries.get_mut(&key) else {
            let place = self.place();
            self.order.insert(place, key.clone());
            self.entries.insert(key, Entry { place, known, now, cause });
            return false;
        };
        // A resync says nothing that the pending entry does not say.
        if cause == Cause::Resync {
            return true;
        }
        let is_unknown = matches!(entry.known, Known::Nothing);
        if is_unknown && matches!(now, Now::Gone { .. }) {
            // It came and went between two looks.
            let place = entry.place;
            self.entries.remove(&key);
            self.order.remove(&place);
            return true;
        }
        entry.now = now;
        // To a subscriber that does not know it yet, an object of the first list stays one.
        if !(is_unknown && entry.cause == Cause::InitialList) {
            entry.cause = cause;
        }
        true
    }

    fn take(&mut self, most: usize) -> Vec<ResourceEvent<K>> {
        let mut taken = Vec::new();
        while taken.len() < most {
            let next = self.order.first_key_value().map(|(place, _)| *place);
            if let Some(synced) = self.synced
                && next.is_none_or(|next| synced < next)
            {
                if taken.is_empty() {
                    self.synced = None;
                    taken.push(ResourceEvent::Synced);
                }
                break;
            }
            let Some((place, key)) = self.order.pop_first() else { break };
            let Some(entry) = self.entries.remove(&key) else { continue };
            let (event, rest) = entry.tell();
            taken.extend(event);
            if let Some(rest) = rest {
                self.order.insert(place, key.clone());
                self.entries.insert(key, rest);
            }
        }
        taken
    }

    fn place(&mut self) -> u64 {
        self.next_place += 1;
        self.next_place
    }
}

impl<K: Resource> Entry<K> {
    /// Leads to the newer state; none where it is in neither, though it may be pending as having come.
    fn of(difference: &Difference<K>, cause: Cause) -> Option<Self> {
        let known = match &difference.old {
            Some(old) => Known::State(Arc::clone(old)),
            None => Known::Nothing,
        };
        let now = match (&difference.new, &difference.old) {
            (Some(new), _) => Now::Cached(Arc::clone(new)),
            (None, Some(old)) => Now::Gone { last_known: Arc::clone(old) },
            (None, None) => return None,
        };
        Some(Self { place: 0, known, now, cause })
    }

    /// All there is to tell.
    fn events(self) -> impl Iterator<Item = ResourceEvent<K>> {
        let mut left = Some(self);
        std::iter::from_fn(move || {
            let (event, rest) = left.take()?.tell();
            left = rest;
            event
        })
    }

    /// What to tell first, and what is left to tell then.
    fn tell(self) -> (Option<ResourceEvent<K>>, Option<Self>) {
        let Self { place, known, now, cause } = self;
        let gone = |last_known, cause| Some(ResourceEvent::Deleted { last_known, cause });
        match (known, now) {
            (Known::Nothing, Now::Cached(object)) => {
                (Some(ResourceEvent::Added { object, cause }), None)
            }
            (Known::State(old), Now::Cached(new)) if is_same_object(&*old, &*new) => {
                (Some(ResourceEvent::Updated { old, new, cause }), None)
            }
            // Another one has its name, or it went and came back.
            (Known::State(old) | Known::Before(old), now @ Now::Cached(_)) => {
                let rest = Self { place, known: Known::Nothing, now, cause };
                (gone(old, Cause::Relist), Some(rest))
            }
            (Known::State(old) | Known::Before(old), Now::Gone { last_known }) => {
                if is_same_object(&*old, &*last_known) {
                    (gone(last_known, cause), None)
                } else {
                    // What took its place came and went between two looks.
                    (gone(old, Cause::Relist), None)
                }
            }
            // Came and went: `set` removes such an entry.
            (Known::Nothing, Now::Gone { .. }) => (None, None),
        }
    }
}

impl<K> Now<K> {
    fn object(&self) -> &Arc<K> {
        match self {
            Self::Cached(object) | Self::Gone { last_known: object } => object,
        }
    }
}

#[cfg(test)]
#[path = "pending_tests.rs"]
mod tests;
