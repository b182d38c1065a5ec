use std::time::Duration;

use tokio::time::Instant;

/// How long to wait between attempts. The defaults are those of client-go's reflector.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BackoffOptions {
    /// The first delay.
    pub first: Duration,
    /// Each delay is the one before times this.
    pub factor: f64,
    /// No delay is longer than this, jitter aside.
    pub cap: Duration,
    /// Up to this share of a delay is added to it by chance: 1.0 means 0–100 %.
    pub jitter: f64,
    /// The delays start over only after this much calm.
    pub reset_after: Duration,
}

impl Default for BackoffOptions {
    fn default() -> Self {
        Self {
            first: Duration::from_millis(800),
            factor: 2.0,
            cap: Duration::from_secs(30),
            jitter: 1.0,
            reset_after: Duration::from_secs(120),
        }
    }
}

/// A series of growing delays: 0.8 s, 1.6 s, 3.2 s and so on up to 30 s, plus jitter.
///
/// Time alone does not reset it, only calm does: during an outage the delays stay long.
///
/// ```
/// use kubeflect::supervision::{Backoff, BackoffOptions};
/// use std::time::Duration;
/// use tokio::time::Instant;
///
/// let options = BackoffOptions { jitter: 0.0, ..BackoffOptions::default() };
/// let mut backoff = Backoff::new(options, fastrand::Rng::with_seed(7));
/// assert_eq!(backoff.next(Instant::now()), Duration::from_millis(800));
/// assert_eq!(backoff.next(Instant::now()), Duration::from_millis(1600));
/// ```
#[derive(Debug, Clone)]
pub struct Backoff {
    options: BackoffOptions,
    rng: fastrand::Rng,
    /// The next delay, without jitter.
    delay: Duration,
    attempts: u32,
    due: Option<Instant>,
}

impl Backoff {
    /// A series that has not begun. Jitter comes from `rng`, so that a seed decides it.
    pub fn new(options: BackoffOptions, rng: fastrand::Rng) -> Self {
        Self { options, rng, delay: options.first.min(options.cap), attempts: 0, due: None }
    }

    /// The delay before the next attempt, counted from `now`.
    pub fn next(&mut self, now: Instant) -> Duration {
        let delay = scaled(self.delay, 1.0 + self.rng.f64() * self.options.jitter.max(0.0));
        self.delay = scaled(self.delay, self.options.factor).min(self.options.cap);
        self.attempts = self.attempts.saturating_add(1);
        self.due = now.checked_add(delay);
        delay
    }

    /// Goes to the longest delay at once, and gives it. It stays there until a reset.
    pub fn next_at_cap(&mut self, now: Instant) -> Duration {
        self.delay = self.options.cap;
        self.next(now)
    }

    /// Something worked for as long as `lived`: the series starts over if that was calm enough. Tells whether it did.
    pub fn calm(&mut self, lived: Duration) -> bool {
        let is_calm = lived >= self.options.reset_after;
        if is_calm {
            self.reset();
        }
        is_calm
    }

    /// Starts the series over.
    pub fn reset(&mut self) {
        self.delay = self.options.first.min(self.options.cap);
        self.attempts = 0;
        self.due = None;
    }

    /// How many delays have been given since the last reset.
    pub fn peek_attempts(&self) -> u32 {
        self.attempts
    }

    /// When the attempt of the last delay is due; none after a reset.
    pub fn due(&self) -> Option<Instant> {
        self.due
    }
}

/// `duration` times `factor`; what does not fit is the longest there is.
fn scaled(duration: Duration, factor: f64) -> Duration {
    Duration::try_from_secs_f64(duration.as_secs_f64() * factor).unwrap_or(Duration::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn backoff(jitter: f64, seed: u64) -> Backoff {
        let options = BackoffOptions { jitter, ..BackoffOptions::default() };
        Backoff::new(options, fastrand::Rng::with_seed(seed))
    }

    fn delays<const N: usize>(backoff: &mut Backoff) -> [u128; N] {
        std::array::from_fn(|_| backoff.next(Instant::now()).as_millis())
    }

    #[test]
    fn delays_double_up_to_the_cap() {
        let mut backoff = backoff(0.0, 1);
        assert_eq!(delays(&mut backoff), [800, 1600, 3200, 6400, 12_800, 25_600, 30_000, 30_000]);
        assert_eq!(backoff.peek_attempts(), 8);
    }

    #[test]
    fn jitter_adds_up_to_the_whole_delay_and_does_not_compound() {
        let mut backoff = backoff(1.0, 1);
        let jittered: [u128; 100] = delays(&mut backoff);
        for (delay, plain) in jittered.iter().zip([800, 1600, 3200, 6400, 12_800, 25_600]) {
            assert!((plain..=2 * plain).contains(delay), "{delay} of {plain}");
        }
        assert!(jittered[6..].iter().all(|delay| (30_000..=60_000).contains(delay)));
        assert!(jittered[6..].iter().any(|delay| *delay > 50_000));
        assert!(jittered[6..].iter().any(|delay| *delay < 40_000));
    }

    #[test]
    fn a_seed_decides_the_jitter() {
        assert_eq!(delays::<8>(&mut backoff(1.0, 7)), delays::<8>(&mut backoff(1.0, 7)));
        assert_ne!(delays::<8>(&mut backoff(1.0, 7)), delays::<8>(&mut backoff(1.0, 8)));
    }

    #[test]
    fn only_calm_starts_the_delays_over() {
        let mut backoff = backoff(0.0, 1);
        assert_eq!(delays(&mut backoff), [800, 1600]);

        assert!(!backoff.calm(Duration::from_millis(119_999)));
        assert_eq!(delays(&mut backoff), [3200]);

        assert!(backoff.calm(Duration::from_secs(120)));
        assert_eq!((backoff.peek_attempts(), backoff.due()), (0, None));
        assert_eq!(delays(&mut backoff), [800, 1600]);
    }

    #[test]
    fn an_attempt_is_due_when_its_delay_is_over() {
        let now = Instant::now();
        let mut backoff = backoff(1.0, 1);
        let delay = backoff.next(now);
        assert_eq!(backoff.due(), Some(now + delay));
    }

    #[test]
    fn the_cap_can_be_reached_at_once() {
        let mut backoff = backoff(0.0, 1);
        assert_eq!(backoff.next_at_cap(Instant::now()).as_secs(), 30);
        assert_eq!(delays(&mut backoff), [30_000]);
    }

    #[test]
    fn absurd_options_give_delays_and_no_panic() {
        let options = BackoffOptions {
            first: Duration::MAX,
            factor: f64::NAN,
            cap: Duration::MAX,
            jitter: f64::INFINITY,
            reset_after: Duration::ZERO,
        };
        let mut backoff = Backoff::new(options, fastrand::Rng::with_seed(1));
        assert_eq!(backoff.next(Instant::now()), Duration::MAX);
        assert_eq!(backoff.due(), None, "never");
    }
}
