//! Whatever is pushed, joined and taken at whatever moments: the subscriber ends up knowing what is true, and is told
//! nothing that makes no sense to it.

use std::collections::BTreeSet;

use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use super::*;
use crate::object::{DecodeError, Kind};

#[derive(Debug, PartialEq, Eq)]
struct Thing {
    name: String,
    uid: String,
    version: u64,
}

impl Resource for Thing {
    fn key(&self) -> ObjectKey {
        ObjectKey::cluster_scoped(&self.name)
    }

    fn uid(&self) -> Option<&str> {
        Some(&self.uid)
    }

    fn resource_version(&self) -> Option<&str> {
        None
    }

    fn decode(_: &[u8], _: &Kind) -> Result<Self, DecodeError> {
        Err(DecodeError::new("things are not sent"))
    }
}

type State = BTreeMap<ObjectKey, Arc<Thing>>;

#[derive(Debug, Clone)]
enum Step {
    /// The object appears, as another one than before, or changes.
    Put(u8),
    /// The object that went last comes back, as one does that a selector selects again.
    Return(u8),
    /// Goes, and comes as another one.
    Recreate(u8),
    Delete(u8),
    Resync(u8),
    Synced,
    Take(usize),
    /// The cache jumps to a state made by these steps; it is told so once, or once more after a crash.
    Jump {
        steps: Vec<Self>,
        twice: bool,
    },
}

fn change() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0..4_u8).prop_map(Step::Put),
        2 => (0..4_u8).prop_map(Step::Return),
        2 => (0..4_u8).prop_map(Step::Recreate),
        4 => (0..4_u8).prop_map(Step::Delete),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        12 => change(),
        2 => (0..4_u8).prop_map(Step::Resync),
        1 => Just(Step::Synced),
        4 => (0..5_usize).prop_map(Step::Take),
    ]
}

fn jump() -> impl Strategy<Value = Step> {
    let steps = prop::collection::vec(change(), 0..8);
    (steps, any::<bool>()).prop_map(|(steps, twice)| Step::Jump { steps, twice })
}

/// The cache and the history of its objects.
#[derive(Debug, Clone, Default)]
struct World {
    now: State,
    gone: State,
    clock: u64,
    /// Objects that left the cache at least once, by uid.
    vanished: BTreeSet<String>,
}

impl World {
    fn make(&mut self, key: u8, uid: Option<&str>) -> Arc<Thing> {
        self.clock += 1;
        let uid = uid.map_or_else(|| format!("u{}", self.clock), str::to_owned);
        Arc::new(Thing { name: format!("thing-{key}"), uid, version: self.clock })
    }

    fn change(&mut self, step: &Step) -> Vec<ResourceEvent<Thing>> {
        let cause = Cause::Watch;
        match *step {
            Step::Put(name) => match self.get(name) {
                None => self.add(name, None),
                Some(old) => {
                    let new = self.make(name, Some(&old.uid));
                    self.now.insert(new.key(), Arc::clone(&new));
                    vec![ResourceEvent::Updated { old, new, cause }]
                }
            },
            Step::Return(name) => match (self.get(name), self.gone.get(&key(name))) {
                (None, Some(gone)) => {
                    let uid = gone.uid.clone();
                    self.add(name, Some(&uid))
                }
                _ => Vec::new(),
            },
            Step::Recreate(name) => {
                let mut events = self.change(&Step::Delete(name));
                if !events.is_empty() {
                    events.extend(self.add(name, None));
                }
                events
            }
            Step::Delete(name) => {
                let Some(old) = self.now.remove(&key(name)) else { return Vec::new() };
                self.vanished.insert(old.uid.clone());
                let last_known = self.make(name, Some(&old.uid));
                self.gone.insert(key(name), Arc::clone(&last_known));
                vec![ResourceEvent::Deleted { last_known, cause }]
            }
            Step::Resync(name) => {
                let cause = Cause::Resync;
                let same = |old: Arc<Thing>| (Arc::clone(&old), old);
                let known = self.get(name).map(same);
                known
                    .map(|(old, new)| ResourceEvent::Updated { old, new, cause })
                    .into_iter()
                    .collect()
            }
            Step::Synced => vec![ResourceEvent::Synced],
            Step::Take(_) | Step::Jump { .. } => Vec::new(),
        }
    }

    fn add(&mut self, name: u8, uid: Option<&str>) -> Vec<ResourceEvent<Thing>> {
        let object = self.make(name, uid);
        self.now.insert(object.key(), Arc::clone(&object));
        vec![ResourceEvent::Added { object, cause: Cause::Watch }]
    }

    fn get(&self, name: u8) -> Option<Arc<Thing>> {
        self.now.get(&key(name)).map(Arc::clone)
    }
}

fn key(name: u8) -> ObjectKey {
    ObjectKey::cluster_scoped(&format!("thing-{name}"))
}

fn differences(old: &State, new: &State) -> Vec<Difference<Thing>> {
    let keys: BTreeSet<&ObjectKey> = old.keys().chain(new.keys()).collect();
    let of = |state: &State, key: &ObjectKey| state.get(key).map(Arc::clone);
    let differences = keys.into_iter().map(|key| Difference {
        key: key.clone(),
        old: of(old, key),
        new: of(new, key),
    });
    differences.filter(|difference| difference.old != difference.new).collect()
}

/// One subscriber, which believes what it is told, and checks it.
struct Play {
    world: World,
    pending: Pending<Thing>,
    told: State,
    /// The objects of the first snapshot, by uid, once it is complete.
    initial: Option<Vec<Arc<Thing>>>,
    synced: bool,
    pushed: Vec<String>,
    taken: Vec<String>,
}

impl Play {
    fn new(at_most: usize) -> Self {
        Self {
            world: World::default(),
            pending: Pending::new(at_most),
            told: State::new(),
            initial: None,
            synced: false,
            pushed: Vec::new(),
            taken: Vec::new(),
        }
    }

    fn run(&mut self, steps: &[Step]) {
        for step in steps {
            match step {
                Step::Take(most) => self.take(*most),
                Step::Synced if self.initial.is_some() => {}
                Step::Jump { steps, twice } => self.jump(steps, *twice),
                _ => {
                    if matches!(step, Step::Synced) {
                        self.initial = Some(self.world.now.values().map(Arc::clone).collect());
                    }
                    for event in self.world.change(step) {
                        self.pushed.push(written(&event));
                        self.pending.push(&vec![event].into());
                        self.check_length();
                    }
                }
            }
        }
        while !self.pending.is_empty() {
            self.take(3);
        }
        assert_eq!(self.told, self.world.now);
        assert_eq!(self.synced, self.initial.is_some());
        assert_eq!(self.pending.len(), 0);
    }

    fn jump(&mut self, steps: &[Step], twice: bool) {
        let before = self.world.now.clone();
        for step in steps {
            self.world.change(step);
        }
        let mut differences = differences(&before, &self.world.now);
        self.pending.rebase(&differences, Cause::Relist);
        if twice {
            // Of what came and went unseen nothing is left to compare with.
            differences.retain(|it| it.new.is_some() || self.told.contains_key(&it.key));
            self.pending.rebase(&differences, Cause::Relist);
        }
        self.check_length();
    }

    fn check_length(&self) {
        let keys: BTreeSet<_> = self.told.keys().chain(self.world.now.keys()).collect();
        match &self.pending.waiting {
            Waiting::InOrder(events) => {
                assert!(events.len <= events.at_once + self.pending.at_most);
                assert!(events.at_once <= 2 * keys.len(), "went, and came as another one");
            }
            Waiting::PerObject(objects) => assert!(objects.entries.len() <= keys.len()),
        }
        if let Waiting::PerObject(objects) = &self.pending.waiting {
            let places = objects.entries.iter().map(|(key, entry)| (entry.place, key.clone()));
            assert_eq!(places.collect::<BTreeMap<_, _>>(), objects.order);
        }
    }

    fn take(&mut self, most: usize) {
        let events = self.pending.take(most);
        assert!(events.len() <= most, "{most} were asked for: {events:?}");
        for event in events {
            self.taken.push(written(&event));
            self.believe(event);
        }
    }

    fn believe(&mut self, event: ResourceEvent<Thing>) {
        match event {
            ResourceEvent::Added { object, .. } => {
                assert_eq!(self.told.insert(object.key(), object), None, "known already");
            }
            ResourceEvent::Updated { old, new, cause } => {
                assert_eq!(self.told.get(&new.key()), Some(&old), "something else is known");
                assert_eq!(old.uid, new.uid, "another object");
                assert!(old.version < new.version || cause == Cause::Resync, "goes back");
                self.told.insert(new.key(), new);
            }
            ResourceEvent::Deleted { last_known, .. } => {
                let known = self.told.remove(&last_known.key()).expect("deleted, but not known");
                assert_eq!(known.uid, last_known.uid, "another object");
                assert!(known.version <= last_known.version, "goes back");
            }
            ResourceEvent::Synced => {
                assert!(!self.synced, "comes once");
                self.synced = true;
                for object in self.initial.iter().flatten() {
                    let known = self.told.get(&object.key()).map(|known| &known.uid);
                    let vanished = self.world.vanished.contains(&object.uid);
                    assert!(vanished || known == Some(&object.uid), "{object:?} is not known yet");
                }
            }
        }
    }
}

fn written(event: &ResourceEvent<Thing>) -> String {
    let state = |thing: &Thing| format!("{}@{}", thing.uid, thing.version);
    let states = match event {
        ResourceEvent::Added { object, .. } => state(object),
        ResourceEvent::Updated { old, new, .. } => format!("{}->{}", state(old), state(new)),
        ResourceEvent::Deleted { last_known, .. } => state(last_known),
        ResourceEvent::Synced => String::new(),
    };
    format!("{event:?} {states}")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, rng_seed: RngSeed::Fixed(1), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_taken_leads_where_what_was_pushed_led(
        steps in prop::collection::vec(step(), 0..60),
        at_most in prop::sample::select(vec![0, 1, 3, 100]),
    ) {
        Play::new(at_most).run(&steps);
    }

    #[test]
    fn a_jump_to_any_other_state_leads_there(
        before in prop::collection::vec(step(), 0..20),
        leap in jump(),
        after in prop::collection::vec(prop_oneof![8 => step(), 1 => jump()], 0..20),
        at_most in prop::sample::select(vec![0, 1, 3, 100]),
    ) {
        Play::new(at_most).run(&[before, vec![leap], after].concat());
    }

    #[test]
    fn events_within_the_bound_come_as_they_are(steps in prop::collection::vec(step(), 0..60)) {
        let mut play = Play::new(200);
        play.run(&steps);
        prop_assert_eq!(play.pushed, play.taken);
        prop_assert_eq!(play.pending.coalesced(), 0);
    }
}

/// Keeps every event by itself. What waits for a subscriber is to be the same, however it is kept.
struct Plain {
    events: VecDeque<ResourceEvent<Thing>>,
    objects: Option<PerObject<Thing>>,
    at_most: usize,
    coalesced: u64,
}

impl Plain {
    fn new(at_most: usize) -> Self {
        let objects = (at_most == 0).then(PerObject::default);
        Self { events: VecDeque::new(), objects, at_most, coalesced: 0 }
    }

    fn push(&mut self, event: ResourceEvent<Thing>) {
        if self.objects.is_none() && self.events.len() < self.at_most {
            self.events.push_back(event);
            return;
        }
        let objects = self.objects.get_or_insert_default();
        for event in self.events.drain(..).chain([event]) {
            self.coalesced += u64::from(objects.push(event));
        }
    }

    fn len(&self) -> usize {
        self.objects.as_ref().map_or(self.events.len(), |objects| objects.entries.len())
    }

    fn take_one(&mut self) -> Option<ResourceEvent<Thing>> {
        let Some(objects) = &mut self.objects else { return self.events.pop_front() };
        let taken = objects.take(1).pop();
        if objects.is_empty() && self.at_most > 0 {
            self.objects = None;
        }
        taken
    }
}

/// Tells two subscribers, one of whom keeps events as they are published, so many at once.
fn publish_in_parts(steps: &[Step], sizes: &[usize], at_most: usize) {
    let mut world = World::default();
    let (mut pending, mut plain) = (Pending::new(at_most), Plain::new(at_most));
    let mut sizes = sizes.iter().cycle();
    let mut unpublished = Vec::new();
    for step in steps {
        unpublished.extend(world.change(step).into_iter().filter(|it| it.cause().is_some()));
        match step {
            Step::Synced => {
                publish(&mut unpublished, &mut pending, &mut plain);
                pending.push_synced();
                plain.push(ResourceEvent::Synced);
            }
            Step::Take(most) => take_from_both(*most, &mut pending, &mut plain),
            _ if sizes.clone().next().is_some_and(|size| unpublished.len() >= *size) => {
                sizes.next();
                publish(&mut unpublished, &mut pending, &mut plain);
            }
            _ => {}
        }
        assert_eq!((pending.len(), pending.coalesced()), (plain.len(), plain.coalesced));
    }
    while !pending.is_empty() {
        take_from_both(7, &mut pending, &mut plain);
    }
    assert_eq!(plain.len(), 0);
}

/// To the one in two halves of one allocation.
fn publish(
    events: &mut Vec<ResourceEvent<Thing>>,
    pending: &mut Pending<Thing>,
    plain: &mut Plain,
) {
    events.iter().for_each(|event| plain.push(event.clone()));
    let mut first = ResourceEvents::from(std::mem::take(events));
    let second = first.split_off(first.len() / 2);
    pending.push(&first);
    pending.push(&second);
}

fn take_from_both(most: usize, pending: &mut Pending<Thing>, plain: &mut Plain) {
    let taken = pending.take(most);
    let has_synced = taken.iter().any(|event| matches!(event, ResourceEvent::Synced));
    assert!(taken.len() <= most && (!has_synced || taken.is_synced()), "{most}: {taken:?}");
    assert!(!taken.is_empty() || most == 0 || pending.is_empty(), "something waits");
    for event in &taken {
        assert_eq!(plain.take_one().as_ref().map(written), Some(written(event)));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, rng_seed: RngSeed::Fixed(1), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_shared_is_told_as_if_it_were_not(
        steps in prop::collection::vec(step(), 0..200),
        sizes in prop::collection::vec(prop::sample::select(vec![1, 2, 5, 70]), 1..5),
        at_most in prop::sample::select(vec![0, 1, 3, 40, 500]),
    ) {
        publish_in_parts(&steps, &sizes, at_most);
    }
}

#[test]
fn many_events_are_taken_without_being_copied_and_few_together() {
    let part = |count: u64| -> ResourceEvents<Thing> {
        (0..count).map(|it| updated(it, it + 1, Cause::Watch)).collect::<Vec<_>>().into()
    };
    let (many, one) = (part(FEW as u64), part(1));
    let mut pending = Pending::new(500);
    [&many, &one, &one, &many, &one].into_iter().for_each(|part| pending.push(part));
    let taken = [(); 4].map(|()| pending.take(256));
    assert_eq!([0, 1, 2, 3].map(|at: usize| taken[at].len()), [FEW, 2, FEW, 1]);
    for (at, part) in [(0, &many), (2, &many), (3, &one)] {
        assert!(std::ptr::eq(&*taken[at], &**part), "{at} is the very same");
    }
}

fn thing(version: u64) -> Arc<Thing> {
    Arc::new(Thing { name: "thing".to_owned(), uid: "u".to_owned(), version })
}

fn updated(old: u64, new: u64, cause: Cause) -> ResourceEvent<Thing> {
    ResourceEvent::Updated { old: thing(old), new: thing(new), cause }
}

fn push(pending: &mut Pending<Thing>, event: ResourceEvent<Thing>) {
    pending.push(&vec![event].into());
}

/// Pushes all with a bound of 0, then takes all; and how many were joined.
fn joined(events: Vec<ResourceEvent<Thing>>) -> (Vec<String>, u64) {
    let mut pending = Pending::new(0);
    pending.push(&events.into());
    (pending.take(usize::MAX).iter().map(written).collect(), pending.coalesced())
}

#[test]
fn an_object_of_the_first_list_stays_one_until_it_is_told() {
    let added = ResourceEvent::Added { object: thing(1), cause: Cause::InitialList };
    let (told, coalesced) = joined(vec![added, updated(1, 2, Cause::Watch)]);
    assert_eq!((told, coalesced), (vec!["added thing (InitialList) u@2".to_owned()], 1));
}

#[test]
fn a_change_is_told_with_its_last_cause() {
    let (told, _) = joined(vec![updated(1, 2, Cause::Watch), updated(2, 3, Cause::Relist)]);
    assert_eq!(told, ["updated thing (Relist) u@1->u@3"]);
    let (told, _) = joined(vec![updated(1, 1, Cause::Resync), updated(1, 2, Cause::Watch)]);
    assert_eq!(told, ["updated thing (Watch) u@1->u@2"]);
}

#[test]
fn a_resync_says_nothing_new_of_what_waits_already() {
    let (told, coalesced) = joined(vec![updated(1, 2, Cause::Watch), updated(2, 2, Cause::Resync)]);
    assert_eq!((told, coalesced), (vec!["updated thing (Watch) u@1->u@2".to_owned()], 1));
    assert_eq!(joined(vec![updated(2, 2, Cause::Resync)]).0, ["updated thing (Resync) u@2->u@2"]);
}

#[test]
fn once_all_is_taken_events_are_kept_in_order_again() {
    let mut pending = Pending::new(2);
    for version in 1..5 {
        push(&mut pending, updated(version, version + 1, Cause::Watch));
    }
    assert_eq!((pending.len(), pending.coalesced()), (1, 3));
    assert_eq!(pending.take(1).len(), 1);
    push(&mut pending, updated(5, 6, Cause::Watch));
    push(&mut pending, updated(6, 7, Cause::Watch));
    assert_eq!((pending.len(), pending.coalesced()), (2, 3));
}

#[test]
fn a_list_is_kept_as_it_came_however_long_it_is() {
    let mut pending = Pending::new(2);
    let named = |name: u64, version| {
        Arc::new(Thing { name: name.to_string(), uid: "u".to_owned(), version })
    };
    let added = |name| ResourceEvent::Added { object: named(name, 1), cause: Cause::InitialList };
    let list: [ResourceEvents<Thing>; 2] = [
        (0..40).map(added).collect::<Vec<_>>().into(),
        (40..50).map(added).collect::<Vec<_>>().into(),
    ];
    pending.push_all(&list);
    assert!(std::ptr::eq(&*pending.take(40), &*list[0]), "it is the very same");
    let mut change = |version: u64| {
        let (old, new) = (named(49, version), named(49, version + 1));
        push(&mut pending, ResourceEvent::Updated { old, new, cause: Cause::Watch });
        (pending.len(), pending.coalesced())
    };
    assert_eq!([change(1), change(2)], [(11, 0), (12, 0)], "few changes wait behind it");
    assert_eq!(change(3), (10, 3), "more are joined with it");
    let told = pending.take(usize::MAX);
    assert_eq!(written(&told[9]), "added 49 (InitialList) u@4");
}

#[test]
fn who_joins_late_is_told_all_in_order() {
    let mut pending = Pending::new(1);
    let difference = |old: Option<u64>, new: Option<u64>| Difference {
        key: ObjectKey::cluster_scoped("thing"),
        old: old.map(thing),
        new: new.map(thing),
    };
    let differences =
        [difference(None, Some(1)), difference(Some(1), Some(2)), difference(Some(2), None)];
    pending.rebase(&differences, Cause::InitialList);
    let told: Vec<_> = pending.take(9).iter().map(written).collect();
    assert_eq!(
        told,
        [
            "added thing (InitialList) u@1",
            "updated thing (InitialList) u@1->u@2",
            "deleted thing (InitialList) u@2"
        ]
    );
}
