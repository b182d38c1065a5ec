use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

/// How many restarts are normal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IntensityOptions {
    /// This many restarts are normal; one more escalates.
    pub max: usize,
    /// Restarts longer ago than this are forgotten.
    pub within: Duration,
}

impl Default for IntensityOptions {
    fn default() -> Self {
        Self { max: 5, within: Duration::from_secs(60) }
    }
}

/// What to do about a restart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Restart: this happens.
    Restart,
    /// Restarting does not help: tell the parent.
    Escalate,
}

/// Counts restarts in a sliding window: the intensity of restarts, as in OTP.
#[derive(Debug, Clone)]
pub struct Intensity {
    options: IntensityOptions,
    /// The latest restarts, oldest first, never more than `max + 1`.
    restarts: VecDeque<Instant>,
}

impl Intensity {
    /// Nothing has been restarted yet.
    pub fn new(options: IntensityOptions) -> Self {
        Self { options, restarts: VecDeque::new() }
    }

    /// Counts a restart. The restart after the last normal one escalates.
    pub fn restarted(&mut self, now: Instant) -> Verdict {
        let within = self.options.within;
        self.restarts.push_back(now);
        self.restarts.retain(|restart| now.saturating_duration_since(*restart) < within);
        if self.restarts.len() <= self.options.max {
            return Verdict::Restart;
        }
        while self.restarts.len() > self.options.max.saturating_add(1) {
            self.restarts.pop_front();
        }
        Verdict::Escalate
    }

    /// Forgets all restarts.
    pub fn reset(&mut self) {
        self.restarts.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdicts(seconds: &[u64]) -> Vec<Verdict> {
        let start = Instant::now();
        let mut intensity = Intensity::new(IntensityOptions::default());
        let at = |second: &u64| start + Duration::from_secs(*second);
        seconds.iter().map(|second| intensity.restarted(at(second))).collect()
    }

    #[test]
    fn the_sixth_restart_within_a_minute_escalates() {
        let verdicts = verdicts(&[0, 10, 20, 30, 40, 59]);
        assert_eq!(verdicts[..5], [Verdict::Restart; 5]);
        assert_eq!(verdicts[5], Verdict::Escalate);
    }

    #[test]
    fn five_restarts_a_minute_go_on_for_ever() {
        let seconds: Vec<u64> = (0..100).map(|restart| restart * 12).collect();
        assert!(verdicts(&seconds).iter().all(|verdict| *verdict == Verdict::Restart));
    }

    #[test]
    fn a_storm_escalates_until_it_is_over() {
        let verdicts = verdicts(&[0, 0, 0, 0, 0, 0, 0, 0, 60]);
        assert_eq!(verdicts[5..8], [Verdict::Escalate; 3]);
        assert_eq!(verdicts[8], Verdict::Restart);
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut intensity = Intensity::new(IntensityOptions::default());
        let now = Instant::now();
        let escalations =
            (0..1000).filter(|_| intensity.restarted(now) == Verdict::Escalate).count();
        assert_eq!(escalations, 995);
        assert_eq!(intensity.restarts.len(), 6);
    }
}
