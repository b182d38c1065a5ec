use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use actix::{Actor, Context, Handler, Recipient};
use k8s_openapi::api::core::v1::Pod;
use kubeflect::ResourceEvent;
use kubeflect::cache::{Change, DeltaFifo, Indexer, Popped, Position};
use kubeflect::object::{DecodeError, Kind, ObjectKey, Resource};

/// An object with a name and a number, which is also its version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Thing {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) uid: Option<String>,
}

impl Resource for Thing {
    fn key(&self) -> ObjectKey {
        ObjectKey::cluster_scoped(&self.name)
    }

    fn uid(&self) -> Option<&str> {
        self.uid.as_deref()
    }

    fn resource_version(&self) -> Option<&str> {
        Some(&self.version)
    }

    fn decode(_: &[u8], _: &Kind) -> Result<Self, DecodeError> {
        Err(DecodeError::new("things are not sent"))
    }
}

/// `thing("foo", 5)` is written `foo5`.
pub(crate) fn thing(name: &str, version: u32) -> Arc<Thing> {
    Arc::new(Thing { name: name.to_owned(), version: version.to_string(), uid: None })
}

pub(crate) fn things(things: &[(&str, u32)]) -> Vec<Arc<Thing>> {
    things.iter().map(|(name, version)| thing(name, *version)).collect()
}

/// A cache that holds these.
pub(crate) fn known(objects: &[(&str, u32)]) -> Indexer<Thing> {
    let mut known = Indexer::default();
    known.replace_all(things(objects), &BTreeSet::new(), None);
    known
}

pub(crate) fn replace(fifo: &mut DeltaFifo<Thing>, listed: &[(&str, u32)], known: &Indexer<Thing>) {
    assert!(fifo.replace(things(listed), BTreeSet::new(), None, known).is_empty());
}

/// Pops everything: one text per pop, `Vanished` written as client-go's tombstone `Deleted T(…)`.
pub(crate) fn drain(fifo: &mut DeltaFifo<Thing>) -> Vec<String> {
    drain_batches(fifo, 1)
}

pub(crate) fn drain_batches(fifo: &mut DeltaFifo<Thing>, most: usize) -> Vec<String> {
    std::iter::from_fn(|| fifo.pop_batch(most, |popped, _| written(popped))).collect()
}

/// Pops once: what, and whether it belonged to the first list.
pub(crate) fn pop(fifo: &mut DeltaFifo<Thing>) -> Option<(String, Position)> {
    fifo.pop(|popped, position| (written(popped), position))
}

fn written(popped: Popped<Thing>) -> String {
    let name = |thing: &Thing| format!("{}{}", thing.name, thing.version);
    match popped {
        Popped::Deltas(deltas) => {
            let deltas: Vec<String> = deltas
                .iter()
                .map(|delta| match delta.change {
                    Change::Vanished => format!("Deleted T({})", name(&delta.object)),
                    change => format!("{change:?} {}", name(&delta.object)),
                })
                .collect();
            deltas.join(", ")
        }
        Popped::ReplacedAll { objects, resource_version, .. } => {
            let objects: Vec<String> = objects.iter().map(|object| name(object)).collect();
            let version = resource_version.map(|version| version.to_string()).unwrap_or_default();
            format!("ReplacedAll@{version} [{}]", objects.join(" "))
        }
        Popped::ResyncAll => "ResyncAll".to_owned(),
        Popped::Bookmark(version) => format!("Bookmark {version}"),
    }
}

/// Does something with each event.
pub(crate) struct Does<F>(pub(crate) F);

impl<F: Unpin + 'static> Actor for Does<F> {
    type Context = Context<Self>;
}

impl<F> Handler<ResourceEvent<Pod>> for Does<F>
where
    F: FnMut(ResourceEvent<Pod>) + Unpin + 'static,
{
    type Result = ();

    fn handle(&mut self, event: ResourceEvent<Pod>, _: &mut Context<Self>) {
        (self.0)(event);
    }
}

/// Writes down what `say` says of each event.
pub(crate) fn noting(
    mut say: impl FnMut(ResourceEvent<Pod>) -> Option<String> + Unpin + 'static,
) -> (Recipient<ResourceEvent<Pod>>, Arc<Mutex<Vec<String>>>) {
    let notes = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&notes);
    let does = Does(move |event| noted.lock().unwrap().extend(say(event))).start();
    (does.recipient(), notes)
}

/// The notes so far.
pub(crate) fn taken(notes: &Mutex<Vec<String>>) -> Vec<String> {
    std::mem::take(&mut notes.lock().unwrap())
}
