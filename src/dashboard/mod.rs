//! What is going on, for people, for Prometheus and for probes: a page, `/metrics`, `/livez` and `/readyz`.
//!
//! Read-only, and careful: the page is for browsers on this machine unless you say otherwise, it shows of objects their
//! metadata only, and what it keeps is bounded.
//!
//! ```
//! use actix_web::{App, web};
//! use kubeflect::dashboard::{self, Dashboard};
//! use kubeflect::{Runtime, RuntimeOptions};
//!
//! # actix_rt::System::new().block_on(async {
//! let runtime = Runtime::without_cluster(RuntimeOptions::default());
//! let dashboard = web::Data::new(Dashboard::new(runtime));
//! let app = App::new()
//!     .app_data(dashboard) // then at /kubeflect/, /kubeflect/metrics, /kubeflect/readyz …
//!     .service(web::scope("/kubeflect").configure(dashboard::configure));
//! # drop(app);
//! # });
//! ```

mod advice;
mod guard;
mod journal;
mod metrics;
mod pending;
mod probes;
mod recorder;
mod routes;
mod serve;
mod status;
mod stream;
mod summary;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;
use tokio::time::Instant;

pub use self::guard::protect;
use self::journal::Journal;
use self::recorder::Recorder;
pub use self::routes::configure;
pub use self::serve::ServingDashboard;
use crate::object::Resource;
use crate::reflector::{Reflector, SubscribeOptions, Subscription};
use crate::runtime::{Result, Runtime};

/// What a [`Runtime`] is doing, ready to be shown.
///
/// Cheap to clone and usable from any thread. It shows every reflector of the runtime; for the stream of events and the
/// histories of objects each has to be [observed](Self::observe).
#[derive(Clone)]
pub struct Dashboard {
    inner: Arc<Inner>,
}

/// What a [`Dashboard`] keeps, and whom it lets in.
#[derive(Debug, Clone)]
pub struct DashboardOptions {
    /// Who may see the page. Metrics and probes are for everybody who can connect: they hold no objects.
    pub audience: Audience,
    /// By which names it may be addressed, beside `localhost` and this machine's addresses. A page that came under
    /// another name is somebody else's, pointing here.
    pub hosts: Vec<String>,
    /// How many events are kept for those who open the page.
    pub recent_events: usize,
    /// Of how many objects the history is kept: those that changed last.
    pub histories: usize,
    /// How many changes of one object are kept.
    pub changes_per_object: usize,
    /// How many browsers may follow the live stream at once.
    pub streams: usize,
    /// How many connections a server of its own takes at once.
    pub connections: usize,
}

/// Who may see the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Audience {
    /// Those on this machine, `kubectl port-forward` included.
    #[default]
    ThisMachine,
    /// Everybody who can connect. There is no authentication: put something in front that has it.
    Everybody,
}

impl Default for DashboardOptions {
    fn default() -> Self {
        Self {
            audience: Audience::default(),
            hosts: Vec::new(),
            recent_events: 500,
            histories: 2_000,
            changes_per_object: 16,
            streams: 16,
            connections: 128,
        }
    }
}

struct Inner {
    /// Tells this dashboard from those before it at the same address: numbers and times of one mean nothing to another.
    boot: String,
    runtime: Runtime,
    options: DashboardOptions,
    clock: Clock,
    journal: Mutex<Journal>,
    /// What is to be reflected and is not yet, and why.
    pending: Mutex<BTreeMap<String, String>>,
    /// The number of the newest event.
    newest: watch::Sender<u64>,
    streams: AtomicUsize,
}

/// Tells times as milliseconds since the dashboard was made: the page knows what time it is for its reader.
#[derive(Debug, Clone, Copy)]
struct Clock(Instant);

impl Clock {
    fn now(self) -> i64 {
        self.at(Instant::now())
    }

    fn at(self, instant: Instant) -> i64 {
        let milliseconds =
            |duration: std::time::Duration| i64::try_from(duration.as_millis()).unwrap_or(i64::MAX);
        match instant.checked_duration_since(self.0) {
            Some(since) => milliseconds(since),
            None => -milliseconds(self.0 - instant),
        }
    }
}

impl Dashboard {
    /// The dashboard of a runtime.
    pub fn new(runtime: Runtime) -> Self {
        Self::with_options(runtime, DashboardOptions::default())
    }

    /// As [`new`](Self::new), with options.
    pub fn with_options(runtime: Runtime, options: DashboardOptions) -> Self {
        let journal = Mutex::new(Journal::new(&options));
        let inner = Inner {
            boot: format!("{:016x}", fastrand::u64(..)),
            runtime,
            options,
            clock: Clock(Instant::now()),
            journal,
            pending: Mutex::default(),
            newest: watch::Sender::new(0),
            streams: AtomicUsize::new(0),
        };
        Self { inner: Arc::new(inner) }
    }

    /// Records the events of a reflector, for the stream of events and the histories of objects.
    ///
    /// # Errors
    /// When the reflector or the runtime has been stopped.
    pub async fn observe<K: Resource>(&self, reflector: &Reflector<K>) -> Result<Subscription<K>> {
        let id = reflector.status().id;
        let store = reflector.store().clone();
        let find = move |key: &_| store.get(key).map(|object| summary::of(&*object));
        lock(&self.inner.journal).observe(id, reflector.kind().clone(), Box::new(find));
        let dashboard = self.clone();
        let recorder =
            self.inner.runtime.start_actor(move || Recorder { dashboard, reflector: id }).await?;
        let options = SubscribeOptions::default().no_resync().name("dashboard");
        Ok(reflector.subscribe_batches(recorder, options).await?)
    }
}

impl fmt::Debug for Dashboard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dashboard").field("options", &self.inner.options).finish_non_exhaustive()
    }
}

/// What these locks guard is whole after each step.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
