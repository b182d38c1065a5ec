use std::time::Duration;

use tokio::time::Instant;

/// So often the server has to say that it does not have a kind, before its objects are given up.
const DENIALS: u32 = 2;

/// Whether the server has the kind at all. A definition may be deleted, and come again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Presence {
    Served,
    /// It answers 404 since then. A server that starts, or a gateway astray, does so too.
    Missing {
        since: Instant,
        denied: u32,
    },
    /// Its objects have been given up.
    Removed,
}

impl Presence {
    /// It answered 404.
    pub(super) fn miss(&mut self, now: Instant) {
        if *self == Self::Served {
            *self = Self::Missing { since: now, denied: 0 };
        }
    }

    /// It could not be said: what was said before counts no more.
    pub(super) fn doubt(&mut self, now: Instant) {
        if let Self::Missing { .. } = self {
            *self = Self::Missing { since: now, denied: 0 };
        }
    }

    /// Whether it was missing for so long that the server is to be asked.
    pub(super) fn is_doubtful(self, keep: Duration, now: Instant) -> bool {
        matches!(self, Self::Missing { since, .. } if now - since >= keep)
    }

    /// The server says that it does not have the kind. Tells whether that is final.
    pub(super) fn deny(&mut self) -> bool {
        if let Self::Missing { denied, .. } = self {
            *denied += 1;
            if *denied >= DENIALS {
                *self = Self::Removed;
            }
        }
        *self == Self::Removed
    }
}
