use std::time::Duration;

use tokio::time::Instant;

use super::machine::WatchEnd;
use crate::api::ApiError;
use crate::object::ResourceVersion;

/// A server that sends bookmarks sends one each minute. Two are missing after so long.
const MISSED_BOOKMARKS: Duration = Duration::from_secs(150);

/// How much silence a watch may be believed in. Decided anew for each, so that many reflectors do not ask at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Vigilance {
    /// So much, unless the server has the habit of sending bookmarks.
    pub(super) patience: Duration,
    /// So long after it answered, the server is asked how far it has come, however much it tells: it may have been
    /// restored.
    pub(super) verify_after: Option<Duration>,
    /// No watch lasts longer.
    pub(super) longest: Duration,
}

/// Watches over one watch: silence may mean that nothing happens, that nobody is there any more, or that the server
/// is waiting for a version it will reach some day.
#[derive(Debug)]
pub(super) struct Vigil {
    vigilance: Vigilance,
    heard: Instant,
    habit: Habit,
    verify_at: Option<Instant>,
    ends: Instant,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Habit {
    Unknown,
    SendsBookmarks,
}

/// What is to be done when nothing is heard until then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Due {
    /// Ask the server how far it has come.
    Check,
    /// Nobody is there.
    GiveUp,
    /// It lasted long enough.
    End,
}

/// A question to the server how far it has come.
#[derive(Debug)]
pub(super) struct Check {
    /// How far the cache had come when it was asked.
    pub(super) position: Option<ResourceVersion>,
    /// When something had been heard last.
    heard: Instant,
}

impl Vigil {
    pub(super) fn new(vigilance: Vigilance, now: Instant) -> Self {
        Self {
            heard: now,
            habit: Habit::Unknown,
            verify_at: None,
            ends: now + vigilance.longest,
            vigilance,
        }
    }

    /// The server answers.
    pub(super) fn opened(&mut self, now: Instant) {
        self.heard = now;
        self.verify_at = self.vigilance.verify_after.map(|after| now + after);
    }

    pub(super) fn heard(&mut self, now: Instant) {
        self.heard = now;
    }

    pub(super) fn heard_bookmark(&mut self, now: Instant) {
        self.heard = now;
        self.habit = Habit::SendsBookmarks;
    }

    /// What is due next, and when.
    pub(super) fn due(&self) -> (Instant, Due) {
        let silence = match self.habit {
            Habit::Unknown => (self.heard + self.vigilance.patience, Due::Check),
            Habit::SendsBookmarks => (self.heard + MISSED_BOOKMARKS, Due::GiveUp),
        };
        let verify = self.verify_at.map(|at| (at, Due::Check));
        [Some((self.ends, Due::End)), Some(silence), verify]
            .into_iter()
            .flatten()
            .min_by_key(|(at, _)| *at)
            .expect("one of them is always there")
    }

    /// What the end of a watch that was not believed in any more is.
    pub(super) fn end(due: Due) -> WatchEnd {
        match due {
            Due::GiveUp => WatchEnd::Failed(ApiError::Timeout { waited: MISSED_BOOKMARKS }),
            Due::Check | Due::End => WatchEnd::Closed,
        }
    }

    pub(super) fn check(&mut self, position: Option<ResourceVersion>) -> Check {
        self.verify_at = None;
        Check { position, heard: self.heard }
    }

    /// What the answer means for the watch; nothing, if it is to go on.
    pub(super) fn judge(
        &mut self,
        check: Check,
        newest: Result<Option<ResourceVersion>, ApiError>,
        now: Instant,
    ) -> Option<WatchEnd> {
        let is_silent = self.heard == check.heard && now >= self.heard + self.vigilance.patience;
        match (newest, check.position) {
            (Ok(Some(answered)), Some(cached)) if answered < cached => {
                Some(WatchEnd::Failed(ApiError::Older { answered, cached }))
            }
            _ if !is_silent => None,
            (Ok(newest), position) if newest == position => {
                self.heard(now);
                None
            }
            // The server has gone on, and the watch says nothing of it: another one will. A watch may be allowed where
            // a list is not; then only another watch can tell.
            (Ok(_) | Err(ApiError::Forbidden { .. } | ApiError::NotAllowed { .. }), _) => {
                Some(WatchEnd::Closed)
            }
            (Err(error), _) => Some(WatchEnd::Failed(error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_secs(90);

    fn vigil(verify_after: Option<u64>) -> (Vigil, Instant) {
        let now = Instant::now();
        let vigilance = Vigilance {
            patience: PATIENCE,
            verify_after: verify_after.map(Duration::from_secs),
            longest: Duration::from_secs(300),
        };
        (Vigil::new(vigilance, now), now)
    }

    fn version(text: &str) -> Option<ResourceVersion> {
        ResourceVersion::new(text)
    }

    fn due(vigil: &Vigil, since: Instant) -> (u64, Due) {
        let (at, due) = vigil.due();
        ((at - since).as_secs(), due)
    }

    /// What becomes of a watch at version 7 that was silent for too long, if the server answers so.
    fn judged(answer: Result<Option<ResourceVersion>, ApiError>) -> Option<WatchEnd> {
        let (mut vigil, start) = vigil(None);
        let check = vigil.check(version("7"));
        vigil.judge(check, answer, start + PATIENCE)
    }

    #[test]
    fn silence_is_checked_and_where_bookmarks_are_a_habit_it_is_the_end() {
        let (mut vigil, start) = vigil(None);
        assert_eq!(due(&vigil, start), (90, Due::Check));
        vigil.heard(start + Duration::from_secs(10));
        assert_eq!(due(&vigil, start), (100, Due::Check));
        vigil.heard_bookmark(start + Duration::from_secs(60));
        assert_eq!(due(&vigil, start), (210, Due::GiveUp));
        vigil.heard(start + Duration::from_secs(200));
        assert_eq!(due(&vigil, start), (300, Due::End), "it was to last no longer");
    }

    #[test]
    fn a_server_that_was_out_of_reach_is_checked_once_though_it_talks() {
        let (mut vigil, start) = vigil(Some(5));
        assert_eq!(due(&vigil, start), (90, Due::Check), "not before it answers");
        vigil.opened(start);
        vigil.heard(start + Duration::from_secs(1));
        assert_eq!(due(&vigil, start), (5, Due::Check));
        let check = vigil.check(version("7"));
        assert_eq!(due(&vigil, start), (91, Due::Check));
        let later = start + Duration::from_secs(6);
        assert!(vigil.judge(check, Ok(version("9")), later).is_none(), "it is ahead, and talks");
        let check = vigil.check(version("7"));
        let end = vigil.judge(check, Ok(version("6")), later);
        assert!(matches!(end, Some(WatchEnd::Failed(ApiError::Older { .. }))), "it went back");
    }

    #[test]
    fn a_server_that_stands_where_the_cache_is_has_nothing_to_tell() {
        let (mut vigil, start) = vigil(None);
        let check = vigil.check(version("7"));
        let now = start + Duration::from_secs(95);
        assert!(vigil.judge(check, Ok(version("7")), now).is_none());
        assert_eq!(due(&vigil, start), (185, Due::Check), "and is asked again");
    }

    #[test]
    fn a_silent_watch_is_replaced_when_the_server_went_on() {
        assert!(matches!(judged(Ok(version("8"))), Some(WatchEnd::Closed)));
        assert!(matches!(judged(Ok(version("other"))), Some(WatchEnd::Closed)));
        let forbidden = ApiError::from_code(403, String::new(), None);
        assert!(matches!(judged(Err(forbidden)), Some(WatchEnd::Closed)), "a watch may be allowed");
        let refused = ApiError::connection("refused");
        assert!(matches!(judged(Err(refused)), Some(WatchEnd::Failed(ApiError::Connection(_)))));
    }

    #[test]
    fn a_watch_that_speaks_up_while_the_server_is_asked_goes_on() {
        let (mut vigil, start) = vigil(None);
        let check = vigil.check(version("7"));
        vigil.heard(start + Duration::from_secs(91));
        let refused = Err(ApiError::connection("refused"));
        assert!(vigil.judge(check, refused, start + Duration::from_secs(92)).is_none());
    }
}
