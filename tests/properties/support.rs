use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kubeflect::cache::{
    Change, Delta, DeltaFifo, Deltas, Discipline, Indexer, Popped, Position, Transition,
};
use kubeflect::object::{DecodeError, Kind, ObjectKey, Resource, ResourceVersion};

/// An object of a group, by which it is indexed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Thing {
    name: String,
    uid: String,
    version: String,
    group: u8,
}

impl Resource for Thing {
    fn key(&self) -> ObjectKey {
        ObjectKey::cluster_scoped(&self.name)
    }

    fn uid(&self) -> Option<&str> {
        Some(&self.uid)
    }

    fn resource_version(&self) -> Option<&str> {
        Some(&self.version)
    }

    fn decode(_: &[u8], _: &Kind) -> Result<Self, DecodeError> {
        Err(DecodeError::new("things are not sent"))
    }
}

impl Thing {
    /// Two groups each, so that a change of group may keep one; the last group is none.
    fn groups(&self) -> Vec<String> {
        match self.group {
            2 => Vec::new(),
            group => vec![group.to_string(), (group + 1).to_string()],
        }
    }
}

pub(crate) type State = BTreeMap<ObjectKey, Thing>;

#[derive(Debug, Clone)]
pub(crate) enum Step {
    /// The object appears, or changes.
    Put {
        name: u8,
        group: u8,
    },
    Delete(u8),
    /// The object's state is reported as it was before the last change.
    Repeat(u8),
    /// Changes that nobody reports, then a list, in which one object can not be read.
    List {
        missed: Vec<Self>,
        unreadable: Option<u8>,
    },
    Resync,
    Bookmark,
    /// Up to so many changes are applied.
    Pop(usize),
}

/// A server, what it has reported so far, and the queue and cache that it is reported to.
pub(crate) struct Play {
    server: State,
    before: State,
    clock: u64,
    reported: State,
    last_version: Option<String>,
    /// What the first list contained, as long as nothing else happened to it.
    initial: BTreeMap<ObjectKey, Thing>,
    fifo: DeltaFifo<Thing>,
    cache: Indexer<Thing>,
    /// The cache, as one knows it who was only told of transitions.
    told: State,
    discipline: Discipline,
    is_fed: bool,
}

impl Play {
    pub(crate) fn new(discipline: Discipline) -> Self {
        let mut cache = Indexer::default();
        cache.add_index("group", Arc::new(Thing::groups)).unwrap();
        Self {
            server: State::new(),
            before: State::new(),
            clock: 0,
            reported: State::new(),
            last_version: None,
            initial: BTreeMap::new(),
            fifo: DeltaFifo::new(discipline, None),
            cache,
            told: State::new(),
            discipline,
            is_fed: false,
        }
    }

    pub(crate) fn has_synced(&self) -> bool {
        self.fifo.has_synced()
    }

    pub(crate) fn is_drained(&self) -> bool {
        self.fifo.is_empty()
    }

    pub(crate) fn cached(&self) -> State {
        self.cache.iter().map(|(key, object)| (key.clone(), (**object).clone())).collect()
    }

    pub(crate) fn run(&mut self, step: &Step) {
        let had_synced = self.fifo.has_synced();
        match step {
            Step::Put { .. } | Step::Delete(_) => self.report(step),
            Step::Repeat(name) => self.repeat(&key(*name)),
            Step::List { missed, unreadable } => self.list(missed, unreadable.map(key)),
            // As the store does: before the first list there is nothing to look at again.
            Step::Resync if had_synced => self.fifo.resync(&self.cache),
            Step::Resync => {}
            Step::Bookmark => self.bookmark(),
            Step::Pop(most) => self.pop(*most),
        }
        assert!(self.fifo.has_synced() || !had_synced, "synced is for ever");
    }

    /// Pops all that is left, and compares.
    pub(crate) fn drain(&mut self) {
        while !self.fifo.is_empty() {
            self.pop(2);
        }
        assert_eq!(self.cached(), self.reported);
        assert_eq!(self.fifo.has_synced(), self.is_fed);
        if self.discipline == Discipline::InOrderAtomic {
            let version = self.cache.resource_version().map(ToString::to_string);
            assert_eq!(version, self.last_version);
        }
    }

    fn tick(&mut self) -> String {
        self.clock += 1;
        self.clock.to_string()
    }

    /// Changes the server; gives the object as it is after, or was before it went.
    fn change(&mut self, step: &Step) -> Option<(Change, Arc<Thing>)> {
        let version = self.tick();
        let (change, object) = match step {
            Step::Put { name, group } => {
                let old = self.server.get(&key(*name)).cloned();
                let uid = old.as_ref().map_or_else(|| format!("u{version}"), |old| old.uid.clone());
                let name = key(*name).name().to_owned();
                let new = Thing { name, uid, version, group: *group };
                self.before.extend(old.clone().map(|old| (old.key(), old)));
                self.server.insert(new.key(), new.clone());
                (if old.is_some() { Change::Updated } else { Change::Added }, new)
            }
            Step::Delete(name) => {
                self.before.remove(&key(*name));
                (Change::Deleted, Thing { version, ..self.server.remove(&key(*name))? })
            }
            _ => return None,
        };
        self.initial.remove(&object.key());
        Some((change, Arc::new(object)))
    }

    fn report(&mut self, step: &Step) {
        let Some((change, object)) = self.change(step) else { return };
        self.is_fed = true;
        self.last_version = Some(object.version.clone());
        let (key, thing) = (object.key(), (*object).clone());
        let queued = match change {
            Change::Deleted => self.fifo.delete(object, &self.cache),
            Change::Added => self.fifo.add(object),
            _ => self.fifo.update(object),
        };
        assert_eq!(queued, Ok(()));
        match change {
            Change::Deleted => self.reported.remove(&key),
            _ => self.reported.insert(key, thing),
        };
    }

    /// Only what is cached is known to be newer than what is repeated.
    fn repeat(&mut self, key: &ObjectKey) {
        if let (Some(before), Some(reported)) = (self.before.get(key), self.reported.get(key))
            && before.uid == reported.uid
            && version(before) < version(reported)
        {
            self.is_fed = true;
            assert_eq!(self.fifo.update(Arc::new(before.clone())), Ok(()));
        }
    }

    /// A stream has bookmarks, and streams begin after a list.
    fn bookmark(&mut self) {
        let version = self.tick();
        if self.fifo.has_synced() {
            self.fifo.bookmark(ResourceVersion::new(&version).unwrap());
            self.last_version = Some(version);
        }
    }

    fn list(&mut self, missed: &[Step], unreadable: Option<ObjectKey>) {
        for step in missed {
            self.change(step);
        }
        let unreadable = unreadable.filter(|key| self.server.contains_key(key));
        let unreadable: BTreeSet<ObjectKey> = unreadable.into_iter().collect();
        let mut listed = self.server.clone();
        listed.retain(|key, _| !unreadable.contains(key));
        let version = self.tick();

        self.reported.retain(|key, _| unreadable.contains(key));
        self.reported.extend(listed.clone());
        if !self.is_fed {
            self.initial = listed.clone();
        }
        self.is_fed = true;
        self.last_version = Some(version.clone());
        let listed = listed.into_values().map(Arc::new).collect();
        let version = ResourceVersion::new(&version);
        assert!(self.fifo.replace(listed, unreadable, version, &self.cache).is_empty());
    }

    fn pop(&mut self, most: usize) {
        let had_synced = self.fifo.has_synced();
        let (cache, discipline) = (&mut self.cache, self.discipline);
        let transitions = self.fifo.pop_batch(most, |popped, position| {
            assert_eq!(position == Position::Later, had_synced);
            apply(popped, cache, discipline, most)
        });
        for transition in transitions.into_iter().flatten() {
            self.believe(transition);
        }
        assert_eq!(self.told, self.cached());
        self.check_index();
        if self.fifo.has_synced() && !had_synced {
            for (key, object) in &self.initial {
                assert_eq!(self.cache.get(key).map(|cached| &**cached), Some(object));
            }
        }
    }

    fn believe(&mut self, transition: Transition<Thing>) {
        match transition {
            Transition::Added(new) => {
                assert_eq!(self.told.insert(new.key(), (*new).clone()), None);
            }
            Transition::Updated { old, new } => {
                assert_eq!(old.uid, new.uid);
                assert!(version(&old) < version(&new), "goes back");
                assert_eq!(self.told.insert(new.key(), (*new).clone()), Some((*old).clone()));
            }
            Transition::Recreated { old, new } => {
                assert_ne!(old.uid, new.uid);
                assert_eq!(self.told.insert(new.key(), (*new).clone()), Some((*old).clone()));
            }
            Transition::Deleted(last_known) => {
                assert!(self.told.remove(&last_known.key()).is_some());
            }
            Transition::Resynced(object) => {
                assert_eq!(self.told.get(&object.key()), Some(&*object));
            }
            Transition::Unchanged => {}
        }
    }

    fn check_index(&self) {
        let mut expected: BTreeMap<String, Vec<ObjectKey>> = BTreeMap::new();
        for (key, object) in self.cache.iter() {
            for group in object.groups() {
                expected.entry(group).or_default().push(key.clone());
            }
        }
        let values = self.cache.index_values("group");
        let filed = values
            .iter()
            .map(|value| (value.to_string(), self.cache.index_keys("group", value).unwrap()));
        assert_eq!(filed.collect::<BTreeMap<_, _>>(), expected);
    }
}

fn apply(
    popped: Popped<Thing>,
    cache: &mut Indexer<Thing>,
    discipline: Discipline,
    most: usize,
) -> Vec<Transition<Thing>> {
    match popped {
        Popped::Deltas(deltas) => {
            check_batch(&deltas, discipline, most);
            deltas.into_iter().map(|delta| cache.apply(delta)).collect()
        }
        Popped::ReplacedAll { objects, unreadable, resource_version } => {
            cache.replace_all(objects, &unreadable, resource_version)
        }
        Popped::ResyncAll => {
            let all: Vec<_> = cache.iter().map(|(_, object)| Arc::clone(object)).collect();
            let deltas = all.into_iter().map(|object| Delta::new(Change::Resync, object));
            deltas.map(|delta| cache.apply(delta)).collect()
        }
        Popped::Bookmark(version) => {
            cache.set_resource_version(Some(version));
            Vec::new()
        }
    }
}

/// One object with all its changes, or one change each of several.
fn check_batch(deltas: &Deltas<Thing>, discipline: Discipline, most: usize) {
    let keys: BTreeSet<ObjectKey> = deltas.iter().map(|delta| delta.object.key()).collect();
    match discipline {
        Discipline::PerObject => assert_eq!(keys.len(), 1),
        Discipline::InOrder | Discipline::InOrderAtomic => {
            assert!(keys.len() == deltas.len() && keys.len() <= most);
        }
    }
}

fn key(name: u8) -> ObjectKey {
    ObjectKey::cluster_scoped(&format!("thing-{name}"))
}

fn version(thing: &Thing) -> ResourceVersion {
    ResourceVersion::new(&thing.version).unwrap()
}
