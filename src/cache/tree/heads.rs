use std::cmp::Ordering;
use std::ops::Range;

use arrayvec::ArrayVec;

use super::TreeKey;
use super::node::WIDTH;

/// Eight bytes of each key of a node, right after those that all of its keys begin with.
///
/// *Invariant:* all keys begin with the same `shared` bytes, and `heads` has one for each of them, in their order.
#[derive(Debug, Clone, Default)]
pub(super) struct Heads {
    shared: usize,
    heads: ArrayVec<u64, WIDTH>,
}

impl Heads {
    /// Of these keys, which are sorted.
    pub(super) fn of<'a, K: TreeKey + 'a>(
        keys: impl DoubleEndedIterator<Item = &'a K> + Clone,
    ) -> Self {
        let mut ends = keys.clone();
        let Some(first) = ends.next() else { return Self::default() };
        let shared = shared(first.bytes(), ends.next_back().unwrap_or(first).bytes());
        Self { shared, heads: keys.map(|key| head(key.bytes(), shared)).collect() }
    }

    #[cfg(test)]
    pub(super) fn is_of<'a, K: TreeKey + 'a>(&self, keys: impl Iterator<Item = &'a K>) -> bool {
        let keys: Vec<&[u8]> = keys.map(TreeKey::bytes).collect();
        keys.iter().all(|key| key.starts_with(&keys[0][..self.shared]))
            && self.heads.iter().copied().eq(keys.iter().map(|key| head(key, self.shared)))
    }

    /// Takes in a key that comes to stand at `place`, if it begins as all others do. Otherwise all have to be looked at
    /// again.
    pub(super) fn insert<K: TreeKey>(&mut self, place: usize, key: &K, neighbour: &K) -> bool {
        let is_like_others = self.shared <= shared(key.bytes(), neighbour.bytes());
        if is_like_others {
            self.heads.insert(place, head(key.bytes(), self.shared));
        }
        is_like_others
    }

    /// Leaves out the key at `place`, if what the others begin with stays the same. Otherwise all have to be looked at
    /// again.
    pub(super) fn remove(&mut self, place: usize) -> bool {
        self.heads.remove(place);
        // The first and the last differ the most.
        place != 0 && place != self.heads.len()
    }

    /// Where a key stands.
    #[inline]
    pub(super) fn find<'a, K: TreeKey + 'a>(
        &self,
        key: &K,
        key_at: impl Fn(usize) -> &'a K,
    ) -> Option<usize> {
        // What does not begin as the others do is not there: it need not be known on which side of them it is not.
        search(self.alike(head(key.bytes(), self.shared)), key, key_at).ok()
    }

    /// Where a key stands, or where it would. `key_at` gives the key at a place.
    #[inline]
    pub(super) fn search<'a, K: TreeKey + 'a>(
        &self,
        key: &K,
        key_at: impl Fn(usize) -> &'a K,
    ) -> Result<usize, usize> {
        if self.heads.is_empty() {
            return Err(0);
        }
        let bytes = key.bytes();
        let start = &bytes[..self.shared.min(bytes.len())];
        match start.cmp(&key_at(0).bytes()[..self.shared]) {
            Ordering::Less => Err(0),
            Ordering::Greater => Err(self.heads.len()),
            Ordering::Equal => search(self.alike(head(bytes, self.shared)), key, key_at),
        }
    }

    /// The places of keys with this head.
    #[inline]
    fn alike(&self, head: u64) -> Range<usize> {
        // Without a branch, so that several are compared at once.
        let before = self.heads.iter().filter(|it| **it < head).count();
        let alike = self.heads[before..].iter().take_while(|it| **it == head).count();
        before..before + alike
    }
}

/// Searches among keys that their heads do not tell apart.
#[inline]
fn search<'a, K: Ord + 'a>(
    mut places: Range<usize>,
    key: &K,
    key_at: impl Fn(usize) -> &'a K,
) -> Result<usize, usize> {
    while !places.is_empty() {
        let middle = places.start + places.len() / 2;
        match key.cmp(key_at(middle)) {
            Ordering::Less => places.end = middle,
            Ordering::Equal => return Ok(middle),
            Ordering::Greater => places.start = middle + 1,
        }
    }
    Err(places.start)
}

/// The eight bytes from there on, as a number that sorts as they do. What is not there is zero.
#[inline]
fn head(bytes: &[u8], from: usize) -> u64 {
    let rest = bytes.get(from..).unwrap_or_default();
    if let Some(head) = rest.first_chunk() {
        return u64::from_be_bytes(*head);
    }
    let mut head = [0; 8];
    head[..rest.len()].copy_from_slice(rest);
    u64::from_be_bytes(head)
}

fn shared(one: &[u8], other: &[u8]) -> usize {
    one.iter().zip(other).take_while(|(one, other)| one == other).count()
}
