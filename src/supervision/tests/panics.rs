//! Where a long-lived actor may panic, and what is left of it then.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use actix::{
    Actor, ActorFutureExt, AsyncContext, AtomicResponse, Context, Handler, MailboxError, Message,
    SpawnHandle, Supervised, WrapFuture,
};
use futures::future::pending;
use tokio::time::sleep;

use super::{Do, Journal, Subject, after, exact, silence_expected_panics, told};
use crate::supervision::{ExitReason, Faults, Hooks, MemberState, start};

/// Panics once at `point`, which `trigger` leads to; the actor must be restarted once and then work as new.
async fn survives(point: &'static str, trigger: &[Do]) -> Journal {
    let journal = Journal::begin();
    let faults = Faults::panic_at("subject", point, 1);
    let (hooks, restarts, _) = told();
    let running = start("subject", Subject::new(&journal, &faults), exact(), hooks);

    for message in trigger {
        let answer = running.addr().send(*message).await;
        assert!(matches!(answer, Ok(1) | Err(MailboxError::Closed)), "may be lost in the panic");
    }
    after(10).await;
    assert_eq!(faults.fired(), 1, "{point} was not reached: {:?}", faults.seen());
    assert!(
        matches!(running.status().state, MemberState::BackingOff { .. }),
        "{:?}",
        running.status()
    );

    assert_eq!(running.addr().send(Do::Count).await, Ok(1), "rebuilt");
    let reasons: Vec<String> =
        restarts.borrow().iter().map(|report| report.reason.to_string()).collect();
    assert_eq!(reasons, [format!("panicked: planned fault: subject at {point}, time 1")]);
    assert_eq!((running.status().state, running.status().restarts), (MemberState::Running, 1));
    journal
}

#[actix::test]
async fn a_panic_in_started_is_survived() {
    let journal = survives("started", &[]).await;
    assert_eq!(journal.facts(), ["started", "restarting", "started"]);
}

#[actix::test]
async fn a_panic_in_a_handler_is_survived_and_does_not_call_stopped() {
    let journal = survives("Count", &[Do::Count]).await;
    assert_eq!(journal.facts(), ["started", "restarting", "started"]);
    assert_eq!(journal.times_of("restarting"), [0], "at once");
    assert_eq!(journal.times_of("started"), [0, 800], "after the delay");
}

#[actix::test]
async fn a_panic_in_a_spawned_future_is_survived() {
    survives("Spawned", &[Do::Spawn]).await;
}

#[actix::test]
async fn a_panic_in_a_future_waited_for_is_survived() {
    survives("Waited", &[Do::Wait]).await;
}

#[actix::test]
async fn a_panic_in_a_stream_handler_is_survived() {
    survives("Streamed", &[Do::Stream]).await;
}

#[actix::test]
async fn a_panic_in_stopping_is_survived() {
    let journal = survives("stopping", &[Do::Stop]).await;
    assert_eq!(journal.facts(), ["started", "stopping", "restarting", "started"]);
}

#[actix::test]
async fn a_panic_in_stopped_is_survived() {
    let journal = survives("stopped", &[Do::Stop]).await;
    assert_eq!(journal.facts(), ["started", "stopping", "stopped", "restarting", "started"]);
}

#[actix::test]
async fn a_panic_in_restarting_is_tried_again_after_the_delay() {
    let journal = Journal::begin();
    let faults = (1..=3)
        .fold(Faults::none(), |faults, nth| faults.and_panic_at("subject", "restarting", nth));
    let (hooks, restarts, _) = told();
    let running = start("subject", Subject::new(&journal, &faults), exact(), hooks);

    assert_eq!(running.addr().send(Do::Stop).await, Ok(1));
    assert_eq!(running.addr().send(Do::Count).await, Ok(1));
    assert_eq!(journal.times_of("restarting"), [0, 800, 2400, 5600]);
    assert_eq!(journal.times_of("started"), [0, 5600]);
    assert_eq!(restarts.borrow()[0].reason, ExitReason::Stopped);
    let text = "planned fault: subject at restarting, time 2";
    assert_eq!(restarts.borrow()[1].reason, ExitReason::Panicked(text.into()));
}

#[actix::test]
async fn messages_behind_the_one_that_panicked_are_handled_after_the_restart() {
    let journal = Journal::begin();
    let faults = Faults::panic_at("subject", "Count", 2);
    let running = start("subject", Subject::new(&journal, &faults), exact(), Hooks::default());
    let (addr, recipient) = (running.addr().clone(), running.addr().clone().recipient::<Do>());

    let answers = futures::join!(
        addr.send(Do::Count),
        addr.send(Do::Count),
        recipient.send(Do::Count),
        addr.send(Do::Count)
    );
    assert_eq!(answers, (Ok(1), Err(MailboxError::Closed), Ok(1), Ok(2)));
    assert_eq!(journal.times_of("started"), [0, 800]);
}

#[actix::test]
async fn every_address_outlives_every_restart() {
    let journal = Journal::begin();
    let faults =
        (1..=4).fold(Faults::none(), |faults, nth| faults.and_panic_at("subject", "Count", nth));
    let running = start("subject", Subject::new(&journal, &faults), exact(), Hooks::default());
    let (weak, recipient) = (running.addr().downgrade(), running.addr().clone().recipient::<Do>());

    for _ in 0..4 {
        assert_eq!(recipient.send(Do::Count).await, Err(MailboxError::Closed));
        assert!(recipient.connected() && running.addr().connected());
        let upgraded = weak.upgrade().expect("the actor is only being restarted");
        assert_eq!(upgraded.send(Do::Stop).await, Ok(1), "restarted: then it stops by itself");
    }
    assert_eq!(recipient.send(Do::Count).await, Ok(1));
    assert_eq!(running.status().restarts, 8);
}

#[actix::test]
async fn a_hook_that_panics_changes_nothing() {
    let journal = Journal::begin();
    let hooks =
        Hooks::default().on_restart(|_| panic!("expected")).on_escalate(|_| panic!("expected"));
    let running = start("subject", Subject::new(&journal, &Faults::none()), exact(), hooks);
    for _ in 0..7 {
        assert_eq!(running.addr().send(Do::Stop).await, Ok(1));
    }
    assert_eq!(running.addr().send(Do::Count).await, Ok(1));
}

/// Keeps something, cancels something, and panics in ways a [`Subject`] does not.
#[derive(Default)]
struct Odd {
    held: Rc<()>,
    ticks: Rc<Cell<u32>>,
    ticking: Option<SpawnHandle>,
}

#[derive(Message)]
#[rtype(result = "()")]
enum OddDo {
    HoldAndPanic,
    CancelAndPanic,
    PanicInDropOfAFuture,
}

#[derive(Message)]
#[rtype(result = "u32")]
struct Atomically(bool);

impl Actor for Odd {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Context<Self>) {
        let tick = |odd: &mut Self, _: &mut Context<Self>| odd.ticks.set(odd.ticks.get() + 1);
        self.ticking = Some(ctx.run_interval(Duration::from_secs(1), tick));
    }
}

impl Supervised for Odd {}

impl Handler<OddDo> for Odd {
    type Result = ();

    fn handle(&mut self, message: OddDo, ctx: &mut Context<Self>) {
        match message {
            OddDo::HoldAndPanic => {
                let held = Rc::clone(&self.held);
                ctx.spawn(
                    async move {
                        pending::<()>().await;
                        drop(held);
                    }
                    .into_actor(self),
                );
                ctx.notify(OddDo::CancelAndPanic);
            }
            OddDo::CancelAndPanic => {
                ctx.cancel_future(self.ticking.expect("it ticks since it was started"));
                panic!("expected: after a cancellation");
            }
            OddDo::PanicInDropOfAFuture => {
                let guard = PanicsOnDrop;
                ctx.spawn(
                    async move {
                        pending::<()>().await;
                        drop(guard);
                    }
                    .into_actor(self),
                );
                ctx.notify(OddDo::CancelAndPanic);
            }
        }
    }
}

impl Handler<Atomically> for Odd {
    type Result = AtomicResponse<Self, u32>;

    fn handle(&mut self, Atomically(panics): Atomically, _: &mut Context<Self>) -> Self::Result {
        let later = sleep(Duration::from_millis(5)).into_actor(self);
        AtomicResponse::new(Box::pin(later.map(move |(), _, _| {
            assert!(!panics, "expected: in an atomic response");
            1
        })))
    }
}

struct PanicsOnDrop;

impl Drop for PanicsOnDrop {
    fn drop(&mut self) {
        panic!("expected: in a drop");
    }
}

#[actix::test]
async fn a_panic_in_an_atomic_response_is_survived() {
    silence_expected_panics();
    tokio::time::pause();
    let running = start("odd", Odd::default(), exact(), Hooks::default());
    let addr = running.addr();
    let (lost, behind) = futures::join!(addr.send(Atomically(true)), addr.send(Atomically(false)));
    assert_eq!((lost, behind), (Err(MailboxError::Closed), Ok(1)));
    let text = "expected: in an atomic response";
    assert_eq!(running.status().last_exit, Some(ExitReason::Panicked(text.into())));
}

#[actix::test]
async fn what_a_dead_actor_had_spawned_is_dropped_before_the_delay() {
    silence_expected_panics();
    tokio::time::pause();
    let odd = Odd::default();
    let held = Rc::clone(&odd.held);
    let running = start("odd", odd, exact(), Hooks::default());
    assert_eq!(running.addr().send(OddDo::HoldAndPanic).await, Ok(()));
    after(1).await;
    assert!(matches!(running.status().state, MemberState::BackingOff { .. }));
    assert_eq!(Rc::strong_count(&held), 2, "the actor's and ours");
}

#[actix::test]
async fn a_cancellation_cut_short_by_a_panic_does_not_hit_the_restarted_actor() {
    silence_expected_panics();
    tokio::time::pause();
    let odd = Odd::default();
    let ticks = Rc::clone(&odd.ticks);
    let running = start("odd", odd, exact(), Hooks::default());
    assert_eq!(running.addr().send(OddDo::CancelAndPanic).await, Err(MailboxError::Closed));
    after(5_500).await;
    assert_eq!((running.status().restarts, ticks.get()), (1, 4));
}

#[actix::test]
async fn a_panic_in_the_drop_of_a_spawned_future_is_survived() {
    silence_expected_panics();
    tokio::time::pause();
    let running = start("odd", Odd::default(), exact(), Hooks::default());
    assert_eq!(running.addr().send(OddDo::PanicInDropOfAFuture).await, Ok(()));
    assert_eq!(running.addr().send(Atomically(false)).await, Ok(1));
    assert_eq!(running.status().restarts, 1);
}
