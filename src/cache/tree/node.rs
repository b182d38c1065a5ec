use std::sync::Arc;

use arrayvec::ArrayVec;

use super::TreeKey;
use super::heads::Heads;

/// So many entries a leaf has at most, and so many children a branch. A change copies the leaf and the branches above it:
/// wider ones cost more to copy, narrower ones are more to walk through.
pub(super) const WIDTH: usize = 16;

/// A node that is filled so far has room left for a while.
pub(super) const FILLED: usize = WIDTH / 4 * 3;

/// What is narrower is made one with the node beside it, where that is no more than filled.
const NARROW: usize = WIDTH / 2;

pub(super) enum Node<K, V> {
    Leaf(Arc<Leaf<K, V>>),
    Branch(Arc<Branch<K, V>>),
}

/// Some entries, sorted. Only the root is ever empty.
#[derive(Clone)]
pub(super) struct Leaf<K, V> {
    pub(super) heads: Heads,
    pub(super) entries: ArrayVec<(K, V), WIDTH>,
}

/// Nodes of the same height, sorted.
///
/// *Invariant:* all keys of a child, and all that a child calls lowest, are at least its `lowest` and less than that of the
/// next.
#[derive(Clone)]
pub(super) struct Branch<K, V> {
    /// Stays the same, and shared, while entries below are replaced.
    pub(super) bounds: Arc<Bounds<K>>,
    pub(super) children: ArrayVec<Node<K, V>, WIDTH>,
    /// Of leaves it is none.
    pub(super) height: u8,
}

/// What each child of a branch calls lowest.
#[derive(Clone)]
pub(super) struct Bounds<K> {
    pub(super) heads: Heads,
    pub(super) lowest: ArrayVec<K, WIDTH>,
}

/// What putting in an entry did to a node.
pub(super) enum Put<K, V> {
    /// There was an entry of this key.
    Replaced(V),
    Added,
    /// Added; what did not fit any more is a node of its own, which comes next and has no key less than this.
    Split(K, Node<K, V>),
}

impl<K: TreeKey, V: Clone> Node<K, V> {
    #[inline]
    pub(super) fn get(&self, key: &K) -> Option<&V> {
        let mut node = self;
        loop {
            match node {
                Self::Branch(branch) => node = &branch.children[branch.place(key)],
                Self::Leaf(leaf) => return leaf.get(key),
            }
        }
    }

    pub(super) fn insert(&mut self, key: K, value: V) -> Put<K, V> {
        match self {
            Self::Leaf(leaf) => Arc::make_mut(leaf).insert(key, value),
            Self::Branch(branch) => Arc::make_mut(branch).insert(key, value),
        }
    }

    /// Takes out an entry, which leaves the node empty at worst.
    pub(super) fn remove(&mut self, key: &K) -> Option<V> {
        match self {
            Self::Leaf(leaf) => Arc::make_mut(leaf).remove(key),
            Self::Branch(branch) => Arc::make_mut(branch).remove(key),
        }
    }

    /// Becomes the branch above itself and the node split off from it.
    pub(super) fn grow(&mut self, lowest: K, right: Self) {
        let first = self.first_key().expect("what was split keeps some").clone();
        let height = self.height() + 1;
        let lowest = ArrayVec::from_iter([first, lowest]);
        let children = ArrayVec::from_iter([self.clone(), right]);
        *self = Self::Branch(Arc::new(Branch::new(lowest, children, height)));
    }

    /// Becomes what it is without branches of a single child.
    pub(super) fn shrink(&mut self) {
        while let Self::Branch(branch) = self
            && let [only] = branch.children.as_slice()
        {
            let only = only.clone();
            *self = only;
        }
    }

    fn first_key(&self) -> Option<&K> {
        match self {
            Self::Leaf(leaf) => leaf.entries.first().map(|(key, _)| key),
            Self::Branch(branch) => branch.bounds.lowest.first(),
        }
    }

    /// How many entries or children it has.
    fn width(&self) -> usize {
        match self {
            Self::Leaf(leaf) => leaf.entries.len(),
            Self::Branch(branch) => branch.children.len(),
        }
    }

    /// Takes in all of the node that comes next.
    fn merge(&mut self, right: Self) {
        match (self, right) {
            (Self::Leaf(left), Self::Leaf(right)) => Arc::make_mut(left).merge(right),
            (Self::Branch(left), Self::Branch(right)) => Arc::make_mut(left).merge(right),
            _ => unreachable!("siblings are of one height"),
        }
    }
}

impl<K, V> Node<K, V> {
    pub(super) fn height(&self) -> u8 {
        match self {
            Self::Leaf(_) => 0,
            Self::Branch(branch) => branch.height,
        }
    }

    /// Whether two nodes are the same in memory.
    pub(super) fn is(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Leaf(one), Self::Leaf(other)) => Arc::ptr_eq(one, other),
            (Self::Branch(one), Self::Branch(other)) => Arc::ptr_eq(one, other),
            _ => false,
        }
    }
}

impl<K: TreeKey, V: Clone> Leaf<K, V> {
    #[inline]
    pub(super) fn search(&self, key: &K) -> Result<usize, usize> {
        self.heads.search(key, |place| &self.entries[place].0)
    }

    #[inline]
    fn get(&self, key: &K) -> Option<&V> {
        let place = self.heads.find(key, |place| &self.entries[place].0)?;
        Some(&self.entries[place].1)
    }

    fn insert(&mut self, key: K, value: V) -> Put<K, V> {
        let place = match self.search(&key) {
            Ok(place) => {
                // The key too: an object may share its own with the map.
                let before = std::mem::replace(&mut self.entries[place], (key, value));
                return Put::Replaced(before.1);
            }
            Err(place) => place,
        };
        if !self.entries.is_full() {
            self.insert_at(place, key, value);
            return Put::Added;
        }
        let middle = middle(place);
        let mut right = Self { entries: self.entries.drain(middle..).collect(), ..Self::default() };
        self.look_again();
        right.look_again();
        if place < middle {
            self.insert_at(place, key, value);
        } else {
            right.insert_at(place - middle, key, value);
        }
        Put::Split(right.entries[0].0.clone(), Node::Leaf(Arc::new(right)))
    }

    fn insert_at(&mut self, place: usize, key: K, value: V) {
        let neighbour = self.entries.first().map(|(first, _)| first);
        let is_like_others = neighbour.is_some_and(|it| self.heads.insert(place, &key, it));
        self.entries.insert(place, (key, value));
        if !is_like_others {
            self.look_again();
        }
    }

    fn remove(&mut self, key: &K) -> Option<V> {
        let place = self.search(key).ok()?;
        let (_, value) = self.entries.remove(place);
        if !self.heads.remove(place) {
            self.look_again();
        }
        Some(value)
    }

    fn merge(&mut self, right: Arc<Self>) {
        self.entries.extend(Arc::unwrap_or_clone(right).entries);
        self.look_again();
    }

    fn look_again(&mut self) {
        self.heads = Heads::of(self.entries.iter().map(|(key, _)| key));
    }
}

impl<K: TreeKey, V: Clone> Branch<K, V> {
    fn new(lowest: ArrayVec<K, WIDTH>, children: ArrayVec<Node<K, V>, WIDTH>, height: u8) -> Self {
        Self { bounds: Arc::new(Bounds::of(lowest)), children, height }
    }

    /// The place of the child that has a key, if any has.
    #[inline]
    pub(super) fn place(&self, key: &K) -> usize {
        match self.bounds.search(key) {
            Ok(place) => place,
            Err(place) => place.saturating_sub(1),
        }
    }

    fn insert(&mut self, key: K, value: V) -> Put<K, V> {
        let place = match self.bounds.search(&key) {
            Ok(place) => place,
            Err(0) => {
                self.bounds_mut().lower(key.clone());
                0
            }
            Err(place) => place - 1,
        };
        let (lowest, child) = match self.children[place].insert(key, value) {
            Put::Split(lowest, child) => (lowest, child),
            done @ (Put::Replaced(_) | Put::Added) => return done,
        };
        let place = place + 1;
        if !self.children.is_full() {
            self.insert_at(place, lowest, child);
            return Put::Added;
        }
        let middle = middle(place);
        let mut right = Self::new(
            self.bounds_mut().split_off(middle),
            self.children.drain(middle..).collect(),
            self.height,
        );
        if place < middle {
            self.insert_at(place, lowest, child);
        } else {
            right.insert_at(place - middle, lowest, child);
        }
        Put::Split(right.bounds.lowest[0].clone(), Node::Branch(Arc::new(right)))
    }

    fn insert_at(&mut self, place: usize, lowest: K, child: Node<K, V>) {
        self.bounds_mut().insert(place, lowest);
        self.children.insert(place, child);
    }

    fn remove(&mut self, key: &K) -> Option<V> {
        let place = self.place(key);
        let removed = self.children[place].remove(key);
        match self.children[place].width() {
            0 => drop(self.take(place)),
            1..NARROW => self.merge_near(place),
            _ => {}
        }
        removed
    }

    fn merge_near(&mut self, place: usize) {
        let last = self.children.len() - 1;
        for left in [place.checked_sub(1), (place < last).then_some(place)].into_iter().flatten() {
            let together = self.children[left].width() + self.children[left + 1].width();
            if together <= FILLED {
                let right = self.take(left + 1);
                self.children[left].merge(right);
                return;
            }
        }
    }

    fn take(&mut self, place: usize) -> Node<K, V> {
        self.bounds_mut().remove(place);
        self.children.remove(place)
    }

    fn merge(&mut self, right: Arc<Self>) {
        let right = Arc::unwrap_or_clone(right);
        self.bounds_mut().merge(right.bounds);
        self.children.extend(right.children);
    }

    fn bounds_mut(&mut self) -> &mut Bounds<K> {
        Arc::make_mut(&mut self.bounds)
    }
}

impl<K: TreeKey> Bounds<K> {
    fn of(lowest: ArrayVec<K, WIDTH>) -> Self {
        Self { heads: Heads::of(lowest.iter()), lowest }
    }

    #[inline]
    fn search(&self, key: &K) -> Result<usize, usize> {
        self.heads.search(key, |place| &self.lowest[place])
    }

    /// Makes the first one lower.
    fn lower(&mut self, lowest: K) {
        self.lowest[0] = lowest;
        self.look_again();
    }

    fn insert(&mut self, place: usize, lowest: K) {
        let neighbour = self.lowest.first();
        let is_like_others = neighbour.is_some_and(|it| self.heads.insert(place, &lowest, it));
        self.lowest.insert(place, lowest);
        if !is_like_others {
            self.look_again();
        }
    }

    fn remove(&mut self, place: usize) {
        self.lowest.remove(place);
        if !self.heads.remove(place) {
            self.look_again();
        }
    }

    fn split_off(&mut self, middle: usize) -> ArrayVec<K, WIDTH> {
        let right = self.lowest.drain(middle..).collect();
        self.look_again();
        right
    }

    fn merge(&mut self, right: Arc<Self>) {
        self.lowest.extend(Arc::unwrap_or_clone(right).lowest);
        self.look_again();
    }

    fn look_again(&mut self) {
        self.heads = Heads::of(self.lowest.iter());
    }
}

/// Where a full node is split for one more at `place`. What comes sorted is not put in there any more.
fn middle(place: usize) -> usize {
    if place == WIDTH { FILLED } else { WIDTH / 2 }
}

impl<K, V> Default for Leaf<K, V> {
    fn default() -> Self {
        Self { heads: Heads::default(), entries: ArrayVec::new() }
    }
}

impl<K, V> Clone for Node<K, V> {
    fn clone(&self) -> Self {
        match self {
            Self::Leaf(leaf) => Self::Leaf(Arc::clone(leaf)),
            Self::Branch(branch) => Self::Branch(Arc::clone(branch)),
        }
    }
}
