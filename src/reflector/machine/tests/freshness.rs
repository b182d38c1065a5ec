//! Whether the cache is said to keep up.

use super::*;

#[test]
fn nothing_is_fresh_or_stale_before_the_first_list() {
    let mut play = Play::listing();
    for input in [start(""), list_failed(503), Input::WaitOver] {
        play.step(input);
        assert_eq!(*play.machine.freshness(), Freshness::Unknown);
    }
    play.step(listed("7"));
    assert_eq!(*play.machine.freshness(), Freshness::Fresh);

    let mut play = Play::streaming();
    play.all([start(""), Input::WatchOpened]);
    assert_eq!(*play.machine.freshness(), Freshness::Unknown);
    play.step(initial_events_ended("7"));
    assert_eq!(*play.machine.freshness(), Freshness::Fresh);
}

#[test]
fn it_is_stale_since_the_first_failure_until_the_next_list_or_watch() {
    let mut play = Play::watching();
    play.after(5).step(failed(error(503), "7"));
    assert_eq!(play.stale_for(), Some(0));
    play.after(5).step(Input::WaitOver);
    assert_eq!(play.stale_for(), Some(5));
    play.after(5).step(failed(error(410), "7"));
    assert_eq!(play.stale_for(), Some(10));
    play.after(5).step(Input::WaitOver);
    assert_eq!(play.stale_for(), Some(15));
    play.step(listed("9"));
    assert_eq!(*play.machine.freshness(), Freshness::Fresh);
}

#[test]
fn whatever_interrupts_a_watch_makes_it_stale_and_says_why() {
    for (input, why) in [
        (closed("7"), "the watch ended early"),
        (failed(error(410), "7"), "resource version expired"),
        (panicked("7"), "lister or watcher broke down: text"),
        (store_restarted(), "the cache was rebuilt"),
        (Input::Stop, "it was stopped"),
    ] {
        let mut play = Play::watching();
        play.step(input);
        let Freshness::Stale { reason, since } = play.machine.freshness() else { panic!("{why}") };
        assert_eq!((reason.as_str(), *since), (why, play.now));
    }
}

#[test]
fn the_last_reason_to_be_stale_is_told() {
    let mut play = Play::watching();
    play.step(failed(error(503), "7"));
    play.wait();
    play.step(failed(error(403), "7"));
    let Freshness::Stale { reason, .. } = play.machine.freshness() else { panic!() };
    assert_eq!(reason, "not allowed");
}

#[test]
fn a_watch_that_ended_in_peace_leaves_the_cache_fresh() {
    let mut play = Play::watching();
    play.live(200);
    play.step(Input::Heard);
    play.after(100).step(closed("9"));
    assert_eq!(*play.machine.freshness(), Freshness::Fresh);
}

#[test]
fn a_server_that_only_answers_proves_nothing_g8() {
    let mut play = Play::watching();
    play.live(150);
    play.step(Input::Overdue);
    assert_eq!(play.stale_for(), Some(0));
    play.step(closed("7"));
    play.wait();
    play.step(Input::WatchOpened);
    assert!(play.stale_for().is_some(), "nor does another one that opens");
    play.step(Input::Heard);
    assert_eq!(*play.machine.freshness(), Freshness::Fresh);
    play.after(100).step(failed(ApiError::connection("reset"), "7"));
    play.wait();
    play.step(Input::WatchOpened);
    assert_eq!(*play.machine.freshness(), Freshness::Fresh, "the last proof is not that old");
}

#[test]
fn silence_does_not_begin_anew_with_a_watch() {
    let mut play = Play::watching();
    let heard = play.now + Duration::from_secs(10);
    let record = Record { proven: Some(heard), attended: Some(heard) };
    play.live(70);
    play.step(Input::WatchEnded { end: WatchEnd::Closed, position: position("7"), record });
    play.now = play.machine.next_attempt().unwrap();
    let effects = play.machine.step(Input::WaitOver, play.now);
    let [Effect::Watch { vigilance, .. }] = &effects[..] else { panic!("{effects:?}") };
    assert_eq!(vigilance.record, record);
}

#[test]
fn a_list_that_was_owed_before_a_crash_is_owed_after_it() {
    for input in [failed(ApiError::StorageRead { message: String::new() }, "7"), store_restarted()]
    {
        let mut play = Play::watching();
        play.step(input);
        assert_eq!(play.step(start("7")), "list >=7");
        assert_eq!(play.stale_for(), Some(0));
    }
    let mut play = Play::watching();
    assert_eq!(play.step(start("7")), "watch 7");
    assert_eq!(play.stale_for(), Some(0));
}

#[test]
fn an_audit_does_not_disturb_what_is_being_mended() {
    let mut play = Play::watching();
    play.step(failed(too_many(60), "7"));
    assert_eq!(play.step(Input::Drifted), "", "the server asked to wait");
    play.wait();
    assert!(play.step(Input::Drifted).starts_with("abort, list newest"));
    assert_eq!(play.step(Input::Drifted), "", "it is being listed");
}
