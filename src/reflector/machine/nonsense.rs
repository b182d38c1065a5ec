use std::time::Duration;

use tokio::time::Instant;

use crate::api::ApiError;

/// After so much nonsense told to watches from one position, it is not trusted any more.
const ENOUGH: u32 = 3;
/// After so long of internal errors instead of a watch, the position may be what the server can not take. client-go
/// calls its own bound `MaxInternalErrorRetryDuration`.
const LONG_ENOUGH: Duration = Duration::from_secs(600);

/// What watches from one position were told that makes no sense. A server out of reach tells nothing.
#[derive(Debug, Default)]
pub(super) struct Nonsense {
    told: u32,
    since: Option<Instant>,
}

/// Whether the server had begun to answer a watch when it failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reply {
    Awaited,
    Begun,
}

impl Nonsense {
    /// Takes note of an error. Tells whether the position is to be given up.
    pub(super) fn note(&mut self, error: &ApiError, reply: Reply, now: Instant) -> bool {
        let is_told = match error {
            ApiError::Internal { .. }
            | ApiError::Malformed { .. }
            | ApiError::Unexpected { .. } => reply == Reply::Begun,
            ApiError::Broken { .. } => true,
            _ => false,
        };
        if is_told {
            self.told += 1;
        }
        if is_told || matches!(error, ApiError::Internal { .. }) {
            let since = *self.since.get_or_insert(now);
            return self.told >= ENOUGH || now - since >= LONG_ENOUGH;
        }
        false
    }
}
