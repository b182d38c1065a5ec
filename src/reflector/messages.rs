//! What the actors of one reflector tell each other.

use std::collections::BTreeSet;
use std::marker::PhantomData;
use std::sync::Arc;

use actix::{Message, WeakAddr};

use super::history::Older;
use super::resync_timer::ResyncTimer;
use super::subscription::Subscriber;
use super::{Cause, ResourceEvent, ResourceEvents};
use crate::api::{ApiError, WatchEvent};
use crate::cache::{IndexConflict, IndexFn, Snapshot};
use crate::object::{Resource, ResourceVersion};
use crate::supervision::RestartReport;

/// Counts the children that list or watch: what an earlier one still says does not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) struct Epoch(pub(super) u64);

/// Which subscription.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SubscriptionId(pub(super) u64);

/// To the store: only this epoch counts from now on. Answers up to where the cache has come.
#[derive(Debug, Message)]
#[rtype(result = "Option<ResourceVersion>")]
pub(super) struct BeginEpoch(pub(super) Epoch);

/// To the store: part of a list. Nothing shows before it is committed.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub(super) struct Stage<K: Resource> {
    pub(super) epoch: Epoch,
    pub(super) events: Vec<WatchEvent<K>>,
}

/// To the store: the list is complete. Answered when every subscription has it.
#[derive(Debug, Message)]
#[rtype(result = "Committed")]
pub(super) struct Commit {
    pub(super) epoch: Epoch,
    pub(super) resource_version: ResourceVersion,
    pub(super) older: Older,
}

/// What became of a list.
#[derive(Debug)]
pub(super) enum Committed {
    Applied,
    /// It would have led back. Nothing of it has been applied.
    Refused(ApiError),
    /// Somebody else lists or watches by now.
    Outdated,
}

/// To the store: nothing of what is cached exists any more. Answered when every subscription has it.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub(super) struct Forget;

/// To the store: what a watch reported. Answered when every subscription has it.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub(super) struct Apply<K: Resource> {
    pub(super) epoch: Epoch,
    pub(super) events: Vec<WatchEvent<K>>,
}

/// To the store: these subscriptions are due to look at everything again.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub(super) struct Resync {
    pub(super) due: BTreeSet<SubscriptionId>,
}

/// To the store: apply and show everything that waits. Answered when every subscription has it.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub(super) struct Flush;

/// To the store: file objects under the values of a function.
#[derive(Message)]
#[rtype(result = "Result<(), IndexConflict>")]
pub(super) struct AddIndex<K> {
    pub(super) name: String,
    pub(super) function: IndexFn<K>,
}

/// To the publisher: the cache went from one state to another.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub(super) struct Publish<K: Resource> {
    /// The generation before.
    pub(super) before: u64,
    /// The state after, which everybody can see already.
    pub(super) after: Arc<Snapshot<K>>,
    /// What leads from one to the other.
    pub(super) events: Vec<ResourceEvents<K>>,
    /// Who gets the events whose cause is a resync.
    pub(super) resync_due: BTreeSet<SubscriptionId>,
    /// Whether the state after includes the first list.
    pub(super) synced: bool,
}

impl<K: Resource> Publish<K> {
    /// The events for those who are not due for a resync; none if that are all events.
    pub(super) fn without_resync(&self) -> Option<Vec<ResourceEvents<K>>> {
        let is_resync = |event: &ResourceEvent<K>| event.cause() == Some(Cause::Resync);
        if !self.events.iter().flatten().any(is_resync) {
            return None;
        }
        let parts = self.events.iter().map(|part| {
            let rest: Vec<_> = part.iter().filter(|event| !is_resync(event)).cloned().collect();
            rest.into()
        });
        Some(parts.collect())
    }
}

/// To the publisher: tell this subscriber everything, from now on.
#[derive(Message)]
#[rtype(result = "()")]
pub(super) struct Subscribe<K: Resource> {
    pub(super) subscriber: Arc<Subscriber<K>>,
    /// To be told when the subscriber is gone.
    pub(super) timer: WeakAddr<ResyncTimer<K>>,
}

/// To the publisher: who is subscribed?
#[derive(Debug, Message)]
#[rtype(result = "Vec<Arc<Subscriber<K>>>")]
pub(super) struct Subscribers<K: Resource>(pub(super) PhantomData<fn() -> K>);

/// To the publisher: tell this subscriber nothing more.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub(super) struct Unsubscribe(pub(super) SubscriptionId);

/// To the resync timer: a subscription has come, with the period it asks for.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub(super) struct Schedule {
    pub(super) id: SubscriptionId,
    pub(super) period: super::resync::Requested,
}

/// To the resync timer: a subscription has gone.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub(super) struct Unschedule(pub(super) SubscriptionId);

/// From the watcher: the server answers.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub(super) struct WatchOpened(pub(super) Epoch);

/// From the watcher: nothing has proved for too long that the cache keeps up.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub(super) struct Overdue(pub(super) Epoch);

/// From the watcher: it proved that the cache keeps up, for the first time or again.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub(super) struct Heard(pub(super) Epoch);

/// From the watcher: a streamed list has been committed; the stream goes on as a watch.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub(super) struct InitialEventsEnded {
    pub(super) epoch: Epoch,
    pub(super) resource_version: ResourceVersion,
}

/// From supervision: another actor of this reflector was restarted.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub(super) struct Restarted(pub(super) RestartReport);
