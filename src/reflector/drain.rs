use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll};
use std::time::Duration;

use actix::Context;
use actix::dev::Request;
use actix::fut::ActorFuture;
use tokio::time::{Timeout, timeout};

use super::delta_fifo_store::DeltaFifoStore;
use super::messages::Publish;
use super::publisher::Publisher;
use super::{Cause, ResourceEvent};
use crate::cache::{Change, Delta, Indexer, Popped, Transition};
use crate::object::Resource;

/// For so long the publisher is waited for.
const PATIENCE: Duration = Duration::from_secs(1);

/// How much of what waits has been applied.
pub(super) enum Applied {
    All,
    Some,
}

/// Applies what left the queue, and notes what that did. Returns how many changes it was.
pub(super) fn apply<K: Resource>(
    popped: Popped<K>,
    listed: Cause,
    indexer: &mut Indexer<K>,
    outbox: &mut Vec<ResourceEvent<K>>,
) -> usize {
    let mut tell = |transition: Transition<K>, cause: Cause| {
        outbox.extend(ResourceEvent::from_transition(transition, cause).into_iter().flatten());
    };
    match popped {
        Popped::Deltas(deltas) => {
            let count = deltas.len();
            for delta in deltas {
                let cause = match delta.change {
                    Change::Added | Change::Updated | Change::Deleted => Cause::Watch,
                    Change::Replaced | Change::Vanished => listed,
                    Change::Resync => Cause::Resync,
                };
                tell(indexer.apply(delta), cause);
            }
            count
        }
        Popped::ReplacedAll { objects, unreadable, resource_version } => {
            let count = objects.len();
            for transition in indexer.replace_all(objects, &unreadable, resource_version) {
                tell(transition, listed);
            }
            count
        }
        Popped::ResyncAll => {
            let objects: Vec<Arc<K>> =
                indexer.iter().map(|(_, object)| Arc::clone(object)).collect();
            let count = objects.len();
            for object in objects {
                tell(indexer.apply(Delta::new(Change::Resync, object)), Cause::Resync);
            }
            count
        }
        Popped::Bookmark(resource_version) => {
            indexer.set_resource_version(Some(resource_version));
            1
        }
    }
}

type Publishing<K> = Timeout<Request<Publisher<K>, Publish<K>>>;

/// Applies everything that waits, slice by slice, then shows it, and ends when the publisher has it.
pub(super) struct Drain<K: Resource> {
    publishing: Option<Pin<Box<Publishing<K>>>>,
}

impl<K: Resource> Default for Drain<K> {
    fn default() -> Self {
        Self { publishing: None }
    }
}

impl<K: Resource> ActorFuture<DeltaFifoStore<K>> for Drain<K> {
    type Output = ();

    fn poll(
        mut self: Pin<&mut Self>,
        store: &mut DeltaFifoStore<K>,
        _: &mut Context<DeltaFifoStore<K>>,
        task: &mut TaskContext<'_>,
    ) -> Poll<()> {
        loop {
            if let Some(publishing) = &mut self.publishing {
                // A publisher that crashed over it catches up with the cache when it starts, however late that is: the
                // cache does not wait for it.
                return publishing.as_mut().poll(task).map(drop);
            }
            store.hit("Drain");
            match store.apply_slice() {
                Applied::Some => {
                    // Not woken at once: before it is polled again, timers and sockets are looked at as well.
                    let is_over = pin!(tokio::task::yield_now()).poll(task).is_ready();
                    debug_assert!(!is_over, "it gives others a turn");
                    return Poll::Pending;
                }
                Applied::All => match store.show() {
                    None => return Poll::Ready(()),
                    Some(publish) => {
                        store.hit("Drain/shown");
                        let publishing = store.publisher().send(publish);
                        self.publishing = Some(Box::pin(timeout(PATIENCE, publishing)));
                    }
                },
            }
        }
    }
}
