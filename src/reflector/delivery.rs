use std::future::poll_fn;
use std::mem;
use std::sync::Arc;
use std::task::Poll;

use actix::{MailboxError, Recipient};

use super::in_flight::InFlight;
use super::subscription::{Subscriber, Target};
use super::{ResourceEvent, ResourceEvents, ResourceSnapshot};
use crate::object::Resource;

/// So many events are sent to a subscriber before it has to have handled them all.
const WINDOW: usize = 256;

/// After so many events one by one the subscriber gets a turn: what it has handled then need not be waited for. No more
/// than fit into a mailbox of actix's usual size: beyond that each costs several times as much.
const TURN: usize = 16;

/// Sends a subscriber what is pending for it, one window at a time, until it or its subscription is gone.
///
/// Runs as a task of its own: how long a subscriber takes is nobody else's business, and a crash of the publisher
/// does not touch it.
pub(super) async fn deliver<K: Resource>(subscriber: Arc<Subscriber<K>>) {
    tokio::select! {
        biased;
        () = subscriber.closed() => {}
        () = send_all(&subscriber) => {
            tracing::info!(subscription = subscriber.id.0, "the subscriber is gone");
            subscriber.close();
        }
    }
}

enum Sent {
    All,
    SubscriberGone,
}

/// Ends when the subscriber is gone.
async fn send_all<K: Resource>(subscriber: &Subscriber<K>) {
    let mut in_flight = InFlight::default();
    loop {
        let sent = match &subscriber.target {
            Target::Events(recipient) => {
                let send = async |window: &ResourceEvents<K>| {
                    send_each(recipient, window, &mut in_flight).await
                };
                send_window(subscriber, || recipient.connected(), send).await
            }
            Target::Batches(recipient) => {
                let send = async |window: &ResourceEvents<K>| recipient.send(window.clone()).await;
                send_window(subscriber, || recipient.connected(), send).await
            }
            Target::Snapshots { recipient, debounce } => {
                tokio::time::sleep(*debounce).await;
                send_snapshot(subscriber, recipient).await
            }
        };
        if let Sent::SubscriberGone = sent {
            return;
        }
    }
}

async fn send_window<K: Resource>(
    subscriber: &Subscriber<K>,
    is_alive: impl Fn() -> bool,
    mut send: impl AsyncFnMut(&ResourceEvents<K>) -> Result<(), MailboxError>,
) -> Sent {
    let Some(window) = subscriber.take(WINDOW) else {
        subscriber.changed.notified().await;
        return Sent::All;
    };
    if send(&window).await.is_err() && !is_alive() {
        return Sent::SubscriberGone;
    }
    // A subscriber that panicked and was restarted lost what it was sent; it is told the rest.
    subscriber.delivered(window.len());
    if window.is_synced() {
        subscriber.synced_handled();
    }
    // Most old states end with their event, and so with the window. They end here, on the thread that made them: an
    // allocator that has to take memory back from another thread makes both wait.
    drop(window);
    Sent::All
}

/// Resolves when all of them have been handled, also by a subscriber that takes its time in a future.
async fn send_each<K: Resource>(
    recipient: &Recipient<ResourceEvent<K>>,
    events: &[ResourceEvent<K>],
    in_flight: &mut InFlight<ResourceEvent<K>>,
) -> Result<(), MailboxError> {
    for turn in events.chunks(TURN) {
        turn.iter().for_each(|event| in_flight.send(recipient, event.clone()));
        turn_of_others().await;
        in_flight.settle();
        if !recipient.connected() {
            break;
        }
    }
    in_flight.answered().await
}

/// When it is over, everybody on this thread who was woken before has run.
async fn turn_of_others() {
    let mut is_over = false;
    poll_fn(|task| {
        if mem::replace(&mut is_over, true) {
            return Poll::Ready(());
        }
        task.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

async fn send_snapshot<K: Resource>(
    subscriber: &Subscriber<K>,
    recipient: &Recipient<ResourceSnapshot<K>>,
) -> Sent {
    let Some(snapshot) = subscriber.take_snapshot() else {
        subscriber.changed.notified().await;
        return Sent::All;
    };
    let is_initial = !subscriber.counters.is_synced();
    if recipient.send(ResourceSnapshot(snapshot)).await.is_err() && !recipient.connected() {
        return Sent::SubscriberGone;
    }
    subscriber.delivered(1);
    if is_initial {
        subscriber.synced_handled();
    }
    Sent::All
}
