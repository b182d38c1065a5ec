use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::future::BoxFuture;
use k8s_openapi::jiff::Timestamp;
use tokio::time::Instant;
use tracing::{debug, warn};

use super::lease::{Lease, Output, Reason, Verdict};
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
    /// Never held while anybody is asked.
    lease: Mutex<Lease>,
    /// Held by the one who asks.
    asking: tokio::sync::Mutex<()>,
}

impl<R: Renew> Leased<R> {
    /// Nothing has been asked for yet; `held` is good until it expires.
    pub(super) fn new(source: R, backoff: BackoffOptions, held: Option<Output>) -> Self {
        let lease = Lease::new(source.what(), Backoff::new(backoff, fastrand::Rng::new()));
        let lease = match held {
            Some(held) => lease.holding(held, Instant::now()),
            None => lease,
        };
        let shared = Shared {
            source,
            is_rejected: AtomicBool::new(false),
            lease: Mutex::new(lease),
            asking: tokio::sync::Mutex::new(()),
        };
        Self { shared: Arc::new(shared) }
    }

    pub(super) fn source(&self) -> &R {
        &self.shared.source
    }

    pub(super) fn rejected(&self) {
        self.shared.is_rejected.store(true, Ordering::Release);
    }

    /// What `take` takes of good credentials.
    pub(super) async fn with<T>(&self, take: fn(&Lease) -> T) -> Result<T, CredentialError> {
        let still_good = {
            let lease = self.shared.lease();
            match self.shared.verdict(&lease) {
                Verdict::Use => return Ok(take(&lease)),
                Verdict::Refuse(error) => return Err(error),
                Verdict::Run => {
                    let is_good = !self.shared.is_rejected() && lease.is_good(Timestamp::now());
                    is_good.then(|| take(&lease))
                }
            }
        };
        // In a task of its own: a request that is given up does not end a renewal that others wait for.
        let shared = Arc::clone(&self.shared);
        let renewal = tokio::spawn(async move { shared.renew().await });
        // What will expire soon is good until then: nobody waits for its successor.
        if let Some(good) = still_good {
            return Ok(good);
        }
        let stopped = |_stopped| {
            let problem = "was stopped with the runtime".to_owned();
            Err(CredentialError { what: self.shared.source.what(), problem })
        };
        renewal.await.unwrap_or_else(stopped)?;
        Ok(take(&self.shared.lease()))
    }
}

impl<R: Renew> Shared<R> {
    /// A lease is changed in one step, so it is whole even if poisoned.
    fn lease(&self) -> MutexGuard<'_, Lease> {
        self.lease.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_rejected(&self) -> bool {
        self.is_rejected.load(Ordering::Acquire)
    }

    fn verdict(&self, lease: &Lease) -> Verdict {
        lease.verdict(Instant::now(), Timestamp::now(), self.is_rejected())
    }

    /// Whoever waited meanwhile finds what the one before has got.
    async fn renew(&self) -> Result<(), CredentialError> {
        let _one_at_a_time = self.asking.lock().await;
        match self.verdict(&self.lease()) {
            Verdict::Use => return Ok(()),
            Verdict::Refuse(error) => return Err(error),
            Verdict::Run => {}
        }
        debug!(source = self.source.what(), "renewing credentials");
        let result = self.source.renew().await;
        let reason = match self.is_rejected.swap(false, Ordering::AcqRel) {
            true => Reason::Rejected,
            false => Reason::Due,
        };
        let mut lease = self.lease();
        lease.ran(result, reason, Instant::now());
        if let Some(error) = lease.failure() {
            warn!(%error, "credentials could not be renewed");
        }
        match self.verdict(&lease) {
            Verdict::Refuse(error) => Err(error),
            Verdict::Use => Ok(()),
            // Its rest is already over: with a tiny backoff.
            Verdict::Run => lease.failure().cloned().map_or(Ok(()), Err),
        }
    }
}
