use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures::future::BoxFuture;
use k8s_openapi::jiff::Timestamp;
use tokio::sync::Mutex;
use tokio::time::Instant;
use tracing::{debug, warn};

use super::lease::{Lease, Output, Verdict};
use crate::client::CredentialError;
use crate::supervision::{Backoff, BackoffOptions};

/// Somebody who gives credentials when asked.
pub(super) trait Renew: Send + Sync + 'static {
    /// Who, for errors and logs.
    fn what(&self) -> String;

    /// Asks for credentials. The problem holds nothing secret.
    fn renew(&self) -> BoxFuture<'_, Result<Output, String>>;
}

/// Credentials that are renewed when they expire or are rejected.
///
/// However many ask, they are renewed once at a time. After a failure, or when all that is given is rejected, there is
/// a rest: 0.8 s, 1.6 s and so on up to 30 s.
pub(super) struct Leased<R> {
    shared: Arc<Shared<R>>,
}

struct Shared<R> {
    source: R,
    is_rejected: AtomicBool,
    lease: Mutex<Lease>,
}

impl<R: Renew> Leased<R> {
    /// Nothing has been asked for yet; `held` is good until it expires.
    pub(super) fn new(source: R, backoff: BackoffOptions, held: Option<Output>) -> Self {
        let lease = Lease::new(source.what(), Backoff::new(backoff, fastrand::Rng::new()));
        let lease = match held {
            Some(held) => lease.holding(held, Instant::now()),
            None => lease,
        };
        let is_rejected = AtomicBool::new(false);
        Self { shared: Arc::new(Shared { source, is_rejected, lease: Mutex::new(lease) }) }
    }

    pub(super) fn source(&self) -> &R {
        &self.shared.source
    }

    pub(super) fn rejected(&self) {
        self.shared.is_rejected.store(true, Ordering::Release);
    }

    /// What `take` takes of good credentials.
    pub(super) async fn with<T: Send + 'static>(
        &self,
        take: fn(&Lease) -> T,
    ) -> Result<T, CredentialError> {
        {
            let lease = self.shared.lease.lock().await;
            match self.shared.verdict(&lease) {
                Verdict::Use => return Ok(take(&lease)),
                Verdict::Refuse(error) => return Err(error),
                Verdict::Run => {}
            }
        }
        // In a task of its own: a request that is given up does not end a renewal that others wait for.
        let shared = Arc::clone(&self.shared);
        let fresh = tokio::spawn(async move {
            let mut lease = shared.lease.lock().await;
            shared.refresh(&mut lease).await.map(|()| take(&lease))
        });
        fresh.await.unwrap_or_else(|_stopped| {
            let problem = "was stopped with the runtime".to_owned();
            Err(CredentialError { what: self.shared.source.what(), problem })
        })
    }
}

impl<R: Renew> Shared<R> {
    fn verdict(&self, lease: &Lease) -> Verdict {
        lease.verdict(Instant::now(), Timestamp::now(), self.is_rejected.load(Ordering::Acquire))
    }

    /// Whoever waited for the lock meanwhile finds what the one before has got.
    async fn refresh(&self, lease: &mut Lease) -> Result<(), CredentialError> {
        match self.verdict(lease) {
            Verdict::Use => return Ok(()),
            Verdict::Refuse(error) => return Err(error),
            Verdict::Run => {}
        }
        self.is_rejected.store(false, Ordering::Release);
        debug!(source = self.source.what(), "renewing credentials");
        lease.ran(self.source.renew().await, Instant::now());
        if let Some(error) = lease.failure() {
            warn!(%error, "credentials could not be renewed");
        }
        match self.verdict(lease) {
            Verdict::Refuse(error) => Err(error),
            Verdict::Use => Ok(()),
            // Its rest is already over: with a tiny backoff.
            Verdict::Run => lease.failure().cloned().map_or(Ok(()), Err),
        }
    }
}
