use std::time::Duration;

use tokio::time::Instant;

use super::machine::WatchEnd;
use crate::api::ApiError;
use crate::object::ResourceVersion;

/// For so long a proof that the cache keeps up is good. A server that sends bookmarks sends one each minute: two are
/// missing by then.
pub(super) const PROOF_LASTS: Duration = Duration::from_secs(150);
/// A verification that failed is tried again after so long.
const VERIFY_AGAIN: Duration = Duration::from_secs(20);

/// How much silence a watch may be believed in. Decided anew for each, so that many reflectors do not ask at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Vigilance {
    /// What the watches before left: silence does not begin anew with a watch.
    pub(super) record: Record,
    /// After so much silence the server is asked, unless it has the habit of sending bookmarks.
    pub(super) patience: Duration,
    /// So long after it answered, the server is asked how far it has come, however much it tells: it may have been
    /// restored.
    pub(super) verify_after: Option<Duration>,
    /// No watch lasts longer.
    pub(super) longest: Duration,
}

/// What a vigil leaves to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Record {
    /// When it was last proved that the cache keeps up: by a list, an event, a bookmark, or a server that had no more.
    pub(super) proven: Option<Instant>,
    /// When it was, or the server was asked.
    pub(super) attended: Option<Instant>,
}

/// Watches over one watch: silence may mean that nothing happens, that nobody is there any more, or that the server
/// is waiting for a version it will reach some day.
#[derive(Debug)]
pub(super) struct Vigil {
    vigilance: Vigilance,
    begun: Instant,
    record: Record,
    told: Told,
    expects: Expects,
    verify_at: Option<Instant>,
    /// Why the server is being asked at the moment.
    asked: Option<Doubt>,
}

/// What the supervisor was told of this watch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Told {
    Nothing,
    Proven,
    Overdue,
}

/// Whether the server has to be heard of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expects {
    Nothing,
    /// It is known to be ahead, and an event or a bookmark should say so soon.
    News,
    /// It has the habit of sending bookmarks.
    Bookmarks {
        last: Instant,
    },
}

/// What is to be done when nothing is heard until then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Due {
    /// Ask the server how far it has come.
    Check(Doubt),
    /// Say that the last proof is no good any more.
    Overdue,
    /// Nobody is there.
    GiveUp,
    /// It lasted long enough.
    End,
}

/// Why a server is asked how far it has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Doubt {
    /// The watch says nothing.
    Silence,
    /// The server may have been restored.
    Identity,
}

/// A question to the server how far it has come.
#[derive(Debug)]
pub(super) struct Check {
    doubt: Doubt,
    /// How far the cache had come when it was asked.
    position: Option<ResourceVersion>,
    /// When something had been proved last.
    proven: Option<Instant>,
}

/// What becomes of a watch after a check.
#[derive(Debug)]
pub(super) enum Verdict {
    GoOn,
    /// It goes on, and has proved that the cache keeps up. The supervisor does not know yet.
    Proven,
    End(WatchEnd),
}

impl Vigil {
    pub(super) fn new(vigilance: Vigilance, now: Instant) -> Self {
        Self {
            begun: now,
            record: vigilance.record,
            told: Told::Nothing,
            expects: Expects::Nothing,
            verify_at: None,
            asked: None,
            vigilance,
        }
    }

    pub(super) fn record(&self) -> Record {
        self.record
    }

    /// The server answers. That it will tell more is not proved by it.
    pub(super) fn opened(&mut self, now: Instant) {
        self.verify_at = self.vigilance.verify_after.map(|after| now + after);
    }

    /// A list came with the watch: it is from this server, and the supervisor knows.
    pub(super) fn listed(&mut self, now: Instant) {
        self.verify_at = None;
        self.heard(now);
    }

    /// Takes note of an event. Tells whether the supervisor is to know that the cache keeps up.
    pub(super) fn heard(&mut self, now: Instant) -> bool {
        self.record = Record { proven: Some(now), attended: Some(now) };
        self.expects = match self.expects {
            Expects::Bookmarks { .. } => Expects::Bookmarks { last: now },
            Expects::News | Expects::Nothing => Expects::Nothing,
        };
        std::mem::replace(&mut self.told, Told::Proven) != Told::Proven
    }

    /// Takes note of a bookmark. Tells whether the supervisor is to know that the cache keeps up.
    pub(super) fn heard_bookmark(&mut self, now: Instant) -> bool {
        self.expects = Expects::Bookmarks { last: now };
        self.heard(now)
    }

    /// What is due next, and when.
    pub(super) fn due(&self) -> (Instant, Due) {
        let silence = match self.expects {
            Expects::Bookmarks { last } => (last + PROOF_LASTS, Due::GiveUp),
            Expects::News => {
                let proven = self.record.proven.unwrap_or(self.begun);
                (proven.max(self.begun) + PROOF_LASTS, Due::End)
            }
            Expects::Nothing => {
                // However long it lasted before, it is not looked into at once.
                let earliest = self.begun + self.vigilance.patience / 3;
                let patient = self.record.attended.map(|since| since + self.vigilance.patience);
                (patient.map_or(earliest, |at| at.max(earliest)), Due::Check(Doubt::Silence))
            }
        };
        let overdue = self.record.proven.filter(|_| self.told != Told::Overdue);
        let overdue = overdue.map(|proven| (proven + PROOF_LASTS, Due::Overdue));
        let verify = self.verify_at.map(|at| (at, Due::Check(Doubt::Identity)));
        let end = (self.begun + self.vigilance.longest, Due::End);
        let is_possible =
            |(_, due): &(Instant, Due)| self.asked.is_none() || !matches!(due, Due::Check(_));
        let others = [overdue, Some(silence), verify].into_iter().flatten().filter(is_possible);
        others.fold(end, |first, other| if other.0 < first.0 { other } else { first })
    }

    /// The supervisor knows that the last proof is no good any more.
    pub(super) fn told_overdue(&mut self) {
        self.told = Told::Overdue;
    }

    pub(super) fn check(&mut self, doubt: Doubt, position: Option<ResourceVersion>) -> Check {
        if doubt == Doubt::Identity {
            self.verify_at = None;
        }
        self.asked = Some(doubt);
        Check { doubt, position, proven: self.record.proven }
    }

    /// What the answer means for the watch.
    pub(super) fn judge(
        &mut self,
        check: Check,
        newest: Result<Option<ResourceVersion>, ApiError>,
        now: Instant,
    ) -> Verdict {
        self.asked = None;
        self.record.attended = Some(now);
        let is_silent = check.doubt == Doubt::Silence && self.record.proven == check.proven;
        match (newest, check.position) {
            (Ok(Some(answered)), Some(cached)) if answered < cached => {
                Verdict::End(WatchEnd::Failed(ApiError::Older { answered, cached }))
            }
            (Ok(newest), position) if newest == position => match self.heard(now) {
                true => Verdict::Proven,
                false => Verdict::GoOn,
            },
            (Err(_), _) if check.doubt == Doubt::Identity => {
                self.verify_at = Some(now + VERIFY_AGAIN);
                Verdict::GoOn
            }
            _ if !is_silent => Verdict::GoOn,
            // The server has gone on, and the watch is to say so. A watch may be allowed where a list is not: then, too,
            // only the watch can tell.
            (Ok(_) | Err(ApiError::Forbidden { .. } | ApiError::NotAllowed { .. }), _) => {
                self.expects = Expects::News;
                Verdict::GoOn
            }
            (Err(error), _) => Verdict::End(WatchEnd::Failed(error)),
        }
    }
}

/// How a watch ends whose server stopped sending bookmarks.
pub(super) fn fell_silent() -> WatchEnd {
    WatchEnd::Failed(ApiError::Timeout { waited: PROOF_LASTS })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_secs(90);

    fn vigil(quiet_for: u64, verify_after: Option<u64>) -> (Vigil, Instant) {
        let now = Instant::now() + Duration::from_secs(10_000);
        let vigilance = Vigilance {
            record: at(now - Duration::from_secs(quiet_for)),
            patience: PATIENCE,
            verify_after: verify_after.map(Duration::from_secs),
            longest: Duration::from_secs(300),
        };
        (Vigil::new(vigilance, now), now)
    }

    fn at(moment: Instant) -> Record {
        Record { proven: Some(moment), attended: Some(moment) }
    }

    fn version(text: &str) -> Option<ResourceVersion> {
        ResourceVersion::new(text)
    }

    fn due(vigil: &Vigil, since: Instant) -> (u64, Due) {
        let (at, due) = vigil.due();
        ((at - since).as_secs(), due)
    }

    const CHECK: Due = Due::Check(Doubt::Silence);

    /// What becomes of a watch at version 7 that was silent for too long, if the server answers so.
    fn judged(answer: Result<Option<ResourceVersion>, ApiError>) -> (Verdict, (u64, Due)) {
        let (mut vigil, start) = vigil(0, None);
        let check = vigil.check(Doubt::Silence, version("7"));
        let verdict = vigil.judge(check, answer, start + PATIENCE);
        vigil.told_overdue();
        (verdict, due(&vigil, start))
    }

    #[test]
    fn silence_is_checked_and_where_bookmarks_are_a_habit_it_is_the_end() {
        let (mut vigil, start) = vigil(0, None);
        assert_eq!(due(&vigil, start), (90, CHECK));
        vigil.opened(start + Duration::from_secs(5));
        assert_eq!(due(&vigil, start), (90, CHECK), "an answer proves nothing");
        assert!(vigil.heard(start + Duration::from_secs(10)), "the first proof");
        assert_eq!(due(&vigil, start), (100, CHECK));
        assert!(!vigil.heard_bookmark(start + Duration::from_secs(60)));
        assert_eq!(due(&vigil, start), (210, Due::Overdue));
        vigil.told_overdue();
        assert_eq!(due(&vigil, start), (210, Due::GiveUp));
        assert!(vigil.heard(start + Duration::from_secs(200)), "the supervisor is to know");
        assert_eq!(due(&vigil, start), (300, Due::End), "it was to last no longer");
    }

    #[test]
    fn silence_does_not_begin_anew_with_a_watch() {
        let (quiet, start) = vigil(40, None);
        assert_eq!(due(&quiet, start), (50, CHECK));
        let (mut quiet, start) = vigil(100, None);
        assert_eq!(due(&quiet, start), (30, CHECK), "and is not looked into at once");
        let check = quiet.check(Doubt::Silence, version("7"));
        quiet.judge(check, Ok(version("8")), start + Duration::from_secs(31));
        assert_eq!(due(&quiet, start), (50, Due::Overdue));
        quiet.told_overdue();
        assert_eq!(due(&quiet, start), (150, Due::End), "but a watch gets its time");
    }

    #[test]
    fn a_server_that_was_out_of_reach_is_checked_though_it_talks() {
        let (mut vigil, start) = vigil(0, Some(5));
        assert_eq!(due(&vigil, start), (90, CHECK), "not before it answers");
        vigil.opened(start);
        vigil.heard(start + Duration::from_secs(1));
        assert_eq!(due(&vigil, start), (5, Due::Check(Doubt::Identity)));
        let check = vigil.check(Doubt::Identity, version("7"));
        let later = start + Duration::from_secs(6);
        let refused = Err(ApiError::connection("refused"));
        assert!(matches!(vigil.judge(check, refused, later), Verdict::GoOn));
        assert_eq!(due(&vigil, start), (26, Due::Check(Doubt::Identity)), "again");
        let check = vigil.check(Doubt::Identity, version("7"));
        assert!(matches!(vigil.judge(check, Ok(version("9")), later), Verdict::GoOn));
        assert_eq!(due(&vigil, start), (96, CHECK), "not again");
        let check = vigil.check(Doubt::Identity, version("7"));
        let verdict = vigil.judge(check, Ok(version("6")), later);
        let Verdict::End(WatchEnd::Failed(ApiError::Older { .. })) = verdict else {
            panic!("{verdict:?}")
        };
    }

    #[test]
    fn a_server_that_stands_where_the_cache_is_proves_it() {
        let (mut vigil, start) = vigil(0, None);
        let now = start + Duration::from_secs(95);
        for first in [true, false] {
            let check = vigil.check(Doubt::Silence, version("7"));
            let verdict = vigil.judge(check, Ok(version("7")), now);
            assert_eq!(matches!(verdict, Verdict::Proven), first, "{verdict:?}");
        }
        assert_eq!(due(&vigil, start), (185, CHECK), "and is asked again");
        assert_eq!(vigil.record().proven, Some(now));
    }

    #[test]
    fn a_silent_watch_has_to_say_that_the_server_went_on() {
        let forbidden = ApiError::from_code(403, String::new(), None);
        for answer in [Ok(version("8")), Ok(version("other")), Err(forbidden)] {
            let (verdict, due) = judged(answer);
            assert!(matches!(verdict, Verdict::GoOn), "{verdict:?}");
            assert_eq!(due, (150, Due::End), "or is replaced");
        }
        let (verdict, _) = judged(Err(ApiError::connection("refused")));
        assert!(matches!(verdict, Verdict::End(WatchEnd::Failed(ApiError::Connection(_)))));
    }

    #[test]
    fn a_watch_that_speaks_up_while_the_server_is_asked_goes_on() {
        let (mut vigil, start) = vigil(0, None);
        let check = vigil.check(Doubt::Silence, version("7"));
        assert_eq!(due(&vigil, start), (150, Due::Overdue), "once is enough");
        vigil.heard(start + Duration::from_secs(91));
        let refused = Err(ApiError::connection("refused"));
        let verdict = vigil.judge(check, refused, start + Duration::from_secs(92));
        assert!(matches!(verdict, Verdict::GoOn), "{verdict:?}");
    }
}
