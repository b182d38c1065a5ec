use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use bytes::Bytes;
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::Instant;

use super::failure::Failure;
use super::faults::{Faults, Replica, SeenRequest, Verb};
use super::history::{DEFAULT_LIMIT, Event, History, Objects, Overtaken};
use super::resources::{ResourceId, Served, built_in, defined_by};
use super::stored::Stored;
use crate::object::{Kind, ObjectKey};

/// How many requests are remembered unless more are asked for.
const REMEMBERED_REQUESTS: usize = 10_000;

/// All the server knows: objects, their history, who watches, and what goes wrong on purpose.
///
/// One counter numbers all writes, as etcd does: the versions of one resource have gaps.
#[derive(Debug)]
pub(super) struct Model {
    revision: watch::Sender<u64>,
    /// When each of the last revisions was written, without gaps.
    written: VecDeque<(u64, Instant)>,
    pub(super) collections: BTreeMap<ResourceId, Collection>,
    pub(super) open_watches: BTreeMap<u64, OpenWatch>,
    pub(super) faults: Faults,
    pub(super) requests: VecDeque<SeenRequest>,
    pub(super) remembered_requests: usize,
    pub(super) request_counts: BTreeMap<Verb, u64>,
    pub(super) random: fastrand::Rng,
    history_limit: usize,
    /// Nothing is recorded: somebody only wants to know what would be.
    pub(super) rehearsing: bool,
    /// By which it may be asked on a loopback address.
    pub(super) names: Vec<String>,
}

/// The objects of one resource, and how they came to be.
#[derive(Debug)]
pub(super) struct Collection {
    pub(super) served: Arc<Served>,
    /// Whether requests find it. A removed kind keeps its history until the last watch has read it.
    pub(super) open: bool,
    pub(super) objects: Objects,
    pub(super) history: History,
    /// Wakes the watches of this resource.
    pub(super) wake: watch::Sender<()>,
}

impl Collection {
    /// Its objects at a revision; at the newest one if that is what is wanted, or all that is left.
    pub(super) fn as_shown(&self, shown: Option<u64>, newest: u64) -> (u64, Cow<'_, Objects>) {
        let shown = shown.filter(|shown| *shown < newest);
        let past =
            shown.and_then(|shown| Some((shown, self.history.past(&self.objects, shown).ok()?)));
        past.unwrap_or((newest, Cow::Borrowed(&self.objects)))
    }
}

/// A watch somebody reads.
#[derive(Debug)]
pub(super) struct OpenWatch {
    pub(super) resource: ResourceId,
    /// What is to happen to the stream once it has shown a revision.
    pub(super) interruptions: VecDeque<(u64, Interruption)>,
}

/// What happens to a watch apart from events.
#[derive(Debug, Clone)]
pub(super) enum Interruption {
    /// These bytes are sent as they are.
    Raw(Bytes),
    /// The stream ends.
    End,
    /// The connection breaks.
    Break,
    /// The connection is gone, and nobody is told.
    Lose,
}

impl Model {
    pub(super) fn new(seed: u64) -> Self {
        Self::beginning_at(1, seed)
    }

    /// With a revision to begin with, as of a server that has lived before.
    pub(super) fn beginning_at(revision: u64, seed: u64) -> Self {
        let mut model = Self {
            revision: watch::Sender::new(revision),
            written: VecDeque::new(),
            collections: BTreeMap::new(),
            open_watches: BTreeMap::new(),
            faults: Faults::default(),
            requests: VecDeque::new(),
            remembered_requests: REMEMBERED_REQUESTS,
            request_counts: BTreeMap::new(),
            random: fastrand::Rng::with_seed(seed),
            history_limit: DEFAULT_LIMIT,
            rehearsing: false,
            names: Vec::new(),
        };
        built_in().for_each(|served| model.register(served));
        model
    }

    pub(super) fn revision(&self) -> u64 {
        *self.revision.borrow()
    }

    /// To wait for a revision.
    pub(super) fn revisions(&self) -> watch::Receiver<u64> {
        self.revision.subscribe()
    }

    pub(super) fn collection(&self, resource: &ResourceId) -> Option<&Collection> {
        self.collections.get(resource).filter(|collection| collection.open)
    }

    pub(super) fn resource_of(&self, api_version: &str, kind: &str) -> Option<ResourceId> {
        let mut open = self.collections.iter().filter(|(_, collection)| collection.open);
        let found = open.find(|(_, collection)| collection.served.kind.is_of(api_version, kind));
        found.map(|(resource, _)| resource.clone())
    }

    // === kinds ===

    pub(super) fn register(&mut self, served: Served) {
        let (now, limit) = (self.revision(), self.history_limit);
        let resource = ResourceId::of(&served.kind);
        let collection = self.collections.entry(resource).or_insert_with(|| Collection {
            served: Arc::new(served.clone()),
            open: false,
            objects: Objects::new(),
            history: History::new(now, limit),
            wake: watch::Sender::new(()),
        });
        collection.served = Arc::new(served);
        if !collection.open {
            collection.open = true;
            collection.history.forget(now);
        }
    }

    /// Deletes the objects of a kind, then stops serving it.
    pub(super) fn unregister(&mut self, kind: &Kind) {
        let resource = ResourceId::of(kind);
        let Some(collection) = self.collection(&resource) else { return };
        let keys: Vec<ObjectKey> = collection.objects.keys().cloned().collect();
        for key in keys {
            self.record(&resource, key, None);
        }
        if let Some(collection) = self.collections.get_mut(&resource) {
            collection.open = false;
        }
        self.interrupt(&Interruption::End, |watched| *watched == resource);
    }

    /// Stops serving a kind, whose objects are gone without an event.
    pub(super) fn vanish(&mut self, kind: &Kind) {
        let (resource, now) = (ResourceId::of(kind), self.revision());
        self.interrupt(&Interruption::End, |watched| *watched == resource);
        if let Some(collection) = self.collections.get_mut(&resource) {
            collection.open = false;
            collection.objects.clear();
            collection.history.restart(now);
        }
    }

    pub(super) fn definition_changed(&mut self, before: Option<&Value>, after: Option<&Value>) {
        let kinds = |definition: Option<&Value>| {
            definition.and_then(Value::as_object).map(defined_by).unwrap_or_default()
        };
        if self.rehearsing {
            return;
        }
        let wanted = kinds(after);
        let is_wanted = |kind: &Kind| {
            wanted.iter().any(|served| ResourceId::of(&served.kind) == ResourceId::of(kind))
        };
        for served in kinds(before).iter().filter(|served| !is_wanted(&served.kind)) {
            self.unregister(&served.kind);
        }
        wanted.into_iter().for_each(|served| self.register(served));
    }

    // === history ===

    /// The only place where anything changes. Returns the state before.
    pub(super) fn record(
        &mut self,
        resource: &ResourceId,
        key: ObjectKey,
        after: Option<Stored>,
    ) -> Option<Arc<Stored>> {
        if self.rehearsing {
            return self.object(resource, &key).cloned();
        }
        let revision = self.revision() + 1;
        let collection = self.collections.get_mut(resource)?;
        let lost = self.faults.loses_event(resource);
        let after = after.map(Arc::new);
        let before = match &after {
            Some(after) => collection.objects.insert(key.clone(), Arc::clone(after)),
            None => collection.objects.remove(&key),
        };
        collection.history.push(Event { revision, key, before: before.clone(), after, lost });
        self.written.push_back((revision, Instant::now()));
        if self.written.len() > DEFAULT_LIMIT {
            self.written.pop_front();
        }
        self.revision.send_replace(revision);
        collection.wake.send_replace(());
        before
    }

    pub(super) fn limit_history(&mut self, events: usize) {
        self.history_limit = events;
        for collection in self.collections.values_mut() {
            collection.history.set_limit(events);
        }
    }

    /// Undoes all that happened after a revision, and counts on from there. Open watches wait for what they know.
    pub(super) fn restore(&mut self, revision: u64) -> Result<(), Failure> {
        if revision > self.revision() {
            return Err(Failure::too_large(revision, self.revision()));
        }
        let restored: Vec<Objects> = self
            .collections
            .values()
            .map(|collection| {
                let past = collection.history.rewind(&collection.objects, revision);
                past.map(Cow::into_owned).map_err(|Overtaken| Failure::list_too_old())
            })
            .collect::<Result<_, _>>()?;
        for (collection, objects) in self.collections.values_mut().zip(restored) {
            collection.objects = objects;
            collection.history.restart(revision);
        }
        self.written.retain(|(written, _)| *written <= revision);
        self.revision.send_replace(revision);
        Ok(())
    }

    /// The revision a replica shows.
    pub(super) fn shown_by(&self, replica: Replica) -> u64 {
        let lag = self.faults.lag_of(replica);
        if lag.is_zero() {
            return self.revision();
        }
        let now = Instant::now();
        let reached = self.written.partition_point(|(_, at)| *at + lag <= now);
        self.written.get(reached).map_or(self.revision(), |(revision, _)| revision - 1)
    }

    /// When a replica shows the first revision that it does not show yet.
    pub(super) fn next_shown_by(&self, replica: Replica) -> Option<Instant> {
        let (shown, lag) = (self.shown_by(replica), self.faults.lag_of(replica));
        let next = self.written.partition_point(|(revision, _)| *revision <= shown);
        self.written.get(next).map(|(_, at)| *at + lag)
    }

    // === reads ===

    pub(super) fn object(&self, resource: &ResourceId, key: &ObjectKey) -> Option<&Arc<Stored>> {
        self.collection(resource).and_then(|collection| collection.objects.get(key))
    }

    pub(super) fn existing(
        &self,
        resource: &ResourceId,
        key: &ObjectKey,
    ) -> Result<Arc<Stored>, Failure> {
        let served = self.served(resource)?;
        let object = self.object(resource, key).map(Arc::clone);
        object.ok_or_else(|| Failure::not_found(&served, key.name()))
    }

    pub(super) fn served(&self, resource: &ResourceId) -> Result<Arc<Served>, Failure> {
        let collection = self.collection(resource).ok_or_else(|| unknown(resource))?;
        Ok(Arc::clone(&collection.served))
    }

    // === watches ===

    /// Lets something happen to all open watches of some resources, after what they are still to show.
    pub(super) fn interrupt(
        &mut self,
        interruption: &Interruption,
        concerns: impl Fn(&ResourceId) -> bool,
    ) {
        let now = self.revision();
        for watch in self.open_watches.values_mut().filter(|watch| concerns(&watch.resource)) {
            watch.interruptions.push_back((now, interruption.clone()));
        }
        self.wake_watches();
    }

    pub(super) fn wake_watches(&self) {
        for collection in self.collections.values() {
            collection.wake.send_replace(());
        }
    }

    // === requests ===

    pub(super) fn remember(&mut self, request: SeenRequest) {
        *self.request_counts.entry(request.verb).or_default() += 1;
        self.requests.push_back(request);
        let forgotten = self.requests.len().saturating_sub(self.remembered_requests);
        self.requests.drain(..forgotten);
    }
}

fn unknown(resource: &ResourceId) -> Failure {
    Failure::bad_request(format!("{resource} is not served"))
}
