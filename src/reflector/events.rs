use std::fmt;
use std::ops::{Deref, Range};
use std::slice;
use std::sync::Arc;

use actix::Message;

use super::ResourceEvent;
use crate::object::Resource;

/// Several changes at once, for subscribers that prefer one message to many: a slice of events.
///
/// Subscribers share it. Taken apart it gives each event anew, which costs little: the objects stay shared.
#[derive(Message)]
#[rtype(result = "()")]
pub struct ResourceEvents<K: Resource> {
    shared: Arc<[ResourceEvent<K>]>,
    range: Range<usize>,
}

impl<K: Resource> ResourceEvents<K> {
    /// The same in parts of up to `most`, each to be dropped on its own.
    pub(super) fn in_parts(events: Vec<ResourceEvent<K>>, most: usize) -> Vec<Self> {
        if events.is_empty() {
            return Vec::new();
        }
        if events.len() <= most {
            return vec![events.into()];
        }
        let mut parts = Vec::with_capacity(events.len().div_ceil(most));
        let mut events = events.into_iter();
        while events.len() > 0 {
            parts.push(events.by_ref().take(most).collect::<Vec<_>>().into());
        }
        parts
    }

    /// Keeps up to `most`, gives the rest.
    pub(super) fn split_off(&mut self, most: usize) -> Self {
        let middle = self.range.end.min(self.range.start.saturating_add(most));
        let rest = Self { shared: Arc::clone(&self.shared), range: middle..self.range.end };
        self.range.end = middle;
        rest
    }

    /// Whether this is the end of the first snapshot, which is always told alone.
    pub(super) fn is_synced(&self) -> bool {
        matches!(**self, [ResourceEvent::Synced])
    }
}

impl<K: Resource> Deref for ResourceEvents<K> {
    type Target = [ResourceEvent<K>];

    fn deref(&self) -> &[ResourceEvent<K>] {
        &self.shared[self.range.clone()]
    }
}

impl<K: Resource> From<Vec<ResourceEvent<K>>> for ResourceEvents<K> {
    fn from(events: Vec<ResourceEvent<K>>) -> Self {
        Self { range: 0..events.len(), shared: events.into() }
    }
}

impl<'a, K: Resource> IntoIterator for &'a ResourceEvents<K> {
    type Item = &'a ResourceEvent<K>;
    type IntoIter = slice::Iter<'a, ResourceEvent<K>>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<K: Resource> IntoIterator for ResourceEvents<K> {
    type Item = ResourceEvent<K>;
    type IntoIter = IntoEvents<K>;

    fn into_iter(self) -> IntoEvents<K> {
        IntoEvents(self)
    }
}

/// The events of [`ResourceEvents`], one after the other.
#[derive(Debug)]
pub struct IntoEvents<K: Resource>(ResourceEvents<K>);

impl<K: Resource> Iterator for IntoEvents<K> {
    type Item = ResourceEvent<K>;

    fn next(&mut self) -> Option<ResourceEvent<K>> {
        let event = self.0.first().cloned()?;
        self.0.range.start += 1;
        Some(event)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.0.len(), Some(self.0.len()))
    }
}

impl<K: Resource> ExactSizeIterator for IntoEvents<K> {}

// Derived, these would ask the same of `K`.

impl<K: Resource> Clone for ResourceEvents<K> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared), range: self.range.clone() }
    }
}

impl<K: Resource> fmt::Debug for ResourceEvents<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self).finish()
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Pod;

    use super::super::Cause;
    use super::*;

    fn added(name: &str) -> ResourceEvent<Pod> {
        let metadata = kube_core::ObjectMeta { name: Some(name.to_owned()), ..Default::default() };
        let object = Arc::new(Pod { metadata, ..Pod::default() });
        ResourceEvent::Added { object, cause: Cause::Watch }
    }

    fn words(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| format!("added {name}")).collect()
    }

    fn written(events: &ResourceEvents<Pod>) -> Vec<String> {
        events.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn events_can_be_looked_at_and_taken_apart() {
        let mut first = ResourceEvents::from(vec![added("a"), added("b"), added("c")]);
        let mut rest = first.split_off(1);
        assert_eq!((written(&first), written(&rest)), (words(&["a"]), words(&["b", "c"])));
        assert!(rest.split_off(7).is_empty());
        assert_eq!(rest.clone().into_iter().len(), 2);
        assert_eq!(rest.into_iter().map(|event| event.to_string()).last().unwrap(), "added c");
    }

    #[test]
    fn parts_together_are_the_whole() {
        let names = ["a", "b", "c", "d", "e"];
        let sizes = |events: &[&str], most| {
            let events = events.iter().map(|name| added(name)).collect();
            let parts = ResourceEvents::in_parts(events, most);
            (parts.iter().map(|part| part.len()).collect::<Vec<_>>(), parts)
        };
        assert_eq!(sizes(&[], 2).0, [0; 0]);
        assert_eq!(sizes(&names, 5).0, [5]);
        let (lengths, parts) = sizes(&names, 2);
        assert_eq!(lengths, [2, 2, 1]);
        assert_eq!(parts.iter().flat_map(written).collect::<Vec<_>>(), words(&names));
    }
}
