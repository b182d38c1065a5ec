use std::sync::Arc;

use actix::{MailboxError, Recipient};

use super::subscription::{Subscriber, Target};
use super::{ResourceEvent, ResourceEvents, ResourceSnapshot};
use crate::object::Resource;

/// So many events are sent to a subscriber before it has to have handled them all.
const WINDOW: usize = 256;

/// Sends a subscriber what is pending for it, one window at a time, until it or its subscription is gone.
///
/// Runs as a task of its own: how long a subscriber takes is nobody else's business, and a crash of the publisher
/// does not touch it.
pub(super) async fn deliver<K: Resource>(subscriber: Arc<Subscriber<K>>) {
    loop {
        let sent = tokio::select! {
            biased;
            () = subscriber.closed() => return,
            sent = send(&subscriber) => sent,
        };
        if let Sent::SubscriberGone = sent {
            tracing::info!(subscription = subscriber.id.0, "the subscriber is gone");
            subscriber.close();
        }
    }
}

enum Sent {
    All,
    SubscriberGone,
}

async fn send<K: Resource>(subscriber: &Subscriber<K>) -> Sent {
    match &subscriber.target {
        Target::Events(recipient) => {
            send_window(
                subscriber,
                || recipient.connected(),
                async |window| send_each(recipient, window).await,
            )
            .await
        }
        Target::Batches(recipient) => {
            let send = async |window| recipient.send(ResourceEvents(window)).await;
            send_window(subscriber, || recipient.connected(), send).await
        }
        Target::Snapshots { recipient, debounce } => {
            tokio::time::sleep(*debounce).await;
            send_snapshot(subscriber, recipient).await
        }
    }
}

async fn send_window<K: Resource>(
    subscriber: &Subscriber<K>,
    is_alive: impl Fn() -> bool,
    send: impl AsyncFn(Vec<ResourceEvent<K>>) -> Result<(), MailboxError>,
) -> Sent {
    let Some(mut window) = subscriber.take(WINDOW) else {
        subscriber.changed.notified().await;
        return Sent::All;
    };
    while !window.is_empty() {
        // The end of the first snapshot is told when all of it has been handled, and so alone.
        let synced = window.iter().position(|event| matches!(event, ResourceEvent::Synced));
        let rest = window.split_off(synced.map_or(window.len(), |at| at.max(1)));
        let (count, is_synced) = (window.len(), synced == Some(0));
        if send(window).await.is_err() && !is_alive() {
            return Sent::SubscriberGone;
        }
        // A subscriber that panicked and was restarted lost what it was sent; it is told the rest.
        subscriber.delivered(count);
        if is_synced {
            subscriber.synced_handled();
        }
        window = rest;
    }
    Sent::All
}

/// Resolves when all of them have been handled, also by a subscriber that takes its time in a future.
async fn send_each<K: Resource>(
    recipient: &Recipient<ResourceEvent<K>>,
    events: Vec<ResourceEvent<K>>,
) -> Result<(), MailboxError> {
    let mut handled = Vec::with_capacity(events.len());
    for event in events {
        let mut request = Box::pin(recipient.send(event));
        // Polled once, it is in the mailbox, and so before the next one.
        match futures::poll!(&mut request) {
            std::task::Poll::Ready(result) => result?,
            std::task::Poll::Pending => handled.push(request),
        }
    }
    let mut result = Ok(());
    for request in handled {
        result = request.await.and(result);
    }
    result
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
