//! The per-object discipline: client-go's DeltaFIFO, rules DF-1 to DF-10 and the sequences of its own tests.

use std::collections::BTreeSet;

use kubeflect::cache::{DeltaFifo, Discipline, Position, Transform, TransformError};

use crate::support::{Thing, drain, known, pop, replace, thing, things};

fn fifo() -> DeltaFifo<Thing> {
    DeltaFifo::new(Discipline::PerObject, None)
}

/// client-go: `TestDeltaFIFO_detectLineJumpers`
#[test]
fn an_object_waits_once_with_all_its_changes_at_its_first_place() {
    let mut fifo = fifo();
    fifo.add(thing("foo", 10)).unwrap();
    fifo.add(thing("bar", 1)).unwrap();
    fifo.update(thing("foo", 11)).unwrap();
    fifo.update(thing("foo", 13)).unwrap();
    fifo.add(thing("zab", 30)).unwrap();
    assert_eq!(pop(&mut fifo).unwrap().0, "Added foo10, Updated foo11, Updated foo13");
    fifo.update(thing("foo", 14)).unwrap();
    assert_eq!(drain(&mut fifo), ["Added bar1", "Added zab30", "Updated foo14"], "line jumpers");
}

#[test]
fn two_deletions_in_a_row_are_one_df_1() {
    let mut fifo = fifo();
    let cache = known(&[("foo", 5)]);
    fifo.delete(thing("foo", 10), &cache).unwrap();
    fifo.delete(thing("foo", 11), &cache).unwrap();
    assert_eq!(drain(&mut fifo), ["Deleted foo10"], "the older one is kept");
}

#[test]
fn a_seen_deletion_replaces_a_tombstone_df_1() {
    let mut fifo = fifo();
    let cache = known(&[("foo", 5)]);
    replace(&mut fifo, &[], &cache);
    fifo.delete(thing("foo", 10), &cache).unwrap();
    assert_eq!(drain(&mut fifo), ["Deleted foo10"]);
}

#[test]
fn a_tombstone_does_not_replace_a_seen_deletion_df_1() {
    let mut fifo = fifo();
    let cache = known(&[("foo", 5)]);
    fifo.delete(thing("foo", 10), &cache).unwrap();
    replace(&mut fifo, &[], &cache);
    assert_eq!(drain(&mut fifo), ["Deleted foo10"]);
}

#[test]
fn nothing_else_is_merged_while_an_object_waits_df_2() {
    let mut fifo = fifo();
    for version in 1..=4 {
        fifo.update(thing("foo", version)).unwrap();
    }
    assert_eq!(drain(&mut fifo), ["Updated foo1, Updated foo2, Updated foo3, Updated foo4"]);
}

/// client-go: `TestDeltaFIFO_transformer`
#[test]
fn every_object_but_tombstones_and_resyncs_is_transformed_once_df_3() {
    let add_thousand = Transform::new(|mut thing: Thing| {
        thing.version = format!("1{:0>3}", thing.version);
        Ok(thing)
    });
    let mut fifo = DeltaFifo::new(Discipline::PerObject, Some(add_thousand));
    let cache = known(&[("bar", 1006), ("baz", 1007), ("qux", 1008)]);
    fifo.add(thing("foo", 10)).unwrap();
    fifo.update(thing("foo", 12)).unwrap();
    fifo.delete(thing("foo", 15), &cache).unwrap();
    assert!(
        fifo.replace(things(&[("baz", 7), ("qux", 9)]), BTreeSet::new(), None, &cache).is_empty()
    );
    fifo.resync(&cache);
    assert_eq!(
        drain(&mut fifo),
        [
            "Added foo1010, Updated foo1012, Deleted foo1015",
            "Replaced baz1007",
            "Replaced qux1009",
            "Deleted T(bar1006)",
        ]
    );
}

#[test]
fn an_object_the_transform_refuses_is_not_queued_df_3() {
    let odd_only = Transform::new(|thing: Thing| match thing.version.as_str() {
        "666" => panic!("a transform may even panic"),
        version if version.ends_with(['1', '3', '5', '7', '9']) => Ok(thing),
        _ => Err(TransformError("even".to_owned())),
    });
    let mut fifo = DeltaFifo::new(Discipline::PerObject, Some(odd_only));
    let cache = known(&[("foo", 5), ("bar", 7)]);
    assert_eq!(fifo.add(thing("foo", 10)).unwrap_err().error.to_string(), "even");
    assert_eq!(
        fifo.add(thing("foo", 666)).unwrap_err().error.to_string(),
        "the transform panicked"
    );
    let refused = fifo.replace(things(&[("foo", 12), ("qux", 13)]), BTreeSet::new(), None, &cache);
    assert_eq!(refused.len(), 1);
    assert_eq!(drain(&mut fifo), ["Replaced qux13", "Deleted T(bar7)"], "the cached foo5 stays");
}

/// client-go: `TestDeltaFIFO_HasSynced`
#[test]
fn each_pop_counts_towards_the_first_list_whichever_object_it_was_df_4() {
    let mut fifo = fifo();
    replace(&mut fifo, &[("foo", 1), ("bar", 2)], &known(&[]));
    assert!(!fifo.has_synced());
    assert_eq!(pop(&mut fifo).unwrap().0, "Replaced foo1");
    fifo.add(thing("baz", 3)).unwrap();
    assert!(!fifo.has_synced());
    pop(&mut fifo);
    assert!(fifo.has_synced());
}

#[test]
fn what_is_popped_before_the_first_list_is_through_is_marked_df_5() {
    let mut fifo = fifo();
    replace(&mut fifo, &[("foo", 1), ("bar", 2)], &known(&[]));
    fifo.add(thing("baz", 3)).unwrap();
    let positions: Vec<Position> =
        std::iter::from_fn(|| pop(&mut fifo)).map(|(_, position)| position).collect();
    assert_eq!(positions, [Position::InitialList, Position::InitialList, Position::Later]);
}

/// client-go: `TestDeltaFIFO_HasSynced`
#[test]
fn synced_as_in_client_gos_table_df_6() {
    let empty = known(&[]);
    let mut nothing = fifo();
    assert!(!nothing.has_synced(), "nothing happened");
    replace(&mut nothing, &[], &empty);
    assert!(nothing.has_synced(), "an empty list is through at once");

    let mut change_first = fifo();
    change_first.add(thing("foo", 1)).unwrap();
    assert!(change_first.has_synced(), "a change before any list");
    replace(&mut change_first, &[("foo", 2)], &empty);
    assert!(change_first.has_synced(), "never turns false again");

    let mut unknown_deletion = fifo();
    unknown_deletion.delete(thing("foo", 1), &empty).unwrap();
    assert!(unknown_deletion.has_synced() && unknown_deletion.is_empty());

    let mut twice = fifo();
    replace(&mut twice, &[("foo", 1), ("foo", 2)], &empty);
    pop(&mut twice);
    assert!(twice.has_synced(), "the same object twice is one pop");
}

/// client-go: `TestDeltaFIFO_HasSyncedCorrectOnDeletion`
#[test]
fn deletions_found_by_the_first_list_count_to_it() {
    let mut fifo = fifo();
    replace(&mut fifo, &[("foo", 5)], &known(&[("foo", 5), ("bar", 6), ("baz", 7)]));
    for _ in 0..3 {
        assert!(!fifo.has_synced());
        assert_eq!(pop(&mut fifo).unwrap().1, Position::InitialList);
    }
    assert!(fifo.has_synced());
}

/// Always as client-go with its `Replaced` option: a list is never called a resync.
///
/// client-go: `TestDeltaFIFO_replaceWithDeleteDeltaIn`
#[test]
fn a_list_with_an_object_whose_deletion_waits_brings_it_back_df_7() {
    let mut fifo = fifo();
    let cache = known(&[("foo", 5)]);
    fifo.delete(thing("foo", 10), &cache).unwrap();
    replace(&mut fifo, &[("foo", 11)], &cache);
    assert_eq!(drain(&mut fifo), ["Deleted foo10, Replaced foo11"]);
}

/// client-go: `TestDeltaFIFOW_ReplaceMakesDeletionsForObjectsOnlyInQueue`
#[test]
fn a_list_deletes_what_is_only_in_the_queue_df_8() {
    for cache in [known(&[]), known(&[("foo", 1)])] {
        let mut once = fifo();
        once.add(thing("foo", 10)).unwrap();
        replace(&mut once, &[], &cache);
        replace(&mut once, &[], &cache);
        assert_eq!(drain(&mut once), ["Added foo10, Deleted T(foo10)"], "once");

        let mut listed = fifo();
        listed.add(thing("foo", 10)).unwrap();
        replace(&mut listed, &[("foo", 10)], &cache);
        replace(&mut listed, &[], &cache);
        assert_eq!(drain(&mut listed), ["Added foo10, Replaced foo10, Deleted T(foo10)"]);

        let mut twice = fifo();
        twice.add(thing("foo", 10)).unwrap();
        replace(&mut twice, &[("foo", 10)], &cache);
        replace(&mut twice, &[("foo", 11)], &cache);
        replace(&mut twice, &[], &cache);
        assert_eq!(
            drain(&mut twice),
            ["Added foo10, Replaced foo10, Replaced foo11, Deleted T(foo11)"]
        );

        let mut deleted = fifo();
        deleted.add(thing("foo", 10)).unwrap();
        deleted.delete(thing("foo", 11), &cache).unwrap();
        replace(&mut deleted, &[], &cache);
        assert_eq!(drain(&mut deleted), ["Added foo10, Deleted foo11"]);

        let mut again = fifo();
        again.add(thing("foo", 10)).unwrap();
        again.delete(thing("foo", 11), &cache).unwrap();
        again.add(thing("foo", 12)).unwrap();
        replace(&mut again, &[], &cache);
        assert_eq!(
            drain(&mut again),
            ["Added foo10, Deleted foo11, Added foo12, Deleted T(foo12)"]
        );
    }
}

#[test]
fn a_deletion_of_what_nobody_knows_is_ignored() {
    let mut fifo = fifo();
    let cache = known(&[("bar", 15)]);
    fifo.delete(thing("foo", 10), &cache).unwrap();
    fifo.delete(thing("bar", 20), &cache).unwrap();
    assert_eq!(drain(&mut fifo), ["Deleted bar20"]);
}

/// client-go: `TestDeltaFIFO_Resync`
/// client-go: `TestDeltaFIFO_ResyncNonExisting`
/// client-go: `TestDeltaFIFO_UpdateResyncRace`
#[test]
fn a_resync_leaves_waiting_objects_alone() {
    let mut fifo = fifo();
    let cache = known(&[("bar", 6), ("foo", 5), ("gone", 7)]);
    fifo.update(thing("foo", 10)).unwrap();
    fifo.delete(thing("gone", 11), &cache).unwrap();
    fifo.resync(&cache);
    assert_eq!(drain(&mut fifo), ["Updated foo10", "Deleted gone11", "Resync bar6"]);
}

/// No pop waits, so none has to be woken.
///
/// client-go: `TestDeltaFIFO_PopShouldUnblockWhenClosed`
#[test]
fn a_closed_queue_gives_what_waits_and_takes_what_comes() {
    let mut fifo = fifo();
    fifo.add(thing("foo", 1)).unwrap();
    fifo.close();
    assert!(fifo.is_closed());
    fifo.add(thing("bar", 2)).unwrap();
    assert_eq!(drain(&mut fifo), ["Added foo1", "Added bar2"]);
    assert_eq!(pop(&mut fifo), None);
}

#[test]
fn an_object_that_can_not_be_read_is_not_gone() {
    let mut fifo = fifo();
    let cache = known(&[("foo", 5), ("bar", 6)]);
    let unreadable = BTreeSet::from([kubeflect::ObjectKey::cluster_scoped("foo")]);
    assert!(fifo.replace(vec![], unreadable, None, &cache).is_empty());
    assert_eq!(drain(&mut fifo), ["Deleted T(bar6)"]);
}

/// One pop per object, with all that waits for it.
///
/// client-go: `TestDeltaFIFO_ReplaceMakesDeletions`
/// client-go: `TestDeltaFIFO_ReplaceMakesDeletionsReplaced`
/// client-go: `TestDeltaFIFO_ReplaceDeltaType`
#[test]
fn a_list_makes_deletions_as_in_client_gos_table() {
    let cache = known(&[("foo", 5), ("bar", 6), ("baz", 7)]);

    let mut one = fifo();
    one.delete(thing("baz", 10), &cache).unwrap();
    replace(&mut one, &[("foo", 5)], &cache);
    assert_eq!(drain(&mut one), ["Deleted baz10", "Replaced foo5", "Deleted T(bar6)"]);

    let mut two = fifo();
    two.add(thing("baz", 10)).unwrap();
    replace(&mut two, &[("foo", 5)], &cache);
    assert_eq!(
        drain(&mut two),
        ["Added baz10, Deleted T(baz10)", "Replaced foo5", "Deleted T(bar6)"]
    );

    let mut three = fifo();
    three.delete(thing("bar", 6), &cache).unwrap();
    three.add(thing("bar", 100)).unwrap();
    replace(&mut three, &[("foo", 5)], &cache);
    assert_eq!(
        drain(&mut three),
        ["Deleted bar6, Added bar100, Deleted T(bar100)", "Replaced foo5", "Deleted T(baz7)"]
    );

    let mut four = fifo();
    replace(&mut four, &[("bar", 100), ("foo", 5)], &cache);
    replace(&mut four, &[("foo", 5)], &cache);
    assert_eq!(
        drain(&mut four),
        ["Replaced bar100, Deleted T(bar100)", "Replaced foo5, Replaced foo5", "Deleted T(baz7)"]
    );

    let mut five = fifo();
    five.add(thing("baz", 10)).unwrap();
    replace(&mut five, &[("foo", 5)], &known(&[]));
    assert_eq!(drain(&mut five), ["Added baz10, Deleted T(baz10)", "Replaced foo5"]);
}
