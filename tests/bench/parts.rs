//! What the parts of the pipeline cost, each on its own: CPU time, medians. Run with `cargo bench --bench parts`.
//!
//! Frames and the list decoder are not public: they are measured through `KubernetesSource`, with an object that keeps
//! nothing, and so together with the reading of heads. Linux only.

#[path = "feed.rs"]
#[allow(dead_code, reason = "others use the rest")]
mod feed;
#[path = "placement.rs"]
mod placement;
#[path = "pods.rs"]
#[allow(dead_code, reason = "others use the rest")]
mod pods;
#[path = "timing.rs"]
#[allow(dead_code, reason = "others use the rest")]
mod timing;

use std::collections::BTreeSet;
use std::hint::black_box;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use k8s_openapi::api::core::v1::Pod;
use kube::core::PartialObjectMeta;
use kubeflect::ResourceVersion;
use kubeflect::api::{ListRequest, ListerWatcher as _, WatchRequest, WatchStart};
use kubeflect::cache::{Change, Delta, DeltaFifo, Discipline, Indexer};
use kubeflect::client::KubernetesSource;
use kubeflect::object::{DecodeError, DynamicObject, Kind, ObjectKey, Resource, StaticKind as _};

use self::feed::Feed;
use self::placement::Placement;
use self::pods::Shape;
use self::timing::each;

/// Read and dropped at once.
struct Nothing;

impl Resource for Nothing {
    fn key(&self) -> ObjectKey {
        ObjectKey::cluster_scoped("nothing")
    }
    fn uid(&self) -> Option<&str> {
        None
    }
    fn resource_version(&self) -> Option<&str> {
        None
    }
    fn decode(_: &[u8], _: &Kind) -> Result<Self, DecodeError> {
        Ok(Self)
    }
}

/// A name and a version.
struct Named {
    name: String,
    version: String,
}

impl Resource for Named {
    fn key(&self) -> ObjectKey {
        ObjectKey::new("default", &self.name)
    }
    fn uid(&self) -> Option<&str> {
        None
    }
    fn resource_version(&self) -> Option<&str> {
        Some(&self.version)
    }
    fn decode(_: &[u8], _: &Kind) -> Result<Self, DecodeError> {
        Err(DecodeError::new("these are not sent"))
    }
}

fn named(count: usize, version: usize) -> Vec<Arc<Named>> {
    let one = |number| {
        // In another order than that of the names.
        let name = format!("object-{:08}", number * 7919 % count);
        Arc::new(Named { name, version: (1_000_000 + version).to_string() })
    };
    (0..count).map(one).collect()
}

fn decode() {
    let texts: Vec<Vec<u8>> =
        (0..1_000).map(|number| pods::pod(1, number, Shape::Typical).bytes).collect();
    fn cost<K: Resource>(texts: &[Vec<u8>]) -> f64 {
        let kind = Pod::static_kind();
        let decode = |text: &Vec<u8>| black_box(K::decode(text, &kind).is_ok());
        each(texts.len(), || (), |()| assert!(texts.iter().all(decode))) / 1e3
    }
    println!("decode and drop, µs a pod of {} bytes", texts[0].len());
    println!("  typed       {:7.2}", cost::<Pod>(&texts));
    println!("  dynamic     {:7.2}", cost::<DynamicObject>(&texts));
    println!("  metadata    {:7.2}", cost::<PartialObjectMeta<Pod>>(&texts));
    println!("  projection  {:7.2}", cost::<Placement>(&texts));
}

fn frames() {
    const COUNT: usize = 2_000;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("there are threads and files enough");
    let feed = Feed::new(COUNT, Shape::Typical);
    let source = KubernetesSource::<Nothing>::new(Rc::new(feed.clone()), Pod::static_kind());
    let listed = each(
        COUNT,
        || (),
        |()| {
            let page = runtime.block_on(source.list(ListRequest::default()));
            assert_eq!(page.expect("the list is good").items.len(), COUNT);
        },
    );
    let start = WatchStart::After(ResourceVersion::new("1").expect("it is not empty"));
    let selection = Arc::default();
    let timeout = Duration::from_secs(300);
    let request = WatchRequest { selection, start, timeout, bookmarks: true };
    let open = || {
        let stream = runtime.block_on(source.watch(request.clone())).expect("it can be watched");
        feed.changes(COUNT).into_iter().for_each(|chunk| feed.send(chunk));
        stream
    };
    let watched = each(COUNT, open, |mut stream| {
        runtime.block_on(async {
            for _ in 0..COUNT {
                assert!(stream.next().await.is_some_and(|event| event.is_ok()));
            }
        });
    });
    println!("bytes to objects that keep nothing, µs an object");
    println!("  list        {:7.2}", listed / 1e3);
    println!("  watch       {:7.2}", watched / 1e3);
}

fn queue() {
    const COUNT: usize = 10_000;
    println!("queue of {COUNT} objects, ns a delta");
    for discipline in [Discipline::PerObject, Discipline::InOrder] {
        let known = Indexer::<Named>::default();
        let filled = || {
            let mut queue = DeltaFifo::new(discipline, None);
            for object in named(COUNT, 0) {
                queue.update(object).expect("nothing transforms it");
            }
            queue
        };
        let new = || (DeltaFifo::new(discipline, None), named(COUNT, 0));
        let push = each(COUNT, new, |(mut queue, objects)| {
            for object in objects {
                queue.update(object).expect("nothing transforms it");
            }
        });
        let pop =
            each(
                COUNT,
                filled,
                |mut queue| {
                    while queue.pop(|popped, _| drop(black_box(popped))).is_some() {}
                },
            );
        let replace = each(COUNT, new, |(mut queue, objects)| {
            assert!(queue.replace(objects, BTreeSet::new(), None, &known).is_empty());
        });
        println!("  {discipline:<14?} push {push:6.0}  pop {pop:6.0}  replace {replace:6.0}");
    }
}

/// One event and one read must cost the same whatever is in the cache.
fn growth() {
    println!("cache, ns each, by the number of objects in it");
    for count in [1_000, 10_000, 100_000, 300_000] {
        let full = || {
            let mut cache = Indexer::default();
            cache.replace_all(named(count, 0), &BTreeSet::new(), None);
            (cache, named(count, 1))
        };
        let applied = each(count, full, |(mut cache, changes)| {
            for object in changes {
                drop(black_box(cache.apply(Delta::new(Change::Updated, object))));
            }
        });
        // As it is: what is shown is shared, and copied where it changes.
        let shown = each(count, full, |(mut cache, changes)| {
            for batch in changes.chunks(10) {
                let snapshot = (*cache).clone();
                for object in batch {
                    drop(black_box(cache.apply(Delta::new(Change::Updated, Arc::clone(object)))));
                }
                drop(snapshot);
            }
        });
        let (cache, objects) = full();
        let keys: Vec<ObjectKey> = objects.iter().map(|object| object.key()).collect();
        let read =
            each(count, || (), |()| assert!(keys.iter().all(|key| cache.get(key).is_some())));
        println!(
            "  {count:>7}  event {applied:6.0}  event, shown every 10 {shown:6.0}  read {read:6.0}"
        );
    }
}

fn main() {
    decode();
    frames();
    queue();
    growth();
}
