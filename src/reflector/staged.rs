use std::collections::BTreeMap;
use std::sync::Arc;

use crate::api::{Item, Undecodable, WatchEvent};
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

    /// Leaves out what is not to be believed; says how many that were.
    pub(super) fn drop_all(&mut self, is_false: impl Fn(&Item<K>) -> bool) -> u64 {
        let before = self.items.len();
        self.items.retain(|_, item| !is_false(item));
        (before - self.items.len()) as u64
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
}
