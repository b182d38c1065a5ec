use std::cmp::Ordering;
use std::collections::{BTreeMap, btree_map};
use std::iter::Peekable;
use std::ops::ControlFlow;
use std::sync::Arc;

use crate::api::{Item, Undecodable, WatchEvent};
use crate::cache::{Change, Delta, Snapshot};
use crate::object::{ObjectKey, Resource};

/// A list that is not complete.
pub(super) struct Staged<K> {
    items: BTreeMap<ObjectKey, Item<K>>,
    /// Reports of objects that do not even have a name.
    nameless: Vec<Undecodable>,
}

impl<K> Default for Staged<K> {
    fn default() -> Self {
        Self { items: BTreeMap::new(), nameless: Vec::new() }
    }
}

impl<K: Resource> Staged<K> {
    /// A list being streamed may tell of changes to what it told before.
    pub(super) fn take(&mut self, event: WatchEvent<K>) {
        match event {
            WatchEvent::Added(item) | WatchEvent::Modified(item) => match (item.key(), item) {
                (Some(key), item) => drop(self.items.insert(key, item)),
                (None, Item::Undecodable(report)) => self.nameless.push(report),
                (None, Item::Object(_)) => {}
            },
            WatchEvent::Deleted(item) => {
                if let Some(key) = item.key() {
                    self.items.remove(&key);
                }
            }
            WatchEvent::Bookmark { .. } | WatchEvent::Unknown { .. } => {}
        }
    }

    /// What it contains, and what it names but could not be read.
    pub(super) fn complete(self) -> (Vec<Arc<K>>, Vec<Undecodable>) {
        let mut objects = Vec::with_capacity(self.items.len());
        let mut unreadable = self.nameless;
        for item in self.items.into_values() {
            match item {
                Item::Object(object) => objects.push(object),
                Item::Undecodable(report) => unreadable.push(report),
            }
        }
        (objects, unreadable)
    }

    /// How it differs from what is cached, to be found out bit by bit.
    pub(super) fn compared(self) -> Comparison<K> {
        Comparison {
            items: self.items.into_iter().peekable(),
            after: None,
            there: Vec::new(),
            vanished: Vec::new(),
            unreadable: self.nameless,
        }
    }
}

/// A complete list that is being compared with what is cached, in one walk through both.
pub(super) struct Comparison<K> {
    items: Peekable<btree_map::IntoIter<ObjectKey, Item<K>>>,
    /// What is cached up to here has been walked through.
    after: Option<ObjectKey>,
    there: Vec<Delta<K>>,
    vanished: Vec<Delta<K>>,
    unreadable: Vec<Undecodable>,
}

/// How a list differs from what is cached.
pub(super) struct Differences<K> {
    /// First what is there, then what is gone. Of what could not be read the cached state stays.
    pub(super) deltas: Vec<Delta<K>>,
    pub(super) unreadable: Vec<Undecodable>,
}

impl<K: Resource> Comparison<K> {
    /// How many objects of the list have not been looked at.
    pub(super) fn len(&self) -> usize {
        self.items.len()
    }

    /// Walks on by up to so many objects, of a cache that is the same every time. Gives back itself until all is found.
    pub(super) fn walk(
        mut self,
        cached: &Snapshot<K>,
        most: usize,
    ) -> ControlFlow<Differences<K>, Self> {
        let mut cached = cached.iter_after(self.after.as_ref()).peekable();
        let mut last = None;
        for _ in 0..most {
            let order = match (self.items.peek(), cached.peek()) {
                (Some((listed, _)), Some((cached, _))) => listed.cmp(cached),
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (None, None) => return ControlFlow::Break(self.differences()),
            };
            let item = self.items.next_if(|_| order != Ordering::Greater);
            let same = cached.next_if(|_| order != Ordering::Less);
            last = same.map(|(key, _)| key).or(last);
            self.note(item.map(|(_, item)| item), same.map(|(_, object)| object));
        }
        if let Some(last) = last {
            self.after = Some(last.clone());
        }
        ControlFlow::Continue(self)
    }

    fn note(&mut self, listed: Option<Item<K>>, cached: Option<&Arc<K>>) {
        match (listed, cached) {
            (Some(Item::Object(object)), cached) => {
                if cached.is_none_or(|cached| !Arc::ptr_eq(cached, &object)) {
                    self.there.push(Delta::new(Change::Replaced, object));
                }
            }
            (Some(Item::Undecodable(report)), _) => self.unreadable.push(report),
            (None, Some(cached)) => {
                self.vanished.push(Delta::new(Change::Vanished, Arc::clone(cached)));
            }
            (None, None) => {}
        }
    }

    fn differences(mut self) -> Differences<K> {
        self.there.append(&mut self.vanished);
        Differences { deltas: self.there, unreadable: self.unreadable }
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Pod;

    use super::*;

    fn pod(name: &str) -> Item<Pod> {
        let metadata = kube_core::ObjectMeta { name: Some(name.to_owned()), ..Default::default() };
        Item::Object(Arc::new(Pod { metadata, ..Pod::default() }))
    }

    fn unreadable(name: Option<&str>) -> Item<Pod> {
        let key = name.map(ObjectKey::cluster_scoped);
        Item::Undecodable(Undecodable { key, resource_version: None, reason: "broken".to_owned() })
    }

    fn completed(events: Vec<WatchEvent<Pod>>) -> (Vec<String>, Vec<String>) {
        let mut staged = Staged::default();
        events.into_iter().for_each(|event| staged.take(event));
        let (objects, unreadable) = staged.complete();
        let names = objects.iter().map(|pod| pod.key().to_string()).collect();
        (names, unreadable.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn changes_told_while_a_list_is_streamed_are_part_of_it() {
        let (names, unreadable) = completed(vec![
            WatchEvent::Added(pod("a")),
            WatchEvent::Added(pod("b")),
            WatchEvent::Modified(pod("a")),
            WatchEvent::Deleted(pod("b")),
        ]);
        assert_eq!((names, unreadable.len()), (vec!["a".to_owned()], 0));
    }

    #[test]
    fn the_last_word_about_an_object_counts_whether_it_can_be_read_or_not() {
        let (names, unreadable) = completed(vec![
            WatchEvent::Added(pod("broke")),
            WatchEvent::Modified(unreadable(Some("broke"))),
            WatchEvent::Added(unreadable(Some("mended"))),
            WatchEvent::Modified(pod("mended")),
            WatchEvent::Added(pod("gone")),
            WatchEvent::Deleted(unreadable(Some("gone"))),
            WatchEvent::Added(unreadable(None)),
        ]);
        assert_eq!(names, ["mended"]);
        assert_eq!(unreadable, ["an object without a name: broken", "broke: broken"]);
    }

    fn compare(most: usize) {
        let mut indexer = crate::cache::Indexer::<Pod>::default();
        let mut staged = Staged::default();
        for name in ["b", "c", "d", "f", "unreadable"] {
            let Item::Object(object) = pod(name) else { continue };
            if name == "c" {
                staged.take(WatchEvent::Added(Item::Object(Arc::clone(&object))));
            }
            indexer.apply(Delta::new(Change::Added, object));
        }
        for item in [pod("a"), pod("d"), pod("e"), unreadable(Some("unreadable")), unreadable(None)]
        {
            staged.take(WatchEvent::Added(item));
        }
        let mut comparison = staged.compared();
        let Differences { deltas, unreadable } = loop {
            let left = comparison.len();
            match comparison.walk(&indexer, most) {
                ControlFlow::Continue(rest) => {
                    assert!(left - rest.len() <= most);
                    comparison = rest;
                }
                ControlFlow::Break(differences) => break differences,
            }
        };
        let deltas: Vec<String> = deltas
            .iter()
            .map(|delta| format!("{:?} {}", delta.change, delta.object.key()))
            .collect();
        assert_eq!(
            deltas,
            ["Replaced a", "Replaced d", "Replaced e", "Vanished b", "Vanished f"],
            "c is the very same"
        );
        assert_eq!(unreadable.len(), 2);
    }

    #[test]
    fn a_list_is_compared_with_the_cache_in_steps_of_any_length() {
        [1, 2, 3, 100].into_iter().for_each(compare);
    }
}
