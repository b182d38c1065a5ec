use std::time::Duration;

use k8s_openapi::jiff::Timestamp;
use secrecy::SecretString;
use tokio::time::Instant;

use crate::client::{ClientIdentity, CredentialError};
use crate::supervision::Backoff;

/// Credentials are renewed this long before they expire.
const LEEWAY: Duration = Duration::from_secs(30);

/// What somebody has given, checked.
#[derive(Clone)]
pub(super) struct Output {
    pub(super) token: Option<SecretString>,
    pub(super) pair: Option<Pair>,
    pub(super) expires: Option<Timestamp>,
}

/// A certificate and its key, as PEM.
#[derive(Clone)]
pub(super) struct Pair {
    pub(super) certificate: String,
    pub(super) key: SecretString,
}

/// What a plugin or a provider has given, and when it may be asked again. Decides; asks nobody.
pub(super) struct Lease {
    what: String,
    /// What it gave when it last worked.
    held: Option<Held>,
    /// Why the last run did not work.
    failure: Option<CredentialError>,
    backoff: Backoff,
    generation: u64,
}

struct Held {
    output: Output,
    generation: u64,
    since: Instant,
}

/// What to do now.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// What is held is good, or the best there is.
    Use,
    /// Ask for others.
    Run,
    /// There is nothing to use, and it is too early to ask again.
    Refuse(CredentialError),
}

/// Why others were asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reason {
    /// There were none, or they were about to expire.
    Due,
    /// The server did not accept them.
    Rejected,
}

impl Lease {
    pub(super) fn new(what: String, backoff: Backoff) -> Self {
        Self { what, held: None, failure: None, backoff, generation: 0 }
    }

    /// Holds what is known before anybody was asked.
    pub(super) fn holding(mut self, output: Output, now: Instant) -> Self {
        self.held = Some(Held { output, generation: self.generation, since: now });
        self
    }

    pub(super) fn verdict(&self, now: Instant, wall: Timestamp, is_rejected: bool) -> Verdict {
        let expires = self.held.as_ref().and_then(|held| held.output.expires);
        let is_due = |leeway| {
            expires.is_some_and(|expires| {
                wall.saturating_add(leeway).is_ok_and(|soon| expires <= soon)
            })
        };
        let is_expired = is_due(Duration::ZERO);
        if self.held.is_some() && !is_rejected && !is_due(LEEWAY) {
            return Verdict::Use;
        }
        // Also after a run that worked: a plugin whose tokens are all rejected is not run in a loop.
        let may_run = self.rests_until(now).is_none_or(|until| until <= now);
        match (may_run, &self.held, &self.failure) {
            (true, _, _) => Verdict::Run,
            (false, Some(_), _) if !is_expired => Verdict::Use,
            (false, _, Some(failure)) => Verdict::Refuse(failure.clone()),
            (false, _, None) => Verdict::Refuse(CredentialError {
                what: self.what.clone(),
                problem: "gave credentials that have expired: check its clock and its login"
                    .to_owned(),
            }),
        }
    }

    /// The rest after a run ends early when what the run gave has been good for long.
    fn rests_until(&self, now: Instant) -> Option<Instant> {
        let is_calm = self.held.as_ref().is_some_and(|held| {
            self.failure.is_none()
                && self.backoff.clone().calm(now.saturating_duration_since(held.since))
        });
        if is_calm { None } else { self.backoff.due() }
    }

    /// Whether what is held has not expired.
    pub(super) fn is_good(&self, wall: Timestamp) -> bool {
        let is_good = |held: &Held| held.output.expires.is_none_or(|expires| wall < expires);
        self.held.as_ref().is_some_and(is_good)
    }

    /// Others were asked for.
    pub(super) fn ran(&mut self, result: Result<Output, String>, reason: Reason, now: Instant) {
        if let Some(held) = &self.held
            && self.failure.is_none()
        {
            self.backoff.calm(now.saturating_duration_since(held.since));
        }
        let _delay: Duration = self.backoff.next(now);
        match result {
            Ok(output) => {
                if self.failure.take().is_some() || reason == Reason::Due {
                    // It works; only what it gives may still be refused.
                    self.backoff.reset();
                    let _delay: Duration = self.backoff.next(now);
                }
                let is_same_pair =
                    self.held.as_ref().is_some_and(|held| held.output.same_pair(&output));
                if !is_same_pair {
                    self.generation += 1;
                }
                self.held = Some(Held { output, generation: self.generation, since: now });
            }
            Err(problem) => {
                self.failure = Some(CredentialError { what: self.what.clone(), problem });
            }
        }
    }

    pub(super) fn output(&self) -> Option<&Output> {
        self.held.as_ref().map(|held| &held.output)
    }

    pub(super) fn failure(&self) -> Option<&CredentialError> {
        self.failure.as_ref()
    }

    pub(super) fn identity(&self) -> Option<ClientIdentity> {
        let held = self.held.as_ref()?;
        let pair = held.output.pair.as_ref()?;
        Some(ClientIdentity {
            certificates: pair.certificate.clone().into_bytes(),
            key: pair.key.clone(),
            generation: held.generation,
        })
    }
}

impl Output {
    fn same_pair(&self, other: &Self) -> bool {
        use secrecy::ExposeSecret as _;
        match (&self.pair, &other.pair) {
            (None, None) => true,
            (Some(one), Some(other)) => {
                one.certificate == other.certificate
                    && one.key.expose_secret() == other.key.expose_secret()
            }
            (Some(_), None) | (None, Some(_)) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::supervision::BackoffOptions;

    fn lease() -> Lease {
        let options = BackoffOptions { jitter: 0.0, ..BackoffOptions::default() };
        Lease::new("plugin p".to_owned(), Backoff::new(options, fastrand::Rng::with_seed(7)))
    }

    fn output(expires: Option<Timestamp>) -> Output {
        Output { token: Some("token".into()), pair: None, expires }
    }

    fn failure(problem: &str) -> Verdict {
        Verdict::Refuse(CredentialError {
            what: "plugin p".to_owned(),
            problem: problem.to_owned(),
        })
    }

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_plugin_runs_again_shortly_before_its_credentials_expire() {
        let (mut lease, now, wall) = (lease(), Instant::now(), Timestamp::now());
        assert_eq!(lease.verdict(now, wall, false), Verdict::Run);
        lease.ran(Ok(output(Some(wall + 100 * SECOND))), Reason::Rejected, now);
        assert_eq!(lease.verdict(now + 69 * SECOND, wall + 69 * SECOND, false), Verdict::Use);
        assert_eq!(lease.verdict(now + 70 * SECOND, wall + 70 * SECOND, false), Verdict::Run);
    }

    #[test]
    fn credentials_without_an_end_are_used_until_they_are_rejected() {
        let (mut lease, now, wall) = (lease(), Instant::now(), Timestamp::now());
        lease.ran(Ok(output(None)), Reason::Rejected, now);
        assert_eq!(lease.verdict(now + 9999 * SECOND, wall, false), Verdict::Use);
        assert_eq!(lease.verdict(now + SECOND, wall, true), Verdict::Run);
    }

    #[test]
    fn a_plugin_that_fails_rests_longer_each_time() {
        let (mut lease, mut now, wall) = (lease(), Instant::now(), Timestamp::now());
        for delay in [800, 1600, 3200, 6400, 12_800, 25_600, 30_000, 30_000] {
            let delay = Duration::from_millis(delay);
            assert_eq!(lease.verdict(now, wall, false), Verdict::Run);
            lease.ran(Err("is broken".to_owned()), Reason::Rejected, now);
            assert_eq!(
                lease.verdict(now + delay - Duration::from_millis(1), wall, false),
                failure("is broken")
            );
            now += delay;
        }
    }

    #[test]
    fn a_failing_plugin_leaves_what_is_still_good() {
        let (mut lease, now, wall) = (lease(), Instant::now(), Timestamp::now());
        lease.ran(Ok(output(Some(wall + 40 * SECOND))), Reason::Rejected, now);
        let (now, wall) = (now + 20 * SECOND, wall + 20 * SECOND);
        assert_eq!(lease.verdict(now, wall, false), Verdict::Run);
        lease.ran(Err("is broken".to_owned()), Reason::Rejected, now);
        assert_eq!(lease.verdict(now, wall, false), Verdict::Use);
        assert_eq!(lease.verdict(now, wall + 20 * SECOND, false), failure("is broken"));
    }

    #[test]
    fn a_plugin_whose_tokens_are_all_rejected_is_not_run_in_a_loop() {
        let (mut lease, now, wall) = (lease(), Instant::now(), Timestamp::now());
        lease.ran(Ok(output(None)), Reason::Rejected, now);
        assert_eq!(lease.verdict(now, wall, true), Verdict::Use);
        lease.ran(Ok(output(None)), Reason::Rejected, now + SECOND);
        assert_eq!(lease.verdict(now + 2 * SECOND, wall, true), Verdict::Use);
        assert_eq!(lease.verdict(now + 3 * SECOND, wall, true), Verdict::Run);
        lease.ran(Ok(output(None)), Reason::Rejected, now + 3 * SECOND);
        assert_eq!(lease.verdict(now + 124 * SECOND, wall, true), Verdict::Run);
        lease.ran(Ok(output(None)), Reason::Rejected, now + 124 * SECOND);
        assert_eq!(lease.verdict(now + 125 * SECOND, wall, true), Verdict::Run, "calm starts over");
    }

    #[test]
    fn credentials_that_have_expired_from_the_start_are_refused() {
        let (mut lease, now, wall) = (lease(), Instant::now(), Timestamp::now());
        lease.ran(Ok(output(Some(wall))), Reason::Rejected, now);
        let problem = "gave credentials that have expired: check its clock and its login";
        assert_eq!(lease.verdict(now, wall, false), failure(problem));
        assert_eq!(lease.verdict(now + SECOND, wall, false), Verdict::Run);
    }

    #[test]
    fn only_another_certificate_gets_the_next_generation() {
        let (mut lease, now) = (lease(), Instant::now());
        let pair = |name: &str| Pair { certificate: name.to_owned(), key: name.into() };
        let generations = ["a", "a", "b", "b"].map(|name| {
            lease.ran(Ok(Output { pair: Some(pair(name)), ..output(None) }), Reason::Due, now);
            lease.identity().map(|identity| identity.generation)
        });
        assert_eq!(generations, [Some(1), Some(1), Some(2), Some(2)]);
    }

    #[test]
    fn short_lives_that_end_by_themselves_are_renewed_for_ever() {
        let (mut lease, mut now, mut wall) = (lease(), Instant::now(), Timestamp::now());
        for round in 0..20 {
            assert_eq!(lease.verdict(now, wall, false), Verdict::Run, "round {round}");
            lease.ran(Ok(output(Some(wall + 45 * SECOND))), Reason::Due, now);
            assert_eq!(lease.verdict(now, wall, false), Verdict::Use, "round {round}");
            (now, wall) = (now + 16 * SECOND, wall + 16 * SECOND);
            assert!(lease.is_good(wall), "while another is asked for");
        }
    }
}
