//! What a client of the benchmark tells the runner: `ready`, `synced`, `reached`, and how late events came.
//!
//! The load server makes each version of the time it writes it, so every client can tell the delay of an event from
//! the one field that all of them keep.

use std::io::{self, BufRead as _, Write as _};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Where versions begin: all of them have 19 digits.
pub const FIRST_VERSION: u64 = 1_000_000_000_000_000_000;

/// A version of this moment, on the clock that all processes of the machine share.
pub fn version_now() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    FIRST_VERSION + now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// CPU time of one read, in nanoseconds. All keys are read, few of them many times, each far from the one before.
pub fn read_cost<Key>(keys: &[Key], is_there: impl Fn(&Key) -> bool) -> f64 {
    const STRIDE: usize = 7919;
    const READS: usize = 1_000_000;
    let mixed: Vec<&Key> =
        (0..keys.len()).map(|number| &keys[number * STRIDE % keys.len()]).collect();
    let rounds = READS.div_ceil(keys.len().max(1));
    let cpu = || Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).expect("it counts up");
    let before = cpu();
    for _ in 0..rounds {
        assert!(mixed.iter().all(|key| is_there(key)), "a key that was just there is not");
    }
    (cpu() - before).as_nanos() as f64 / (rounds * keys.len()) as f64
}

/// What the handler of a client has seen. Clones are the same.
#[derive(Clone, Default)]
pub struct Probe(Arc<Seen>);

#[derive(Default)]
struct Seen {
    events: AtomicU64,
    newest: AtomicU64,
    /// The version to tell about; none is 0.
    awaited: AtomicU64,
    measures_delay: AtomicBool,
    delays: Mutex<Vec<u64>>,
    /// What a read costs now, in nanoseconds.
    read: OnceLock<Box<dyn Fn() -> f64 + Send + Sync>>,
}

impl Probe {
    /// Says that the client is there, and waits until it may begin.
    pub fn begin() -> Self {
        tell(r#"{"phase":"ready"}"#);
        let mut line = String::new();
        io::stdin().read_line(&mut line).expect("the runner says when to begin");
        let probe = Self::default();
        let commanded = probe.clone();
        thread::spawn(move || {
            for line in io::stdin().lock().lines() {
                commanded.command(&line.expect("the runner writes text"));
            }
            // The runner is gone or done.
            std::process::exit(0);
        });
        probe
    }

    /// How to find out what a read costs: see [`read_cost`].
    pub fn reads(&self, cost: impl Fn() -> f64 + Send + Sync + 'static) {
        assert!(self.0.read.set(Box::new(cost)).is_ok(), "this is said once");
    }

    /// Says that everything there was has been handled.
    pub fn synced(&self, objects: usize) {
        tell(&format!(r#"{{"phase":"synced","objects":{objects}}}"#));
    }

    /// The handler has seen a change to this version.
    pub fn event(&self, resource_version: &str) {
        let Ok(version) = resource_version.parse::<u64>() else { return };
        self.0.events.fetch_add(1, Ordering::Relaxed);
        if self.0.measures_delay.load(Ordering::Relaxed) {
            let delay = version_now().saturating_sub(version);
            self.0.delays.lock().expect("nobody panics with it").push(delay);
        }
        self.0.newest.fetch_max(version, Ordering::SeqCst);
        self.tell_if_reached();
    }

    fn command(&self, line: &str) {
        match line.split_once(' ').unwrap_or((line, "")) {
            ("until", version) => {
                let version = version.parse().expect("a version is a number");
                self.0.awaited.store(version, Ordering::SeqCst);
                self.tell_if_reached();
            }
            ("count", _) => {
                let events = self.0.events.swap(0, Ordering::Relaxed);
                tell(&format!(r#"{{"phase":"count","events":{events}}}"#));
            }
            ("delays", "on") => self.0.measures_delay.store(true, Ordering::Relaxed),
            ("delays", _) => self.tell_delays(),
            ("read", _) => {
                let cost = self.0.read.get().expect("a client can read")();
                tell(&format!(r#"{{"phase":"read","ns":{cost:.1}}}"#));
            }
            _ => panic!("the runner says {line:?}"),
        }
    }

    fn tell_if_reached(&self) {
        let awaited = self.0.awaited.load(Ordering::SeqCst);
        let is_reached = awaited != 0 && self.0.newest.load(Ordering::SeqCst) >= awaited;
        let told = Ordering::SeqCst;
        // Whoever clears it tells.
        if is_reached && self.0.awaited.compare_exchange(awaited, 0, told, told).is_ok() {
            tell(r#"{"phase":"reached"}"#);
        }
    }

    fn tell_delays(&self) {
        self.0.measures_delay.store(false, Ordering::Relaxed);
        let mut delays = std::mem::take(&mut *self.0.delays.lock().expect("nobody panics with it"));
        delays.sort_unstable();
        let rank = |share: f64| {
            let at = (delays.len() as f64 * share) as usize;
            delays.get(at.min(delays.len().saturating_sub(1))).copied().unwrap_or_default()
        };
        tell(&format!(
            r#"{{"phase":"delays","p50":{},"p99":{},"p999":{}}}"#,
            rank(0.5),
            rank(0.99),
            rank(0.999)
        ));
    }
}

/// Writes a line for the runner.
pub fn tell(line: &str) {
    let mut out = io::stdout().lock();
    writeln!(out, "{line}").and_then(|()| out.flush()).expect("the runner reads");
}
