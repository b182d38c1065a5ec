use std::sync::Arc;

use actix::MailboxError;

use super::subscription::{Subscriber, Target};
use super::{ResourceEvent, ResourceEvents, ResourceSnapshot};
use crate::object::Resource;

/// So many events are sent to a subscriber before it has to have handled them.
const WINDOW: usize = 256;

/// Sends a subscriber what is pending for it, one window at a time, until it or its subscription is gone.
///
/// Runs as a task of its own: how long a subscriber takes is nobody else's business, and a crash of the publisher
/// does not touch it.
pub(super) async fn deliver<K: Resource>(subscriber: Arc<Subscriber<K>>) {
    while !subscriber.is_closed() {
        let sent = match &subscriber.target {
            Target::Snapshots { debounce, .. } => {
                if !debounce.is_zero() {
                    tokio::time::sleep(*debounce).await;
                }
                send_snapshot(&subscriber).await
            }
            Target::Events(_) | Target::Batches(_) => send_window(&subscriber).await,
        };
        match sent {
            Sent::All => {}
            Sent::Nothing => subscriber.changed.notified().await,
            Sent::SubscriberGone => {
                tracing::info!(subscription = subscriber.id.0, "the subscriber is gone");
                subscriber.close();
            }
        }
    }
}

enum Sent {
    All,
    Nothing,
    SubscriberGone,
}

async fn send_window<K: Resource>(subscriber: &Subscriber<K>) -> Sent {
    let Some(mut window) = subscriber.take(WINDOW) else { return Sent::Nothing };
    while !window.is_empty() {
        // The end of the first snapshot is sent last, so that it is known when it has been handled.
        let synced = window.iter().position(|event| matches!(event, ResourceEvent::Synced));
        let rest = window.split_off(synced.map_or(window.len(), |synced| synced + 1));
        let count = window.len();
        let (handled, alive) = match &subscriber.target {
            Target::Events(recipient) => {
                (send_each(recipient, window).await, recipient.connected())
            }
            Target::Batches(recipient) => {
                (recipient.send(ResourceEvents(window)).await, recipient.connected())
            }
            Target::Snapshots { .. } => return Sent::Nothing,
        };
        if handled.is_err() && !alive {
            return Sent::SubscriberGone;
        }
        // A subscriber that panicked and was restarted lost what it was sent; it is told the rest.
        subscriber.delivered(count);
        if synced.is_some() {
            subscriber.synced_handled();
        }
        window = rest;
    }
    Sent::All
}

/// Resolves when the last one has been handled, and so all.
#[expect(clippy::disallowed_methods, reason = "no more than a window is ever in the mailbox")]
async fn send_each<K: Resource>(
    recipient: &actix::Recipient<ResourceEvent<K>>,
    mut events: Vec<ResourceEvent<K>>,
) -> Result<(), MailboxError> {
    let Some(last) = events.pop() else { return Ok(()) };
    for event in events {
        recipient.do_send(event);
    }
    recipient.send(last).await
}

async fn send_snapshot<K: Resource>(subscriber: &Subscriber<K>) -> Sent {
    let Target::Snapshots { recipient, .. } = &subscriber.target else { return Sent::Nothing };
    let Some(snapshot) = subscriber.take_snapshot() else { return Sent::Nothing };
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
