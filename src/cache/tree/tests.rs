use std::cell::Cell;
use std::collections::BTreeMap;
use std::ops::Bound;

use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use super::heads::Heads;
use super::node::{Branch, FILLED, WIDTH};
use super::*;

/// Its first text orders it first, and its number what that leaves open.
type Key = (String, u8);

impl TreeKey for Key {
    fn bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

impl TreeKey for String {
    fn bytes(&self) -> &[u8] {
        self.as_bytes()
    }
}

fn numbered(number: usize) -> String {
    format!("team-{:02}\0pod-{number:05}", number % 7)
}

/// Every promise of the types, at every node. Gives how many entries there are.
fn check<K: TreeKey + std::fmt::Debug, V: Clone>(node: &Node<K, V>, is_root: bool) -> usize {
    let check_keys = |heads: &Heads, keys: Vec<&K>| {
        assert!(heads.is_of(keys.iter().copied()), "{heads:?} of {keys:?}");
        assert!(keys.is_sorted_by(|one, next| one < next), "{keys:?}");
        assert!(is_root || !keys.is_empty());
    };
    match node {
        Node::Leaf(leaf) => {
            check_keys(&leaf.heads, leaf.entries.iter().map(|(key, _)| key).collect());
            leaf.entries.len()
        }
        Node::Branch(branch) => {
            check_keys(&branch.bounds.heads, branch.bounds.lowest.iter().collect());
            assert_eq!(branch.bounds.lowest.len(), branch.children.len());
            assert!(!is_root || branch.children.len() > 1);
            check_bounds(branch);
            branch.children.iter().map(|child| check(child, false)).sum()
        }
    }
}

fn check_bounds<K: TreeKey, V: Clone>(branch: &Branch<K, V>) {
    for (place, child) in branch.children.iter().enumerate() {
        assert_eq!(child.height() + 1, branch.height);
        if let Node::Branch(child) = child {
            assert!(branch.bounds.lowest[place] <= child.bounds.lowest[0]);
        }
        for (key, _) in Iter::from(child, Bound::Unbounded) {
            assert!(branch.bounds.lowest[place] <= *key);
            assert!(branch.bounds.lowest.get(place + 1).is_none_or(|next| key < next));
        }
    }
}

#[derive(Debug, Clone)]
enum Step {
    Insert(Key, u32),
    Remove(Key),
    /// What is there from a place on, so many, as when a namespace goes.
    RemoveRun(usize, usize),
}

/// Keys that begin alike for longer or shorter than a head is long, and some that only their numbers tell apart.
fn key() -> impl Strategy<Value = Key> {
    let start =
        prop::sample::select(vec!["", "a", "team-1\0checkout-", "team-1\0checkout-6f8d9\0"]);
    (start, "[\0ab]{0,3}", "(12345678)?", 0..3_u8)
        .prop_map(|(start, middle, end, number)| (format!("{start}{middle}{end}"), number))
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (key(), any::<u32>()).prop_map(|(key, value)| Step::Insert(key, value)),
        3 => key().prop_map(Step::Remove),
        1 => (0..200_usize, 0..60_usize).prop_map(|(from, count)| Step::RemoveRun(from, count)),
    ]
}

fn run(step: &Step, tree: &mut Tree<Key, u32>, model: &mut BTreeMap<Key, u32>) {
    match step {
        Step::Insert(key, value) => {
            assert_eq!(tree.insert(key.clone(), *value), model.insert(key.clone(), *value));
        }
        Step::Remove(key) => assert_eq!(tree.remove(key), model.remove(key)),
        Step::RemoveRun(from, count) => {
            let run: Vec<Key> = model.keys().skip(*from).take(*count).cloned().collect();
            for key in run {
                assert_eq!(tree.remove(&key), model.remove(&key));
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, rng_seed: RngSeed::Fixed(1), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_tree_is_a_sorted_map_whatever_happens_to_it(
        steps in prop::collection::vec(step(), 0..600),
        asked in prop::collection::vec(key(), 20),
    ) {
        let (mut tree, mut model) = (Tree::default(), BTreeMap::new());
        for (number, step) in steps.iter().enumerate() {
            run(step, &mut tree, &mut model);
            if number % 50 == 0 {
                prop_assert_eq!(check(&tree.root, true), model.len());
            }
        }
        prop_assert_eq!(check(&tree.root, true), model.len());
        prop_assert_eq!((tree.len(), tree.is_empty()), (model.len(), model.is_empty()));
        prop_assert!(tree.iter().eq(model.iter()));
        prop_assert_eq!(tree.iter().size_hint().0, model.len());
        for key in &asked {
            prop_assert_eq!(tree.get(key), model.get(key));
            for bound in [Bound::Included(key), Bound::Excluded(key)] {
                prop_assert!(tree.iter_from(bound).eq(model.range((bound, Bound::Unbounded))));
            }
        }
    }

    #[test]
    fn every_state_stays_as_it_was_and_its_differences_lead_to_the_next(
        first in prop::collection::vec(step(), 0..400),
        then in prop::collection::vec(step(), 0..60),
    ) {
        let (mut tree, mut model) = (Tree::default(), BTreeMap::new());
        first.iter().for_each(|step| run(step, &mut tree, &mut model));
        let (before, before_model) = (tree.clone(), model.clone());
        then.iter().for_each(|step| run(step, &mut tree, &mut model));
        prop_assert!(before.iter().eq(before_model.iter()));

        // Also where nothing is shared.
        let apart = model.iter().fold(Tree::default(), |mut apart, (key, value)| {
            apart.insert(key.clone(), *value);
            apart
        });
        prop_assert_eq!(tree.differences(&apart).len(), 0);
        let changed = before.differences(&tree).len();
        prop_assert_eq!(before.differences(&apart).len(), changed);
        prop_assert_eq!(Tree::default().differences(&apart).len(), model.len());
        prop_assert_eq!(apart.differences(&Tree::default()).len(), model.len());

        let differences = before.differences(&tree);
        prop_assert!(differences.is_sorted_by(|one, next| one.key < next.key));
        let mut led = before_model;
        for Difference { key, old, new } in differences {
            prop_assert_eq!(led.get(key), old);
            prop_assert_ne!(old, new);
            match new {
                Some(new) => led.insert(key.clone(), *new),
                None => led.remove(key),
            };
        }
        prop_assert_eq!(led, model);
    }
}

/// Counts how often it is copied and compared.
#[derive(Debug)]
struct Counted(u32);

thread_local! {
    static COPIES: Cell<usize> = const { Cell::new(0) };
    static COMPARISONS: Cell<usize> = const { Cell::new(0) };
}

impl Clone for Counted {
    fn clone(&self) -> Self {
        COPIES.set(COPIES.get() + 1);
        Self(self.0)
    }
}

impl PartialEq for Counted {
    fn eq(&self, other: &Self) -> bool {
        COMPARISONS.set(COMPARISONS.get() + 1);
        self.0 == other.0
    }
}

#[test]
fn a_change_of_a_state_that_is_kept_copies_one_leaf_and_is_found_by_looking_at_it_alone() {
    let mut tree: Tree<String, Counted> = Tree::default();
    for number in 0..20_000 {
        assert_eq!(tree.insert(numbered(number), Counted(0)), None);
    }
    COMPARISONS.set(0);
    assert_eq!(COPIES.get(), 0, "what nobody keeps is changed in place");
    let before = tree.clone();
    tree.insert(numbered(9_999), Counted(1));
    assert!(COPIES.get() <= WIDTH, "{} were copied", COPIES.get());
    let differences = before.differences(&tree);
    assert_eq!(differences.len(), 1);
    assert_eq!(differences[0].key, &numbered(9_999));
    assert!(COMPARISONS.get() <= WIDTH, "{} were compared", COMPARISONS.get());
    tree.remove(&"nobody".to_owned());
    assert!(COPIES.get() <= WIDTH, "what is not there costs no copy to remove");
}

#[test]
fn whatever_order_keys_come_in_leaves_are_no_worse_than_half_full() {
    let leaves_of = |keys: &[String]| {
        let mut tree = Tree::default();
        keys.iter().for_each(|key| assert_eq!(tree.insert(key.clone(), ()), None));
        check(&tree.root, true);
        leaves(&tree.root)
    };
    let mut keys: Vec<String> = (0..10_000).map(numbered).collect();
    assert!(leaves_of(&keys) <= 10_000 / (WIDTH / 2));
    keys.sort();
    assert!(leaves_of(&keys) <= 10_000 / FILLED + 1);
    keys.reverse();
    assert!(leaves_of(&keys) <= 10_000 / (WIDTH / 2));
    // Each of them comes right after those of a full leaf.
    keys.sort();
    keys[WIDTH..].reverse();
    assert!(leaves_of(&keys) <= 10_000 / (WIDTH / 2));
}

#[test]
fn what_was_emptied_takes_little_room() {
    let mut tree = Tree::default();
    for number in 0..10_000 {
        assert_eq!(tree.insert(numbered(number), ()), None);
    }
    for number in (0..10_000).filter(|number| number % 50 != 0) {
        assert!(tree.remove(&numbered(number)).is_some());
    }
    assert_eq!(check(&tree.root, true), 200);
    assert!(leaves(&tree.root) <= 200 / (WIDTH / 4), "{} leaves", leaves(&tree.root));
    for number in (0..10_000).step_by(50) {
        assert!(tree.remove(&numbered(number)).is_some());
    }
    assert!(tree.is_empty());
    assert_eq!((tree.root.height(), leaves(&tree.root)), (0, 1));
}

fn leaves<K, V>(node: &Node<K, V>) -> usize {
    match node {
        Node::Leaf(_) => 1,
        Node::Branch(branch) => branch.children.iter().map(leaves).sum(),
    }
}
