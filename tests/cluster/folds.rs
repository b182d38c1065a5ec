//! Subscribers that apply what they are told, and notice what can not be.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use actix::{Actor, AsyncContext as _, Context, Handler, WrapFuture as _};
use kubeflect::object::Resource;
use kubeflect::{ResourceEvent, ResourceEvents};

use crate::contents::{Contents, identity};

/// What one who applied everything knows.
#[derive(Debug, Default)]
pub(crate) struct Fold {
    pub(crate) contents: Contents,
    /// What should never be told.
    pub(crate) impossible: Vec<String>,
}

/// A subscriber that applies what it is told, in its own time.
pub(crate) struct Folder {
    fold: Arc<Mutex<Fold>>,
    pace: Duration,
}

impl Folder {
    pub(crate) fn new(pace: Duration) -> (Self, Arc<Mutex<Fold>>) {
        let fold = Arc::<Mutex<Fold>>::default();
        (Self { fold: Arc::clone(&fold), pace }, fold)
    }

    fn take_time(&self, context: &mut Context<Self>) {
        if !self.pace.is_zero() {
            context.wait(tokio::time::sleep(self.pace).into_actor(self));
        }
    }
}

impl Fold {
    fn apply<K: Resource>(&mut self, event: &ResourceEvent<K>) {
        let (known, told) = match event {
            ResourceEvent::Added { object, .. } => {
                (self.contents.insert(object.key().to_string(), identity(&**object)), None)
            }
            ResourceEvent::Updated { old, new, .. } => {
                let known = self.contents.insert(new.key().to_string(), identity(&**new));
                (known, Some(identity(&**old)))
            }
            ResourceEvent::Deleted { last_known, .. } => {
                let known = self.contents.remove(&last_known.key().to_string());
                // Which state it was in last may not have been seen.
                let told = known.clone().unwrap_or_default();
                (known, Some(told))
            }
            ResourceEvent::Synced => return,
        };
        if known != told {
            self.impossible.push(format!("{event:?} of {told:?}, though {known:?} was known"));
        }
    }
}

impl Actor for Folder {
    type Context = Context<Self>;
}

impl<K: Resource> Handler<ResourceEvent<K>> for Folder {
    type Result = ();

    fn handle(&mut self, event: ResourceEvent<K>, context: &mut Context<Self>) {
        self.fold.lock().unwrap().apply(&event);
        self.take_time(context);
    }
}

impl<K: Resource> Handler<ResourceEvents<K>> for Folder {
    type Result = ();

    fn handle(&mut self, events: ResourceEvents<K>, context: &mut Context<Self>) {
        let mut fold = self.fold.lock().unwrap();
        events.into_iter().for_each(|event| fold.apply(&event));
        drop(fold);
        self.take_time(context);
    }
}
