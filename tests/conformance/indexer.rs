//! The cache: client-go's Indexer and `ThreadSafeStore` (IX, ST, TS), and what a delta does to it (CT).

use std::collections::BTreeSet;
use std::sync::Arc;

use kubeflect::ObjectKey;
use kubeflect::cache::{Change, Delta, IndexFn, Indexer, StoreWriter, Transition};

use crate::support::{Thing, thing, things};

/// `Thing::uid` holds what is indexed, separated by commas.
fn filed(name: &str, values: &str, version: u32) -> Arc<Thing> {
    Arc::new(Thing { uid: Some(values.to_owned()), ..(*thing(name, version)).clone() })
}

fn by_uid() -> IndexFn<Thing> {
    Arc::new(|thing| {
        thing.uid.iter().flat_map(|values| values.split(',')).map(str::to_owned).collect()
    })
}

fn indexed() -> Indexer<Thing> {
    let mut indexer = Indexer::default();
    indexer.add_index("uid", by_uid()).unwrap();
    indexer
}

fn put(indexer: &mut Indexer<Thing>, object: Arc<Thing>) {
    indexer.apply(Delta::new(Change::Replaced, object));
}

fn keys(indexer: &Indexer<Thing>, value: &str) -> Vec<String> {
    indexer.index_keys("uid", value).unwrap().iter().map(ToString::to_string).collect()
}

fn written(transition: &Transition<Thing>) -> String {
    let version = |thing: &Thing| format!("{}{}", thing.name, thing.version);
    match transition {
        Transition::Added(new) => format!("added {}", version(new)),
        Transition::Updated { old, new } => format!("updated {} {}", version(old), version(new)),
        Transition::Recreated { old, new } => {
            format!("recreated {} {}", version(old), version(new))
        }
        Transition::Deleted(last) => format!("deleted {}", version(last)),
        Transition::Resynced(object) => format!("resynced {}", version(object)),
        Transition::Unchanged => "unchanged".to_owned(),
    }
}

fn apply(indexer: &mut Indexer<Thing>, change: Change, object: Arc<Thing>) -> String {
    written(&indexer.apply(Delta::new(change, object)))
}

#[test]
fn an_unknown_index_is_an_error_and_an_unknown_value_is_not_ix_1() {
    let indexer = indexed();
    assert!(indexer.by_index("nope", "x").is_err());
    assert!(indexer.index_keys("nope", "x").is_err());
    assert!(indexer.sharing_index("nope", &thing("a", 1)).is_err());
    assert!(indexer.by_index("uid", "x").unwrap().is_empty());
    assert!(indexer.index_values("nope").is_empty());
}

#[test]
fn an_index_function_that_panics_files_nowhere_ix_2() {
    let mut indexer = indexed();
    indexer.add_index("broken", Arc::new(|_| panic!("an index function may even panic"))).unwrap();
    put(&mut indexer, filed("a", "x", 1));
    assert!(indexer.index_values("broken").is_empty());
    assert_eq!(keys(&indexer, "x"), ["a"], "the others are right");
}

/// client-go: `TestThreadSafeStoreIndexingFunctionsWithMultipleValues`
#[test]
fn an_index_follows_every_change_ix_3_ix_4() {
    let mut indexer = indexed();
    let mut version = 0;
    let mut expect = |change: Option<(&str, &str)>,
                      gone: Option<&str>,
                      foo: &[&str],
                      bar: &[&str],
                      baz: &[&str]| {
        version += 1;
        if let Some((name, values)) = change {
            indexer.apply(Delta::new(Change::Updated, filed(name, values, version)));
        }
        if let Some(name) = gone {
            indexer.apply(Delta::new(Change::Vanished, thing(name, version)));
        }
        assert_eq!(
            (keys(&indexer, "foo"), keys(&indexer, "bar"), keys(&indexer, "baz")),
            (
                foo.iter().map(ToString::to_string).collect(),
                bar.iter().map(ToString::to_string).collect(),
                baz.iter().map(ToString::to_string).collect(),
            )
        );
    };
    expect(Some(("k1", "foo")), None, &["k1"], &[], &[]);
    expect(Some(("k2", "bar")), None, &["k1"], &["k2"], &[]);
    expect(Some(("k2", "foo,bar")), None, &["k1", "k2"], &["k2"], &[]);
    expect(Some(("k1", "foo,bar")), None, &["k1", "k2"], &["k1", "k2"], &[]);
    expect(Some(("k3", "foo,bar,baz")), None, &["k1", "k2", "k3"], &["k1", "k2", "k3"], &["k3"]);
    expect(Some(("k1", "foo")), None, &["k1", "k2", "k3"], &["k2", "k3"], &["k3"]);
    expect(Some(("k2", "bar")), None, &["k1", "k3"], &["k2", "k3"], &["k3"]);
    expect(None, Some("k1"), &["k3"], &["k2", "k3"], &["k3"]);
    expect(None, Some("k3"), &[], &["k2"], &[]);
}

/// client-go: `TestThreadSafeStoreDeleteRemovesEmptySetsFromIndex`
/// client-go: `TestThreadSafeStoreAddKeepsNonEmptySetPostDeleteFromIndex`
#[test]
fn a_value_without_objects_is_forgotten_ix_3() {
    let mut indexer = indexed();
    put(&mut indexer, filed("a", "x", 1));
    put(&mut indexer, filed("b", "x,y", 2));
    indexer.apply(Delta::new(Change::Vanished, thing("b", 2)));
    assert_eq!(indexer.index_values("uid"), ["x".into()]);
    indexer.apply(Delta::new(Change::Vanished, thing("a", 1)));
    assert!(indexer.index_values("uid").is_empty());
}

/// client-go: `TestMultiIndexKeys`
/// client-go: `TestGetIndexFuncValues`
/// client-go: `TestIndex`
#[test]
fn an_object_is_found_under_each_of_its_values() {
    let mut indexer = indexed();
    put(&mut indexer, filed("one", "ernie,bert", 1));
    put(&mut indexer, filed("two", "bert,oscar", 2));
    put(&mut indexer, filed("tre", "ernie,elmo", 3));
    assert_eq!(keys(&indexer, "ernie"), ["one", "tre"]);
    assert_eq!(keys(&indexer, "bert"), ["one", "two"]);
    assert_eq!(
        (keys(&indexer, "elmo"), keys(&indexer, "oscar")),
        (vec!["tre".to_owned()], vec!["two".to_owned()])
    );
    assert_eq!(keys(&indexer, "unknown"), [""; 0]);
    let values: Vec<String> = indexer.index_values("uid").iter().map(ToString::to_string).collect();
    assert_eq!(values, ["bert", "elmo", "ernie", "oscar"]);
    let sharing = indexer.sharing_index("uid", &filed("other", "elmo,oscar", 9)).unwrap();
    assert_eq!(sharing.iter().map(|thing| thing.name.as_str()).collect::<Vec<_>>(), ["tre", "two"]);

    indexer.apply(Delta::new(Change::Vanished, thing("tre", 3)));
    assert_eq!((keys(&indexer, "ernie"), keys(&indexer, "elmo")), (vec!["one".to_owned()], vec![]));
    put(&mut indexer, filed("two", "oscar", 4));
    assert_eq!(keys(&indexer, "bert"), ["one"]);
}

#[test]
fn an_index_added_later_is_complete_at_once_ix_5() {
    let mut indexer = Indexer::default();
    put(&mut indexer, filed("a", "x", 1));
    indexer.add_index("uid", by_uid()).unwrap();
    assert_eq!(keys(&indexer, "x"), ["a"]);
    put(&mut indexer, filed("b", "x", 2));
    assert_eq!(keys(&indexer, "x"), ["a", "b"]);
    let conflict = indexer.add_index("uid", by_uid()).unwrap_err();
    assert_eq!(conflict.to_string(), "there is an index \"uid\" already: choose another name");
}

#[test]
fn a_whole_list_replaces_objects_and_indices_st_4() {
    let mut indexer = indexed();
    put(&mut indexer, filed("a", "x", 1));
    put(&mut indexer, filed("b", "y", 1));
    let transitions =
        indexer.replace_all(vec![filed("b", "z", 2), filed("c", "z", 3)], &BTreeSet::new(), None);
    let transitions: Vec<String> = transitions.iter().map(written).collect();
    assert_eq!(transitions, ["deleted a1", "recreated b1 b2", "added c3"], "deletions come first");
    assert_eq!((keys(&indexer, "x").len(), keys(&indexer, "y").len()), (0, 0));
    assert_eq!(keys(&indexer, "z"), ["b", "c"]);
}

#[test]
fn an_object_listed_twice_is_cached_as_listed_last_st_4() {
    let mut indexer = Indexer::default();
    indexer.replace_all(things(&[("a", 1), ("a", 2)]), &BTreeSet::new(), None);
    assert_eq!(indexer.get(&ObjectKey::cluster_scoped("a")).unwrap().version, "2");
}

/// Differs: versions only go up; client-go takes the last one, whichever it is.
///
/// client-go: `TestThreadSafeStoreRV`
#[test]
fn the_version_of_the_cache_is_that_of_the_last_event_ts_2() {
    let mut indexer = Indexer::default();
    let version =
        |indexer: &Indexer<Thing>| indexer.resource_version().map(|version| version.to_string());
    assert_eq!(version(&indexer), None);
    apply(&mut indexer, Change::Added, thing("a", 10));
    assert_eq!(version(&indexer).unwrap(), "10");
    apply(&mut indexer, Change::Updated, thing("a", 20));
    assert_eq!(version(&indexer).unwrap(), "20");
    apply(&mut indexer, Change::Deleted, thing("a", 30));
    assert_eq!(version(&indexer).unwrap(), "30", "a deletion has a version of its own");
    apply(&mut indexer, Change::Replaced, thing("b", 5));
    assert_eq!(version(&indexer).unwrap(), "30", "the items of a list say nothing about it");
    apply(&mut indexer, Change::Added, thing("b", 40));
    apply(&mut indexer, Change::Added, thing("b", 40));
    apply(&mut indexer, Change::Vanished, thing("b", 40));
    assert_eq!(version(&indexer).unwrap(), "40", "nor does an object found missing");
    indexer.replace_all(vec![], &BTreeSet::new(), kubeflect::ResourceVersion::new("50"));
    assert_eq!(version(&indexer).unwrap(), "50");
}

#[test]
fn what_is_cached_decides_not_what_the_event_is_called_ct_7() {
    let mut indexer = Indexer::default();
    assert_eq!(apply(&mut indexer, Change::Updated, thing("a", 1)), "added a1");
    assert_eq!(apply(&mut indexer, Change::Added, thing("a", 2)), "updated a1 a2");
    assert_eq!(apply(&mut indexer, Change::Resync, thing("a", 2)), "resynced a2");
    assert_eq!(apply(&mut indexer, Change::Deleted, thing("a", 3)), "deleted a3");
    assert_eq!(
        apply(&mut indexer, Change::Deleted, thing("a", 3)),
        "unchanged",
        "differs: client-go tells twice"
    );
}

#[test]
fn an_equal_version_changes_nothing() {
    let mut indexer = Indexer::default();
    apply(&mut indexer, Change::Added, thing("a", 1));
    assert_eq!(apply(&mut indexer, Change::Replaced, thing("a", 1)), "unchanged");
}

#[test]
fn an_event_from_the_past_changes_nothing() {
    let mut indexer = Indexer::default();
    apply(&mut indexer, Change::Added, thing("a", 10));
    assert_eq!(apply(&mut indexer, Change::Updated, thing("a", 9)), "unchanged");
    assert_eq!(apply(&mut indexer, Change::Deleted, thing("a", 9)), "unchanged");
    assert_eq!(indexer.resource_version().unwrap().as_str(), "10");
}

#[test]
fn another_object_of_the_same_name_is_another_object() {
    let mut indexer = Indexer::default();
    apply(&mut indexer, Change::Added, filed("a", "first", 1));
    assert_eq!(apply(&mut indexer, Change::Updated, filed("a", "second", 2)), "recreated a1 a2");
}

#[test]
fn a_snapshot_never_changes_and_knows_how_another_differs() {
    let mut indexer = indexed();
    for name in ["a", "b", "c"] {
        put(&mut indexer, filed(name, name, 1));
    }
    let before = indexer.snapshot();
    put(&mut indexer, filed("b", "b", 2));
    indexer.apply(Delta::new(Change::Vanished, thing("c", 1)));
    put(&mut indexer, filed("d", "d", 1));
    let after = indexer.snapshot();

    assert_eq!((before.len(), before.by_index("uid", "c").unwrap().len()), (3, 1));
    let differences: Vec<String> = before
        .differences(&after)
        .into_iter()
        .map(|difference| {
            let version = |thing: Option<Arc<Thing>>| {
                thing.map_or("-".to_owned(), |thing| thing.version.clone())
            };
            format!("{} {} {}", difference.key, version(difference.old), version(difference.new))
        })
        .collect();
    assert_eq!(differences, ["b 1 2", "c 1 -", "d - 1"]);
    assert!(after.differences(&after).is_empty());
}

#[test]
fn readers_see_one_state_or_the_next() {
    let writer = StoreWriter::default();
    let store = writer.store().clone();
    let mut indexer = indexed();
    put(&mut indexer, filed("a", "x", 1));
    assert!(store.is_empty(), "nothing shows before it is published");
    writer.publish(indexer.snapshot());
    assert_eq!((store.len(), store.keys().len(), store.list().len()), (1, 1, 1));
    assert_eq!(store.get(&ObjectKey::cluster_scoped("a")).unwrap().version, "1");
    assert_eq!(store.by_index("uid", "x").unwrap().len(), 1);
    assert_eq!((store.list_namespace("").len(), store.list_namespace("default").len()), (1, 0));
}
