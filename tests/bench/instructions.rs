//! How many instructions an object and an event take, from the bytes of an API server to a subscriber, held to the numbers
//! of `EXPECTED`: the same whatever else the machine does, and so fit to notice what a clock does not.
//!
//! Run with `cargo bench --bench instructions`. Needs valgrind, whose callgrind counts. Linux only.

#[path = "feed.rs"]
mod feed;
#[path = "placement.rs"]
mod placement;
#[path = "pods.rs"]
#[allow(dead_code, reason = "others use the rest")]
mod pods;

use std::cell::Cell;
use std::env;
use std::process::Command;
use std::rc::Rc;
use std::time::Duration;

use actix::{Actor, Context, Handler};
use actix_rt::{System, SystemRunner};
use k8s_openapi::api::core::v1::Pod;
use kubeflect::object::{Lazy, Prune, StaticKind as _};
use kubeflect::reflector::StreamingLists;
use kubeflect::{Options, Reflector, Resource, ResourceEvent, Runtime, RuntimeOptions, Threads};

use self::feed::Feed;
use self::placement::Placement;
use self::pods::Shape;

/// Instructions a listed object, a changed one, and one that is listed again and has not changed. Of pods of 6.1 KiB, by
/// Rust 1.95 on x86-64: another compiler makes another program.
const EXPECTED: [(&str, [f64; 3]); 4] = [
    ("typed", [287_401.0, 330_786.0, 52_363.0]),
    ("typed-pruned", [179_783.0, 185_778.0, 52_371.0]),
    ("lazy", [58_788.0, 44_722.0, 51_321.0]),
    ("projection", [77_978.0, 64_266.0, 52_368.0]),
];

const PHASES: [Phase; 3] = [Phase::List, Phase::Events, Phase::Relist];

/// Better or worse by more than this part is told.
const TOLERANCE: f64 = 0.05;

/// Few and many: what they differ by is the objects' own.
const FEW: usize = 300;
const MANY: usize = 900;
const EVENTS: usize = 600;

/// What is counted of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    List,
    Events,
    Relist,
}

fn main() -> Result<(), String> {
    // Cargo adds options of its own.
    let arguments: Vec<String> =
        env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    match arguments.as_slice() {
        [] => compare(),
        [representation, phase, objects] => {
            let phase = PHASES.into_iter().find(|known| format!("{known:?}") == *phase);
            let phase = phase.ok_or("there is no such phase")?;
            run(
                representation,
                phase,
                objects.parse().map_err(|error| format!("{objects}: {error}"))?,
            )
        }
        _ => Err("say nothing, or REPRESENTATION PHASE OBJECTS".to_owned()),
    }
}

/// Counts everything, and tells what is not as expected.
fn compare() -> Result<(), String> {
    println!("instructions   a listed object          an event  a relisted object");
    let mut problems = Vec::new();
    for (representation, expected) in EXPECTED {
        print!("{representation:<14}");
        for (phase, expected) in PHASES.into_iter().zip(expected) {
            let counted = cost(representation, phase)?;
            let change = counted / expected - 1.0;
            print!("  {counted:>8.0} {:>+6.1} %", change * 100.0);
            if change.abs() > TOLERANCE {
                problems
                    .push(format!("{representation} {phase:?}: {counted:.0}, not {expected:.0}"));
            }
        }
        println!();
    }
    if problems.is_empty() {
        return Ok(());
    }
    println!("more than {:.0} % off: {}", TOLERANCE * 100.0, problems.join("; "));
    Err("if that is meant, write these numbers into EXPECTED of tests/bench/instructions.rs"
        .to_owned())
}

/// Instructions of one object or event.
fn cost(representation: &str, phase: Phase) -> Result<f64, String> {
    let many = count(representation, phase, MANY)?;
    if phase == Phase::Events {
        return Ok(many / EVENTS as f64);
    }
    Ok((many - count(representation, phase, FEW)?) / (MANY - FEW) as f64)
}

/// Runs this program under callgrind; gives the instructions within [`counted`].
fn count(representation: &str, phase: Phase, objects: usize) -> Result<f64, String> {
    let program = env::current_exe().map_err(|error| error.to_string())?;
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg("--toggle-collect=*instructions::counted*")
        .arg(program)
        .args([representation, &format!("{phase:?}"), &objects.to_string()])
        .output()
        .map_err(|error| format!("valgrind does not start, is it installed? {error}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    let collected = said.lines().find_map(|line| line.split_once("Collected :"));
    let collected = collected.and_then(|(_, count)| count.trim().parse::<f64>().ok());
    match collected {
        Some(count) if output.status.success() && count > 0.0 => Ok(count),
        _ => Err(format!("{representation} {phase:?} can not be counted: {said}")),
    }
}

/// What is counted: all that runs within it. Its name is all that callgrind knows.
#[inline(never)]
fn counted(work: &mut dyn FnMut()) {
    work();
}

fn run(representation: &str, phase: Phase, objects: usize) -> Result<(), String> {
    match representation {
        "typed" => reflect::<Pod>(Options::all(), phase, objects),
        "typed-pruned" => {
            reflect::<Pod>(Options::all().prune(Prune::ManagedFields), phase, objects);
        }
        "lazy" => reflect::<Lazy<Pod>>(Options::all(), phase, objects),
        "projection" => {
            reflect::<Placement>(Options::all().prune(Prune::ManagedFields), phase, objects);
        }
        other => return Err(format!("nobody knows how to keep pods as {other}")),
    }
    Ok(())
}

/// Lists, takes changes, and lists again, all on this thread.
fn reflect<K: Resource>(options: Options<K>, phase: Phase, objects: usize) {
    let system = System::new();
    // A relist waits for its backoff.
    system.block_on(async { tokio::time::pause() });
    let feed = Feed::new(objects, Shape::Typical);
    let options = options.streaming_lists(StreamingLists::Never);
    let newest = Rc::new(Cell::new(0));
    let work = |this: Phase, work: &mut dyn FnMut()| {
        if this == phase { counted(work) } else { work() }
    };
    let mut started = None;
    work(Phase::List, &mut || {
        started = Some(system.block_on(start(&feed, options.clone(), &newest)));
    });
    let (runtime, reflector) = started.expect("it was started");
    assert_eq!(reflector.store().len(), objects);
    let mut changes = feed.changes(EVENTS).into_iter();
    let last: u64 = feed.version().parse().expect("a version is a number");
    work(Phase::Events, &mut || {
        changes.by_ref().for_each(|chunk| feed.send(chunk));
        until(&system, || newest.get() == last);
    });
    feed.expire();
    let version = feed.version();
    work(Phase::Relist, &mut || {
        until(&system, || {
            let shown = reflector.store().resource_version();
            feed.is_watched() && shown.is_some_and(|shown| shown.as_str() == version)
        });
    });
    system.block_on(runtime.stop());
}

async fn start<K: Resource>(
    feed: &Feed,
    options: Options<K>,
    newest: &Rc<Cell<u64>>,
) -> (Runtime, Reflector<K>) {
    let here = RuntimeOptions { threads: Threads::Callers, seed: Some(1), ..Default::default() };
    let runtime = Runtime::with_options(feed.clone(), here);
    let reflector = runtime.reflect_kind(Pod::static_kind(), options).await;
    let reflector = reflector.expect("the options can be meant");
    let subscriber = Subscriber { newest: Rc::clone(newest) }.start();
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
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    });
}

struct Subscriber {
    newest: Rc<Cell<u64>>,
}

impl Actor for Subscriber {
    type Context = Context<Self>;
}

impl<K: Resource> Handler<ResourceEvent<K>> for Subscriber {
    type Result = ();

    fn handle(&mut self, event: ResourceEvent<K>, _: &mut Context<Self>) {
        if let ResourceEvent::Updated { new, .. } = event {
            let version = new.resource_version().and_then(|version| version.parse().ok());
            self.newest.set(version.expect("a version is a number"));
        }
    }
}
