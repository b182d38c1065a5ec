//! The table is total: whatever a server answers, in whatever phase, there is one decided next step, and it is not
//! taken at once again and again.

use super::*;
use crate::api::{Status, StatusCause, StatusDetails};

const REASONS: [&str; 24] = [
    "",
    "Unheard",
    "Unauthorized",
    "Forbidden",
    "NotFound",
    "AlreadyExists",
    "Conflict",
    "Gone",
    "Invalid",
    "ServerTimeout",
    "StoreReadError",
    "StorageReadError",
    "Timeout",
    "TooManyRequests",
    "BadRequest",
    "MethodNotAllowed",
    "NotAcceptable",
    "RequestEntityTooLarge",
    "UnsupportedMediaType",
    "InternalError",
    "Expired",
    "ServiceUnavailable",
    "Unknown",
    "expired",
];

/// Every answer there can be that is none: by status alone, by reason and code, and what no server says.
fn every_error() -> Vec<(String, ApiError)> {
    let mut errors = Vec::new();
    for code in 100..=599 {
        let error = ApiError::from_code(code, String::new(), None);
        errors.push((format!("HTTP {code}"), error));
    }
    for reason in REASONS {
        for code in [0, 200, 302, 400, 401, 403, 404, 405, 406, 409, 410, 413, 415, 418, 422, 429]
            .into_iter()
            .chain([500, 501, 502, 503, 504, 520, 666])
        {
            let status = Status { reason: reason.to_owned(), code, ..Status::default() };
            errors.push((format!("{reason:?} {code}"), status.into_error(None)));
        }
    }
    let too_large =
        StatusCause { reason: "ResourceVersionTooLarge".to_owned(), ..StatusCause::default() };
    let details = StatusDetails { causes: vec![too_large], ..StatusDetails::default() };
    let status = Status { details: Some(details), code: 504, ..Status::default() };
    errors.push(("too large".to_owned(), status.into_error(None)));
    let version = |text| ResourceVersion::new(text).unwrap();
    errors.extend([
        ("older".to_owned(), ApiError::Older { answered: version("5"), cached: version("7") }),
        ("timeout".to_owned(), ApiError::Timeout { waited: Duration::from_secs(1) }),
        ("connection".to_owned(), ApiError::connection("reset")),
        ("malformed".to_owned(), ApiError::malformed("garbage")),
        ("panic".to_owned(), ApiError::Broken { panic: "text".to_owned() }),
    ]);
    errors
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Asked {
    FirstList,
    Relist,
    FirstStream,
    StreamAgain,
    Watch,
    InStream,
}

const EVERY_PHASE: [Asked; 6] = [
    Asked::FirstList,
    Asked::Relist,
    Asked::FirstStream,
    Asked::StreamAgain,
    Asked::Watch,
    Asked::InStream,
];

/// A machine that has just asked.
fn asking(asked: Asked) -> Play {
    let streams = matches!(asked, Asked::FirstStream | Asked::StreamAgain);
    let mut play = if streams { Play::streaming() } else { Play::listing() };
    play.step(start(""));
    match asked {
        Asked::FirstList | Asked::FirstStream => {}
        Asked::Relist => play.all([listed("7"), Input::WatchOpened, store_restarted()]),
        Asked::StreamAgain => {
            play.all([initial_events_ended("7"), store_restarted()]);
        }
        Asked::Watch => play.all([listed("7")]),
        Asked::InStream => play.all([listed("7"), Input::WatchOpened]),
    }
    play
}

fn answer(asked: Asked, error: ApiError) -> Input {
    match asked {
        Asked::FirstList | Asked::Relist => Input::ListFailed(error),
        Asked::FirstStream => failed(error, ""),
        Asked::StreamAgain | Asked::Watch | Asked::InStream => failed(error, "7"),
    }
}

#[test]
fn every_error_in_every_phase_has_a_next_step() {
    for (name, error) in every_error() {
        for asked in EVERY_PHASE {
            let mut play = asking(asked);
            let effects = play.machine.step(answer(asked, error.clone()), play.now);
            let goes_on = effects.iter().any(|effect| {
                matches!(effect, Effect::Wait(_) | Effect::List { .. } | Effect::Watch { .. })
            });
            assert!(goes_on, "{name} in {asked:?}: {effects:?}");
            let wait = effects.iter().find_map(|effect| match effect {
                Effect::Wait(delay) => Some(*delay),
                _ => None,
            });
            assert!(wait.is_none_or(|delay| delay <= Duration::from_secs(300)), "{name} {asked:?}");
        }
    }
}

#[test]
fn no_error_makes_a_machine_ask_without_a_pause() {
    for (name, error) in every_error() {
        for asked in EVERY_PHASE {
            let mut play = asking(asked);
            let (mut at_once, mut input) = (0, answer(asked, error.clone()));
            // The same answer to whatever is asked; each phase may try one other way at once.
            loop {
                let effects = play.machine.step(input, play.now);
                if effects.iter().any(|effect| matches!(effect, Effect::Wait(_))) {
                    break;
                }
                at_once += 1;
                assert!(at_once <= 3, "{name} in {asked:?} is asked at once again and again");
                input = match effects.last().expect("it goes on") {
                    Effect::List { .. } => Input::ListFailed(error.clone()),
                    _ => Input::WatchEnded {
                        end: WatchEnd::Failed(error.clone()),
                        position: play.machine.position.clone(),
                        record: Record::default(),
                    },
                };
            }
        }
    }
}

#[test]
fn no_error_costs_the_cache_its_freshness_unseen_or_its_position_unasked() {
    for (name, error) in every_error() {
        for asked in [Asked::Relist, Asked::StreamAgain, Asked::Watch, Asked::InStream] {
            let mut play = asking(asked);
            play.step(answer(asked, error.clone()));
            assert_eq!(play.machine.position, position("7"), "{name} in {asked:?}");
            let is_stale = matches!(play.machine.freshness(), Freshness::Stale { .. });
            assert!(is_stale, "{name} in {asked:?}");
        }
    }
}

/// The table of the protocol, row by row: what follows on a watch that failed, and on a list.
#[test]
fn the_table_holds() {
    let after_watch = |error: ApiError| {
        let mut play = asking(Asked::InStream);
        play.step(failed(error, "7"));
        let delay = play.delay();
        (play.wait(), delay.as_millis())
    };
    let status = |reason: &str, code| {
        Status { reason: reason.to_owned(), code, ..Status::default() }.into_error(None)
    };
    for (error, next, delay) in [
        (ApiError::connection("reset"), "watch 7", 800),
        (status("TooManyRequests", 429), "watch 7", 800),
        (status("ServiceUnavailable", 503), "watch 7", 800),
        (status("", 502), "watch 7", 800),
        (status("InternalError", 500), "watch 7", 800),
        (ApiError::malformed("garbage"), "watch 7", 800),
        (status("StorageReadError", 500), "list >=7", 800),
        (status("Expired", 410), "list >=7", 800),
        (status("Gone", 410), "list >=7", 800),
        (status("", 410), "list >=7", 800),
        (status("Unauthorized", 401), "watch 7", 800),
        (status("Forbidden", 403), "watch 7", 800),
        (status("NotFound", 404), "list >=7", 800),
        (status("MethodNotAllowed", 405), "list >=7", 800),
        (status("BadRequest", 400), "list >=7", 30_000),
        (status("Invalid", 422), "list >=7", 30_000),
        (ApiError::from_code(307, String::new(), None), "watch 7", 800),
    ] {
        assert_eq!(after_watch(error.clone()), (next.to_owned(), delay), "{error}");
    }
}
