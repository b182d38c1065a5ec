use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use actix::{Addr, Message, Recipient};

use super::delta_fifo_store::DeltaFifoStore;
use super::messages::{AddIndex, Schedule, Subscribe, SubscriptionId};
use super::publisher::Publisher;
use super::resync_timer::ResyncTimer;
use super::start::{Actors, Control};
use super::status::Shared;
use super::subscription::{Subscriber, Target};
use super::{
    Condition, Phase, ReflectorStatus, ResourceEvent, ResourceEvents, ResourceSnapshot,
    SubscribeOptions, Subscription,
};
use crate::cache::{IndexConflict, Store};
use crate::object::{Kind, Resource};

/// A reflected kind: its cache, and the way to subscribe to its changes.
///
/// Cheap to clone, usable from any thread. The reflector runs until it or its runtime is stopped, or nobody holds either
/// any more.
#[doc(alias("informer", "SharedInformer", "SharedIndexInformer"))]
pub struct Reflector<K: Resource> {
    pub(super) shared: Arc<Shared<K>>,
    pub(super) store: Addr<DeltaFifoStore<K>>,
    pub(super) publisher: Addr<Publisher<K>>,
    pub(super) timer: Addr<ResyncTimer<K>>,
    pub(super) actors: Arc<Actors<K>>,
    pub(super) next_subscription: Arc<AtomicU64>,
}

/// The reflector has been stopped.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the reflector of {kind} has been stopped")]
pub struct Stopped {
    /// What it reflected.
    pub kind: String,
}

/// Why an index was not added.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AddIndexError {
    /// There is one of this name.
    #[error(transparent)]
    Conflict(#[from] IndexConflict),
    /// The reflector has been stopped.
    #[error(transparent)]
    Stopped(#[from] Stopped),
}

/// Why a cache is not there.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum NotSynced {
    /// Somebody has to grant a right, install a kind or mend a configuration. The reflector goes on trying.
    #[error(transparent)]
    NeedsHelp(Box<Condition>),
    /// Nothing is known to be wrong for good, but it took too long. The reflector goes on trying.
    #[error("{kind} not reflected within {waited:?}")]
    TooSlow {
        /// What was to be reflected.
        kind: String,
        /// For how long we waited.
        waited: Duration,
        /// What stands in the way.
        #[source]
        condition: Option<Box<Condition>>,
    },
    /// It has been stopped.
    #[error(transparent)]
    Stopped(#[from] Stopped),
}

/// A request that a crash ate is asked again, this often.
const ATTEMPTS: usize = 8;

impl<K: Resource> Reflector<K> {
    /// What is reflected.
    pub fn kind(&self) -> &Kind {
        &self.shared.kind
    }

    /// The cache, for reading.
    pub fn store(&self) -> &Store<K> {
        &self.shared.store
    }

    /// How the reflector is doing.
    pub fn status(&self) -> ReflectorStatus {
        self.actors.status()
    }

    /// Whether the first list has been applied.
    pub fn has_synced(&self) -> bool {
        self.shared.progress.borrow().synced
    }

    /// Waits until the first list has been applied.
    ///
    /// ```
    /// use k8s_openapi::api::core::v1::Pod;
    /// use kubeflect::embedded::{ApiServer, Verb};
    /// use kubeflect::object::StaticKind;
    /// use kubeflect::reflector::NotSynced;
    /// use kubeflect::{Options, Runtime};
    ///
    /// # actix_rt::System::new().block_on(async {
    /// let cluster = ApiServer::demo_cluster(1);
    /// for verb in [Verb::List, Verb::Watch] {
    ///     cluster.forbid(&Pod::static_kind(), verb);
    /// }
    /// let runtime = Runtime::new(cluster);
    /// let pods = runtime.reflect::<Pod>(Options::all()).await?;
    /// match pods.synced().await {
    ///     Ok(()) => unreachable!("nobody may list them"),
    ///     Err(NotSynced::NeedsHelp(condition)) => println!("{condition}"), // can not watch pods: not allowed: …
    ///     Err(other) => return Err(other.into()),
    /// }
    /// # runtime.stop().await;
    /// # Ok::<(), kubeflect::Error>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Errors
    /// As soon as it is known that waiting alone will not help, and when the reflector is stopped.
    #[doc(alias = "WaitForCacheSync")]
    pub async fn synced(&self) -> Result<(), NotSynced> {
        self.shared.synced().await
    }

    /// Waits until the first list has been applied, but not for longer than `limit`.
    ///
    /// # Errors
    /// As [`synced`](Self::synced), and when it takes too long.
    pub async fn synced_within(&self, limit: Duration) -> Result<(), NotSynced> {
        let elapsed = |_| {
            let condition = self.shared.progress.borrow().condition.clone().map(Box::new);
            Err(NotSynced::TooSlow { kind: self.kind().to_string(), waited: limit, condition })
        };
        tokio::time::timeout(limit, self.synced()).await.unwrap_or_else(elapsed)
    }

    /// Tells an actor of every object there is and of every change to come, one by one.
    ///
    /// # Errors
    /// When the reflector has been stopped.
    pub async fn subscribe(
        &self,
        subscriber: impl Into<Recipient<ResourceEvent<K>>>,
    ) -> Result<Subscription<K>, Stopped> {
        self.subscribe_with(subscriber, SubscribeOptions::default()).await
    }

    /// As [`subscribe`](Self::subscribe), with options.
    ///
    /// # Errors
    /// When the reflector has been stopped.
    pub async fn subscribe_with(
        &self,
        subscriber: impl Into<Recipient<ResourceEvent<K>>>,
        options: SubscribeOptions,
    ) -> Result<Subscription<K>, Stopped> {
        self.join(Target::Events(subscriber.into()), options).await
    }

    /// Tells an actor of every object there is and of every change to come, as many at a time as are there.
    ///
    /// # Errors
    /// When the reflector has been stopped.
    pub async fn subscribe_batches(
        &self,
        subscriber: impl Into<Recipient<ResourceEvents<K>>>,
        options: SubscribeOptions,
    ) -> Result<Subscription<K>, Stopped> {
        self.join(Target::Batches(subscriber.into()), options).await
    }

    /// Tells an actor the whole cache whenever it has changed, and then has been left alone for `debounce`.
    ///
    /// # Errors
    /// When the reflector has been stopped.
    #[doc(alias = "UndeltaStore")]
    pub async fn subscribe_snapshots(
        &self,
        subscriber: impl Into<Recipient<ResourceSnapshot<K>>>,
        debounce: Duration,
    ) -> Result<Subscription<K>, Stopped> {
        let target = Target::Snapshots { recipient: subscriber.into(), debounce };
        let options = SubscribeOptions::default().delivery(super::Delivery::Latest).no_resync();
        self.join(target, options).await
    }

    /// Files objects under the values of a function from now on, those in the cache included.
    ///
    /// # Errors
    /// When there is an index of this name, or the reflector has been stopped.
    pub async fn add_index(
        &self,
        name: impl Into<String>,
        function: impl Fn(&K) -> Vec<String> + Send + Sync + 'static,
    ) -> Result<(), AddIndexError> {
        let (name, function) = (name.into(), Arc::new(function));
        for _ in 0..ATTEMPTS {
            let add = AddIndex { name: name.clone(), function: Arc::clone(&function) as _ };
            match self.store.send(add).await {
                Ok(added) => return Ok(added?),
                Err(_eaten) if self.store.connected() => {}
                Err(_stopped) => break,
            }
        }
        Err(self.stopped().into())
    }

    /// Stops reflecting. What subscribers have not handled within `grace` they are not told any more.
    pub async fn stop(&self, grace: Duration) {
        self.actors.stop(grace).await;
    }

    pub(crate) fn control(&self) -> Arc<dyn Control> {
        Arc::clone(&self.actors) as _
    }

    async fn join(
        &self,
        target: Target<K>,
        options: SubscribeOptions,
    ) -> Result<Subscription<K>, Stopped> {
        let id = SubscriptionId(self.next_subscription.fetch_add(1, Ordering::Relaxed));
        let period = options.resync;
        let subscriber = Arc::new(Subscriber::new(id, target, options));
        self.ask(&self.timer, || Schedule { id, period }).await?;
        self.ask(&self.publisher, || Subscribe {
            subscriber: Arc::clone(&subscriber),
            timer: self.timer.downgrade(),
        })
        .await?;
        Ok(Subscription {
            subscriber,
            publisher: self.publisher.clone(),
            timer: self.timer.clone(),
        })
    }

    /// Asks again when an actor crashes over it; it must be harmless to be asked twice.
    async fn ask<A, M>(&self, actor: &Addr<A>, message: impl Fn() -> M) -> Result<(), Stopped>
    where
        A: actix::Handler<M, Context = actix::Context<A>>,
        M: Message<Result = ()> + Send + 'static,
    {
        for _ in 0..ATTEMPTS {
            match actor.send(message()).await {
                Ok(()) => return Ok(()),
                Err(_eaten) if actor.connected() => {}
                Err(_stopped) => break,
            }
        }
        Err(self.stopped())
    }

    fn stopped(&self) -> Stopped {
        self.shared.stopped()
    }
}

impl<K> Shared<K> {
    pub(super) async fn synced(&self) -> Result<(), NotSynced> {
        let mut progress = self.progress.subscribe();
        loop {
            {
                let progress = progress.borrow_and_update();
                if progress.synced {
                    return Ok(());
                }
                if progress.phase == Phase::Stopped {
                    return Err(self.stopped().into());
                }
                if let Some(condition) = &progress.condition
                    && condition.needs_help()
                {
                    return Err(NotSynced::NeedsHelp(Box::new(condition.clone())));
                }
            }
            progress.changed().await.map_err(|_closed| self.stopped())?;
        }
    }

    fn stopped(&self) -> Stopped {
        Stopped { kind: self.kind.to_string() }
    }
}

impl<K: Resource> Clone for Reflector<K> {
    fn clone(&self) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
            store: self.store.clone(),
            publisher: self.publisher.clone(),
            timer: self.timer.clone(),
            actors: Arc::clone(&self.actors),
            next_subscription: Arc::clone(&self.next_subscription),
        }
    }
}

impl<K: Resource> fmt::Debug for Reflector<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Reflector").field(&self.status()).finish()
    }
}
