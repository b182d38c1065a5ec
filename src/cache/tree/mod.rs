//! A sorted map of which every state can be kept: a clone costs a reference count, and a change copies the path to it.
//!
//! A B+ tree. Its nodes keep eight bytes of every key beside each other, those in which the keys of the node differ first,
//! so that a search looks at one key of a node, and not at one for each of its comparisons: each of those is a wait for
//! memory once there are more objects than the caches of the CPU hold.

mod diff;
mod heads;
mod iter;
mod node;

use std::ops::Bound;
use std::sync::Arc;

pub(super) use self::diff::Difference;
pub(super) use self::iter::Iter;
use self::node::{Leaf, Node, Put};

/// What a [`Tree`] is sorted by.
pub(super) trait TreeKey: Ord + Clone {
    /// Bytes that sort as the keys do, except that they may be equal where the keys are not.
    fn bytes(&self) -> &[u8];
}

/// The map. Clones share what neither has changed since.
pub(super) struct Tree<K, V> {
    root: Node<K, V>,
    len: usize,
}

impl<K: TreeKey, V: Clone> Tree<K, V> {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(super) fn get(&self, key: &K) -> Option<&V> {
        self.root.get(key)
    }

    /// Gives what was there before.
    pub(super) fn insert(&mut self, key: K, value: V) -> Option<V> {
        match self.root.insert(key, value) {
            Put::Replaced(before) => return Some(before),
            Put::Added => {}
            Put::Split(lowest, right) => self.root.grow(lowest, right),
        }
        self.len += 1;
        None
    }

    /// Gives what was there. Where nothing was, nothing is copied.
    pub(super) fn remove(&mut self, key: &K) -> Option<V> {
        self.get(key)?;
        let removed = self.root.remove(key);
        self.root.shrink();
        self.len -= 1;
        removed
    }

    /// Everything, sorted.
    pub(super) fn iter(&self) -> Iter<'_, K, V> {
        Iter::from(&self.root, Bound::Unbounded).of_at_least(self.len)
    }

    /// Everything from a key on, sorted.
    pub(super) fn iter_from(&self, key: Bound<&K>) -> Iter<'_, K, V> {
        Iter::from(&self.root, key)
    }

    /// What changed from this state to a later one, sorted. What they share is not looked at.
    pub(super) fn differences<'a>(&'a self, later: &'a Self) -> Vec<Difference<'a, K, V>>
    where
        V: PartialEq,
    {
        diff::between(&self.root, &later.root)
    }
}

impl<K, V> Default for Tree<K, V> {
    fn default() -> Self {
        Self { root: Node::Leaf(Arc::new(Leaf::default())), len: 0 }
    }
}

impl<K, V> Clone for Tree<K, V> {
    fn clone(&self) -> Self {
        Self { root: self.root.clone(), len: self.len }
    }
}

#[cfg(test)]
mod tests;
