//! `reflector_test.go`: stopping, at every moment. client-go cancels a context; here a reflector is told to stop.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kubeflect::reflector::Phase;
use kubeflect::{Options, Reflector};

use crate::script::{Source, added, page, runtime};
use crate::words::{on_a_paused_clock, pass, settle};

/// Stops, and sees that nothing is listened to or asked for any more.
async fn stop(source: &Source<Pod>, pods: &Reflector<Pod>) {
    let asked = source.asked();
    let stopped = tokio::time::timeout(Duration::from_secs(1), pods.stop(Duration::ZERO)).await;
    assert!(stopped.is_ok(), "it takes no time");
    assert_eq!(source.open_watches(), 0);
    assert!(pods.status().condition.is_none(), "{:?}", pods.status().condition);
    pass(3_600).await;
    assert_eq!(source.asked(), asked, "nothing is asked any more");
    assert_eq!(pods.status().phase, Phase::Stopped);
}

/// client-go: `TestRunUntil`
#[test]
fn a_stopped_reflector_closes_its_watch_and_keeps_its_cache() {
    on_a_paused_clock(async {
        let source = Source::new().lists(page(1, &[])).watches(vec![]);
        let pods = source.reflect(Options::all()).await;
        settle().await;
        source.tell(added("a", 2)).await;
        assert_eq!(source.open_watches(), 1);
        stop(&source, &pods).await;
        assert_eq!(pods.store().len(), 1);
    });
}

/// client-go: `TestReflectorWatchStoppedBefore`
#[test]
fn what_is_stopped_before_it_watches_never_watches_ref_20() {
    on_a_paused_clock(async {
        let source = Source::new().list_hangs();
        let pods = source.reflect(Options::all()).await;
        settle().await;
        stop(&source, &pods).await;
        assert_eq!(source.asked(), ["list limit=500"]);

        let stopped = runtime();
        stopped.stop().await;
        let source = Source::new();
        let refused = source.reflect_in(&stopped, Options::all()).await.unwrap_err();
        assert_eq!(refused.to_string(), "the runtime has been stopped");
        assert_eq!(source.asked(), [""; 0]);
    });
}

/// client-go: `TestReflectorWatchStoppedAfter`
/// client-go: `TestReflectorHandleWatchStoppedAfter`
#[test]
fn a_watch_that_was_told_nothing_is_closed_once_and_without_an_error_ref_34() {
    on_a_paused_clock(async {
        let source = Source::new().lists(page(1, &[])).watches(vec![]);
        let pods = source.reflect(Options::all()).await;
        tokio::time::sleep(Duration::from_millis(10)).await;
        assert_eq!(source.open_watches(), 1);
        stop(&source, &pods).await;
        assert_eq!(source.asked().len(), 2);
    });
}

/// client-go: `TestReflectorHandleWatchStoppedBefore`
/// client-go: `TestReflectorStopWatch`
#[test]
fn a_watch_that_is_being_opened_is_given_up_ref_34() {
    on_a_paused_clock(async {
        let source = Source::new().lists(page(1, &[])).watch_hangs();
        let pods = source.reflect(Options::all()).await;
        settle().await;
        assert_eq!(pods.status().phase, Phase::OpeningWatch);
        stop(&source, &pods).await;
        assert_eq!(source.asked().len(), 2);
    });
}
