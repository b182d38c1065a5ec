use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crate::object::{ObjectKey, Resource};

/// One change of one object.
#[derive(Debug)]
pub struct Delta<K> {
    /// What happened.
    pub change: Change,
    /// State after the change; for deletions, the last state seen.
    pub object: Arc<K>,
}

/// Changes, oldest first.
pub type Deltas<K> = Vec<Delta<K>>;

/// What happened to an object, and how we learned of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// A watch reported a new object.
    Added,
    /// A watch reported a new version.
    Updated,
    /// A watch reported a deletion.
    Deleted,
    /// A list contained the object; it may or may not have changed.
    Replaced,
    /// A list no longer contained the object: its deletion was missed, its last state may be stale.
    #[doc(alias = "DeletedFinalStateUnknown")]
    Vanished,
    /// Nothing happened; a resync asks to look again.
    #[doc(alias = "Sync")]
    Resync,
}

/// Changes every object on its way into the queue, before anybody else sees it.
///
/// Tombstones and resyncs hold objects that went through already.
pub struct Transform<K>(Arc<TransformFn<K>>);

type TransformFn<K> = dyn Fn(Arc<K>) -> Result<Arc<K>, TransformError> + Send + Sync;

/// Why a [`Transform`] refused an object.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct TransformError(pub String);

/// An object that did not enter the queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// Which object.
    pub key: ObjectKey,
    /// Why.
    pub error: TransformError,
}

impl<K> Delta<K> {
    /// A change and the state after it.
    pub fn new(change: Change, object: Arc<K>) -> Self {
        Self { change, object }
    }
}

impl Change {
    /// Whether the object is gone after it.
    pub fn is_deletion(self) -> bool {
        matches!(self, Self::Deleted | Self::Vanished)
    }
}

impl<K> Transform<K> {
    /// Changes objects with a closure. It should give the same result when applied twice.
    pub fn new(transform: impl Fn(K) -> Result<K, TransformError> + Send + Sync + 'static) -> Self
    where
        K: Clone + Send + Sync + 'static,
    {
        Self(Arc::new(move |object| transform(Arc::unwrap_or_clone(object)).map(Arc::new)))
    }

    /// The same for two clones of one transform.
    pub(crate) fn identity(&self) -> usize {
        Arc::as_ptr(&self.0).cast::<()>() as usize
    }
}

impl<K: Resource> Transform<K> {
    /// A closure that panics refuses the object; it must not cost the queue.
    pub(super) fn apply(&self, object: Arc<K>) -> Result<Arc<K>, Refusal> {
        let key = object.key();
        let applied = catch_unwind(AssertUnwindSafe(|| (self.0)(object)));
        let error = match applied {
            Ok(Ok(object)) => return Ok(object),
            Ok(Err(error)) => error,
            Err(_) => TransformError("the transform panicked".to_owned()),
        };
        Err(Refusal { key, error })
    }
}

impl<K> Clone for Delta<K> {
    fn clone(&self) -> Self {
        Self { change: self.change, object: Arc::clone(&self.object) }
    }
}

impl<K> Clone for Transform<K> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<K> fmt::Debug for Transform<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Transform")
    }
}
