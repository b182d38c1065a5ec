use std::sync::Arc;

use crate::api::{Item, Selection, Undecodable, WatchEvent};
use crate::object::{Kind, LabelSelector, Resource};

/// Keeps out what was not asked for, as far as that can be seen: a source may be anybody's, and a server may ignore a
/// selector. Of fields the server alone can tell, and of labels a type that does not keep them can not.
#[derive(Debug)]
pub(super) struct Gate {
    kind: Kind,
    selection: Arc<Selection>,
    labels: Option<LabelSelector>,
}

impl Gate {
    /// `selection` must have been checked.
    pub(super) fn new(kind: Kind, selection: Arc<Selection>) -> Self {
        let labels = selection.labels.as_ref().and_then(|labels| labels.parse().ok());
        Self { kind, selection, labels }
    }

    /// The event, or a report in place of an object that is none of ours.
    pub(super) fn pass<K: Resource>(&self, event: WatchEvent<K>) -> WatchEvent<K> {
        match event.checked(&self.kind) {
            WatchEvent::Added(item) => WatchEvent::Added(self.selected(item)),
            WatchEvent::Modified(item) => match self.in_place(item) {
                item if self.has_labels(&item) => WatchEvent::Modified(item),
                // It left the selection.
                item => WatchEvent::Deleted(item),
            },
            WatchEvent::Deleted(item) => WatchEvent::Deleted(self.in_place(item)),
            event @ (WatchEvent::Bookmark { .. } | WatchEvent::Unknown { .. }) => event,
        }
    }

    fn selected<K: Resource>(&self, item: Item<K>) -> Item<K> {
        let item = self.in_place(item);
        match &self.labels {
            Some(selector) if !self.has_labels(&item) => {
                foreign(&item, &format!("its labels are not those of {selector}"))
            }
            _ => item,
        }
    }

    fn has_labels<K: Resource>(&self, item: &Item<K>) -> bool {
        let (Item::Object(object), Some(selector)) = (item, &self.labels) else { return true };
        object.labels().is_none_or(|labels| selector.matches(Some(&*labels)))
    }

    fn in_place<K: Resource>(&self, item: Item<K>) -> Item<K> {
        let (Item::Object(object), Some(wanted)) = (&item, &self.selection.namespace) else {
            return item;
        };
        let key = object.key();
        let found = key.namespace().unwrap_or_default();
        if found == wanted {
            return item;
        }
        foreign(&item, &format!("it is in namespace {found:?}, not in {wanted:?}"))
    }
}

/// Without a key: what is cached under that name is not touched by it.
fn foreign<K: Resource>(item: &Item<K>, problem: &str) -> Item<K> {
    let name = item.key().map(|key| key.to_string()).unwrap_or_default();
    Item::Undecodable(Undecodable {
        key: None,
        resource_version: item.resource_version(),
        reason: format!("{name} was not asked for: {problem}"),
    })
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Pod;

    use super::*;
    use crate::object::StaticKind as _;

    fn gate(namespace: Option<&str>, labels: Option<&str>) -> Gate {
        let selection = Selection {
            namespace: namespace.map(str::to_owned),
            labels: labels.map(str::to_owned),
            fields: None,
        };
        Gate::new(Pod::static_kind(), Arc::new(selection))
    }

    fn pod(namespace: &str, app: Option<&str>) -> Item<Pod> {
        let metadata = kube_core::ObjectMeta {
            name: Some("a".to_owned()),
            namespace: Some(namespace.to_owned()),
            labels: app.map(|app| [("app".to_owned(), app.to_owned())].into()),
            ..Default::default()
        };
        Item::Object(Arc::new(Pod { metadata, ..Pod::default() }))
    }

    fn refusal(event: WatchEvent<Pod>) -> Option<String> {
        match event {
            WatchEvent::Added(Item::Undecodable(report))
            | WatchEvent::Modified(Item::Undecodable(report))
            | WatchEvent::Deleted(Item::Undecodable(report)) => Some(report.reason),
            _ => None,
        }
    }

    #[test]
    fn what_is_in_another_namespace_is_none_of_ours() {
        let gate = gate(Some("one"), None);
        assert_eq!(refusal(gate.pass(WatchEvent::Added(pod("one", None)))), None);
        for event in [WatchEvent::Added, WatchEvent::Modified, WatchEvent::Deleted] {
            let reason = refusal(gate.pass(event(pod("two", None)))).unwrap();
            assert_eq!(
                reason,
                r#"two/a was not asked for: it is in namespace "two", not in "one""#
            );
        }
    }

    #[test]
    fn what_has_other_labels_is_none_of_ours_or_leaves() {
        let gate = gate(None, Some("app=web"));
        for event in [WatchEvent::Added, WatchEvent::Modified] {
            assert_eq!(refusal(gate.pass(event(pod("one", Some("web"))))), None);
        }
        for other in [Some("db"), None] {
            let reason = refusal(gate.pass(WatchEvent::Added(pod("one", other)))).unwrap();
            assert_eq!(reason, "one/a was not asked for: its labels are not those of app=web");
            let left = gate.pass(WatchEvent::Modified(pod("one", other)));
            assert!(matches!(left, WatchEvent::Deleted(Item::Object(_))), "{left:?}");
            assert_eq!(refusal(gate.pass(WatchEvent::Deleted(pod("one", other)))), None);
        }
    }
}
