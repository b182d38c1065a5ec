use std::ops::Bound;
use std::slice;

use super::TreeKey;
use super::node::Node;

/// Entries of a tree, sorted.
pub(in crate::cache) struct Iter<'a, K, V> {
    /// The children of each branch above that are still to come.
    above: Vec<slice::Iter<'a, Node<K, V>>>,
    entries: slice::Iter<'a, (K, V)>,
    at_least: usize,
}

impl<'a, K: TreeKey, V: Clone> Iter<'a, K, V> {
    /// The entries of a node from a key on.
    pub(super) fn from(node: &'a Node<K, V>, key: Bound<&K>) -> Self {
        let mut above = Vec::new();
        let mut node = node;
        loop {
            match node {
                Node::Branch(branch) => {
                    let first = wanted(key).map_or(0, |key| branch.place(key));
                    node = &branch.children[first];
                    above.push(branch.children[first + 1..].iter());
                }
                Node::Leaf(leaf) => {
                    let first = match (key, wanted(key).map(|key| leaf.search(key))) {
                        (Bound::Excluded(_), Some(Ok(place))) => place + 1,
                        (_, Some(Ok(place) | Err(place))) => place,
                        (_, None) => 0,
                    };
                    return Self { above, entries: leaf.entries[first..].iter(), at_least: 0 };
                }
            }
        }
    }

    /// For who makes room beforehand.
    pub(super) fn of_at_least(self, at_least: usize) -> Self {
        Self { at_least, ..self }
    }
}

fn wanted<K>(key: Bound<&K>) -> Option<&K> {
    match key {
        Bound::Included(key) | Bound::Excluded(key) => Some(key),
        Bound::Unbounded => None,
    }
}

impl<'a, K, V> Iterator for Iter<'a, K, V> {
    type Item = (&'a K, &'a V);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some((key, value)) = self.entries.next() {
                self.at_least = self.at_least.saturating_sub(1);
                return Some((key, value));
            }
            match self.above.last_mut()?.next() {
                None => {
                    self.above.pop();
                }
                Some(Node::Leaf(leaf)) => self.entries = leaf.entries.iter(),
                Some(Node::Branch(branch)) => self.above.push(branch.children.iter()),
            }
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.at_least, None)
    }
}
