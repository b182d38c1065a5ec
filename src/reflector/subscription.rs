use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use actix::{Addr, Recipient};
use tokio::sync::{Notify, watch};

use super::messages::{Publish, SubscriptionId, Unschedule, Unsubscribe};
use super::pending::Pending;
use super::publisher::Publisher;
use super::resync::Requested;
use super::resync_timer::ResyncTimer;
use super::status::{SubscriberCounters, SubscriberStatus, lock};
use super::{Cause, ResourceEvent, ResourceEvents, ResourceSnapshot};
use crate::cache::Snapshot;
use crate::object::Resource;

/// How changes reach a subscriber that does not keep up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivery {
    /// Every change, in order, while no more than `at_most` wait; beyond that one per object, joined.
    EveryChange {
        /// So many changes may wait.
        at_most: usize,
    },
    /// One per object, always joined: the state of each object when its turn comes.
    Latest,
}

impl Default for Delivery {
    fn default() -> Self {
        Self::EveryChange { at_most: 512 }
    }
}

/// How one subscriber wants to be told.
///
/// ```
/// use actix::{Actor, Context, Handler};
/// use k8s_openapi::api::core::v1::Pod;
/// use kubeflect::embedded::ApiServer;
/// use kubeflect::reflector::Delivery;
/// use kubeflect::{Options, ResourceEvent, Runtime, SubscribeOptions};
///
/// struct Slow;
/// impl Actor for Slow { type Context = Context<Self>; }
/// impl Handler<ResourceEvent<Pod>> for Slow {
///     type Result = ();
///     fn handle(&mut self, _: ResourceEvent<Pod>, _: &mut Context<Self>) {}
/// }
///
/// # actix_rt::System::new().block_on(async {
/// # let runtime = Runtime::new(ApiServer::demo_cluster(1));
/// let pods = runtime.reflect::<Pod>(Options::all()).await?;
/// let newest_only = SubscribeOptions::default().delivery(Delivery::Latest).name("slow");
/// let subscription = pods.subscribe_with(Slow.start(), newest_only).await?;
/// assert!(subscription.synced().await);
/// assert_eq!(subscription.status().pending, 0);
/// # runtime.stop().await;
/// # Ok::<(), kubeflect::Error>(())
/// # }).unwrap();
/// ```
#[derive(Debug, Clone, Default)]
pub struct SubscribeOptions {
    pub(super) delivery: Delivery,
    pub(super) resync: Requested,
    pub(super) name: Option<Arc<str>>,
}

impl SubscribeOptions {
    /// How changes reach it when it does not keep up.
    #[must_use]
    pub fn delivery(mut self, delivery: Delivery) -> Self {
        self.delivery = delivery;
        self
    }

    /// What its status is to call it.
    #[must_use]
    pub fn name(mut self, name: impl Into<Arc<str>>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// A resync period of its own, not shorter than the reflector's.
    #[must_use]
    pub fn resync(mut self, period: Duration) -> Self {
        self.resync = Requested::Every(period);
        self
    }

    /// No resync for this subscriber.
    #[must_use]
    pub fn no_resync(mut self) -> Self {
        self.resync = Requested::Never;
        self
    }
}

/// A subscriber's side of the bargain. Dropping it changes nothing: the subscriber stays subscribed.
pub struct Subscription<K: Resource> {
    pub(super) subscriber: Arc<Subscriber<K>>,
    pub(super) publisher: Addr<Publisher<K>>,
    pub(super) timer: Addr<ResyncTimer<K>>,
}

impl<K: Resource> Subscription<K> {
    /// Tells the subscriber nothing more. What it was sent already it still handles.
    pub async fn unsubscribe(self) {
        self.subscriber.close();
        let id = self.subscriber.id;
        // Either may be gone with its reflector; then so is the subscription.
        self.publisher.send(Unsubscribe(id)).await.ok();
        self.timer.send(Unschedule(id)).await.ok();
    }

    /// How the subscriber is doing.
    pub fn status(&self) -> SubscriberStatus {
        lock(&self.subscriber.counters.state).clone()
    }

    /// Waits until the subscriber has handled everything of its first snapshot. Tells whether it has: it may have
    /// stopped before.
    pub async fn synced(&self) -> bool {
        let mut synced = self.subscriber.synced.subscribe();
        synced
            .wait_for(|state| *state != SyncState::Awaited)
            .await
            .is_ok_and(|state| *state == SyncState::Handled)
    }
}

impl<K: Resource> fmt::Debug for Subscription<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Subscription").field(&self.status()).finish()
    }
}

/// Who is told, and what it has not been told yet. Shared by the publisher, which adds, and the delivery, which takes.
pub(super) struct Subscriber<K: Resource> {
    pub(super) id: SubscriptionId,
    pub(super) target: Target<K>,
    backlog: Mutex<Backlog<K>>,
    pub(super) counters: Arc<SubscriberCounters>,
    pub(super) changed: Notify,
    drained: Notify,
    closed: AtomicBool,
    closing: Notify,
    synced: watch::Sender<SyncState>,
}

/// Where events go.
pub(super) enum Target<K: Resource> {
    Events(Recipient<ResourceEvent<K>>),
    Batches(Recipient<ResourceEvents<K>>),
    Snapshots { recipient: Recipient<ResourceSnapshot<K>>, debounce: Duration },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SyncState {
    Awaited,
    Handled,
    /// The subscriber is gone.
    Over,
}

struct Backlog<K: Resource> {
    pending: Pending<K>,
    /// What the subscriber will know when nothing is pending.
    told: Arc<Snapshot<K>>,
    initial: Initial,
    in_flight: bool,
}

/// Whether the end of the first snapshot is pending or has been.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Initial {
    Incomplete,
    Complete,
}

impl<K: Resource> Subscriber<K> {
    pub(super) fn new(id: SubscriptionId, target: Target<K>, options: SubscribeOptions) -> Self {
        let SubscribeOptions { delivery, name, .. } = options;
        let at_most = match delivery {
            Delivery::EveryChange { at_most } => at_most.max(1),
            Delivery::Latest => 0,
        };
        let status = SubscriberStatus {
            id: id.0,
            name,
            delivery,
            pending: 0,
            delivered: 0,
            coalesced: 0,
            synced: false,
        };
        Self {
            id,
            target,
            backlog: Mutex::new(Backlog {
                pending: Pending::new(at_most),
                told: Arc::default(),
                initial: Initial::Incomplete,
                in_flight: false,
            }),
            counters: Arc::new(SubscriberCounters { state: Mutex::new(status) }),
            changed: Notify::new(),
            drained: Notify::new(),
            closed: AtomicBool::new(false),
            closing: Notify::new(),
            synced: watch::Sender::new(SyncState::Awaited),
        }
    }

    /// The cache went on, by these events.
    pub(super) fn tell(&self, publish: &Publish<K>, events: &[ResourceEvents<K>]) {
        self.change(|backlog| {
            let told = backlog.told.generation();
            // A resync has events, but leads nowhere else.
            if told == publish.before {
                backlog.pending.push_all(events);
                backlog.told = Arc::clone(&publish.after);
            } else if told < publish.after.generation() {
                backlog.rebase(&publish.after);
                backlog.told = Arc::clone(&publish.after);
            }
            if publish.synced {
                backlog.complete_initial();
            }
        });
    }

    /// The cache is in this state; whatever led there may not have been told.
    pub(super) fn catch_up(&self, now: &Arc<Snapshot<K>>) {
        self.change(|backlog| {
            if backlog.told.generation() < now.generation() {
                backlog.rebase(now);
                backlog.told = Arc::clone(now);
            }
        });
    }

    /// All that is told so far makes up the first snapshot.
    pub(super) fn complete_initial(&self) {
        self.change(Backlog::complete_initial);
    }

    /// Takes what is to be sent next; none while nothing waits.
    pub(super) fn take(&self, most: usize) -> Option<ResourceEvents<K>> {
        let mut backlog = lock(&self.backlog);
        if backlog.pending.is_empty() {
            backlog.in_flight = false;
            self.drained.notify_waiters();
            return None;
        }
        backlog.in_flight = true;
        let taken = backlog.pending.take(most);
        self.count(&backlog);
        Some(taken)
    }

    /// Takes the newest state; none while it has not changed.
    pub(super) fn take_snapshot(&self) -> Option<Arc<Snapshot<K>>> {
        let mut snapshot = None;
        while self.take(usize::MAX).is_some() {
            snapshot = Some(Arc::clone(&lock(&self.backlog).told));
        }
        // Not handled yet, though nothing is pending any more.
        lock(&self.backlog).in_flight = snapshot.is_some();
        snapshot
    }

    pub(super) fn delivered(&self, events: usize) {
        lock(&self.counters.state).delivered += events as u64;
    }

    pub(super) fn synced_handled(&self) {
        lock(&self.counters.state).synced = true;
        self.synced.send_replace(SyncState::Handled);
    }

    pub(super) fn close(&self) {
        self.closed.store(true, Ordering::Release);
        self.synced.send_if_modified(|state| {
            let awaited = *state == SyncState::Awaited;
            if awaited {
                *state = SyncState::Over;
            }
            awaited
        });
        self.closing.notify_waiters();
        self.drained.notify_waiters();
    }

    /// Waits until the subscription is over.
    pub(super) async fn closed(&self) {
        loop {
            let closing = self.closing.notified();
            if self.is_closed() {
                return;
            }
            closing.await;
        }
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// Waits until everything told has been handled.
    pub(super) async fn is_drained(&self) {
        loop {
            let drained = self.drained.notified();
            {
                let backlog = lock(&self.backlog);
                if self.is_closed() || (backlog.pending.is_empty() && !backlog.in_flight) {
                    return;
                }
            }
            drained.await;
        }
    }

    fn change(&self, change: impl FnOnce(&mut Backlog<K>)) {
        let mut backlog = lock(&self.backlog);
        change(&mut backlog);
        self.count(&backlog);
        if !backlog.pending.is_empty() {
            self.changed.notify_one();
        }
    }

    fn count(&self, backlog: &Backlog<K>) {
        let mut status = lock(&self.counters.state);
        status.pending = backlog.pending.len();
        status.coalesced = backlog.pending.coalesced();
    }
}

impl<K: Resource> Backlog<K> {
    fn complete_initial(&mut self) {
        if self.initial == Initial::Incomplete {
            self.initial = Initial::Complete;
            self.pending.push_synced();
        }
    }

    fn rebase(&mut self, now: &Snapshot<K>) {
        let cause = match self.initial {
            Initial::Incomplete => Cause::InitialList,
            Initial::Complete => Cause::Relist,
        };
        self.pending.rebase(&self.told.differences(now), cause);
    }
}

impl<K: Resource> fmt::Debug for Subscriber<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscriber").field("id", &self.id).finish_non_exhaustive()
    }
}
