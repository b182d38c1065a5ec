use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use actix_rt::{Arbiter, ArbiterHandle, System};
use futures::FutureExt as _;
use futures::future::select_all;
use tokio::sync::{oneshot, watch};

/// Where reflectors run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Threads {
    /// On threads of their own: decoding never stalls the threads of the application.
    Own {
        /// How many. Each reflector lives on one of them.
        count: usize,
    },
    /// On the caller's arbiter: for tests on a paused clock, which has to be the only one.
    Callers,
    /// On threads of their own, in an actix system of their own: for programs that have none.
    OwnSystem {
        /// How many. Each reflector lives on one of them.
        count: usize,
    },
}

impl Default for Threads {
    /// One for two cores.
    fn default() -> Self {
        let cores = thread::available_parallelism().map_or(2, usize::from);
        Self::Own { count: (cores / 2).max(1) }
    }
}

/// The arbiters of a runtime, each used in turn.
#[derive(Debug)]
pub(super) struct Arbiters {
    place: Place,
    next: AtomicUsize,
    /// One for each arbiter, closed when it ends.
    lives: Vec<watch::Receiver<()>>,
}

#[derive(Debug)]
enum Place {
    Caller,
    Own(Vec<ArbiterHandle>),
    OwnSystem { arbiters: Vec<ArbiterHandle>, system: System },
}

impl Arbiters {
    pub(super) fn new(threads: Threads) -> Self {
        let place = match threads {
            Threads::Callers => Place::Caller,
            Threads::Own { count } => Place::Own(start(count)),
            Threads::OwnSystem { count } => own_system(count),
        };
        let lives = match &place {
            Place::Caller => Vec::new(),
            Place::Own(arbiters) | Place::OwnSystem { arbiters, .. } => {
                arbiters.iter().map(life).collect()
            }
        };
        Self { place, next: AtomicUsize::new(0), lives }
    }

    /// Waits until one of the arbiters of reflectors has ended. The caller's is not watched.
    pub(super) async fn ended(&self) {
        let ends = self
            .lives
            .iter()
            .cloned()
            .map(|mut life| async move { while life.changed().await.is_ok() {} }.boxed());
        let ends: Vec<_> = ends.collect();
        if ends.is_empty() {
            return std::future::pending().await;
        }
        select_all(ends).await;
    }

    /// Whether none of the arbiters of reflectors has ended. The caller's is not watched.
    pub(super) fn are_alive(&self) -> bool {
        self.lives.iter().all(|life| life.has_changed().is_ok())
    }

    /// Runs a function on one of the arbiters of reflectors; none when they are gone.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        match &self.place {
            Place::Caller => Some(work()),
            Place::Own(arbiters) | Place::OwnSystem { arbiters, .. } => {
                let turn = self.next.fetch_add(1, Ordering::Relaxed);
                run_on(&arbiters[turn % arbiters.len()], work).await
            }
        }
    }

    /// Runs a function on the first arbiter of the system, where no reflector lives; none when it is gone.
    pub(super) async fn run_aside<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        match &self.place {
            Place::Caller => Some(work()),
            Place::Own(_) => run_on(System::try_current()?.arbiter(), work).await,
            Place::OwnSystem { system, .. } => run_on(system.arbiter(), work).await,
        }
    }

    pub(super) fn stop(&self) {
        match &self.place {
            Place::Caller => {}
            Place::Own(arbiters) => {
                for arbiter in arbiters {
                    arbiter.stop();
                }
            }
            Place::OwnSystem { system, .. } => system.stop(),
        }
    }
}

/// Ends with an arbiter.
fn life(arbiter: &ArbiterHandle) -> watch::Receiver<()> {
    let (sender, life) = watch::channel(());
    arbiter.spawn(async move { sender.closed().await });
    life
}

async fn run_on<T: Send + 'static>(
    arbiter: &ArbiterHandle,
    work: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    let (done, result) = oneshot::channel();
    arbiter.spawn_fn(move || {
        // Nobody waits for it any more if this fails.
        drop(done.send(work()));
    });
    result.await.ok()
}

fn start(count: usize) -> Vec<ArbiterHandle> {
    (0..count.max(1)).map(|_| Arbiter::new().handle()).collect()
}

fn own_system(count: usize) -> Place {
    let (ready, started) = std::sync::mpsc::channel();
    let run = move || {
        let system = System::new();
        let arbiters = system.block_on(async move { start(count) });
        // The creator waits below.
        drop(ready.send((arbiters, System::current())));
        if let Err(error) = system.run() {
            tracing::error!(%error, "the actix system of the runtime failed");
        }
    };
    thread::Builder::new()
        .name("kubeflect".to_owned())
        .spawn(run)
        .expect("the system has a thread to spare");
    let (arbiters, system) = started.recv().expect("the thread started the system before it ends");
    Place::OwnSystem { arbiters, system }
}
