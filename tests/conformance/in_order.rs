//! The in-order disciplines: client-go's RealFIFO, rules RF-1 to RF-12 and the sequences of its own tests.

use std::collections::BTreeSet;

use kubeflect::ResourceVersion;
use kubeflect::cache::{DeltaFifo, Discipline, Indexer, Position, Transform};

use crate::support::{Thing, drain, drain_batches, known, pop, replace, thing, things};

fn fifo() -> DeltaFifo<Thing> {
    DeltaFifo::new(Discipline::InOrder, None)
}

fn atomic() -> DeltaFifo<Thing> {
    DeltaFifo::new(Discipline::InOrderAtomic, None)
}

fn version(text: &str) -> Option<ResourceVersion> {
    ResourceVersion::new(text)
}

/// client-go: `TestRealFIFO_detectLineJumpers`
#[test]
fn changes_leave_one_by_one_in_the_order_they_came() {
    let mut fifo = fifo();
    for (name, number) in [("foo", 10), ("bar", 1), ("foo", 11), ("foo", 13), ("zab", 30)] {
        fifo.add(thing(name, number)).unwrap();
    }
    fifo.add(thing("foo", 14)).unwrap();
    let expected =
        ["Added foo10", "Added bar1", "Added foo11", "Added foo13", "Added zab30", "Added foo14"];
    assert_eq!(drain(&mut fifo), expected);
}

/// client-go: `TestRealFIFO_replaceWithDeleteDeltaIn`
#[test]
fn a_list_with_an_object_whose_deletion_waits_brings_it_back() {
    let mut fifo = fifo();
    let cache = known(&[("foo", 5)]);
    fifo.delete(thing("foo", 10), &cache).unwrap();
    replace(&mut fifo, &[("foo", 11)], &cache);
    assert_eq!(drain(&mut fifo), ["Deleted foo10", "Replaced foo11"]);
}

/// client-go: `TestRealFIFOW_ReplaceMakesDeletionsForObjectsOnlyInQueue`
#[test]
fn a_list_deletes_what_is_only_in_the_queue() {
    let add = |fifo: &mut DeltaFifo<Thing>, version| fifo.add(thing("foo", version)).unwrap();
    for cache in [known(&[]), known(&[("foo", 1)])] {
        let mut once = fifo();
        add(&mut once, 10);
        replace(&mut once, &[], &cache);
        replace(&mut once, &[], &cache);
        assert_eq!(drain(&mut once), ["Added foo10", "Deleted T(foo10)"]);

        let mut listed = fifo();
        add(&mut listed, 10);
        replace(&mut listed, &[("foo", 10)], &cache);
        replace(&mut listed, &[("foo", 11)], &cache);
        replace(&mut listed, &[], &cache);
        let expected = ["Added foo10", "Replaced foo10", "Replaced foo11", "Deleted T(foo11)"];
        assert_eq!(drain(&mut listed), expected);

        let mut deleted = fifo();
        add(&mut deleted, 10);
        deleted.delete(thing("foo", 11), &cache).unwrap();
        replace(&mut deleted, &[], &cache);
        assert_eq!(drain(&mut deleted), ["Added foo10", "Deleted foo11"]);

        let mut again = fifo();
        add(&mut again, 10);
        again.delete(thing("foo", 11), &cache).unwrap();
        add(&mut again, 12);
        replace(&mut again, &[], &cache);
        let expected = ["Added foo10", "Deleted foo11", "Added foo12", "Deleted T(foo12)"];
        assert_eq!(drain(&mut again), expected);
    }
}

/// client-go: `TestRealFIFO_HasSyncedCorrectOnDeletion`
#[test]
fn deletions_found_by_the_first_list_come_first_and_count_to_it() {
    let mut fifo = fifo();
    replace(&mut fifo, &[("foo", 5)], &known(&[("foo", 5), ("bar", 6), ("baz", 7)]));
    for expected in ["Deleted T(bar6)", "Deleted T(baz7)", "Replaced foo5"] {
        assert!(!fifo.has_synced());
        assert_eq!(pop(&mut fifo).unwrap(), (expected.to_owned(), Position::InitialList));
    }
    assert!(fifo.has_synced());
}

#[test]
fn a_deletion_of_what_nobody_knows_is_passed_on() {
    for mut fifo in [fifo(), atomic()] {
        fifo.delete(thing("foo", 10), &known(&[])).unwrap();
        assert_eq!(drain(&mut fifo), ["Deleted foo10"]);
    }
}

/// client-go: `TestRealFIFO_PopMultipleDeltaInBatch`
#[test]
fn the_first_list_is_never_mixed_with_what_comes_after_rf_1_rf_2() {
    let mut fifo = fifo();
    replace(&mut fifo, &[("a", 1), ("b", 2)], &known(&[]));
    fifo.update(thing("c", 3)).unwrap();
    let mut batches = Vec::new();
    while let Some(position) = fifo.pop_batch(1000, |_, position| position) {
        batches.push(position);
    }
    assert_eq!(batches, [Position::InitialList, Position::Later]);
}

/// RF-3, which names two callbacks, is one here.
///
/// client-go: `TestRealFIFO_PopMultipleDeltaInBatch`
#[test]
fn batches_are_cut_as_in_client_gos_table_rf_2_rf_4() {
    const ALL: usize = usize::MAX;
    for (initial, updates, most, expected) in [
        (&[1, 2, 3][..], &[][..], ALL, &["R1 R2 R3"][..]),
        (&[1, 2], &[3, 4], 2, &["R1 R2", "U3 U4"]),
        (&[1], &[1, 1], ALL, &["R1", "U1", "U1"]),
        (&[1, 2], &[2, 3], ALL, &["R1 R2", "U2 U3"]),
        (&[1, 2, 3], &[2], ALL, &["R1 R2 R3", "U2"]),
        (&[1, 2, 3], &[], 2, &["R1 R2", "R3"]),
        (&[], &[1, 2, 3], 2, &["U1 U2", "U3"]),
        (&[1, 2, 3], &[4], 2, &["R1 R2", "R3", "U4"]),
    ] {
        let mut fifo = fifo();
        let name = |number: &u32| number.to_string();
        if !initial.is_empty() {
            let listed = initial.iter().map(|number| thing(&name(number), 0)).collect();
            assert!(
                fifo.replace(listed, BTreeSet::new(), None, &Indexer::<Thing>::default())
                    .is_empty()
            );
        }
        for number in updates {
            fifo.update(thing(&name(number), 0)).unwrap();
        }
        let batches: Vec<String> = drain_batches(&mut fifo, most)
            .iter()
            .map(|batch| {
                let short = |delta: &str| delta.replace("Replaced ", "R").replace("Updated ", "U");
                let deltas: Vec<String> = batch.split(", ").map(short).collect();
                deltas.iter().map(|delta| delta[..2].to_owned()).collect::<Vec<_>>().join(" ")
            })
            .collect();
        assert_eq!(batches, expected, "{initial:?} then {updates:?}, {most} at most");
    }
}

#[test]
fn a_change_of_the_whole_cache_leaves_alone_rf_2() {
    let mut fifo = atomic();
    fifo.add(thing("a", 1)).unwrap();
    fifo.add(thing("b", 2)).unwrap();
    fifo.bookmark(version("7").unwrap());
    fifo.resync(&known(&[]));
    fifo.add(thing("c", 3)).unwrap();
    assert_eq!(
        drain_batches(&mut fifo, 1000),
        ["Added a1, Added b2", "Bookmark 7", "ResyncAll", "Added c3"]
    );
}

/// client-go: `TestRealFIFO_HasSynced`
#[test]
fn the_first_list_counts_as_through_when_it_has_been_processed_rf_5() {
    let mut fifo = fifo();
    replace(&mut fifo, &[("a", 1)], &known(&[]));
    assert!(!fifo.has_synced());
    pop(&mut fifo);
    assert!(fifo.has_synced());
}

/// client-go: `TestRealFIFO_HasSynced`
#[test]
fn an_empty_first_list_is_through_at_once_unless_lists_are_atomic_rf_6() {
    let mut one_by_one = fifo();
    replace(&mut one_by_one, &[], &known(&[]));
    assert!(one_by_one.has_synced());

    let mut atomic = atomic();
    replace(&mut atomic, &[], &known(&[]));
    assert!(!atomic.has_synced());
    pop(&mut atomic);
    assert!(atomic.has_synced());
}

#[test]
fn what_waits_before_the_first_list_counts_to_it() {
    let mut fifo = atomic();
    fifo.bookmark(version("5").unwrap());
    assert!(!fifo.has_synced(), "a bookmark is no change");
    replace(&mut fifo, &[("a", 1)], &known(&[]));
    pop(&mut fifo);
    assert!(!fifo.has_synced());
    pop(&mut fifo);
    assert!(fifo.has_synced());
}

/// client-go: `TestRealFIFO_HasSynced`
#[test]
fn the_same_object_twice_in_a_first_list_needs_two_pops_rf_12() {
    let mut fifo = fifo();
    replace(&mut fifo, &[("foo", 1), ("foo", 2)], &known(&[]));
    pop(&mut fifo);
    assert!(!fifo.has_synced());
    pop(&mut fifo);
    assert!(fifo.has_synced());
}

/// client-go: `TestRealFIFO_ReplaceAtomic`
/// client-go: `TestRealFIFO_ReplaceAtomicPop`
#[test]
fn an_atomic_list_keeps_its_place_and_its_version() {
    let mut fifo = atomic();
    let cache = known(&[("foo", 5)]);
    fifo.add(thing("foo", 10)).unwrap();
    fifo.bookmark(version("11").unwrap());
    assert!(
        fifo.replace(things(&[("bar", 12)]), BTreeSet::new(), version("123"), &cache).is_empty()
    );
    assert!(fifo.replace(vec![], BTreeSet::new(), version("124"), &cache).is_empty());
    assert_eq!(
        drain(&mut fifo),
        ["Added foo10", "Bookmark 11", "ReplacedAll@123 [bar12]", "ReplacedAll@124 []"]
    );
}

/// client-go: `TestRealFIFOW_ReplaceMakesDeletionsForObjectsOnlyInQueue`
#[test]
fn only_atomic_queues_keep_bookmarks() {
    let mut fifo = fifo();
    fifo.bookmark(version("7").unwrap());
    assert!(fifo.is_empty());
}

/// client-go: `TestRealFIFO_Resync`
/// client-go: `TestRealFIFO_ResyncNonExisting`
/// client-go: `TestRealFIFO_UpdateResyncRace`
/// client-go: `TestRealFIFO_ResyncAtomic`
#[test]
fn a_resync_leaves_waiting_objects_alone_unless_it_is_atomic() {
    let cache = known(&[("bar", 6), ("foo", 5)]);
    let mut one_by_one = fifo();
    one_by_one.update(thing("foo", 10)).unwrap();
    one_by_one.resync(&cache);
    assert_eq!(drain(&mut one_by_one), ["Updated foo10", "Resync bar6"]);

    let mut atomic = atomic();
    atomic.update(thing("foo", 10)).unwrap();
    atomic.resync(&cache);
    assert_eq!(drain(&mut atomic), ["Updated foo10", "ResyncAll"]);
}

/// client-go: `TestRealFIFO_transformer`
#[test]
fn every_object_but_tombstones_is_transformed_once() {
    let add_thousand = Transform::new(|mut thing: Thing| {
        thing.version = format!("1{:0>3}", thing.version);
        Ok(thing)
    });
    let mut fifo = DeltaFifo::new(Discipline::InOrder, Some(add_thousand));
    let cache = known(&[("gone", 1006)]);
    fifo.add(thing("foo", 10)).unwrap();
    fifo.update(thing("foo", 12)).unwrap();
    fifo.delete(thing("foo", 15), &cache).unwrap();
    fifo.add(thing("bar", 16)).unwrap();
    assert!(fifo.replace(things(&[("baz", 17)]), BTreeSet::new(), None, &cache).is_empty());
    let expected = [
        "Added foo1010",
        "Updated foo1012",
        "Deleted foo1015",
        "Added bar1016",
        "Deleted T(bar1016)",
        "Deleted T(gone1006)",
        "Replaced baz1017",
    ];
    assert_eq!(drain(&mut fifo), expected);
}

/// client-go: `TestRealFIFO_transformer`
#[test]
fn every_object_of_a_list_is_transformed_once() {
    let mark = Transform::new(|mut thing: Thing| {
        thing.version.push('0');
        Ok(thing)
    });
    for discipline in [Discipline::InOrder, Discipline::InOrderAtomic] {
        let mut fifo = DeltaFifo::new(discipline, Some(mark.clone()));
        fifo.add(thing("a", 1)).unwrap();
        assert!(fifo.replace(things(&[("a", 2)]), BTreeSet::new(), None, &known(&[])).is_empty());
        let popped = drain(&mut fifo);
        assert_eq!(popped[0], "Added a10");
        assert!(popped[1].contains("a20") && !popped[1].contains("a200"), "{popped:?}");
    }
}

/// No pop waits, so none has to be woken.
///
/// client-go: `TestRealFIFO_PopShouldUnblockWhenClosed`
#[test]
fn a_closed_queue_gives_what_waits() {
    let mut fifo = fifo();
    fifo.add(thing("foo", 1)).unwrap();
    fifo.close();
    assert!(fifo.is_closed());
    assert_eq!(drain(&mut fifo), ["Added foo1"]);
    assert_eq!(pop(&mut fifo), None);
}

/// One pop per change; deletions come first.
///
/// client-go: `TestRealFIFO_ReplaceMakesDeletions`
/// client-go: `TestRealFIFO_ReplaceMakesDeletionsReplaced`
#[test]
fn a_list_makes_deletions_as_in_client_gos_table() {
    let cache = known(&[("foo", 5), ("bar", 6), ("baz", 7)]);

    let mut one = fifo();
    one.delete(thing("baz", 10), &cache).unwrap();
    replace(&mut one, &[("foo", 5)], &cache);
    assert_eq!(drain(&mut one), ["Deleted baz10", "Deleted T(bar6)", "Replaced foo5"]);

    let mut two = fifo();
    two.add(thing("baz", 10)).unwrap();
    replace(&mut two, &[("foo", 5)], &cache);
    assert_eq!(
        drain(&mut two),
        ["Added baz10", "Deleted T(baz10)", "Deleted T(bar6)", "Replaced foo5"]
    );

    let mut three = fifo();
    three.delete(thing("bar", 6), &cache).unwrap();
    three.add(thing("bar", 100)).unwrap();
    replace(&mut three, &[("foo", 5)], &cache);
    assert_eq!(
        drain(&mut three),
        ["Deleted bar6", "Added bar100", "Deleted T(bar100)", "Deleted T(baz7)", "Replaced foo5"]
    );

    let mut four = fifo();
    replace(&mut four, &[("bar", 100), ("foo", 5)], &cache);
    replace(&mut four, &[("foo", 5)], &cache);
    assert_eq!(
        drain(&mut four),
        [
            "Deleted T(baz7)",
            "Replaced bar100",
            "Replaced foo5",
            "Deleted T(bar100)",
            "Replaced foo5"
        ]
    );

    let mut five = fifo();
    five.add(thing("baz", 10)).unwrap();
    replace(&mut five, &[("foo", 5)], &known(&[]));
    assert_eq!(drain(&mut five), ["Added baz10", "Deleted T(baz10)", "Replaced foo5"]);
}
