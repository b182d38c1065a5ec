//! Whatever a server reports, and whenever it is popped: the queue leads the cache to what the server has.

mod support;

use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use kubeflect::cache::Discipline;
use support::{Play, Step};

fn change() -> impl Strategy<Value = Step> {
    prop_oneof![
        5 => (0..5_u8, 0..3_u8).prop_map(|(name, group)| Step::Put { name, group }),
        3 => (0..5_u8).prop_map(Step::Delete),
    ]
}

fn list() -> impl Strategy<Value = Step> {
    let missed = prop::collection::vec(change(), 0..6);
    (missed, prop::option::weighted(0.2, 0..5_u8))
        .prop_map(|(missed, unreadable)| Step::List { missed, unreadable })
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => change(),
        1 => list(),
        1 => (0..5_u8).prop_map(Step::Repeat),
        1 => Just(Step::Resync),
        1 => Just(Step::Bookmark),
        6 => (1..4_usize).prop_map(Step::Pop),
    ]
}

fn discipline() -> impl Strategy<Value = Discipline> {
    prop::sample::select(vec![
        Discipline::PerObject,
        Discipline::InOrder,
        Discipline::InOrderAtomic,
    ])
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, rng_seed: RngSeed::Fixed(1), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_cache_ends_up_as_the_server_reported(
        first in list(),
        steps in prop::collection::vec(step(), 0..50),
        discipline in discipline(),
    ) {
        let mut play = Play::new(discipline);
        play.run(&first);
        prop_assert!(!play.has_synced() || play.is_drained(), "a list is not applied by being queued");
        steps.iter().for_each(|step| play.run(step));
        play.drain();
    }

    #[test]
    fn a_queue_that_is_fed_before_any_list_leads_there_too(
        steps in prop::collection::vec(step(), 0..50),
        discipline in discipline(),
    ) {
        let mut play = Play::new(discipline);
        steps.iter().for_each(|step| play.run(step));
        play.drain();
    }

    #[test]
    fn every_discipline_leads_to_the_same_cache(
        steps in prop::collection::vec(step(), 0..50),
    ) {
        let disciplines = [Discipline::PerObject, Discipline::InOrder, Discipline::InOrderAtomic];
        let caches = disciplines.map(|discipline| {
            let mut play = Play::new(discipline);
            steps.iter().for_each(|step| play.run(step));
            play.drain();
            play.cached()
        });
        prop_assert_eq!(&caches[0], &caches[1]);
        prop_assert_eq!(&caches[1], &caches[2]);
    }
}
