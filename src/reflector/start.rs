use std::fmt;
use std::marker::PhantomData;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use actix::{Addr, AsyncContext as _, Context};
use futures::future::{BoxFuture, join_all};

use super::audit_timer::AuditTimer;
use super::delta_fifo_store::{DeltaFifoStore, Intake};
use super::gate::Gate;
use super::machine::{Machine, Settings, Streaming};
use super::messages::{Epoch, Flush, Restarted, Subscribers};
use super::publisher::Publisher;
use super::resync::ResyncSchedule;
use super::resync_timer::ResyncTimer;
use super::status::Shared;
use super::supervisor::{STORE, Supervisor};
use super::{NotSynced, Options, Phase, Reflector, ReflectorStatus, StreamingLists};
use crate::api::{ApiError, ListerWatcher};
use crate::cache::{Indexer, StoreWriter};
use crate::object::{Kind, Resource};
use crate::supervision::{self, Group, Hooks, MemberStatus, RestartOptions, StopHandle};

/// Makes the source of a reflector, on its arbiter.
pub(crate) type SourceFactory<K> =
    Box<dyn FnOnce() -> Result<Rc<dyn ListerWatcher<K>>, ApiError> + Send>;

/// What is common to the control of all reflectors, whatever they reflect.
pub(crate) trait Control: fmt::Debug + Send + Sync {
    /// Waits for the first list.
    fn synced(&self) -> BoxFuture<'_, Result<(), NotSynced>>;

    /// How it is doing.
    fn status(&self) -> ReflectorStatus;

    /// Stops it: no more requests at once, then what subscribers have not handled within `grace`, then all.
    fn stop(&self, grace: Duration) -> BoxFuture<'_, ()>;
}

/// How long actors may take to stop, beyond what their subscribers are given.
const PATIENCE: Duration = Duration::from_secs(5);

/// The actors of one reflector, for whoever stops it.
pub(super) struct Actors<K: Resource> {
    shared: Arc<Shared<K>>,
    store: Addr<DeltaFifoStore<K>>,
    publisher: Addr<Publisher<K>>,
    /// Supervisor and timer: what brings news in.
    intake: tokio::sync::Mutex<Group>,
    /// Store and publisher: what passes news on.
    outlet: tokio::sync::Mutex<Group>,
    members: Vec<StopHandle>,
}

/// Starts all actors of a reflector on the current arbiter.
///
/// `options` must have been checked.
pub(crate) fn start<K: Resource>(
    kind: Kind,
    source: SourceFactory<K>,
    options: Options<K>,
    mut rng: fastrand::Rng,
) -> Result<Reflector<K>, ApiError> {
    let source = source()?;
    let writer = StoreWriter::default();
    let mut indexer = Indexer::default();
    for (name, function) in options.indices {
        indexer.add_index(&name, function).expect("checked options name no index twice");
    }
    let selection = Arc::new(options.selection);
    let shared =
        Arc::new(Shared::new(options.name, kind, Arc::clone(&selection), writer.store().clone()));
    let faults = options.faults;

    // All of them first get their addresses, then start: those that are sent to before those that send.
    let supervisor_context = Context::<Supervisor<K>>::new();
    let supervisor_addr = supervisor_context.address();
    let mut restart = || RestartOptions {
        backoff: options.backoff,
        rng: rng.fork(),
        ..RestartOptions::default()
    };
    let tell_supervisor = || tell_of_restarts(&supervisor_addr);

    let publisher = supervision::start(
        "publisher",
        Publisher::new(Arc::clone(&shared), faults.clone()),
        restart(),
        tell_supervisor(),
    );
    let store = supervision::start(
        STORE,
        DeltaFifoStore::new(
            Arc::clone(&shared),
            writer,
            indexer,
            Intake {
                gate: Gate::new(shared.kind.clone(), Arc::clone(&selection)),
                discipline: options.discipline,
                transform: options.transform,
            },
            publisher.addr().clone(),
            faults.clone(),
        ),
        restart(),
        tell_supervisor(),
    );
    let timer = supervision::start(
        "resync_timer",
        ResyncTimer::new(
            ResyncSchedule::new(options.resync),
            options.should_resync,
            store.addr().clone(),
            faults.clone(),
        ),
        restart(),
        tell_supervisor(),
    );
    let streaming = match options.streaming_lists {
        StreamingLists::WherePossible if source.has_streaming_lists() => Streaming::Possible,
        StreamingLists::WherePossible | StreamingLists::Never => Streaming::Never,
    };
    let settings = Settings {
        selection: Arc::clone(&selection),
        page_size: options.page_size,
        watch_timeout: options.watch_timeout,
        streaming,
        backoff: options.backoff,
        keep_unserved: options.keep_unserved,
    };
    let restart_supervisor = restart();
    let supervisor = Supervisor {
        machine: Machine::new(settings, rng.fork()),
        selection,
        source,
        store: store.addr().clone(),
        shared: Arc::clone(&shared),
        on_error: options.on_error,
        epoch: Epoch::default(),
        child: None,
        audits: options.audit.map(|period| AuditTimer::new(period, rng.fork())),
        faults,
    };
    let supervisor = supervision::start_in(
        supervisor_context,
        "supervisor",
        supervisor,
        restart_supervisor,
        Hooks::default(),
    );

    let members = vec![
        publisher.stop_handle(),
        store.stop_handle(),
        timer.stop_handle(),
        supervisor.stop_handle(),
    ];
    let (mut intake, mut outlet) = (Group::new(), Group::new());
    let publisher = outlet.add(publisher);
    let store = outlet.add(store);
    let timer = intake.add(timer);
    intake.add(supervisor);
    let actors = Actors {
        shared: Arc::clone(&shared),
        store: store.clone(),
        publisher: publisher.clone(),
        intake: tokio::sync::Mutex::new(intake),
        outlet: tokio::sync::Mutex::new(outlet),
        members,
    };
    let next_subscription = Arc::new(AtomicU64::new(1));
    Ok(Reflector { shared, store, publisher, timer, actors: Arc::new(actors), next_subscription })
}

/// The supervisor has to know: what was queued in a store that crashed is lost.
fn tell_of_restarts<K: Resource>(supervisor: &Addr<Supervisor<K>>) -> Hooks {
    let supervisor = supervisor.downgrade();
    Hooks::default().on_restart(move |report| {
        if let Some(supervisor) = supervisor.upgrade() {
            let told = supervisor.send(Restarted(report.clone()));
            actix_rt::spawn(told);
        }
    })
}

impl<K: Resource> Actors<K> {
    pub(super) fn members(&self) -> Vec<MemberStatus> {
        self.members.iter().map(StopHandle::status).collect()
    }
}

impl<K: Resource> Control for Actors<K> {
    fn synced(&self) -> BoxFuture<'_, Result<(), NotSynced>> {
        Box::pin(self.shared.synced())
    }

    fn status(&self) -> ReflectorStatus {
        self.shared.status(self.members())
    }

    fn stop(&self, grace: Duration) -> BoxFuture<'_, ()> {
        let stopped = self.stop_in_order(grace);
        Box::pin(async move {
            // An arbiter that somebody blocks must not block this.
            if tokio::time::timeout(grace + PATIENCE, stopped).await.is_err() {
                tracing::error!(kind = %self.shared.kind, "its arbiter is blocked: its actors are left behind");
            }
            self.shared.progress.send_modify(|progress| progress.phase = Phase::Stopped);
        })
    }
}

impl<K: Resource> Actors<K> {
    async fn stop_in_order(&self, grace: Duration) {
        self.intake.lock().await.stop().await;
        let drain = async {
            // Either may be gone; then there is nothing to wait for.
            self.store.send(Flush).await.ok();
            let subscribers = self.publisher.send(Subscribers(PhantomData)).await;
            let subscribers = subscribers.unwrap_or_default();
            join_all(subscribers.iter().map(|subscriber| subscriber.is_drained())).await;
        };
        if tokio::time::timeout(grace, drain).await.is_err() {
            tracing::warn!(kind = %self.shared.kind, ?grace, "subscribers did not handle everything in time");
        }
        self.outlet.lock().await.stop().await;
    }
}

impl<K: Resource> fmt::Debug for Actors<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.members()).finish()
    }
}
