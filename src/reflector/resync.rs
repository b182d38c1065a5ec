use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tokio::time::Instant;

use super::messages::SubscriptionId;

/// No subscription is resynced more often.
const SHORTEST: Duration = Duration::from_secs(1);

/// When which subscription is due for a resync.
///
/// The cache is asked every `check` period at most; a subscription's own period is rounded up to a multiple of it.
#[derive(Debug)]
pub(super) struct ResyncSchedule {
    /// How often to look; none means that this reflector never resyncs. Never grows.
    check: Option<Duration>,
    started: Started,
    subscriptions: BTreeMap<SubscriptionId, Scheduled>,
}

/// Whether the timer runs: then the check period can not shrink any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Started {
    No,
    Yes,
}

/// The period a subscription asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Requested {
    /// That of the reflector.
    #[default]
    Default,
    /// No resync at all.
    Never,
    /// One of its own.
    Every(Duration),
}

#[derive(Debug)]
struct Scheduled {
    requested: Option<Duration>,
    /// None when it is never due.
    effective: Option<Duration>,
    next: Instant,
}

impl ResyncSchedule {
    pub(super) fn new(default: Option<Duration>) -> Self {
        Self { check: default, started: Started::No, subscriptions: BTreeMap::new() }
    }

    pub(super) fn start(&mut self) {
        self.started = Started::Yes;
    }

    /// How often to look; none means never.
    pub(super) fn check_period(&self) -> Option<Duration> {
        self.check
    }

    pub(super) fn add(&mut self, id: SubscriptionId, requested: Requested, now: Instant) {
        let mut requested = match requested {
            Requested::Default => self.check,
            Requested::Never => None,
            Requested::Every(period) => Some(period.max(SHORTEST)),
        };
        if let (Some(period), Some(check)) = (requested, self.check)
            && period < check
        {
            match self.started {
                Started::No => self.check = Some(period),
                Started::Yes => requested = Some(check),
            }
        }
        let scheduled = Scheduled { requested, effective: None, next: now };
        self.subscriptions.insert(id, scheduled);
        let check = self.check;
        for scheduled in self.subscriptions.values_mut() {
            scheduled.effective =
                scheduled.requested.zip(check).map(|(period, check)| period.max(check));
        }
        if let Some(scheduled) = self.subscriptions.get_mut(&id)
            && let Some(period) = scheduled.effective
        {
            scheduled.next = now + period;
        }
    }

    pub(super) fn remove(&mut self, id: SubscriptionId) {
        self.subscriptions.remove(&id);
    }

    /// Who is due, and due again a period from now.
    pub(super) fn due(&mut self, now: Instant) -> BTreeSet<SubscriptionId> {
        let mut due = BTreeSet::new();
        for (id, scheduled) in &mut self.subscriptions {
            if let Some(period) = scheduled.effective
                && now >= scheduled.next
            {
                scheduled.next = now + period;
                due.insert(*id);
            }
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn effective(schedule: &ResyncSchedule) -> Vec<Option<Duration>> {
        schedule.subscriptions.values().map(|scheduled| scheduled.effective).collect()
    }

    #[test]
    fn before_the_start_the_check_period_shrinks_to_the_shortest_period_asked_for_si_8() {
        let mut schedule = ResyncSchedule::new(Some(seconds(12 * 3600)));
        let now = Instant::now();
        let mut checks = Vec::new();
        for (id, requested) in [
            Requested::Never,
            Requested::Every(seconds(60)),
            Requested::Every(seconds(55)),
            Requested::Every(seconds(5)),
        ]
        .into_iter()
        .enumerate()
        {
            schedule.add(SubscriptionId(id as u64), requested, now);
            checks.push(schedule.check_period().unwrap());
        }
        assert_eq!(checks, [seconds(12 * 3600), seconds(60), seconds(55), seconds(5)]);
        assert_eq!(
            effective(&schedule),
            [None, Some(seconds(60)), Some(seconds(55)), Some(seconds(5))]
        );
    }

    #[test]
    fn after_the_start_a_shorter_period_is_raised_to_the_check_period() {
        let mut schedule = ResyncSchedule::new(Some(seconds(60)));
        schedule.start();
        schedule.add(SubscriptionId(1), Requested::Every(seconds(5)), Instant::now());
        schedule.add(SubscriptionId(2), Requested::Every(seconds(90)), Instant::now());
        assert_eq!(schedule.check_period(), Some(seconds(60)));
        assert_eq!(effective(&schedule), [Some(seconds(60)), Some(seconds(90))]);
    }

    #[test]
    fn a_reflector_without_resync_can_not_be_made_to_resync_si_8() {
        let mut schedule = ResyncSchedule::new(None);
        schedule.add(SubscriptionId(1), Requested::Every(seconds(5)), Instant::now());
        assert_eq!((schedule.check_period(), effective(&schedule)), (None, vec![None]));
        assert!(schedule.due(Instant::now() + seconds(3600)).is_empty());
    }

    #[test]
    fn a_period_below_a_second_is_a_second() {
        let mut schedule = ResyncSchedule::new(Some(seconds(3600)));
        schedule.add(
            SubscriptionId(1),
            Requested::Every(Duration::from_millis(10)),
            Instant::now(),
        );
        assert_eq!(effective(&schedule), [Some(seconds(1))]);
    }

    #[test]
    fn each_subscription_is_due_in_its_own_time_si_10() {
        let mut schedule = ResyncSchedule::new(Some(seconds(1)));
        let start = Instant::now();
        for (id, requested) in [
            (1, Requested::Never),
            (2, Requested::Every(seconds(2))),
            (3, Requested::Every(seconds(3))),
        ] {
            schedule.add(SubscriptionId(id), requested, start);
        }
        let due: Vec<Vec<u64>> = (1..=6)
            .map(|second| {
                schedule.due(start + seconds(second)).into_iter().map(|id| id.0).collect()
            })
            .collect();
        assert_eq!(due, [vec![], vec![2], vec![3], vec![2], vec![], vec![2, 3]]);
    }
}
