use std::collections::BTreeMap;
use std::mem;
use std::sync::Arc;

use actix::{Actor, AsyncContext as _, Context, Handler, Supervised};

use super::ResourceEvents;
use super::delivery::deliver;
use super::messages::{Publish, Subscribe, Subscribers, SubscriptionId, Unschedule, Unsubscribe};
use super::status::{Shared, lock};
use super::subscription::Subscriber;
use crate::cache::Snapshot;
use crate::object::Resource;
use crate::supervision::Faults;

/// Puts every change of the cache into the backlog of every subscription. Never waits for a subscriber.
///
/// What is pending lives in the subscriptions: after a crash each is brought from what it was told to what is true
/// now, by comparing the two.
pub(super) struct Publisher<K: Resource> {
    shared: Arc<Shared<K>>,
    subscribers: BTreeMap<SubscriptionId, Arc<Subscriber<K>>>,
    /// What everybody who joined has been told.
    told: Arc<Snapshot<K>>,
    /// Whether that includes the first list.
    synced: bool,
    faults: Faults,
}

impl<K: Resource> Publisher<K> {
    pub(super) fn new(shared: Arc<Shared<K>>, faults: Faults) -> Self {
        Self { shared, subscribers: BTreeMap::new(), told: Arc::default(), synced: false, faults }
    }

    fn forget(&mut self, id: SubscriptionId) {
        self.subscribers.remove(&id);
        lock(&self.shared.subscribers).remove(&id.0);
    }

    fn forget_closed(&mut self) {
        let closed: Vec<SubscriptionId> =
            self.subscribers.values().filter(|one| one.is_closed()).map(|one| one.id).collect();
        for id in closed {
            self.forget(id);
        }
    }
}

impl<K: Resource> Actor for Publisher<K> {
    type Context = Context<Self>;

    fn started(&mut self, _: &mut Context<Self>) {
        self.faults.hit("publisher", "started");
        // In this order: once the first list is said to be applied, it is shown.
        self.synced = self.shared.progress.borrow().synced;
        self.told = self.shared.store.snapshot();
        for subscriber in self.subscribers.values() {
            subscriber.catch_up(&self.told);
            if self.synced {
                subscriber.complete_initial();
            }
        }
    }

    /// Only when stopped for good: a crash comes by `restarting`.
    fn stopped(&mut self, _: &mut Context<Self>) {
        for subscriber in self.subscribers.values() {
            subscriber.close();
        }
        lock(&self.shared.subscribers).clear();
    }
}

/// The subscriptions survive; `started` brings them up to date.
impl<K: Resource> Supervised for Publisher<K> {}

impl<K: Resource> Handler<Publish<K>> for Publisher<K> {
    type Result = ();

    fn handle(&mut self, mut publish: Publish<K>, _: &mut Context<Self>) {
        self.faults.hit("publisher", "Publish");
        self.forget_closed();
        self.synced |= publish.synced;
        publish.synced = self.synced;
        publish.events.iter().for_each(|part| lock(&self.shared.changes).count(part));
        let for_others = publish.without_resync();
        for (id, subscriber) in &self.subscribers {
            let events = match &for_others {
                Some(for_others) if !publish.resync_due.contains(id) => for_others,
                _ => &publish.events,
            };
            subscriber.tell(&publish, events);
        }
        let mut after = publish.after;
        if self.told.generation() < after.generation() {
            mem::swap(&mut self.told, &mut after);
        }
        if publish.events.len() > 1 {
            actix_rt::spawn(let_go(after, publish.events));
        }
        self.faults.hit("publisher", "Publish/end");
    }
}

/// Ends what only an old snapshot and the events after it still hold: a list may have changed so much that all at once
/// would keep the thread too long. The snapshot first, so that it is the events that hold the old states.
async fn let_go<K: Resource>(before: Arc<Snapshot<K>>, events: Vec<ResourceEvents<K>>) {
    drop(before);
    for part in events {
        drop(part);
        tokio::task::yield_now().await;
    }
}

impl<K: Resource> Handler<Subscribe<K>> for Publisher<K> {
    type Result = ();

    fn handle(
        &mut self,
        Subscribe { subscriber, timer }: Subscribe<K>,
        context: &mut Context<Self>,
    ) {
        self.faults.hit("publisher", "Subscribe");
        let id = subscriber.id;
        if self.subscribers.contains_key(&id) {
            // Asked again because a crash ate the answer.
            return;
        }
        // The whole cache, then every change after it: no message comes between the two.
        subscriber.catch_up(&self.told);
        if self.synced {
            subscriber.complete_initial();
        }
        lock(&self.shared.subscribers).insert(id.0, Arc::clone(&subscriber.counters));
        self.subscribers.insert(id, Arc::clone(&subscriber));
        let publisher = context.address().downgrade();
        actix_rt::spawn(async move {
            deliver(subscriber).await;
            // Whoever is gone has forgotten it already.
            if let Some(publisher) = publisher.upgrade() {
                publisher.send(Unsubscribe(id)).await.ok();
            }
            if let Some(timer) = timer.upgrade() {
                timer.send(Unschedule(id)).await.ok();
            }
        });
        self.faults.hit("publisher", "Subscribe/end");
    }
}

impl<K: Resource> Handler<Unsubscribe> for Publisher<K> {
    type Result = ();

    fn handle(&mut self, Unsubscribe(id): Unsubscribe, _: &mut Context<Self>) {
        self.faults.hit("publisher", "Unsubscribe");
        self.forget(id);
    }
}

impl<K: Resource> Handler<Subscribers<K>> for Publisher<K> {
    type Result = Vec<Arc<Subscriber<K>>>;

    fn handle(&mut self, _: Subscribers<K>, _: &mut Context<Self>) -> Self::Result {
        self.faults.hit("publisher", "Subscribers");
        self.subscribers.values().map(Arc::clone).collect()
    }
}
