//! `retrywatcher_test.go`: a watch that survives. client-go has a type of its own for it; here every watch does.

use kubeflect::Options;
use kubeflect::api::{ApiError, WatchEvent};

use crate::script::{Source, added, expired, noting_errors, page, refused, status};
use crate::words::{Recorder, on_a_paused_clock, pass, told};

const AT_1: &str = "watch resourceVersion=1&allowWatchBookmarks=true";

/// Differs: 401 and 403 are tried again too, and named in the status; client-go's watcher gives up.
///
/// client-go: `retrywatcher_test`
#[test]
fn a_watch_that_can_not_be_opened_is_opened_later_where_it_was() {
    for error in [
        refused(),
        ApiError::Timeout { waited: std::time::Duration::from_secs(30) },
        status(500, "InternalError"),
        status(504, "Timeout"),
        status(666, ""),
        status(401, "Unauthorized"),
        status(403, "Forbidden"),
    ] {
        on_a_paused_clock(async {
            let text = error.to_string();
            let source =
                Source::new().lists(page(1, &[])).watch_fails(error).watches(vec![added("a", 2)]);
            let (options, errors) = noting_errors(Options::all());
            let pods = source.reflect(options).await;
            pass(5).await;
            assert_eq!(source.asked(), ["list limit=500", AT_1, AT_1], "{text}");
            assert_eq!((pods.store().len(), &*errors.lock().unwrap()), (1, &vec![text]));
        });
    }
}

/// Differs: client-go's watcher ends with the error; a reflector lists.
///
/// client-go: `retrywatcher_test`
#[test]
fn a_watch_that_is_told_that_its_position_is_gone_is_followed_by_a_list() {
    for error in [expired(), status(410, "Gone"), status(410, "")] {
        on_a_paused_clock(async {
            let source = Source::new()
                .lists(page(1, &[]))
                .watches(vec![Err(error)])
                .lists(page(3, &[("a", 3)]));
            let pods = source.reflect(Options::all()).await;
            pass(5).await;
            assert!(source.asked()[2].starts_with("list resourceVersion=1&"));
            assert_eq!(pods.store().len(), 1);
        });
    }
}

/// client-go: `retrywatcher_test`
#[test]
fn streams_that_end_again_and_again_tell_each_change_once() {
    on_a_paused_clock(async {
        let names: Vec<String> = (2..12).map(|number| format!("p{number:02}")).collect();
        let source = (2..12).zip(&names).fold(
            Source::new().lists(page(1, &[])),
            |source, (version, name)| {
                let odd = Ok(WatchEvent::Unknown { event_type: "ODD".to_owned() });
                source.watch_closes(vec![odd, added(name, version)])
            },
        );
        let pods = source.reflect(Options::all()).await;
        let (recorder, log) = Recorder::start();
        pods.subscribe(recorder).await.unwrap();
        pass(600).await;
        let expected: Vec<String> = names.iter().map(|name| format!("added {name}")).collect();
        assert_eq!(told(&log), [vec!["synced".to_owned()], expected].concat());
        let asked = source.asked();
        assert_eq!(asked.len(), 12);
        assert!(asked[11].starts_with("watch resourceVersion=11&"), "{asked:?}");
    });
}
