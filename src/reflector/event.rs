use std::fmt;
use std::sync::Arc;

use actix::Message;

use crate::cache::{Snapshot, Transition};
use crate::object::{ObjectKey, Resource};

/// One change of the cache. Every subscriber gets those of one object in the order they happened, after the cache
/// shows them.
#[derive(Message)]
#[rtype(result = "()")]
pub enum ResourceEvent<K: Resource> {
    /// The object entered the cache.
    Added {
        /// As cached now.
        object: Arc<K>,
        /// How we learned of it.
        cause: Cause,
    },
    /// The cached state was replaced by another of the same object.
    Updated {
        /// As the subscriber knew it.
        old: Arc<K>,
        /// As cached now.
        new: Arc<K>,
        /// How we learned of it.
        cause: Cause,
    },
    /// The object left the cache.
    Deleted {
        /// Last state seen; may be stale when `cause` is [`Cause::Relist`].
        last_known: Arc<K>,
        /// How we learned of it.
        cause: Cause,
    },
    /// Everything of the first snapshot has been handled. Comes once.
    #[doc(alias = "HasSynced")]
    Synced,
}

/// The whole cache after one or more changes, for subscribers that need no changes.
#[doc(alias = "UndeltaStore")]
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub struct ResourceSnapshot<K: Resource>(pub Arc<Snapshot<K>>);

/// How we learned of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cause {
    /// The first list.
    InitialList,
    /// A watch event.
    Watch,
    /// A list after a lost watch, or a comparison after a crash; changes in between were missed.
    #[doc(alias = "DeletedFinalStateUnknown")]
    Relist,
    /// A list after the server's history had gone back to an earlier version, as with a storage restored from a backup:
    /// versions are lower than before.
    Rewind,
    /// The resync period elapsed; nothing changed.
    Resync,
}

impl<K: Resource> ResourceEvent<K> {
    /// Which object it is about; none for [`Synced`](Self::Synced).
    pub fn key(&self) -> Option<ObjectKey> {
        match self {
            Self::Added { object, .. }
            | Self::Updated { new: object, .. }
            | Self::Deleted { last_known: object, .. } => Some(object.key()),
            Self::Synced => None,
        }
    }

    /// How we learned of it; none for [`Synced`](Self::Synced).
    pub fn cause(&self) -> Option<Cause> {
        match self {
            Self::Added { cause, .. }
            | Self::Updated { cause, .. }
            | Self::Deleted { cause, .. } => Some(*cause),
            Self::Synced => None,
        }
    }

    /// What a change of the cache is to a subscriber. Another object of the same name is two events.
    pub(super) fn from_transition(transition: Transition<K>, cause: Cause) -> [Option<Self>; 2] {
        match transition {
            Transition::Added(object) => [Some(Self::Added { object, cause }), None],
            Transition::Updated { old, new } => [Some(Self::Updated { old, new, cause }), None],
            Transition::Recreated { old, new } => {
                // That the old one went was seen by nobody, whatever brought the new one.
                let gone = Self::Deleted { last_known: old, cause: Cause::Relist };
                [Some(gone), Some(Self::Added { object: new, cause })]
            }
            Transition::Deleted(last_known) => [Some(Self::Deleted { last_known, cause }), None],
            Transition::Resynced(object) => {
                let (old, new) = (Arc::clone(&object), object);
                [Some(Self::Updated { old, new, cause: Cause::Resync }), None]
            }
            Transition::Unchanged => [None, None],
        }
    }
}

// Derived, these would ask the same of `K`.

impl<K: Resource> Clone for ResourceEvent<K> {
    fn clone(&self) -> Self {
        match self {
            Self::Added { object, cause } => {
                Self::Added { object: Arc::clone(object), cause: *cause }
            }
            Self::Updated { old, new, cause } => {
                Self::Updated { old: Arc::clone(old), new: Arc::clone(new), cause: *cause }
            }
            Self::Deleted { last_known, cause } => {
                Self::Deleted { last_known: Arc::clone(last_known), cause: *cause }
            }
            Self::Synced => Self::Synced,
        }
    }
}

impl<K: Resource> fmt::Debug for ResourceEvent<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")?;
        self.cause().map_or(Ok(()), |cause| write!(f, " ({cause:?})"))
    }
}

impl<K: Resource> fmt::Display for ResourceEvent<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Added { object, .. } => write!(f, "added {}", object.key()),
            Self::Updated { new, .. } => write!(f, "updated {}", new.key()),
            Self::Deleted { last_known, .. } => write!(f, "deleted {}", last_known.key()),
            Self::Synced => f.write_str("synced"),
        }
    }
}
