//! A server that goes back, a kind that is gone, a cache that drifted.

use super::*;

// === a history that goes back ===

fn older() -> ApiError {
    let version = |text| ResourceVersion::new(text).unwrap();
    ApiError::Older { answered: version("5"), cached: version("7") }
}

#[test]
fn a_list_older_than_the_cache_is_asked_for_again_and_only_then_believed() {
    let mut play = Play::watching();
    play.step(store_restarted());
    assert_eq!(play.step(Input::ListFailed(older())), "report, wait 800ms");
    assert_eq!(play.wait(), "list newest by 500 even if older");
    play.step(listed("5"));
    assert_eq!(play.step(store_restarted()), "abort, list >=5", "the history goes on from there");
}

#[test]
fn a_watch_whose_server_fell_behind_is_followed_by_a_list_of_the_newest() {
    let mut play = Play::watching();
    assert_eq!(play.step(failed(older(), "7")), "report, wait 800ms");
    assert_eq!(play.wait(), "list newest by 500 even if older");
}

/// Whether the watch that follows is to be verified.
fn is_verified(play: &mut Play) -> bool {
    play.now = play.machine.next_attempt().expect("it waits");
    let effects = play.machine.step(Input::WaitOver, play.now);
    let [Effect::Watch { vigilance, .. }] = &effects[..] else { panic!("{effects:?}") };
    assert!(vigilance.verify_after.is_none_or(|after| after < Duration::from_secs(30)));
    vigilance.verify_after.is_some()
}

#[test]
fn a_server_that_was_out_of_reach_is_asked_how_far_it_has_come() {
    for (error, expected) in [
        (ApiError::connection("refused"), true),
        (ApiError::Timeout { waited: Duration::from_secs(150) }, true),
        (error(503), true),
        (error(429), false),
        (error(403), false),
    ] {
        let mut play = Play::watching();
        play.step(failed(error.clone(), "7"));
        assert_eq!(is_verified(&mut play), expected, "{error}");
        play.step(failed(self::error(429), "7"));
        assert_eq!(is_verified(&mut play), expected, "{error}: still");
        play.live(60);
        play.step(closed("7"));
        assert!(!is_verified(&mut play), "{error}: it has been, or had nothing to hide");
    }
}

// === a kind that is gone ===

fn served(answer: bool) -> Input {
    Input::Served(Ok(answer))
}

/// The kind has been missing for so long that the server is asked whether it has it.
fn doubting() -> Play {
    let mut play = Play::watching();
    play.step(failed(error(404), "7"));
    loop {
        match play.wait().as_str() {
            "list >=7" => assert!(play.step(list_failed(404)).starts_with("report, wait")),
            "ask" => return play,
            other => panic!("{other}"),
        }
    }
}

#[test]
fn a_missing_kind_is_kept_for_its_time_then_asked_about() {
    let mut play = Play::watching();
    let begun = play.now;
    play.step(failed(error(404), "7"));
    while play.wait() == "list >=7" {
        play.step(list_failed(404));
    }
    assert_eq!(play.machine.phase(), Phase::Discovering);
    let kept = (play.now - begun).as_secs();
    assert!((300..=330).contains(&kept), "{kept} s");
}

#[test]
fn the_objects_of_a_missing_kind_are_given_up_when_the_server_says_so_twice() {
    let mut play = doubting();
    assert_eq!(play.step(served(false)), "wait 30s");
    assert_eq!(play.wait(), "ask");
    assert_eq!(play.step(served(false)), "wait 30s, forget");
    assert_eq!(play.wait(), "list newest by 500");
    assert_eq!(play.step(list_failed(404)), "report, wait 30s, forget", "should that be lost");
    assert_eq!(play.wait(), "list newest by 500");
    assert_eq!(play.step(listed("9")), "watch 9", "it came again");
    play.step(failed(error(404), "9"));
    assert_eq!(play.wait(), "list >=9", "and may be missing for its time again");
}

#[test]
fn a_missing_kind_the_server_has_after_all_is_listed() {
    let mut play = doubting();
    play.step(served(false));
    assert_eq!(play.wait(), "ask");
    assert_eq!(play.step(served(true)), "list >=7");
    assert_eq!(play.step(list_failed(404)), "report, wait 30s");
    assert_eq!(play.wait(), "list >=7", "its time begins anew");
}

#[test]
fn a_server_that_can_not_say_whether_it_has_a_kind_is_asked_again() {
    let mut play = doubting();
    assert_eq!(play.step(served(false)), "wait 30s");
    assert_eq!(play.wait(), "ask");
    assert_eq!(play.step(Input::Served(Err(error(403)))), "report, wait 30s");
    assert_eq!(play.wait(), "list >=7", "it may be there again, and nobody may say so");
    assert_eq!(play.step(list_failed(404)), "report, wait 30s");
    assert_eq!(play.wait(), "list >=7", "its time begins anew");
}

#[test]
fn a_kind_that_was_never_there_is_waited_for() {
    let mut play = Play::listing();
    play.step(start(""));
    for _ in 0..100 {
        assert!(play.step(list_failed(404)).starts_with("report, wait"));
        assert_eq!(play.wait(), "list newest by 500");
    }
}

// === an audit ===

#[test]
fn a_cache_that_drifted_is_listed_again_at_once() {
    let mut play = Play::watching();
    assert_eq!(play.step(Input::Drifted), "abort, list newest by 500", "from the storage itself");
    let Freshness::Stale { reason, .. } = play.machine.freshness() else { panic!() };
    assert_eq!(reason, "the cache was found to differ from the server");
}
