//! When a long-lived actor is restarted, and when no more.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use actix::MailboxError;
use tokio::time::{Instant, interval, sleep};

use super::{Do, Journal, Subject, after, exact, told};
use crate::supervision::{
    Escalation, ExitReason, Faults, FirstRestart, Hooks, MemberState, RestartOptions, Standing,
    start,
};

const NEVER: usize = 1000;

/// An actor that stops as soon as it has started.
fn stillborn(journal: &Journal) -> Subject {
    bare(journal).stopping_until(NEVER)
}

fn bare(journal: &Journal) -> Subject {
    Subject::new(journal, &Faults::none())
}

#[actix::test]
async fn delays_double_up_to_the_cap() {
    let journal = Journal::begin();
    let running = start("stillborn", stillborn(&journal), exact(), Hooks::default());
    after(100_000).await;
    // 0.8, 1.6, 3.2, 6.4, 12.8 s; then 30 s, for the sixth restart within a minute.
    assert_eq!(journal.times_of("started"), [0, 800, 2400, 5600, 12_000, 24_800, 54_800, 84_800]);
    assert_eq!(running.status().restarts, 8, "one of them to come");
}

#[actix::test]
async fn the_first_restart_may_be_at_once() {
    let journal = Journal::begin();
    let options = RestartOptions { first_restart: FirstRestart::AtOnce, ..exact() };
    let _running = start("stillborn", stillborn(&journal), options, Hooks::default());
    after(3_000).await;
    assert_eq!(journal.times_of("started"), [0, 0, 800, 2400]);
}

#[actix::test]
async fn an_actor_that_stops_in_started_does_not_freeze_its_arbiter() {
    let journal = Journal::begin();
    let ticks = Rc::new(Cell::new(0));
    let ticker = actix_rt::spawn({
        let ticks = Rc::clone(&ticks);
        async move {
            let mut interval = interval(Duration::from_millis(100));
            loop {
                interval.tick().await;
                ticks.set(ticks.get() + 1);
            }
        }
    });
    let options = RestartOptions { first_restart: FirstRestart::AtOnce, ..exact() };
    let _running = start("stillborn", stillborn(&journal), options, Hooks::default());
    after(10_000).await;
    assert_eq!(ticks.get(), 101);
    assert_eq!(journal.times_of("started").len(), 5);
    ticker.abort();
}

#[actix::test]
async fn even_without_any_delay_others_run_between_restarts() {
    let journal = Journal::begin();
    let mut options = RestartOptions { first_restart: FirstRestart::AtOnce, ..exact() };
    options.backoff.reset_after = Duration::ZERO;
    options.intensity.max = NEVER;
    let _running = start("stillborn", stillborn(&journal), options, Hooks::default());
    tokio::task::yield_now().await;
    let starts = journal.times_of("started").len();
    assert!((1..NEVER).contains(&starts), "we had to wait for {starts} starts");
}

#[actix::test]
async fn delays_start_over_only_after_calm() {
    let journal = Journal::begin();
    let (hooks, restarts, _) = told();
    let running = start("subject", bare(&journal), exact(), hooks);
    for lived in [0, 0, 119, 121, 0] {
        sleep(Duration::from_secs(lived)).await;
        assert!(running.addr().send(Do::Stop).await.is_ok());
        assert_eq!(running.addr().send(Do::Count).await, Ok(1), "restarted");
    }
    let delays: Vec<_> = restarts.borrow().iter().map(|report| report.delay.as_millis()).collect();
    assert_eq!(delays, [800, 1600, 3200, 800, 1600]);
}

#[actix::test]
async fn the_sixth_restart_in_a_minute_is_told_once_and_tried_at_the_cap() {
    let journal = Journal::begin();
    let (hooks, restarts, escalations) = told();
    let running = start("stillborn", stillborn(&journal), exact(), hooks);

    after(24_810).await;
    assert_eq!(*escalations.borrow(), [ExitReason::Stopped]);
    let MemberState::Escalated { until } = running.status().state else {
        panic!("{:?}", running.status())
    };
    assert_eq!((until - Instant::now()).as_secs(), 29);

    after(290_000).await;
    assert_eq!(escalations.borrow().len(), 1);
    let restarts = restarts.borrow();
    assert!(restarts[..5].iter().all(|report| report.standing == Standing::Normal));
    assert!(restarts[5..].iter().all(|report| report.standing == Standing::Escalated));
    assert!(restarts[5..].iter().all(|report| report.delay == Duration::from_secs(30)));
    assert_eq!((&*restarts[5].name, restarts[5].restarts, restarts.len()), ("stillborn", 6, 15));
}

#[actix::test]
async fn an_actor_may_be_given_up() {
    let journal = Journal::begin();
    let (hooks, restarts, escalations) = told();
    let options = RestartOptions { escalation: Escalation::GiveUp, ..exact() };
    let running = start("stillborn", stillborn(&journal), options, hooks);
    let (addr, handle) = (running.addr().clone(), running.stop_handle());
    assert_eq!(running.stopped().await, ExitReason::Stopped);
    assert_eq!((restarts.borrow().len(), escalations.borrow().len()), (5, 1));
    assert_eq!(handle.status().state, MemberState::Stopped(ExitReason::Stopped));
    assert_eq!(addr.send(Do::Count).await, Err(MailboxError::Closed));
}

#[actix::test]
async fn an_ordered_stop_is_no_restart() {
    let journal = Journal::begin();
    let running = start("subject", bare(&journal), exact(), Hooks::default());
    let addr = running.addr().clone();
    assert_eq!(addr.send(Do::Count).await, Ok(1));
    running.stop();
    assert_eq!(running.stopped().await, ExitReason::Stopped);
    assert_eq!(journal.facts(), ["started", "stopping", "stopped", "dropped"]);
    assert_eq!(addr.send(Do::Count).await, Err(MailboxError::Closed));
}

#[actix::test]
async fn an_actor_stopped_before_it_started_or_during_a_delay_is_only_dropped() {
    let journal = Journal::begin();
    let running = start("subject", bare(&journal), exact(), Hooks::default());
    running.stop();
    assert_eq!(running.stopped().await, ExitReason::Stopped);
    assert_eq!(journal.facts(), ["dropped"]);

    let journal = journal.another();
    let running = start("subject", bare(&journal).stopping_until(2), exact(), Hooks::default());
    after(100).await;
    running.stop();
    assert_eq!(running.stopped().await, ExitReason::Stopped);
    assert_eq!(journal.facts(), ["started", "stopping", "stopped", "restarting", "dropped"]);
    assert_eq!(journal.times_of("dropped"), [100], "not after the delay");
}

#[actix::test]
async fn a_panic_during_an_ordered_stop_is_the_exit_reason() {
    let journal = Journal::begin();
    for point in ["stopping", "stopped", "dropped"] {
        let journal = journal.another();
        let faults = Faults::panic_at("subject", point, 1);
        let running = start("subject", Subject::new(&journal, &faults), exact(), Hooks::default());
        after(1).await;
        running.stop();
        let text = format!("planned fault: subject at {point}, time 1");
        assert_eq!(running.stopped().await, ExitReason::Panicked(text));
        assert_eq!(journal.times_of(point).len(), 1);
    }
}

#[actix::test]
async fn an_actor_that_refuses_to_stop_is_dropped_all_the_same() {
    let journal = Journal::begin();
    let running = start("subject", bare(&journal).refusing_to_stop(), exact(), Hooks::default());
    let _addr = running.addr().clone();
    after(1).await;
    running.stop();
    assert_eq!(running.stopped().await, ExitReason::Stopped);
    assert_eq!(journal.facts(), ["started", "stopping", "dropped"]);
}

#[actix::test]
async fn supervision_ends_when_nobody_holds_an_address() {
    let journal = Journal::begin();
    let running = start("subject", bare(&journal), exact(), Hooks::default());
    assert_eq!(running.addr().send(Do::Count).await, Ok(1));
    assert_eq!(running.stopped().await, ExitReason::Stopped);
    assert_eq!(journal.facts(), ["started", "stopping", "stopped", "dropped"]);
}

#[actix::test]
async fn supervision_ends_when_the_last_address_goes_during_a_delay() {
    let journal = Journal::begin();
    let faults = Faults::panic_at("subject", "started", 1);
    let running = start("subject", Subject::new(&journal, &faults), exact(), Hooks::default());
    after(100).await;
    assert!(matches!(running.stopped().await, ExitReason::Panicked(_)));
    assert_eq!(journal.facts(), ["started", "restarting", "dropped"], "not started for nobody");
}

#[actix::test]
async fn dropping_the_handle_lets_the_actor_run() {
    let journal = Journal::begin();
    let running = start("subject", bare(&journal), exact(), Hooks::default());
    let addr = running.addr().clone();
    drop(running);
    assert_eq!(addr.send(Do::Stop).await, Ok(1));
    assert_eq!(addr.send(Do::Count).await, Ok(1), "still restarted");
}

#[test]
fn an_actor_that_ends_with_its_system_is_aborted() {
    let system = actix_rt::System::new();
    let (handle, addr, journal) = system.block_on(async {
        let journal = Journal::begin();
        let running = start("subject", bare(&journal), exact(), Hooks::default());
        after(1).await;
        (running.stop_handle(), running.addr().clone(), journal)
    });
    drop(system);
    assert_eq!(handle.status().state, MemberState::Stopped(ExitReason::Aborted));
    assert!(!addr.connected());
    assert!(journal.facts().ends_with(&["stopping".into(), "stopped".into(), "dropped".into()]));
}
