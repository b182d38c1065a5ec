//! What a whole reflector costs where it matters to others: fan-out, reads during changes, and how long a relist keeps
//! its thread. Run with `cargo bench --bench whole`; `-- fan-out`, `-- reads` or `-- lateness` measures only that. Linux
//! only.

#[path = "feed.rs"]
mod feed;
#[path = "placement.rs"]
mod placement;
#[path = "pods.rs"]
#[allow(dead_code, reason = "others use the rest")]
mod pods;
#[path = "timing.rs"]
#[allow(dead_code, reason = "others use the rest")]
mod timing;

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use actix::{Actor, Context, Handler};
use k8s_openapi::api::core::v1::Pod;
use kubeflect::cache::Store;
use kubeflect::object::StaticKind as _;
use kubeflect::reflector::StreamingLists;
use kubeflect::{
    ObjectKey, Options, Reflector, ResourceEvent, ResourceEvents, Runtime, RuntimeOptions,
    SubscribeOptions, Threads,
};
use tokio::time::{Instant, sleep};

use self::feed::Feed;
use self::placement::Placement;
use self::pods::Shape;
use self::timing::{rank, thread_cpu};

struct Counter(Rc<Cell<usize>>);

impl Actor for Counter {
    type Context = Context<Self>;
}

impl Handler<ResourceEvent<Placement>> for Counter {
    type Result = ();

    fn handle(&mut self, _: ResourceEvent<Placement>, _: &mut Context<Self>) {
        self.0.set(self.0.get() + 1);
    }
}

impl Handler<ResourceEvents<Placement>> for Counter {
    type Result = ();

    fn handle(&mut self, events: ResourceEvents<Placement>, _: &mut Context<Self>) {
        self.0.set(self.0.get() + events.len());
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Told {
    OneByOne,
    InBatches,
}

async fn reflect(feed: &Feed, threads: Threads) -> (Runtime, Reflector<Placement>) {
    let options = RuntimeOptions { threads, seed: Some(1), ..RuntimeOptions::default() };
    let runtime = Runtime::with_options(feed.clone(), options);
    let options = Options::all().streaming_lists(StreamingLists::Never);
    let pods = runtime.reflect_kind(Pod::static_kind(), options).await.expect("it can be meant");
    pods.synced().await.expect("the list is good");
    while !feed.is_watched() {
        sleep(Duration::from_millis(1)).await;
    }
    (runtime, pods)
}

/// CPU time of one change for so many subscribers, in nanoseconds. All are on one thread, and told everything.
async fn told(subscribers: usize, how: Told) -> f64 {
    const EVENTS: usize = 400;
    let feed = Feed::new(EVENTS, Shape::Small);
    let (runtime, pods) = reflect(&feed, Threads::Callers).await;
    let count = Rc::new(Cell::new(0));
    for _ in 0..subscribers {
        let counter = Counter(Rc::clone(&count)).start();
        let options = SubscribeOptions::default();
        let subscription = match how {
            Told::OneByOne => pods.subscribe(counter).await,
            Told::InBatches => pods.subscribe_batches(counter, options).await,
        };
        assert!(subscription.expect("it runs").synced().await);
    }
    let mut costs = Vec::new();
    for _ in 0..5 {
        count.set(0);
        let changes = feed.changes(EVENTS);
        let before = thread_cpu();
        changes.into_iter().for_each(|chunk| feed.send(chunk));
        while count.get() < EVENTS * subscribers {
            sleep(Duration::from_millis(1)).await;
        }
        costs.push((thread_cpu() - before) as f64 / EVENTS as f64);
    }
    costs.sort_by(f64::total_cmp);
    runtime.stop().await;
    costs[2]
}

async fn fan_out() {
    println!("fan-out, ns a delivery (the first with all that comes before it)");
    for how in [Told::OneByOne, Told::InBatches] {
        let first = told(1, how).await;
        print!("  {how:<10?} 1: {first:.0}");
        for subscribers in [10, 100, 1_000] {
            let more = told(subscribers, how).await - first;
            print!("   {subscribers}: {:.0}", more / (subscribers - 1) as f64);
        }
        println!();
    }
}

/// Reads until told to stop; gives how long each read took, in nanoseconds.
fn read(store: &Store<Placement>, keys: &[ObjectKey], stop: &AtomicBool) -> Vec<u32> {
    let mut took = Vec::with_capacity(1 << 22);
    for key in keys.iter().cycle() {
        if stop.load(Ordering::Relaxed) || took.len() == took.capacity() {
            break;
        }
        let before = Instant::now();
        assert!(store.get(key).is_some());
        took.push(u32::try_from(before.elapsed().as_nanos()).unwrap_or(u32::MAX));
    }
    took.sort_unstable();
    took
}

/// How long reads take while changes are applied: of a few objects that the caches of the CPU come to know, or of all.
async fn reads(objects: usize, read_ones: usize) {
    const RATE: usize = 10_000;
    let feed = Feed::new(objects, Shape::Small);
    let (runtime, pods) = reflect(&feed, Threads::default()).await;
    let stop = Arc::new(AtomicBool::new(false));
    let mut keys = pods.store().keys();
    // Each is far from the one before.
    fastrand::Rng::with_seed(1).shuffle(&mut keys);
    keys.truncate(read_ones);
    let read_ones = keys.len();
    let reader = {
        let (store, stop) = (pods.store().clone(), Arc::clone(&stop));
        std::thread::spawn(move || read(&store, &keys, &stop))
    };
    let begin = Instant::now();
    for turn in 1..=200 {
        for chunk in feed.changes(RATE / 100) {
            feed.send(chunk);
        }
        tokio::time::sleep_until(begin + Duration::from_millis(turn * 10)).await;
    }
    let rate = 200.0 * (RATE / 100) as f64 / begin.elapsed().as_secs_f64();
    stop.store(true, Ordering::Relaxed);
    let took = reader.join().expect("the reader does not panic");
    println!(
        "  {objects:>7} objects, {rate:.0} events/s: {} reads of {read_ones}, clock included: p50 {}  p99 {}  p99.9 {}",
        took.len(),
        rank(&took, 0.5),
        rank(&took, 0.99),
        rank(&took, 0.999),
    );
    runtime.stop().await;
}

/// How late a ticker is on the thread of a reflector that lists everything again.
async fn lateness(objects: usize, changed: usize, subscribers: usize) {
    let feed = Feed::new(objects, Shape::Small);
    let (runtime, pods) = reflect(&feed, Threads::Callers).await;
    for _ in 0..subscribers {
        let counter = Counter(Rc::default()).start();
        let subscription = pods.subscribe_batches(counter, SubscribeOptions::default()).await;
        assert!(subscription.expect("it runs").synced().await);
    }
    drop(feed.changes(changed));
    feed.expire();
    let version = feed.version();
    let mut late = Vec::new();
    let is_over = || {
        let shown = pods.store().resource_version();
        let is_told = pods.status().subscribers.iter().all(|one| one.pending == 0);
        feed.is_watched() && is_told && shown.is_some_and(|shown| shown.as_str() == version)
    };
    let begin = Instant::now();
    while !is_over() {
        let due = Instant::now() + Duration::from_millis(1);
        tokio::time::sleep_until(due).await;
        late.push(due.elapsed());
    }
    late.sort_unstable();
    println!(
        "  {objects:>7} objects, {changed} of them changed, {subscribers} subscribers: {:.1?} (backoff included), p99 {:.1?}, longest {:.1?}",
        begin.elapsed(),
        rank(&late, 0.99),
        rank(&late, 1.0),
    );
    runtime.stop().await;
}

#[actix::main]
async fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|it| !it.starts_with('-')).collect();
    let is_wanted = |part: &str| wanted.is_empty() || wanted.iter().any(|it| it == part);
    if is_wanted("fan-out") {
        fan_out().await;
    }
    if is_wanted("reads") {
        println!("reads by key while changes are applied, ns");
        for objects in [1_000, 10_000, 100_000, 300_000] {
            reads(objects, 1_000).await;
            reads(objects, objects).await;
        }
    }
    if is_wanted("lateness") {
        println!("lateness of a ticker on the reflector's thread during a relist");
        lateness(100_000, 0, 0).await;
        lateness(100_000, 100_000, 0).await;
        lateness(100_000, 100_000, 2).await;
    }
}
