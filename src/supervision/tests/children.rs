//! Temporary children.

use actix::MailboxError;

use super::{Do, Journal, Subject, after};
use crate::supervision::{Child, ExitReason, Faults, spawn};

fn child(journal: &Journal, faults: &Faults) -> Child<Subject> {
    spawn(Subject::new(journal, faults))
}

fn planned(point: &str) -> ExitReason {
    ExitReason::Panicked(format!("planned fault: subject at {point}, time 1"))
}

#[actix::test]
async fn stop_panic_and_abort_are_told_apart() {
    let journal = Journal::begin();
    let stopped = child(&journal, &Faults::none());
    assert_eq!(stopped.addr().send(Do::Stop).await, Ok(1));
    assert_eq!(stopped.ended().await, ExitReason::Stopped);

    let panicked = child(&journal, &Faults::panic_at("subject", "Count", 1));
    assert!(panicked.addr().send(Do::Count).await.is_err());
    assert_eq!(panicked.ended().await, planned("Count"));

    let aborted = child(&journal, &Faults::none());
    assert_eq!(aborted.addr().send(Do::Count).await, Ok(1));
    aborted.abort();
    assert_eq!(aborted.ended().await, ExitReason::Aborted);
}

#[actix::test]
async fn a_child_that_panicked_is_dropped_without_stopped() {
    let journal = Journal::begin();
    let faults = Faults::panic_at("subject", "Count", 1).and_panic_at("subject", "stopped", 1);
    let child = child(&journal, &faults);
    assert!(child.addr().send(Do::Count).await.is_err());
    assert_eq!(child.ended().await, planned("Count"));
    assert_eq!(
        journal.facts(),
        ["started", "dropped"],
        "actix would call stopped, and end the process"
    );
}

#[actix::test]
async fn a_panic_anywhere_in_a_child_is_its_exit_reason() {
    let journal = Journal::begin();
    for (point, trigger) in [
        ("started", Do::Count),
        ("Spawned", Do::Spawn),
        ("Waited", Do::Wait),
        ("Streamed", Do::Stream),
        ("stopping", Do::Stop),
        ("stopped", Do::Stop),
    ] {
        let journal = journal.another();
        let child = child(&journal, &Faults::panic_at("subject", point, 1));
        let answer = child.addr().send(trigger).await;
        assert!(matches!(answer, Ok(1) | Err(MailboxError::Closed)), "may be lost in the panic");
        after(10).await;
        assert_eq!(child.ended().await, planned(point));
        assert_eq!(journal.times_of("dropped").len(), 1);
    }
}

#[actix::test]
async fn a_panic_in_the_drop_of_a_child_is_its_exit_reason_unless_it_has_another() {
    let journal = Journal::begin();
    let stopped = child(&journal, &Faults::panic_at("subject", "dropped", 1));
    assert_eq!(stopped.addr().send(Do::Stop).await, Ok(1));
    assert_eq!(stopped.ended().await, planned("dropped"));

    let faults = Faults::panic_at("subject", "dropped", 1).and_panic_at("subject", "Count", 1);
    let panicked = child(&journal, &faults);
    assert!(panicked.addr().send(Do::Count).await.is_err());
    assert_eq!(panicked.ended().await, planned("Count"));
    assert_eq!(faults.fired(), 2);
}

#[actix::test]
async fn an_abort_calls_stopped_and_a_panic_there_hurts_nobody() {
    let journal = Journal::begin();
    for point in ["none", "stopping", "stopped", "dropped"] {
        let journal = journal.another();
        let faults = Faults::panic_at("subject", point, 1);
        let child = child(&journal, &faults);
        assert_eq!(child.addr().send(Do::Count).await, Ok(1));
        child.abort_handle().abort();
        assert_eq!(child.ended().await, ExitReason::Aborted);
        assert_eq!(faults.fired(), usize::from(point != "none"));
        assert_eq!(journal.times_of("dropped").len(), 1);
    }
}

#[actix::test]
async fn a_child_aborted_before_it_started_is_only_dropped() {
    let journal = Journal::begin();
    let child = child(&journal, &Faults::none());
    child.abort();
    assert_eq!(child.ended().await, ExitReason::Aborted);
    assert_eq!(journal.facts(), ["dropped"]);
}

#[actix::test]
async fn dropping_a_child_aborts_it() {
    let journal = Journal::begin();
    let child = child(&journal, &Faults::none());
    let addr = child.addr().clone();
    assert_eq!(addr.send(Do::Count).await, Ok(1));
    drop(child);
    after(1).await;
    assert_eq!(journal.facts(), ["started", "stopping", "stopped", "dropped"]);
    assert!(!addr.connected());
}

#[actix::test]
async fn dropping_the_wait_for_the_end_aborts_too() {
    let journal = Journal::begin();
    let child = child(&journal, &Faults::none());
    let addr = child.addr().clone();
    let waiting = actix_rt::spawn(child.ended());
    after(1).await;
    assert_eq!(journal.facts(), ["started"]);
    waiting.abort();
    after(1).await;
    assert_eq!(journal.times_of("dropped").len(), 1);
    assert!(!addr.connected());
}

#[actix::test]
async fn a_child_nobody_can_address_ends_by_itself() {
    let journal = Journal::begin();
    assert_eq!(child(&journal, &Faults::none()).ended().await, ExitReason::Stopped);
}
