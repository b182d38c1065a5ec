//! Every row of the transition table. An input is answered with effects, written `report, wait 0.8s`, `list >=7`,
//! `stream newest`, `watch 7`.

mod decisions;

use super::*;

/// One course of events. Its clock goes only when told to.
pub(super) struct Play {
    pub(super) machine: Machine,
    pub(super) now: Instant,
}

impl Play {
    fn new(streaming: Streaming, jitter: f64) -> Self {
        let settings = Settings {
            selection: Arc::default(),
            page_size: None,
            watch_timeout: Duration::from_secs(300),
            streaming,
            backoff: BackoffOptions { jitter, ..BackoffOptions::default() },
            keep_unserved: Duration::from_secs(300),
        };
        let machine = Machine::new(settings, fastrand::Rng::with_seed(7));
        Self { machine, now: Instant::now() }
    }

    /// Lists are streamed.
    pub(super) fn streaming() -> Self {
        Self::new(Streaming::Possible, 0.0)
    }

    /// Lists are not streamed.
    pub(super) fn listing() -> Self {
        Self::new(Streaming::Never, 0.0)
    }

    /// A watch has just been answered; the cache has come up to 7.
    fn watching() -> Self {
        let mut play = Self::listing();
        play.all([start(""), listed("7"), Input::WatchOpened]);
        play
    }

    pub(super) fn step(&mut self, input: Input) -> String {
        let effects = self.machine.step(input, self.now);
        effects.iter().map(written).collect::<Vec<_>>().join(", ")
    }

    pub(super) fn all(&mut self, inputs: impl IntoIterator<Item = Input>) {
        for input in inputs {
            self.step(input);
        }
    }

    fn after(&mut self, seconds: u64) -> &mut Self {
        self.now += Duration::from_secs(seconds);
        self
    }

    /// Lets the wait it is in pass.
    pub(super) fn wait(&mut self) -> String {
        self.now = self.machine.next_attempt().expect("it waits");
        self.step(Input::WaitOver)
    }

    /// How long it waits from now on.
    pub(super) fn delay(&self) -> Duration {
        self.machine.next_attempt().expect("it waits") - self.now
    }

    /// A watch that is answered, and lives for so long.
    fn live(&mut self, seconds: u64) {
        self.step(Input::WatchOpened);
        self.after(seconds);
    }

    fn stale_for(&self) -> Option<u64> {
        match self.machine.freshness() {
            Freshness::Stale { since, .. } => Some((self.now - *since).as_secs()),
            Freshness::Unknown | Freshness::Fresh => None,
        }
    }
}

fn written(effect: &Effect) -> String {
    let newest = |version: Option<&ResourceVersion>| {
        version.map_or("newest".to_owned(), |version| format!(">={version}"))
    };
    match effect {
        Effect::Report(..) => "report".to_owned(),
        Effect::Wait(delay) => format!("wait {delay:?}"),
        Effect::Abort => "abort".to_owned(),
        Effect::AskWhetherServed(_) => "ask".to_owned(),
        Effect::Forget => "forget".to_owned(),
        Effect::List { request, older } => {
            let version = match &request.version {
                Some(VersionMatch::NotOlderThan(version)) => Some(version),
                Some(VersionMatch::Exact(_)) => panic!("nothing asks for an exact version"),
                None => None,
            };
            let pages = request.limit.map(|limit| format!(" by {limit}")).unwrap_or_default();
            format!("list {}{pages}{}", newest(version), even_if(*older))
        }
        Effect::Watch { request, older, .. } => match &request.start {
            WatchStart::After(version) => format!("watch {version}"),
            WatchStart::InitialEvents { not_older_than } => {
                format!("stream {}{}", newest(not_older_than.as_ref()), even_if(*older))
            }
        },
    }
}

fn even_if(older: Older) -> &'static str {
    match older {
        Older::Refused => "",
        Older::Accepted => " even if older",
    }
}

pub(super) fn position(version: &str) -> Option<ResourceVersion> {
    ResourceVersion::new(version)
}

pub(super) fn start(version: &str) -> Input {
    Input::Start { position: position(version) }
}

pub(super) fn listed(version: &str) -> Input {
    Input::Listed { resource_version: position(version).unwrap() }
}

pub(super) fn initial_events_ended(version: &str) -> Input {
    Input::InitialEventsEnded { resource_version: position(version).unwrap() }
}

fn error(code: u16) -> ApiError {
    ApiError::from_code(code, String::new(), None)
}

fn too_many(retry_after: u64) -> ApiError {
    ApiError::TooManyRequests { retry_after: Some(Duration::from_secs(retry_after)) }
}

fn too_large(retry_after: Option<u64>) -> ApiError {
    ApiError::NotYetServed { retry_after: retry_after.map(Duration::from_secs) }
}

fn list_failed(code: u16) -> Input {
    Input::ListFailed(error(code))
}

fn ended(end: WatchEnd, version: &str) -> Input {
    Input::WatchEnded { end, position: position(version), record: Record::default() }
}

fn closed(version: &str) -> Input {
    ended(WatchEnd::Closed, version)
}

pub(super) fn store_restarted() -> Input {
    Input::StoreRestarted { position: None }
}

pub(super) fn failed(error: ApiError, version: &str) -> Input {
    ended(WatchEnd::Failed(error), version)
}

fn panicked(version: &str) -> Input {
    Input::ChildPanicked { panic: "text".to_owned(), position: position(version) }
}

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

// === watches that end ===

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

// === freshness ===

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
