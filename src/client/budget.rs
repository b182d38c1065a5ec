use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Mutex, OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

/// How much may be asked of one server by one process.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BudgetOptions {
    /// Requests per second, in the long run.
    pub rate: f64,
    /// Requests at once, after a pause.
    pub burst: u32,
    /// Lists at once: each is held in memory.
    pub lists: usize,
}

impl Default for BudgetOptions {
    fn default() -> Self {
        Self { rate: 10.0, burst: 20, lists: 4 }
    }
}

/// How much may still be asked of one server, by all arbiters of this process together.
#[derive(Debug)]
pub(super) struct Budget {
    /// One request costs this much time.
    interval: Duration,
    /// So much time may be owed.
    credit: Duration,
    /// When everything that was admitted is paid for.
    paid_until: Mutex<Option<Instant>>,
    lists: Arc<Semaphore>,
}

impl Budget {
    pub(super) fn new(options: BudgetOptions) -> Self {
        let rate =
            if options.rate.is_finite() && options.rate > 0.001 { options.rate } else { 0.001 };
        let interval = Duration::from_secs_f64(1.0 / rate);
        Self {
            interval,
            credit: interval.saturating_mul(options.burst.saturating_sub(1)),
            paid_until: Mutex::new(None),
            lists: Arc::new(Semaphore::new(options.lists.clamp(1, Semaphore::MAX_PERMITS))),
        }
    }

    /// Waits until one more request is due. In the order of the calls; one that is given up meanwhile costs nothing.
    pub(super) async fn admit(&self) {
        // Whoever is next waits with the lock: nobody's turn depends on somebody who may still give up.
        let mut paid_until = self.paid_until.lock().await;
        let now = Instant::now();
        let start = paid_until.map_or(now, |paid_until| paid_until.max(now));
        if let Some(due) = start.checked_sub(self.credit) {
            tokio::time::sleep_until(due).await;
        }
        *paid_until = Some(start + self.interval);
    }

    /// Waits until one more list may be held. It counts until the permit is dropped.
    pub(super) async fn list(&self) -> OwnedSemaphorePermit {
        let permit = Arc::clone(&self.lists).acquire_owned().await;
        permit.expect("nobody closes the semaphore")
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_burst_is_free_and_the_rest_is_paid_in_time() {
        let budget = Budget::new(BudgetOptions::default());
        let start = Instant::now();
        for _ in 0..20 {
            budget.admit().await;
        }
        assert_eq!(start.elapsed(), Duration::ZERO);
        for _ in 0..10 {
            budget.admit().await;
        }
        assert!(start.elapsed().abs_diff(Duration::from_secs(1)) <= Duration::from_millis(5));
    }

    #[tokio::test(start_paused = true)]
    async fn a_pause_earns_no_more_than_a_burst() {
        let budget = Budget::new(BudgetOptions { rate: 10.0, burst: 2, lists: 1 });
        budget.admit().await;
        tokio::time::advance(Duration::from_secs(3600)).await;
        let start = Instant::now();
        for _ in 0..3 {
            budget.admit().await;
        }
        assert!(start.elapsed() >= Duration::from_millis(95), "{:?}", start.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn requests_that_are_given_up_cost_nothing_and_make_no_two_others_go_at_once() {
        let budget = Budget::new(BudgetOptions { rate: 10.0, burst: 1, lists: 1 });
        budget.admit().await;
        let start = Instant::now();
        let mut waiting: Vec<_> = (0..6).map(|_| Box::pin(budget.admit())).collect();
        for request in &mut waiting {
            assert!(request.now_or_never().is_none());
        }
        waiting.drain(1..4);
        let mut admitted = Vec::new();
        for request in waiting {
            request.await;
            admitted.push(start.elapsed().as_millis() / 100);
        }
        assert_eq!(admitted, [1, 2, 3]);
    }

    #[tokio::test]
    async fn a_list_waits_for_another_to_end() {
        let budget = Budget::new(BudgetOptions { lists: 1, ..BudgetOptions::default() });
        let first = budget.list().await;
        assert!(budget.list().now_or_never().is_none());
        drop(first);
        assert!(budget.list().now_or_never().is_some());
    }
}
