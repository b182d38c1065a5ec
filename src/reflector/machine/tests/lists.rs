//! Lists, streamed and plain, and what follows when they fail.

use super::*;

// === start ===

#[test]
fn without_a_position_the_newest_is_listed_then_watched() {
    let mut play = Play::listing();
    assert_eq!(play.step(start("")), "list newest by 500");
    assert_eq!(play.step(listed("7")), "watch 7");
    assert_eq!(play.step(Input::WatchOpened), "");
    assert_eq!(play.machine.phase(), Phase::Watching);
}

#[test]
fn a_streamed_list_goes_on_as_a_watch() {
    let mut play = Play::streaming();
    assert_eq!(play.step(start("")), "stream newest");
    assert_eq!(play.step(Input::WatchOpened), "");
    assert_eq!(play.machine.phase(), Phase::StreamingList, "answered is not listed");
    assert_eq!(play.step(initial_events_ended("7")), "");
    assert_eq!(play.machine.phase(), Phase::Watching);
    assert_eq!(play.step(closed("7")), "wait 800ms");
    assert_eq!(play.wait(), "watch 7");
}

#[test]
fn with_a_position_it_is_watched_from_there() {
    for mut play in [Play::listing(), Play::streaming()] {
        assert_eq!(play.step(start("7")), "watch 7");
    }
}

#[test]
fn a_restart_begins_anew_from_the_position_of_the_cache() {
    let mut play = Play::watching();
    assert_eq!(play.step(start("9")), "watch 9");
    assert_eq!(play.step(start("")), "list newest by 500");
}

#[test]
fn phases_say_what_it_is_doing() {
    let mut play = Play::streaming();
    assert_eq!(play.machine.phase(), Phase::Starting);
    play.step(start(""));
    assert_eq!(play.machine.phase(), Phase::StreamingList);
    play.step(failed(error(422), ""));
    assert_eq!(play.machine.phase(), Phase::Listing);
    assert_eq!(play.machine.next_attempt(), None);
    play.step(list_failed(503));
    assert_eq!(play.machine.phase(), Phase::BackingOff);
    assert_eq!(play.machine.next_attempt(), Some(play.now + Duration::from_millis(800)));
    play.wait();
    play.step(listed("7"));
    assert_eq!(play.machine.phase(), Phase::OpeningWatch);
}

#[test]
fn a_watch_is_asked_to_last_five_to_ten_minutes_with_bookmarks() {
    let mut play = Play::listing();
    let mut timeouts = Vec::new();
    for _ in 0..1000 {
        let effects = play.machine.step(start("7"), play.now);
        let [Effect::Watch { request, vigilance, .. }] = &effects[..] else {
            panic!("{effects:?}")
        };
        assert!(request.bookmarks);
        assert_eq!(vigilance.longest, request.timeout + Duration::from_secs(15), "G13");
        assert!((75..95).contains(&vigilance.patience.as_secs()), "G14: {vigilance:?}");
        timeouts.push(request.timeout.as_secs());
    }
    assert!(timeouts.iter().all(|timeout| (300..600).contains(timeout)));
    assert!(timeouts.iter().any(|timeout| *timeout < 330));
    assert!(timeouts.iter().any(|timeout| *timeout > 570));
}

// === a streamed list that does not come ===

#[test]
fn a_server_that_refuses_to_stream_is_listed_at_once_and_asked_again_after_an_hour() {
    let mut play = Play::streaming();
    play.step(start(""));
    assert_eq!(play.step(failed(error(422), "")), "list newest by 500");
    play.all([listed("7"), Input::WatchOpened]);

    play.after(3599).all([store_restarted()]);
    assert_eq!(play.machine.phase(), Phase::Listing, "remembered");
    play.all([listed("8"), Input::WatchOpened]);
    assert_eq!(play.after(1).step(store_restarted()), "abort, stream >=8");
}

#[test]
fn a_stream_without_an_end_of_its_list_is_not_asked_for_again_within_the_hour() {
    let mut play = Play::streaming();
    play.step(start(""));
    let silence = ended(WatchEnd::NoEndOfInitialEvents, "");
    assert_eq!(play.step(silence), "list newest by 500");
    play.step(listed("7"));
    assert_eq!(play.after(3599).step(store_restarted()), "abort, list >=7");
    assert_eq!(play.after(1).step(store_restarted()), "abort, stream >=7");
}

#[test]
fn a_stream_that_closes_before_the_list_is_complete_is_followed_by_a_plain_list() {
    let mut play = Play::streaming();
    play.step(start(""));
    assert_eq!(play.step(closed("")), "wait 800ms");
    assert_eq!(play.wait(), "list newest by 500");
    assert_eq!(play.step(list_failed(503)), "report, wait 1.6s");
    assert_eq!(play.wait(), "stream newest", "it may do better now");
}

#[test]
fn who_may_not_stream_a_list_asks_for_a_plain_one_at_once() {
    for error in [error(403), error(405)] {
        let mut play = Play::streaming();
        play.step(start(""));
        assert_eq!(play.step(failed(error, "")), "list newest by 500");
        assert_eq!(play.step(list_failed(403)), "report, wait 800ms");
        assert_eq!(play.wait(), "stream newest", "only a refusal is remembered");
    }
}

#[test]
fn a_stream_that_fails_on_its_own_account_is_followed_by_a_plain_list() {
    for error in [error(500), ApiError::malformed("half an event")] {
        let mut play = Play::streaming();
        play.step(start(""));
        assert_eq!(play.step(failed(error, "")), "report, wait 800ms");
        assert_eq!(play.wait(), "list newest by 500");
        assert_eq!(play.step(list_failed(503)), "report, wait 1.6s");
        assert_eq!(play.wait(), "stream newest", "it may do better now");
    }
}

#[test]
fn a_stream_that_is_cut_off_on_the_way_is_followed_by_a_plain_list() {
    let mut play = Play::streaming();
    play.all([start(""), Input::WatchOpened]);
    assert_eq!(play.step(failed(ApiError::connection("reset"), "")), "report, wait 800ms");
    assert_eq!(play.wait(), "list newest by 500");
}

#[test]
fn who_may_watch_but_not_list_is_not_kept_from_streaming_for_an_hour() {
    let mut play = Play::streaming();
    play.step(start(""));
    let stalled = ended(WatchEnd::NoEndOfInitialEvents, "");
    assert_eq!(play.step(stalled), "list newest by 500");
    assert_eq!(play.step(list_failed(403)), "report, wait 800ms");
    assert_eq!(play.wait(), "stream newest");
}

#[test]
fn an_overloaded_or_absent_server_is_asked_for_the_same_stream_later() {
    for error in [error(429), error(503), error(401), error(404), ApiError::connection("refused")] {
        let mut play = Play::streaming();
        play.step(start(""));
        assert_eq!(play.step(failed(error, "")), "report, wait 800ms");
        assert_eq!(play.wait(), "stream newest");
    }
}

#[test]
fn a_stream_at_a_lost_position_is_asked_for_at_the_newest() {
    for (error, newest) in
        [(error(410), "stream newest"), (too_large(None), "stream newest even if older")]
    {
        let mut play = Play::streaming();
        play.step(start("7"));
        play.step(failed(self::error(410), "7"));
        assert_eq!(play.wait(), "stream >=7");
        assert_eq!(play.step(failed(error, "7")), format!("report, {newest}"));
        assert_eq!(play.step(failed(self::error(410), "7")), "report, wait 1.6s");
        assert_eq!(play.wait(), newest);
    }
}

// === lists that fail ===

#[test]
fn a_list_that_fails_is_asked_for_again_with_growing_delays() {
    for code in [429, 500, 502, 503, 504, 401, 403, 404, 405, 302] {
        let mut play = Play::listing();
        play.step(start(""));
        assert_eq!(play.step(list_failed(code)), "report, wait 800ms", "{code}");
        assert_eq!(play.wait(), "list newest by 500");
        assert_eq!(play.step(list_failed(code)), "report, wait 1.6s", "{code}");
    }
}

#[test]
fn a_request_the_server_does_not_understand_is_repeated_as_rarely_as_can_be() {
    for code in [400, 406, 413, 415, 422] {
        let mut play = Play::listing();
        play.step(start(""));
        assert_eq!(play.step(list_failed(code)), "report, wait 30s", "{code}");
        assert_eq!(play.wait(), "list newest by 500");
    }
}

#[test]
fn a_page_size_that_was_asked_for_holds_for_every_list() {
    let mut play = Play::watching();
    play.machine.settings.page_size = Some(4);
    assert_eq!(play.step(store_restarted()), "abort, list >=7 by 4");
    assert_eq!(play.step(list_failed(410)), "report, list newest by 4");
}

#[test]
fn a_list_at_a_lost_position_is_asked_for_at_the_newest_in_pages() {
    let older = " even if older";
    for (error, newest) in [(error(410), String::new()), (too_large(None), older.to_owned())] {
        let newest = format!("list newest by 500{newest}");
        let mut play = Play::watching();
        assert_eq!(play.step(store_restarted()), "abort, list >=7");
        assert_eq!(play.step(Input::ListFailed(error)), format!("report, {newest}"));
        assert_eq!(play.step(list_failed(410)), "report, wait 800ms", "once without a delay");
        assert_eq!(play.wait(), newest);
        play.step(listed("9"));
        assert_eq!(play.step(store_restarted()), "abort, list >=9", "found again");
    }
}

#[test]
fn a_version_not_served_yet_is_waited_for_as_the_server_asks() {
    let mut play = Play::watching();
    play.step(store_restarted());
    assert_eq!(play.step(Input::ListFailed(too_large(Some(1)))), "report, wait 1s");
    assert_eq!(play.wait(), "list newest by 500 even if older");
}

#[test]
fn the_longer_of_backoff_and_what_the_server_asks_for_is_waited() {
    let mut play = Play::listing();
    play.step(start(""));
    assert_eq!(play.step(Input::ListFailed(too_many(7))), "report, wait 7s");
    play.wait();
    assert_eq!(play.step(Input::ListFailed(too_many(1))), "report, wait 1.6s");

    let mut play = Play::watching();
    assert_eq!(play.step(failed(too_many(7), "7")), "report, wait 7s");
    assert_eq!(play.wait(), "watch 7");
}
