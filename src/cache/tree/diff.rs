use std::cmp::Ordering;

use super::node::Node;

/// One entry that differs between two states.
pub(in crate::cache) struct Difference<'a, K, V> {
    pub(in crate::cache) key: &'a K,
    pub(in crate::cache) old: Option<&'a V>,
    pub(in crate::cache) new: Option<&'a V>,
}

/// What is left of a state to walk through: entries of the leaf that was opened last, then nodes, the next one last.
struct Walk<'a, K, V> {
    entries: &'a [(K, V)],
    nodes: Vec<&'a Node<K, V>>,
}

enum Next<'a, K, V> {
    Entry(&'a (K, V)),
    Node(&'a Node<K, V>),
    End,
}

/// Walks through both at once. Nodes that both have are passed over when both come to them.
pub(super) fn between<'a, K: Ord, V: PartialEq>(
    old: &'a Node<K, V>,
    new: &'a Node<K, V>,
) -> Vec<Difference<'a, K, V>> {
    let mut old = Walk { entries: &[], nodes: vec![old] };
    let mut new = Walk { entries: &[], nodes: vec![new] };
    let mut found = Vec::new();
    loop {
        match (old.next(), new.next()) {
            (Next::End, Next::End) => return found,
            (Next::Node(one), Next::Node(other)) if one.is(other) => {
                old.nodes.pop();
                new.nodes.pop();
            }
            (Next::Node(one), Next::Node(other)) => {
                // The higher one first: the other may be among its children.
                let (one, other) = (one.height(), other.height());
                if one >= other {
                    old.open();
                }
                if other >= one {
                    new.open();
                }
            }
            (Next::Node(_), _) => old.open(),
            (_, Next::Node(_)) => new.open(),
            (Next::Entry(one), Next::Entry(other)) => match one.0.cmp(&other.0) {
                Ordering::Less => found.push(old.gone(one)),
                Ordering::Greater => found.push(new.come(other)),
                Ordering::Equal => {
                    old.pass();
                    new.pass();
                    if one.1 != other.1 {
                        let (old, new) = (Some(&one.1), Some(&other.1));
                        found.push(Difference { key: &other.0, old, new });
                    }
                }
            },
            (Next::Entry(one), Next::End) => found.push(old.gone(one)),
            (Next::End, Next::Entry(other)) => found.push(new.come(other)),
        }
    }
}

impl<'a, K, V> Walk<'a, K, V> {
    fn next(&self) -> Next<'a, K, V> {
        match (self.entries.first(), self.nodes.last()) {
            (Some(entry), _) => Next::Entry(entry),
            (None, Some(node)) => Next::Node(node),
            (None, None) => Next::End,
        }
    }

    /// Goes on to what the next node holds.
    fn open(&mut self) {
        match self.nodes.pop() {
            Some(Node::Leaf(leaf)) => self.entries = &leaf.entries,
            Some(Node::Branch(branch)) => self.nodes.extend(branch.children.iter().rev()),
            None => {}
        }
    }

    fn pass(&mut self) {
        self.entries = &self.entries[1..];
    }

    fn gone(&mut self, (key, value): &'a (K, V)) -> Difference<'a, K, V> {
        self.pass();
        Difference { key, old: Some(value), new: None }
    }

    fn come(&mut self, (key, value): &'a (K, V)) -> Difference<'a, K, V> {
        self.pass();
        Difference { key, old: None, new: Some(value) }
    }
}
