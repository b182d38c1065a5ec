//! `delta_fifo_test.go` and `the_real_fifo_test.go`: what both say, beside each other.

use kubeflect::cache::{Change, Delta, DeltaFifo, Discipline, Indexer, Popped};
use kubeflect::object::{ObjectKey, Resource as _};

use crate::support::{Thing, drain, known, pop, replace, thing};

/// Plays the same to a queue that joins the changes of an object and to one that keeps them in order.
fn check(play: impl Fn(&mut DeltaFifo<Thing>), per_object: &[&str], in_order: &[&str]) {
    for (discipline, expected) in
        [(Discipline::PerObject, per_object), (Discipline::InOrder, in_order)]
    {
        let mut fifo = DeltaFifo::new(discipline, None);
        play(&mut fifo);
        assert_eq!(drain(&mut fifo), expected, "{discipline:?}");
        assert!(fifo.is_empty());
    }
}

fn nothing() -> Indexer<Thing> {
    known(&[])
}

/// client-go: `TestDeltaFIFO_basic`
/// client-go: `TestRealFIFO_basic`
#[test]
fn what_two_producers_add_leaves_in_the_order_of_each() {
    for discipline in [Discipline::PerObject, Discipline::InOrder, Discipline::InOrderAtomic] {
        let mut fifo = DeltaFifo::new(discipline, None);
        let mut chance = fastrand::Rng::with_seed(7);
        let (mut left, mut right) = (0..500, 0..500);
        loop {
            let first = if chance.bool() { ("a", left.next()) } else { ("b", right.next()) };
            match first {
                (producer, Some(number)) => {
                    fifo.add(thing(&format!("{producer}{number}-"), number)).unwrap();
                }
                (_, None) if left.is_empty() && right.is_empty() => break,
                (_, None) => {}
            }
        }
        let popped = drain(&mut fifo);
        for producer in ["a", "b"] {
            let expected = (0..500).map(|number| format!("Added {producer}{number}-{number}"));
            let own = popped.iter().filter(|text| text.starts_with(&format!("Added {producer}")));
            assert!(own.cloned().eq(expected), "{producer} with {discipline:?}");
        }
    }
}

/// client-go: `TestDeltaFIFO_addUpdate`
/// client-go: `TestRealFIFO_addUpdate`
#[test]
fn an_addition_a_change_and_a_deletion_are_one_pop_or_three() {
    check(
        |fifo| {
            fifo.add(thing("foo", 10)).unwrap();
            fifo.update(thing("foo", 12)).unwrap();
            fifo.delete(thing("foo", 15), &nothing()).unwrap();
        },
        &["Added foo10, Updated foo12, Deleted foo15"],
        &["Added foo10", "Updated foo12", "Deleted foo15"],
    );
}

/// client-go: `TestDeltaFIFO_enqueueingNoLister`
/// client-go: `TestRealFIFO_enqueueingNoLister`
#[test]
fn a_deletion_of_what_is_neither_cached_nor_queued_is_dropped_or_passed_on() {
    check(
        |fifo| {
            fifo.add(thing("foo", 10)).unwrap();
            fifo.update(thing("bar", 15)).unwrap();
            fifo.add(thing("qux", 17)).unwrap();
            fifo.delete(thing("qux", 18), &nothing()).unwrap();
            fifo.delete(thing("baz", 20), &nothing()).unwrap();
        },
        &["Added foo10", "Updated bar15", "Added qux17, Deleted qux18"],
        &["Added foo10", "Updated bar15", "Added qux17", "Deleted qux18", "Deleted baz20"],
    );
}

/// client-go: `TestDeltaFIFO_enqueueingWithLister`
/// client-go: `TestRealFIFO_enqueueingWithLister`
#[test]
fn a_deletion_of_what_is_cached_is_queued() {
    let expected = ["Added foo10", "Updated bar15", "Deleted baz20"];
    check(
        |fifo| {
            let cache = known(&[("foo", 5), ("bar", 6), ("baz", 7)]);
            fifo.add(thing("foo", 10)).unwrap();
            fifo.update(thing("bar", 15)).unwrap();
            fifo.delete(thing("baz", 20), &cache).unwrap();
        },
        &expected,
        &expected,
    );
}

/// client-go: `TestDeltaFIFO_addReplace`
/// client-go: `TestRealFIFO_addReplace`
#[test]
fn a_list_after_an_addition_is_its_newest_state() {
    check(
        |fifo| {
            fifo.add(thing("foo", 10)).unwrap();
            replace(fifo, &[("foo", 15)], &nothing());
        },
        &["Added foo10, Replaced foo15"],
        &["Added foo10", "Replaced foo15"],
    );
}

/// client-go: `TestDeltaFIFO_DeleteExistingNonPropagated`
/// client-go: `TestRealFIFO_DeleteExistingNonPropagated`
#[test]
fn a_deletion_of_what_is_queued_but_not_cached_yet_is_queued_behind_it() {
    check(
        |fifo| {
            fifo.add(thing("foo", 5)).unwrap();
            fifo.delete(thing("foo", 6), &nothing()).unwrap();
        },
        &["Added foo5, Deleted foo6"],
        &["Added foo5", "Deleted foo6"],
    );
}

/// client-go: `TestDeltaFIFO_KeyOf`
/// client-go: `TestRealFIFO_KeyOf`
#[test]
fn a_change_has_the_key_of_its_object_a_tombstone_too() {
    for change in [Change::Added, Change::Deleted, Change::Vanished, Change::Resync] {
        let delta = Delta::new(change, thing("foo", 1));
        assert_eq!(delta.object.key(), ObjectKey::cluster_scoped("foo"), "{change:?}");
    }
    for discipline in [Discipline::PerObject, Discipline::InOrder] {
        let mut fifo = DeltaFifo::new(discipline, None);
        replace(&mut fifo, &[], &known(&[("foo", 1)]));
        let popped = fifo.pop(|popped, _| match popped {
            Popped::Deltas(deltas) => deltas.iter().map(|delta| delta.object.key()).collect(),
            _ => vec![],
        });
        assert_eq!(popped.unwrap(), [ObjectKey::cluster_scoped("foo")], "{discipline:?}");
    }
}

/// client-go: `TestDeltaFIFO_HasSynced`
/// client-go: `TestRealFIFO_HasSynced`
#[test]
fn a_queue_has_synced_when_its_first_list_is_through() {
    for (discipline, pops_of_a_double) in [(Discipline::PerObject, 1), (Discipline::InOrder, 2)] {
        let fifo = || DeltaFifo::<Thing>::new(discipline, None);
        assert!(!fifo().has_synced(), "nothing happened");
        let mut changed = fifo();
        changed.add(thing("foo", 1)).unwrap();
        assert!(changed.has_synced(), "a change before any list");
        let mut empty = fifo();
        replace(&mut empty, &[], &nothing());
        assert!(empty.has_synced(), "an empty list");

        let mut two = fifo();
        replace(&mut two, &[("foo", 1), ("bar", 2)], &nothing());
        for _ in 0..2 {
            assert!(!two.has_synced());
            assert!(pop(&mut two).is_some());
        }
        assert!(two.has_synced());

        let mut double = fifo();
        replace(&mut double, &[("foo", 1), ("foo", 2)], &nothing());
        for _ in 0..pops_of_a_double {
            assert!(!double.has_synced());
            assert!(pop(&mut double).is_some());
        }
        assert!(double.has_synced(), "{discipline:?}");
    }
}
