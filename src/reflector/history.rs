use std::collections::{BTreeMap, VecDeque};

use crate::api::{ApiError, Item, WatchEvent};
use crate::object::{Resource, ResourceVersion};

/// So many deletions are remembered. What is repeated after more of them is not recognised until the next list.
const GRAVES: usize = 4096;

/// How far the cache has come in the history of the server, and what it saw end on the way: what goes back is refused.
///
/// Versions that can not be compared are taken as they come.
#[derive(Debug, Default)]
pub(super) struct History {
    position: Option<ResourceVersion>,
    /// The version of the last list: it has everything up to there.
    listed: Option<ResourceVersion>,
    graves: Graves,
}

/// Whether a list may lead back to an earlier version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Older {
    Refused,
    /// The server was asked for its newest state after it had shown signs of having gone back.
    Accepted,
}

/// What a list is to the history so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Course {
    GoesOn,
    /// The history begins anew at an earlier version.
    Rewound,
}

/// What an event is to the history so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Turn {
    News,
    /// It comes after later ones. What it says of its object may be new all the same.
    Late,
    /// It is part of what was listed.
    Listed,
    /// It tells of an object that has been deleted since.
    Risen,
}

impl History {
    /// Goes on from a version; what ended before is forgotten.
    pub(super) fn from_position(position: Option<ResourceVersion>) -> Self {
        Self { position, listed: None, graves: Graves::default() }
    }

    /// The version after everything that was told.
    pub(super) fn position(&self) -> Option<&ResourceVersion> {
        self.position.as_ref()
    }

    /// Takes note of an event.
    pub(super) fn follow<K: Resource>(&mut self, event: &WatchEvent<K>) -> Turn {
        let version = event.resource_version();
        if event.item().is_some() && version.is_some() && version < self.listed {
            return Turn::Listed;
        }
        match event {
            WatchEvent::Added(item) | WatchEvent::Modified(item) if self.has_ended(item) => {
                return Turn::Risen;
            }
            WatchEvent::Deleted(item) => self.graves.dig(item.uid(), version.as_ref()),
            _ => {}
        }
        match (version, &self.position) {
            (None, _) => Turn::News,
            (Some(version), Some(position)) if version < *position => Turn::Late,
            (Some(version), _) => {
                self.position = Some(version);
                Turn::News
            }
        }
    }

    /// Takes a list of this version. What it has is there, whatever ended before: should the server have gone back and
    /// come past us again, nothing else would tell.
    ///
    /// # Errors
    /// When it would lead back and must not.
    pub(super) fn begin_anew(
        &mut self,
        version: ResourceVersion,
        older: Older,
    ) -> Result<Course, ApiError> {
        let leads_back = self.position.as_ref().filter(|position| version < **position);
        let course = match (leads_back, older) {
            (None, _) => Course::GoesOn,
            (Some(_), Older::Accepted) => Course::Rewound,
            (Some(cached), Older::Refused) => {
                return Err(ApiError::Older { answered: version, cached: cached.clone() });
            }
        };
        let listed = Some(version.clone());
        *self = Self { listed, ..Self::from_position(Some(version)) };
        Ok(course)
    }

    /// Whether this state is of an object whose end was told, and not of a later one.
    fn has_ended<K: Resource>(&self, item: &Item<K>) -> bool {
        let ended = item.uid().and_then(|uid| self.graves.ended.get(uid));
        ended.is_some_and(|ended| item.resource_version().is_some_and(|told| told <= *ended))
    }
}

/// The last deletions.
#[derive(Debug, Default)]
struct Graves {
    ended: BTreeMap<String, ResourceVersion>,
    oldest_first: VecDeque<String>,
}

impl Graves {
    fn dig(&mut self, uid: Option<&str>, version: Option<&ResourceVersion>) {
        let (Some(uid), Some(version)) = (uid, version) else { return };
        if self.ended.insert(uid.to_owned(), version.clone()).is_some() {
            return;
        }
        self.oldest_first.push_back(uid.to_owned());
        if self.oldest_first.len() > GRAVES
            && let Some(forgotten) = self.oldest_first.pop_front()
        {
            self.ended.remove(&forgotten);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use k8s_openapi::api::core::v1::Pod;

    use super::*;
    use crate::api::Item;

    fn version(number: u32) -> ResourceVersion {
        ResourceVersion::new(&number.to_string()).unwrap()
    }

    fn pod(uid: &str, version: &str) -> Item<Pod> {
        let metadata = kube_core::ObjectMeta {
            name: Some("a".to_owned()),
            uid: Some(uid.to_owned()),
            resource_version: Some(version.to_owned()),
            ..Default::default()
        };
        Item::Object(Arc::new(Pod { metadata, ..Pod::default() }))
    }

    fn bookmark(number: u32) -> WatchEvent<Pod> {
        WatchEvent::Bookmark { resource_version: version(number), ends_initial_events: false }
    }

    fn at(number: u32) -> History {
        History::from_position(Some(version(number)))
    }

    #[test]
    fn a_late_event_does_not_lower_the_position() {
        let mut history = at(7);
        assert_eq!(history.follow(&WatchEvent::Modified(pod("u", "9"))), Turn::News);
        assert_eq!(history.follow(&WatchEvent::Modified(pod("v", "8"))), Turn::Late);
        assert_eq!(history.follow(&bookmark(8)), Turn::Late);
        assert_eq!(history.follow(&bookmark(9)), Turn::News, "the same again is no step back");
        assert_eq!(history.position(), Some(&version(9)));
    }

    #[test]
    fn versions_that_can_not_be_compared_are_taken_as_they_come() {
        let mut history = History::from_position(ResourceVersion::new("abc"));
        assert_eq!(history.follow(&WatchEvent::Modified(pod("u", "abb"))), Turn::News);
        assert_eq!(history.position().map(ResourceVersion::as_str), Some("abb"));
        let list = ResourceVersion::new("aaa").unwrap();
        assert_eq!(history.begin_anew(list, Older::Refused).unwrap(), Course::GoesOn);
    }

    #[test]
    fn what_was_deleted_does_not_rise_again() {
        let mut history = at(1);
        assert_eq!(history.follow(&WatchEvent::Added(pod("u", "2"))), Turn::News);
        assert_eq!(history.follow(&WatchEvent::Deleted(pod("u", "5"))), Turn::News);
        assert_eq!(history.follow(&WatchEvent::Added(pod("u", "2"))), Turn::Risen);
        assert_eq!(history.follow(&WatchEvent::Modified(pod("u", "5"))), Turn::Risen);
        assert_eq!(history.follow(&WatchEvent::Added(pod("v", "6"))), Turn::News, "another object");
        assert_eq!(history.position(), Some(&version(6)));
    }

    #[test]
    fn an_older_list_is_refused_unless_the_server_went_back() {
        let mut history = at(7);
        let refused = history.begin_anew(version(5), Older::Refused);
        assert!(matches!(refused, Err(ApiError::Older { .. })));
        assert_eq!(history.position(), Some(&version(7)));
        assert_eq!(history.begin_anew(version(7), Older::Accepted).unwrap(), Course::GoesOn);
        assert_eq!(history.begin_anew(version(5), Older::Accepted).unwrap(), Course::Rewound);
        assert_eq!(history.position(), Some(&version(5)));
    }

    #[test]
    fn what_a_list_includes_is_not_told_again() {
        let mut history = at(1);
        history.begin_anew(version(7), Older::Refused).unwrap();
        for event in [WatchEvent::Added, WatchEvent::Modified, WatchEvent::Deleted] {
            assert_eq!(history.follow(&event(pod("u", "6"))), Turn::Listed);
        }
        assert_eq!(history.follow(&WatchEvent::Added(pod("u", "9"))), Turn::News);
        assert_eq!(history.follow(&WatchEvent::Added(pod("v", "8"))), Turn::Late);
    }

    #[test]
    fn only_so_many_deletions_are_remembered() {
        let mut history = at(1);
        for number in 0..=GRAVES {
            history.follow(&WatchEvent::Deleted(pod(&format!("u{number}"), "5")));
        }
        assert_eq!(history.graves.ended.len(), GRAVES);
        assert_eq!(history.follow(&WatchEvent::Added(pod("u0", "4"))), Turn::Late);
        assert_eq!(history.follow(&WatchEvent::Added(pod("u1", "4"))), Turn::Risen);
    }
}
