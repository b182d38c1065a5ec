//! Watches that end.

use super::*;

#[test]
fn a_watch_that_ends_early_is_asked_for_again_with_growing_delays_and_no_list() {
    let mut play = Play::watching();
    for (version, delay) in [("8", "800ms"), ("8", "1.6s"), ("9", "3.2s"), ("9", "6.4s")] {
        play.live(59);
        assert_eq!(play.step(closed(version)), format!("wait {delay}"));
        assert_eq!(play.wait(), format!("watch {version}"));
    }
}

#[test]
fn a_watch_that_ends_in_peace_is_asked_for_again_within_a_second() {
    let mut delays = Vec::new();
    let mut play = Play::watching();
    for _ in 0..100 {
        play.live(60);
        play.step(closed("8"));
        delays.push(play.delay());
        assert_eq!(play.wait(), "watch 8");
    }
    assert!(delays.iter().all(|delay| *delay < Duration::from_secs(1)));
    assert!(delays.iter().any(|delay| *delay > Duration::from_millis(900)), "spread");
    assert!(delays.iter().any(|delay| *delay < Duration::from_millis(100)), "spread");
}

#[test]
fn the_life_of_a_watch_begins_with_the_request_ref_21() {
    let mut play = Play::listing();
    play.all([start(""), listed("7")]);
    // Some proxies hold the answer back until there is an event.
    play.after(60).step(Input::WatchOpened);
    play.step(closed("8"));
    assert_eq!(*play.machine.freshness(), Freshness::Fresh);
    assert!(play.delay() < Duration::from_secs(1));
}

#[test]
fn a_broken_connection_keeps_the_position() {
    for error in [ApiError::connection("reset"), error(429), error(503), error(401), error(302)] {
        let mut play = Play::watching();
        for delay in ["800ms", "1.6s", "3.2s", "6.4s", "12.8s", "25.6s", "30s", "30s"] {
            assert_eq!(play.step(failed(error.clone(), "8")), format!("report, wait {delay}"));
            assert_eq!(play.wait(), "watch 8", "{error}");
        }
    }
}

#[test]
fn a_watch_from_a_forgotten_position_is_followed_by_a_list_not_older_than_it() {
    let mut play = Play::watching();
    assert_eq!(play.step(failed(error(410), "8")), "report, wait 800ms");
    assert_eq!(play.wait(), "list >=8");
}

#[test]
fn a_position_forgotten_after_a_healthy_life_is_listed_again_within_a_second() {
    let mut play = Play::watching();
    play.step(closed("7"));
    play.wait();
    play.live(60);
    play.step(failed(error(410), "8"));
    assert!(play.delay() < Duration::from_secs(1), "and not the 1.6 s of a second failure");
    assert_eq!(play.wait(), "list >=8");
}

#[test]
fn a_watch_from_a_position_not_served_yet_is_followed_by_a_list_of_the_newest() {
    let mut play = Play::watching();
    assert_eq!(play.step(failed(too_large(Some(5)), "7")), "report, wait 5s");
    assert_eq!(play.wait(), "list newest by 500 even if older");
}

#[test]
fn an_object_lost_in_storage_is_noticed_by_a_list() {
    let mut play = Play::watching();
    let error = ApiError::StorageRead { message: String::new() };
    assert_eq!(play.step(failed(error, "8")), "report, wait 800ms");
    assert_eq!(play.wait(), "list >=8");
}

#[test]
fn a_missing_right_keeps_the_position_and_a_missing_kind_does_not() {
    for (code, next) in [(403, "watch 8"), (401, "watch 8"), (404, "list >=8"), (405, "list >=8")] {
        let mut play = Play::watching();
        assert_eq!(play.step(failed(error(code), "8")), "report, wait 800ms");
        assert_eq!(play.wait(), next, "{code}");
    }
}

#[test]
fn a_watch_that_is_told_nonsense_three_times_at_one_place_is_followed_by_a_list() {
    for error in [error(500), ApiError::malformed("half an event")] {
        let mut play = Play::watching();
        for next in ["watch 7", "watch 7", "list >=7"] {
            play.live(0);
            play.step(failed(error.clone(), "7"));
            assert_eq!(play.wait(), next);
        }
        play.step(listed("7"));
        play.live(0);
        play.step(failed(error.clone(), "7"));
        assert_eq!(play.wait(), "watch 7", "a list counts as progress");
    }
}

#[test]
fn a_watch_that_is_refused_with_internal_errors_for_ten_minutes_is_followed_by_a_list() {
    let mut play = Play::watching();
    let begun = play.now;
    let next = loop {
        play.step(failed(error(500), "7"));
        let next = play.wait();
        if next != "watch 7" {
            break next;
        }
    };
    assert_eq!(next, "list >=7", "the position itself may be what it can not take");
    let waited = (play.now - begun).as_secs();
    assert!((600..=660).contains(&waited), "{waited} s");
}

#[test]
fn an_outage_is_not_nonsense_and_costs_no_list() {
    let mut play = Play::watching();
    for _ in 0..5 {
        play.step(failed(ApiError::connection("refused"), "7"));
        play.wait();
    }
    for next in ["watch 7", "watch 7", "list >=7"] {
        play.live(0);
        play.step(failed(error(500), "7"));
        assert_eq!(play.wait(), next);
    }
}

#[test]
fn only_a_healthy_watch_makes_nonsense_forgotten() {
    for (lived, next) in [(0, "list >=7"), (60, "watch 7")] {
        let mut play = Play::watching();
        for (lived, input) in
            [(0, failed(error(500), "7")), (0, failed(error(500), "7")), (lived, closed("7"))]
        {
            play.live(lived);
            play.step(input);
            play.wait();
        }
        play.live(0);
        play.step(failed(error(500), "7"));
        assert_eq!(play.wait(), next, "lived for {lived} s");
    }
}

#[test]
fn a_watch_that_gets_further_may_fail_as_often_as_it_likes() {
    let mut play = Play::watching();
    for version in ["7", "7", "8", "8", "9", "10", "10"] {
        play.live(0);
        play.step(failed(error(500), version));
        assert_eq!(play.wait(), format!("watch {version}"));
    }
    play.live(0);
    play.step(failed(error(500), "10"));
    assert_eq!(play.wait(), "list >=10");
}

#[test]
fn a_position_is_kept_however_long_the_server_is_out_of_reach() {
    let mut play = Play::watching();
    for _ in 0..100 {
        play.step(failed(ApiError::connection("refused"), "7"));
        assert_eq!(play.wait(), "watch 7");
    }
}
