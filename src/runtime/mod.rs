//! Puts everything together: many reflectors in one process, shared, supervised and stopped together.

mod arbiters;
mod error;
mod shutdown;

use std::any::{Any, TypeId};
use std::collections::BTreeMap;
use std::fmt;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use actix::{Actor, Addr, Context};
use futures::future::join_all;

use self::arbiters::Arbiters;
pub use self::arbiters::Threads;
pub use self::error::{Error, Result};
use crate::api::ListerWatcher;
#[cfg(feature = "client")]
use crate::object::StaticKind;
use crate::object::{Kind, Resource};
use crate::reflector::{
    self, Condition, Control, NotSynced, Options, Phase, Reflector, ReflectorStatus, SourceFactory,
};

/// All reflectors of one cluster in this process.
///
/// Cheap to clone and usable from any thread: put it into `web::Data`, hand it to actors.
#[doc(alias = "SharedInformerFactory")]
#[derive(Clone)]
pub struct Runtime {
    inner: Arc<Inner>,
}

/// How a [`Runtime`] runs.
#[derive(Debug, Clone, Copy)]
pub struct RuntimeOptions {
    /// Where reflectors run.
    pub threads: Threads,
    /// How long subscribers may take to handle what is pending when the runtime stops.
    pub grace: Duration,
    /// Decides all jitter, so that a test can repeat it. Drawn at random unless set.
    pub seed: Option<u64>,
    /// How long answers are waited for, and how large they may be.
    #[cfg(feature = "client")]
    pub answers: crate::client::SourceOptions,
}

impl Default for RuntimeOptions {
    fn default() -> Self {
        Self {
            threads: Threads::default(),
            grace: Duration::from_secs(10),
            seed: None,
            #[cfg(feature = "client")]
            answers: crate::client::SourceOptions::default(),
        }
    }
}

struct Inner {
    #[cfg(feature = "client")]
    cluster: Option<Arc<dyn crate::client::Cluster>>,
    #[cfg(feature = "client")]
    answers: crate::client::SourceOptions,
    arbiters: Arbiters,
    grace: Duration,
    registry: tokio::sync::Mutex<BTreeMap<ReflectorKey, Registered>>,
    /// The same controls, for those who may not wait.
    controls: Mutex<Vec<Arc<dyn Control>>>,
    stopped: AtomicBool,
    rng: Mutex<fastrand::Rng>,
}

/// Two requests with the same key share a reflector.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct ReflectorKey {
    objects: TypeId,
    kind: Kind,
    options: String,
}

struct Registered {
    /// A `Reflector<K>` of the key's type.
    reflector: Box<dyn Any + Send>,
    control: Arc<dyn Control>,
}

impl Runtime {
    /// A runtime for sources of your own: see [`reflect_from`](Self::reflect_from).
    pub fn without_cluster(options: RuntimeOptions) -> Self {
        Self::build(
            #[cfg(feature = "client")]
            None,
            options,
        )
    }

    /// A runtime for the cluster of the kubeconfig, or of the pod this runs in.
    ///
    /// # Errors
    /// When there is neither, or the one there is can not be used.
    #[cfg(feature = "client")]
    pub async fn connect() -> Result<Self> {
        // Reads files, which may be far away.
        let read = tokio::task::spawn_blocking(crate::client::Connection::infer);
        let connection = read.await.map_err(|_stopped| Error::Stopped)??;
        Ok(Self::new(crate::client::HttpCluster::from_connection(connection)))
    }

    /// A runtime for one cluster, within the actix system of the caller.
    #[cfg(feature = "client")]
    pub fn new(cluster: impl crate::client::Cluster) -> Self {
        Self::with_options(cluster, RuntimeOptions::default())
    }

    /// As [`new`](Self::new), with options.
    #[cfg(feature = "client")]
    pub fn with_options(cluster: impl crate::client::Cluster, options: RuntimeOptions) -> Self {
        Self::build(Some(Arc::new(cluster)), options)
    }

    fn build(
        #[cfg(feature = "client")] cluster: Option<Arc<dyn crate::client::Cluster>>,
        options: RuntimeOptions,
    ) -> Self {
        let rng = options.seed.map_or_else(fastrand::Rng::new, fastrand::Rng::with_seed);
        let inner = Inner {
            #[cfg(feature = "client")]
            cluster,
            #[cfg(feature = "client")]
            answers: options.answers,
            arbiters: Arbiters::new(options.threads),
            grace: options.grace,
            registry: tokio::sync::Mutex::default(),
            controls: Mutex::default(),
            stopped: AtomicBool::new(false),
            rng: Mutex::new(rng),
        };
        Self { inner: Arc::new(inner) }
    }

    /// Reflects a kind that is known when compiling. Asked again with the same options, gives the same reflector.
    ///
    /// # Errors
    /// When the options can not be meant, or the runtime has no cluster.
    #[cfg(feature = "client")]
    pub async fn reflect<K: StaticKind>(&self, options: Options<K>) -> Result<Reflector<K>> {
        self.reflect_kind(K::static_kind(), options).await
    }

    /// Reflects a kind that is known when running only, as `DynamicObject` or a struct of your own.
    ///
    /// ```
    /// use kubeflect::client::{Cluster, Discovery};
    /// use kubeflect::embedded::ApiServer;
    /// use kubeflect::object::DynamicObject;
    /// use kubeflect::{Options, Runtime};
    ///
    /// # actix_rt::System::new().block_on(async {
    /// let cluster = ApiServer::demo_cluster(1);
    /// let discovery = Discovery::run(&*cluster.connect()?).await?;
    /// let kind = discovery.resolve("deploy").expect("every cluster has it").kind.clone();
    ///
    /// let runtime = Runtime::new(cluster);
    /// let deployments = runtime.reflect_kind::<DynamicObject>(kind, Options::all()).await?;
    /// deployments.synced().await?;
    /// for deployment in deployments.store().list() {
    ///     println!("{:?} wants {}", deployment.metadata.name, deployment.data["spec"]["replicas"]);
    /// }
    /// # assert_eq!(deployments.store().len(), 5);
    /// # runtime.stop().await;
    /// # Ok::<(), kubeflect::Error>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Errors
    /// As [`reflect`](Self::reflect).
    #[cfg(feature = "client")]
    pub async fn reflect_kind<K: Resource>(
        &self,
        kind: Kind,
        options: Options<K>,
    ) -> Result<Reflector<K>> {
        let cluster = self.inner.cluster.clone().ok_or(Error::NoCluster)?;
        let (served, answers, prune) = (kind.clone(), self.inner.answers, options.prune);
        let source: SourceFactory<K> = Box::new(move || {
            let source = crate::client::KubernetesSource::new(cluster.connect()?, served);
            Ok(Rc::new(source.with_options(answers).pruned(prune)) as _)
        });
        self.register(kind, options, source).await
    }

    /// Reflects a source of your own, made on the arbiter it will live on.
    ///
    /// # Errors
    /// When the options can not be meant.
    pub async fn reflect_from<K, S>(
        &self,
        kind: Kind,
        source: impl FnOnce() -> S + Send + 'static,
        options: Options<K>,
    ) -> Result<Reflector<K>>
    where
        K: Resource,
        S: ListerWatcher<K>,
    {
        self.register(kind, options, Box::new(|| Ok(Rc::new(source()) as _))).await
    }

    async fn register<K: Resource>(
        &self,
        kind: Kind,
        options: Options<K>,
        source: SourceFactory<K>,
    ) -> Result<Reflector<K>> {
        options.check(&kind)?;
        if self.is_stopped() {
            return Err(Error::Stopped);
        }
        let key = ReflectorKey {
            objects: TypeId::of::<K>(),
            kind: kind.clone(),
            options: options.fingerprint(),
        };
        let mut registry = self.inner.registry.lock().await;
        registry.retain(|_, known| !is_stopped(&known.control));
        let known =
            registry.get(&key).and_then(|known| known.reflector.downcast_ref::<Reflector<K>>());
        if let Some(reflector) = known {
            return Ok(reflector.clone());
        }
        let rng = lock(&self.inner.rng).fork();
        let started =
            self.inner.arbiters.run(move || reflector::start(kind, source, options, rng)).await;
        let reflector: Reflector<K> = started.ok_or(Error::Stopped)??;
        let control = reflector.control();
        lock(&self.inner.controls).push(Arc::clone(&control));
        registry.insert(key, Registered { reflector: Box::new(reflector.clone()), control });
        Ok(reflector)
    }

    /// Starts an actor in the actix system of the runtime, for programs that have none of their own. It does not share
    /// a thread with reflectors.
    ///
    /// # Errors
    /// When the runtime has been stopped.
    pub async fn start_actor<A>(
        &self,
        actor: impl FnOnce() -> A + Send + 'static,
    ) -> Result<Addr<A>>
    where
        A: Actor<Context = Context<A>>,
    {
        self.inner.arbiters.run_aside(move || actor().start()).await.ok_or(Error::Stopped)
    }

    /// How every reflector is doing, in the order they were asked for.
    pub fn status(&self) -> Vec<ReflectorStatus> {
        self.controls().iter().map(|control| control.status()).collect()
    }

    /// Whether every reflector has applied its first list and goes on, and why not.
    pub fn readiness(&self) -> Vec<(Kind, std::result::Result<(), Option<Condition>>)> {
        let ready = |status: ReflectorStatus| {
            let is_alive = status.phase != Phase::Stopped;
            let ready = if status.synced && is_alive { Ok(()) } else { Err(status.condition) };
            (status.kind, ready)
        };
        self.status().into_iter().map(ready).collect()
    }

    /// Waits until every reflector so far has applied its first list.
    ///
    /// # Errors
    /// As soon as waiting alone is known not to help one of them.
    pub async fn synced(&self) -> std::result::Result<(), NotSynced> {
        let controls = self.controls();
        futures::future::try_join_all(controls.iter().map(|control| control.synced()))
            .await
            .map(drop)
    }

    /// Runs until SIGTERM or Ctrl-C, then stops. A second signal does not wait for subscribers.
    ///
    /// # Errors
    /// When signals can not be listened for, and when somebody ends the threads of the reflectors.
    pub async fn run(&self) -> Result<()> {
        shutdown::run(self).await
    }

    /// Stops all reflectors: no more requests at once, then what subscribers handle within the grace period, then all.
    pub async fn stop(&self) {
        self.stop_within(self.inner.grace).await;
    }

    /// Whether the threads of the reflectors run. If they do not, nothing is reflected any more: only a new process
    /// helps.
    pub fn is_alive(&self) -> bool {
        self.inner.arbiters.are_alive()
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.inner.stopped.load(Ordering::Acquire)
    }

    pub(crate) async fn stop_within(&self, grace: Duration) {
        self.inner.stopped.store(true, Ordering::Release);
        let controls = self.controls();
        join_all(controls.iter().map(|control| control.stop(grace))).await;
        self.inner.arbiters.stop();
    }

    /// Of all that have not been stopped.
    fn controls(&self) -> Vec<Arc<dyn Control>> {
        let mut controls = lock(&self.inner.controls);
        controls.retain(|control| !is_stopped(control));
        controls.clone()
    }
}

fn is_stopped(control: &Arc<dyn Control>) -> bool {
    control.status().phase == Phase::Stopped
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl fmt::Debug for Runtime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Runtime").field("reflectors", &self.status()).finish_non_exhaustive()
    }
}
