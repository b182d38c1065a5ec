//! How often is asked, and what a crash or the end does.

use super::*;

// === backoff ===

#[test]
fn only_two_minutes_of_watching_start_the_delays_over() {
    let mut play = Play::watching();
    for (lived, delay) in [(0, "800ms"), (119, "1.6s"), (119, "3.2s"), (120, "800ms"), (0, "1.6s")]
    {
        play.live(lived);
        let answer = play.step(failed(error(503), "7"));
        assert_eq!(answer, format!("report, wait {delay}"), "lived for {lived} s");
        play.wait();
    }
}

#[test]
fn a_successful_list_does_not_start_the_delays_over() {
    let mut play = Play::watching();
    for delay in ["800ms", "1.6s", "3.2s"] {
        assert_eq!(play.step(failed(error(410), "7")), format!("report, wait {delay}"));
        assert_eq!(play.wait(), "list >=7");
        play.all([listed("7"), Input::WatchOpened]);
    }
}

#[test]
fn a_long_watch_starts_the_delays_over_however_it_ends() {
    let mut play = Play::watching();
    for _ in 0..5 {
        play.step(closed("7"));
        play.wait();
    }
    play.live(120);
    assert_eq!(play.step(panicked("7")), "report, wait 800ms");
    for _ in 0..5 {
        play.wait();
        play.step(closed("7"));
    }
    play.wait();
    play.live(120);
    play.step(store_restarted());
    assert_eq!(play.step(list_failed(503)), "report, wait 800ms");
}

#[test]
fn jitter_lengthens_delays_and_never_shortens_them() {
    let mut play = Play::new(Streaming::Never, 1.0);
    play.step(start(""));
    for plain in [800, 1600, 3200, 6400, 12_800, 25_600, 30_000] {
        play.step(list_failed(503));
        let delay = play.delay().as_millis();
        assert!((plain..=2 * plain).contains(&delay), "{delay} of {plain}");
        play.wait();
    }
}

fn is_list(effect: &Effect) -> bool {
    match effect {
        Effect::List { .. } => true,
        Effect::Watch { request, .. } => {
            matches!(request.start, WatchStart::InitialEvents { .. })
        }
        _ => false,
    }
}

/// Asks a server that answers at once for an hour; counts requests that are not watches, and watches.
fn requests_in_an_hour(answer: impl Fn(&Effect, usize) -> Input) -> (usize, usize) {
    let mut play = Play::streaming();
    let end = play.now + Duration::from_secs(3600);
    let (mut lists, mut watches) = (0, 0);
    let mut input = start("");
    while play.now < end {
        let effects = play.machine.step(input, play.now);
        let effect = effects.last().expect("it never gives up");
        match effect {
            Effect::Wait(delay) => {
                play.now += *delay;
                input = Input::WaitOver;
                continue;
            }
            Effect::Watch { .. } if !is_list(effect) => watches += 1,
            Effect::List { .. } | Effect::Watch { .. } => lists += 1,
            _ => panic!("{effect:?}"),
        }
        input = answer(effect, lists + watches);
    }
    (lists, watches)
}

/// One each 30 s, and those before the delays have grown.
const HOURLY: usize = 3600 / 30 + 10;

#[test]
fn an_hour_of_failed_lists_is_few_requests() {
    let (lists, watches) = requests_in_an_hour(|effect, _| match effect {
        Effect::List { .. } => list_failed(503),
        _ => failed(error(503), ""),
    });
    assert!((100..=HOURLY).contains(&lists) && watches == 0, "{lists} {watches}");
}

#[test]
fn an_hour_of_watches_that_close_after_one_event_is_few_requests_and_no_relist() {
    let (lists, watches) = requests_in_an_hour(|effect, count| match effect {
        Effect::List { .. } => listed("1"),
        effect if is_list(effect) => failed(error(422), ""),
        _ => closed(&count.to_string()),
    });
    assert!((100..=HOURLY).contains(&watches) && lists == 2, "{lists} {watches}");
}

#[test]
fn an_hour_of_good_lists_and_forgotten_positions_is_few_requests() {
    let (lists, watches) = requests_in_an_hour(|effect, _| match effect {
        Effect::List { .. } => listed("7"),
        effect if is_list(effect) => failed(error(422), ""),
        _ => failed(error(410), "7"),
    });
    assert!((100..=HOURLY + 1).contains(&lists) && watches <= HOURLY, "{lists} {watches}");
}

#[test]
fn an_hour_of_panics_is_few_requests() {
    let (lists, watches) = requests_in_an_hour(|_, _| panicked(""));
    assert!((100..=HOURLY).contains(&lists) && watches == 0, "{lists} {watches}");
}

#[test]
fn a_wait_ends_when_it_is_over_and_only_then() {
    let mut play = Play::watching();
    assert_eq!(play.step(Input::WaitOver), "", "nothing was waited for");
    assert_eq!(play.machine.phase(), Phase::Watching);
    play.step(closed("7"));
    assert_eq!(play.step(store_restarted()), "abort, list >=7", "at once");
    assert_eq!(play.step(Input::WaitOver), "", "of the wait before");
    assert_eq!(play.step(list_failed(503)), "report, wait 1.6s");
    assert_eq!(play.after(1).step(Input::WaitOver), "", "of the wait before");
    assert_eq!(play.wait(), "list >=7");
}

// === crashes and the end ===

#[test]
fn a_panic_asks_for_the_same_again_later() {
    let mut play = Play::listing();
    play.step(start(""));
    assert_eq!(play.step(panicked("")), "report, wait 800ms");
    assert_eq!(play.wait(), "list newest by 500");
    play.step(listed("7"));
    assert_eq!(play.step(panicked("8")), "report, wait 1.6s");
    assert_eq!(play.wait(), "watch 8", "from where the cache has come");
    play.step(Input::WatchOpened);
    assert_eq!(play.step(panicked("9")), "report, wait 3.2s");
    assert_eq!(play.wait(), "watch 9");

    let mut play = Play::streaming();
    play.step(start(""));
    play.step(panicked(""));
    assert_eq!(play.wait(), "list newest by 500", "in another way");
}

#[test]
fn a_list_that_panics_keeps_the_position_it_was_asked_for() {
    let mut play = Play::watching();
    play.step(store_restarted());
    play.step(panicked("5"));
    assert_eq!(play.wait(), "list >=7", "and not what the cache has come to");
}

#[test]
fn a_store_that_was_restarted_is_filled_again_at_once() {
    let mut play = Play::watching();
    assert_eq!(play.step(store_restarted()), "abort, list >=7");
    assert_eq!(play.step(store_restarted()), "abort, list >=7", "again");
    assert_eq!(play.step(listed("8")), "watch 8");
}

#[test]
fn nothing_happens_after_the_end() {
    let mut play = Play::watching();
    assert_eq!(play.step(Input::Stop), "abort");
    let inputs = [
        start(""),
        listed("9"),
        list_failed(410),
        Input::WatchOpened,
        initial_events_ended("9"),
        closed("9"),
        panicked("9"),
        Input::WaitOver,
        store_restarted(),
        Input::Stop,
    ];
    for input in inputs {
        assert_eq!(play.step(input), "");
    }
    assert_eq!(play.machine.phase(), Phase::Stopped);
}

#[test]
fn the_end_comes_in_every_state() {
    let (list, stream) = (Play::listing, Play::streaming);
    for (mut play, inputs) in [
        (list(), vec![]),
        (list(), vec![start("")]),
        (stream(), vec![start("")]),
        (list(), vec![start("7")]),
        (list(), vec![start(""), list_failed(503)]),
    ] {
        play.all(inputs);
        assert_eq!(play.step(Input::Stop), "abort");
        assert_eq!(play.after(60).step(Input::WaitOver), "");
        assert_eq!(play.machine.next_attempt(), None);
    }
}
