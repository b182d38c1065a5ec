use std::cell::RefCell;
use std::rc::Rc;

use actix::{Actor, Context, Handler};
use actix_rt::{System, SystemRunner};
use allocation_counter::{AllocationInfo, measure};
use k8s_openapi::api::core::v1::Pod;
use kubeflect::object::StaticKind as _;
use kubeflect::reflector::StreamingLists;
use kubeflect::{Options, Reflector, Resource, ResourceEvent, Runtime, RuntimeOptions, Threads};

use crate::expected::Costs;
use crate::feed::Feed;
use crate::pods::Shape;

/// Few and many: what they differ by is the objects' own.
const FEW: usize = 300;
const MANY: usize = 900;
const EVENTS: usize = 600;

/// What `K` costs.
pub(crate) fn costs<K: Resource>(options: &Options<K>) -> Costs {
    let (few, many) = (Counts::of(FEW, options), Counts::of(MANY, options));
    let objects = (MANY - FEW) as f64;
    let listed =
        |count: fn(&AllocationInfo) -> f64| (count(&many.list) - count(&few.list)) / objects;
    let held = many.list.bytes_current as f64;
    Costs {
        bytes_per_object: listed(|info| info.bytes_current as f64),
        allocations_per_object: listed(|info| info.count_current as f64),
        allocations_to_list: listed(|info| info.count_total as f64),
        allocations_per_event: many.events.count_total as f64 / EVENTS as f64,
        allocations_to_relist: (many.relist.count_total as f64 - few.relist.count_total as f64)
            / objects,
        relist_peak: (held + many.relist.bytes_max as f64) / held,
    }
}

/// What the phases of one reflector allocated.
struct Counts {
    list: AllocationInfo,
    events: AllocationInfo,
    relist: AllocationInfo,
}

impl Counts {
    fn of<K: Resource>(objects: usize, options: &Options<K>) -> Self {
        let system = System::new();
        // A relist waits for its backoff.
        system.block_on(async { tokio::time::pause() });
        let feed = Feed::new(objects, Shape::Typical);
        let options = options.clone().streaming_lists(StreamingLists::Never);
        let told = Rc::new(RefCell::new(Told::default()));
        let mut started = None;
        let list = measure(|| {
            started = Some(system.block_on(start(&feed, options, &told)));
        });
        let (runtime, reflector) = started.expect("it was started");
        assert_eq!(reflector.store().len(), objects);
        let changes = feed.changes(EVENTS);
        let last = feed.version();
        let events = measure(|| {
            for chunk in changes {
                feed.send(chunk);
            }
            until(&system, || told.borrow().newest.as_deref() == Some(last.as_str()));
        });
        // All states are of one age now, as after any time of watching.
        feed.expire();
        let version = feed.version();
        let relist = measure(|| {
            until(&system, || {
                let shown = reflector.store().resource_version();
                feed.is_watched() && shown.is_some_and(|shown| shown.as_str() == version)
            });
        });
        system.block_on(runtime.stop());
        Self { list, events, relist }
    }
}

async fn start<K: Resource>(
    feed: &Feed,
    options: Options<K>,
    told: &Rc<RefCell<Told>>,
) -> (Runtime, Reflector<K>) {
    let here = RuntimeOptions { threads: Threads::Callers, seed: Some(1), ..Default::default() };
    let runtime = Runtime::with_options(feed.clone(), here);
    let reflector =
        runtime.reflect_kind(Pod::static_kind(), options).await.expect("the options can be meant");
    let subscriber = Subscriber { told: Rc::clone(told) }.start();
    let subscription = reflector.subscribe(subscriber).await.expect("it was just started");
    assert!(subscription.synced().await && reflector.synced().await.is_ok());
    while !feed.is_watched() {
        tokio::task::yield_now().await;
    }
    (runtime, reflector)
}

/// Lets the actors work until something is so.
fn until(system: &SystemRunner, is_so: impl Fn() -> bool) {
    system.block_on(async {
        while !is_so() {
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
    });
}

/// What the subscriber was told.
#[derive(Default)]
struct Told {
    newest: Option<String>,
}

struct Subscriber {
    told: Rc<RefCell<Told>>,
}

impl Actor for Subscriber {
    type Context = Context<Self>;
}

impl<K: Resource> Handler<ResourceEvent<K>> for Subscriber {
    type Result = ();

    fn handle(&mut self, event: ResourceEvent<K>, _: &mut Context<Self>) {
        if let ResourceEvent::Updated { new, .. } = event {
            self.told.borrow_mut().newest = new.resource_version().map(str::to_owned);
        }
    }
}
