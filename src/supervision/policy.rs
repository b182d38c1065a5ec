use std::time::Duration;

use tokio::time::Instant;

use super::{Backoff, BackoffOptions, Intensity, IntensityOptions, Verdict};

/// When and how often an actor is restarted.
#[derive(Debug, Clone, Default)]
pub struct RestartOptions {
    /// The delays between restarts.
    pub backoff: BackoffOptions,
    /// How many restarts are normal.
    pub intensity: IntensityOptions,
    /// Whether the first restart after calm waits too.
    pub first_restart: FirstRestart,
    /// What happens when restarts are more than normal.
    pub escalation: Escalation,
    /// Decides the jitter. Actors that shall not restart in step need one each: `rng.fork()`.
    pub rng: fastrand::Rng,
}

/// Whether the first restart after calm waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FirstRestart {
    /// It happens at once; the first delay is that of the second restart. Most panics come alone.
    #[default]
    AtOnce,
    /// It waits for the first delay.
    BackedOff,
}

/// What happens to an actor that was restarted more often than normal, after its parent has been told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Escalation {
    /// It is tried again at the longest delay, until it has been calm.
    #[default]
    RetryAtCap,
    /// It is given up: its addresses close.
    GiveUp,
}

/// How an actor stands with its supervisor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// Restarted no more often than is normal.
    Normal,
    /// Restarted too often, and not calm since.
    Escalated,
}

/// What to do about one exit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Decision {
    /// Restart after the delay. `news` means that the parent is to be told of the escalation.
    Restart { delay: Duration, standing: Standing, news: bool },
    /// Tell the parent, and restart no more.
    GiveUp,
}

/// Decides about restarts of one actor: exits × time → decisions.
#[derive(Debug)]
pub(super) struct Policy {
    backoff: Backoff,
    intensity: Intensity,
    first_restart: FirstRestart,
    escalation: Escalation,
    standing: Standing,
    /// The first restart after calm is still to come.
    is_fresh: bool,
}

impl Policy {
    pub(super) fn new(options: RestartOptions) -> Self {
        Self {
            backoff: Backoff::new(options.backoff, options.rng),
            intensity: Intensity::new(options.intensity),
            first_restart: options.first_restart,
            escalation: options.escalation,
            standing: Standing::Normal,
            is_fresh: true,
        }
    }

    /// The actor ended after it had run for as long as `lived`.
    pub(super) fn exited(&mut self, now: Instant, lived: Duration) -> Decision {
        if self.backoff.calm(lived) {
            self.standing = Standing::Normal;
            self.is_fresh = true;
        }
        let is_first = std::mem::replace(&mut self.is_fresh, false);
        let news = match self.intensity.restarted(now) {
            Verdict::Restart => false,
            Verdict::Escalate => {
                std::mem::replace(&mut self.standing, Standing::Escalated) == Standing::Normal
            }
        };
        let delay = match (self.standing, self.escalation) {
            (Standing::Escalated, Escalation::GiveUp) => return Decision::GiveUp,
            (Standing::Escalated, Escalation::RetryAtCap) => self.backoff.next_at_cap(now),
            (Standing::Normal, _) if is_first && self.first_restart == FirstRestart::AtOnce => {
                Duration::ZERO
            }
            (Standing::Normal, _) => self.backoff.next(now),
        };
        Decision::Restart { delay, standing: self.standing, news }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NORMAL: Standing = Standing::Normal;
    const ESCALATED: Standing = Standing::Escalated;

    /// Exits at once, again and again, each time `lived` after its start; gives (delay, standing, news).
    fn exits(policy: &mut Policy, now: &mut Instant, lived: &[u64]) -> Vec<(u128, Standing, bool)> {
        let mut decide = |lived: &u64| {
            let lived = Duration::from_secs(*lived);
            *now += lived;
            match policy.exited(*now, lived) {
                Decision::Restart { delay, standing, news } => {
                    *now += delay;
                    (delay.as_millis(), standing, news)
                }
                Decision::GiveUp => (0, ESCALATED, true),
            }
        };
        lived.iter().map(&mut decide).collect()
    }

    fn options(first_restart: FirstRestart) -> RestartOptions {
        let backoff = BackoffOptions { jitter: 0.0, ..BackoffOptions::default() };
        RestartOptions { backoff, first_restart, ..RestartOptions::default() }
    }

    #[test]
    fn the_first_restart_after_calm_is_at_once() {
        let mut policy = Policy::new(options(FirstRestart::AtOnce));
        let delays: Vec<_> = exits(&mut policy, &mut Instant::now(), &[0, 0, 0, 119, 120, 0])
            .iter()
            .map(|exit| exit.0)
            .collect();
        assert_eq!(delays, [0, 800, 1600, 3200, 0, 800]);
    }

    #[test]
    fn a_storm_is_told_once_and_tried_at_the_cap_until_calm() {
        let mut policy = Policy::new(options(FirstRestart::BackedOff));
        let mut now = Instant::now();
        let storm = exits(&mut policy, &mut now, &[0; 9]);
        assert_eq!(storm[4], (12_800, NORMAL, false));
        assert_eq!(storm[5], (30_000, ESCALATED, true));
        assert_eq!(
            storm[6..],
            [(30_000, ESCALATED, false); 3],
            "not calm since, though less than 5 a minute"
        );
        assert_eq!(exits(&mut policy, &mut now, &[120]), [(800, NORMAL, false)]);
    }

    #[test]
    fn an_actor_may_be_given_up() {
        let give_up =
            RestartOptions { escalation: Escalation::GiveUp, ..options(FirstRestart::AtOnce) };
        let mut policy = Policy::new(give_up);
        let now = Instant::now();
        (0..5).for_each(|_| assert_ne!(policy.exited(now, Duration::ZERO), Decision::GiveUp));
        assert_eq!(policy.exited(now, Duration::ZERO), Decision::GiveUp);
    }
}
