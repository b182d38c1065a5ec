//! `store_test.go`, `undelta_store_test.go`, `listers_test.go`: what readers of the cache get.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use actix::{Actor, Context, Handler};
use k8s_openapi::api::core::v1::Pod;
use kubeflect::cache::{
    Change, Delta, DeltaFifo, Discipline, Indexer, Popped, Store, StoreWriter, Transform,
};
use kubeflect::object::{LabelSelector, Resource as _};
use kubeflect::{ObjectKey, Options, ResourceSnapshot};
use serde_json::json;

use crate::script::{Source, added, deleted, modified, page};
use crate::support::{Thing, thing, things};
use crate::words::{World, key, on_a_paused_clock, pod, settle};

/// A cache, and what its readers see of it.
struct Shown {
    indexer: Indexer<Thing>,
    writer: StoreWriter<Thing>,
}

impl Shown {
    fn new() -> Self {
        Self { indexer: Indexer::default(), writer: StoreWriter::default() }
    }

    fn apply(&mut self, change: Change, object: Arc<Thing>) {
        self.indexer.apply(Delta::new(change, object));
        self.writer.publish(self.indexer.snapshot());
    }

    fn replace(&mut self, objects: &[(&str, u32)]) {
        self.indexer.replace_all(things(objects), &BTreeSet::new(), None);
        self.writer.publish(self.indexer.snapshot());
    }

    fn store(&self) -> &Store<Thing> {
        self.writer.store()
    }
}

fn read(store: &Store<Thing>, name: &str) -> Option<String> {
    store.get(&ObjectKey::cluster_scoped(name)).map(|thing| thing.version.clone())
}

fn names(store: &Store<Thing>) -> Vec<String> {
    store.keys().iter().map(ToString::to_string).collect()
}

/// client-go: `TestCache`
#[test]
fn what_is_put_is_found_until_it_is_removed_or_replaced_st_2_st_6() {
    let mut shown = Shown::new();
    let store = shown.store().clone();
    shown.apply(Change::Added, thing("foo", 1));
    assert_eq!(read(&store, "foo").unwrap(), "1");
    shown.apply(Change::Updated, thing("foo", 2));
    assert_eq!(read(&store, "foo").unwrap(), "2");
    shown.apply(Change::Deleted, thing("foo", 3));
    assert_eq!(read(&store, "foo"), None);
    shown.apply(Change::Deleted, thing("foo", 3));
    assert!(store.is_empty(), "removing what is not there is no error");

    for (name, version) in [("a", 4), ("b", 5), ("c", 6)] {
        shown.apply(Change::Added, thing(name, version));
    }
    assert_eq!(names(&store), ["a", "b", "c"]);
    assert_eq!(store.list().len(), 3);
    shown.replace(&[("foo", 7), ("bar", 8)]);
    assert_eq!(names(&store), ["bar", "foo"]);
    assert_eq!((read(&store, "foo").unwrap(), read(&store, "a")), ("7".to_owned(), None));
}

/// client-go: `TestCacheWithTransformer`
#[test]
fn what_is_put_through_a_transform_is_found_transformed_st_3() {
    let mark = Transform::new(|mut thing: Thing| {
        thing.version.push_str("00");
        Ok(thing)
    });
    let mut fifo = DeltaFifo::new(Discipline::InOrder, Some(mark));
    let mut shown = Shown::new();
    fifo.add(thing("foo", 1)).unwrap();
    fifo.update(thing("foo", 2)).unwrap();
    fifo.add(thing("bar", 3)).unwrap();
    fifo.delete(thing("bar", 4), &shown.indexer).unwrap();
    let listed = things(&[("foo", 2), ("baz", 5)]);
    assert!(fifo.replace(listed, BTreeSet::new(), None, &shown.indexer).is_empty());
    while let Some(Popped::Deltas(deltas)) = fifo.pop(|popped, _| popped) {
        for delta in deltas {
            shown.apply(delta.change, delta.object);
        }
    }
    let store = shown.store();
    assert_eq!(names(store), ["baz", "foo"]);
    assert_eq!(
        (read(store, "foo").unwrap(), read(store, "baz").unwrap()),
        ("200".to_owned(), "500".to_owned())
    );
}

/// Writes down the names in each snapshot.
struct Snapshots(Arc<Mutex<Vec<String>>>);

impl Actor for Snapshots {
    type Context = Context<Self>;
}

impl Handler<ResourceSnapshot<Pod>> for Snapshots {
    type Result = ();

    fn handle(&mut self, ResourceSnapshot(snapshot): ResourceSnapshot<Pod>, _: &mut Context<Self>) {
        let pods = snapshot.iter().map(|(key, pod)| {
            format!("{}{}", key.name(), pod.resource_version().unwrap_or_default())
        });
        self.0.lock().unwrap().push(pods.collect::<Vec<_>>().join(" "));
    }
}

/// client-go: `TestUndeltaStore`
/// client-go: `undelta_store_test`
#[test]
fn each_change_is_told_once_as_the_whole_and_reading_tells_nothing() {
    on_a_paused_clock(async {
        let source = Source::new().lists(page(1, &[("a", 1)])).watches(vec![]);
        let pods = source.reflect(Options::all()).await;
        let seen = Arc::default();
        let snapshots = Snapshots(Arc::clone(&seen)).start();
        pods.subscribe_snapshots(snapshots, Duration::from_millis(5)).await.unwrap();
        settle().await;
        for event in [added("b", 2), modified("a", 3), deleted("b", 4)] {
            source.tell(event).await;
            assert_eq!(pods.store().list().len(), pods.store().len());
        }
        settle().await;
        assert_eq!(*seen.lock().unwrap(), ["a1", "a1 b2", "a3 b2", "a3"]);
    });
}

/// client-go: `listers_test: TestListAll`
#[test]
fn a_selector_finds_all_some_or_none() {
    on_a_paused_clock(async {
        let world = World::new();
        for number in 0..1_000 {
            let mut object = pod(&format!("p{number:04}"));
            let part = if number % 10 == 0 { "some" } else { "others" };
            object["metadata"]["labels"] = json!({ "part": part });
            world.server.create(object).unwrap();
        }
        let pods = world.reflect().await;
        pods.synced().await.unwrap();
        let found =
            |selector: &str| pods.store().select(&selector.parse::<LabelSelector>().unwrap()).len();
        assert_eq!((found(""), found("part=some"), found("part=none")), (1_000, 100, 0));
        assert_eq!(pods.store().list_namespace("default").len(), 1_000);
        assert!(pods.store().list_namespace("elsewhere").is_empty());
        assert!(pods.store().get(&key("p0000")).is_some());
        assert!(pods.store().get(&ObjectKey::new("elsewhere", "p0000")).is_none());
    });
}
