use actix::{Actor, Context, Handler};
use tokio::time::Instant;

use super::journal::{Change, ChangeType};
use super::{Dashboard, lock, summary};
use crate::object::Resource;
use crate::reflector::{Cause, ResourceEvent, ResourceEvents};

/// Writes the events of one reflector into the journal.
pub(super) struct Recorder {
    pub(super) dashboard: Dashboard,
    pub(super) reflector: u64,
}

impl Actor for Recorder {
    type Context = Context<Self>;
}

impl<K: Resource> Handler<ResourceEvents<K>> for Recorder {
    type Result = ();

    fn handle(&mut self, events: ResourceEvents<K>, _: &mut Context<Self>) {
        let inner = &self.dashboard.inner;
        let at = inner.clock.at(Instant::now());
        let mut journal = lock(&inner.journal);
        for event in &events {
            journal.record(self.reflector, change(event, at));
        }
        let newest = journal.newest();
        drop(journal);
        inner.newest.send_replace(newest);
    }
}

fn change<K: Resource>(event: &ResourceEvent<K>, at: i64) -> Change {
    let (kind, object, what) = match event {
        ResourceEvent::Added { object, .. } => (ChangeType::Added, Some(object), String::new()),
        ResourceEvent::Updated { old, new, .. } => {
            (ChangeType::Updated, Some(new), summary::difference(&**old, &**new))
        }
        ResourceEvent::Deleted { last_known, .. } => {
            (ChangeType::Deleted, Some(last_known), String::new())
        }
        ResourceEvent::Synced => (ChangeType::Synced, None, String::new()),
    };
    let text = |value: Option<&str>| value.unwrap_or_default().into();
    Change {
        at,
        change_type: kind,
        cause: event.cause().map_or("", name),
        key: event.key(),
        uid: text(object.and_then(|object| object.uid())),
        resource_version: text(object.and_then(|object| object.resource_version())),
        what: what.into(),
    }
}

fn name(cause: Cause) -> &'static str {
    match cause {
        Cause::InitialList => "InitialList",
        Cause::Watch => "Watch",
        Cause::Relist => "Relist",
        Cause::Rewind => "Rewind",
        Cause::Resync => "Resync",
    }
}
