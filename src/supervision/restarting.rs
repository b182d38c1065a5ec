use std::fmt;
use std::future::Future;
use std::ops::ControlFlow;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll, ready};
use std::time::Duration;

use actix::{Actor, Addr, AsyncContext, Context, Supervised};
use tokio::task::JoinHandle;
use tokio::time::{Instant, Sleep};

use super::contained::Contained;
use super::exit::caught;
use super::policy::{Decision, Policy};
use super::{ExitReason, MemberState, MemberStatus, Restart, RestartOptions, Standing, StopHandle};

/// Starts an actor on the current arbiter and restarts it in place whenever it ends, by a panic or by itself.
///
/// Across restarts every [`Addr`] and `Recipient` stays valid and waiting messages stay queued; only the message that
/// panicked is lost, its sender is told `MailboxError::Closed`. What the dead actor had spawned is dropped at once and
/// `Supervised::restarting` is called, which has to rebuild the actor's state; then the delay passes, then `started` is
/// called. Spawn in `started`, not in `restarting`.
///
/// It ends when told to ([`Running::stop`]), when nobody holds an address any more, or when it is given up.
///
/// - `stopping` and `stopped` are called when the actor stops, not when it panics.
/// - A panic in `started`, a handler, anything spawned or waited for, `stopping`, `stopped`, `restarting` or the drop of
///   the actor or its futures is an exit like any other. Two panics at the same time, as in the drop of a value while a
///   panic unwinds, end the process: that is Rust's rule.
/// - With `panic = "abort"` in the profile of the program, nothing is caught.
pub fn start<A>(
    name: impl Into<Arc<str>>,
    actor: A,
    options: RestartOptions,
    hooks: Hooks,
) -> Running<A>
where
    A: Actor<Context = Context<A>> + Supervised,
{
    start_in(Context::new(), name, actor, options, hooks)
}

/// As [`start`], in a context made before: with another mailbox capacity, or an address already given away.
pub fn start_in<A>(
    context: Context<A>,
    name: impl Into<Arc<str>>,
    actor: A,
    options: RestartOptions,
    hooks: Hooks,
) -> Running<A>
where
    A: Actor<Context = Context<A>> + Supervised,
{
    let addr = context.address();
    let handle = StopHandle::new(name.into());
    let task = actix_rt::spawn(Restarting {
        actor: Contained::new(context, actor),
        phase: Phase::Starting,
        policy: Policy::new(options),
        hooks,
        handle: handle.clone(),
    });
    Running { addr, handle, task }
}

/// A supervised actor. Dropping this lets it run on for as long as somebody holds its address.
#[derive(Debug)]
pub struct Running<A: Actor> {
    pub(super) addr: Addr<A>,
    pub(super) handle: StopHandle,
    pub(super) task: JoinHandle<ExitReason>,
}

impl<A: Actor> Running<A> {
    /// The actor's address, valid across restarts.
    pub fn addr(&self) -> &Addr<A> {
        &self.addr
    }

    /// What the actor is doing, and how it has fared.
    pub fn status(&self) -> MemberStatus {
        self.handle.status()
    }

    /// To stop the actor from elsewhere, or ask for its status. Keeps no address.
    pub fn stop_handle(&self) -> StopHandle {
        self.handle.clone()
    }

    /// Orders the actor to stop, and not to be restarted.
    pub fn stop(&self) {
        self.handle.stop();
    }

    /// Waits until the actor is not restarted any more, and tells how it ended. Orders nothing, keeps no address.
    pub async fn stopped(self) -> ExitReason {
        let Self { addr, task, .. } = self;
        drop(addr);
        ExitReason::of(task.await)
    }
}

/// Told about restarts, on the actor's arbiter. A panic in a hook is logged and has no other effect.
pub struct Hooks {
    on_restart: Box<dyn FnMut(&RestartReport)>,
    on_escalate: Box<dyn FnMut(ExitReason)>,
}

/// An actor ended and will be restarted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RestartReport {
    /// The name it was started with.
    pub name: Arc<str>,
    /// How it ended.
    pub reason: ExitReason,
    /// After how long it is started again.
    pub delay: Duration,
    /// How many restarts that makes.
    pub restarts: u64,
    /// Whether that is still normal.
    pub standing: Standing,
}

impl Hooks {
    /// Called at each restart, before the delay.
    #[must_use]
    pub fn on_restart(self, hook: impl FnMut(&RestartReport) + 'static) -> Self {
        Self { on_restart: Box::new(hook), ..self }
    }

    /// Called with the last exit when restarts become more than normal: once, until the actor has been calm.
    #[must_use]
    pub fn on_escalate(self, hook: impl FnMut(ExitReason) + 'static) -> Self {
        Self { on_escalate: Box::new(hook), ..self }
    }
}

impl Default for Hooks {
    fn default() -> Self {
        Self { on_restart: Box::new(|_| {}), on_escalate: Box::new(|_| {}) }
    }
}

impl fmt::Debug for Hooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hooks").finish_non_exhaustive()
    }
}

/// Runs an actor, again and again.
struct Restarting<A: Actor<Context = Context<A>> + Supervised> {
    actor: Contained<A>,
    phase: Phase,
    policy: Policy,
    hooks: Hooks,
    handle: StopHandle,
}

enum Phase {
    /// `started` is to be called.
    Starting,
    Running {
        since: Instant,
    },
    /// The delay runs, if there is one.
    Waiting {
        delay: Option<Pin<Box<Sleep>>>,
        then: AfterDelay,
    },
}

#[derive(Clone, Copy)]
enum AfterDelay {
    Start,
    /// `restarting` panicked and is to be called again.
    Restart,
}

impl<A: Actor<Context = Context<A>> + Supervised> Future for Restarting<A> {
    type Output = ExitReason;

    fn poll(mut self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<ExitReason> {
        let this = &mut *self;
        if this.handle.poll_is_stop_ordered(cx) {
            let exit = this.actor.stop(cx);
            return Poll::Ready(this.end(exit));
        }
        loop {
            let next = match &mut this.phase {
                Phase::Starting => this.start(),
                Phase::Running { .. } => {
                    let exit = ready!(this.actor.poll(cx));
                    let restarted = this.actor.restart();
                    this.exited(exit, restarted)
                }
                Phase::Waiting { delay, then } => {
                    if let Some(delay) = delay {
                        ready!(delay.as_mut().poll(cx));
                    }
                    let then = *then;
                    this.waited(then)
                }
            };
            match next {
                ControlFlow::Continue(Next::Poll) => {}
                ControlFlow::Continue(Next::Yield) => {
                    cx.waker().wake_by_ref();
                    return Poll::Pending;
                }
                ControlFlow::Break(exit) => return Poll::Ready(this.end(exit)),
            }
        }
    }
}

/// What the task does next, unless it ends.
enum Next {
    Poll,
    /// Lets others on the arbiter run first: an actor that ends at once must not freeze it.
    Yield,
}

type Step = ControlFlow<ExitReason, Next>;

impl<A: Actor<Context = Context<A>> + Supervised> Restarting<A> {
    fn start(&mut self) -> Step {
        self.phase = Phase::Running { since: Instant::now() };
        self.handle.update(|status| status.state = MemberState::Running);
        Step::Continue(Next::Poll)
    }

    fn waited(&mut self, then: AfterDelay) -> Step {
        if !self.actor.is_connected() {
            return Step::Break(self.handle.status().last_exit.unwrap_or(ExitReason::Stopped));
        }
        self.phase = Phase::Starting;
        match then {
            AfterDelay::Start => Step::Continue(Next::Poll),
            AfterDelay::Restart => match self.actor.restart() {
                Ok(true) => Step::Continue(Next::Poll),
                Ok(false) => Step::Break(ExitReason::Stopped),
                Err(text) => self.exited(ExitReason::Panicked(text.clone()), Err(text)),
            },
        }
    }

    /// The actor ended by `exit`, and `restarting` has been called, with that result.
    fn exited(&mut self, exit: ExitReason, restarted: Result<bool, String>) -> Step {
        let then = match restarted {
            Ok(true) => AfterDelay::Start,
            Ok(false) => return Step::Break(exit),
            Err(text) => {
                tracing::error!(panic = text, "panicked in restarting");
                AfterDelay::Restart
            }
        };
        let now = Instant::now();
        let lived = match self.phase {
            Phase::Running { since } => now - since,
            Phase::Starting | Phase::Waiting { .. } => Duration::ZERO,
        };
        let Decision::Restart { delay, standing, news } = self.policy.exited(now, lived) else {
            self.tell_escalation(&exit);
            return Step::Break(exit);
        };
        self.tell_restart(&exit, now, delay, standing);
        if news {
            self.tell_escalation(&exit);
        }
        if delay.is_zero() {
            self.phase = Phase::Waiting { delay: None, then };
            return Step::Continue(Next::Yield);
        }
        self.phase = Phase::Waiting { delay: Some(Box::pin(tokio::time::sleep(delay))), then };
        Step::Continue(Next::Poll)
    }

    fn tell_restart(
        &mut self,
        exit: &ExitReason,
        now: Instant,
        delay: Duration,
        standing: Standing,
    ) {
        let until = now.checked_add(delay).unwrap_or(now);
        self.handle.update(|status| {
            status.restarted(Restart { at: now, reason: exit.clone(), delay });
            status.state = match standing {
                Standing::Normal => MemberState::BackingOff { until },
                Standing::Escalated => MemberState::Escalated { until },
            };
        });
        let MemberStatus { name, restarts, .. } = self.handle.status();
        tracing::warn!(actor = %name, %exit, ?delay, restarts, "restarting");
        let report = RestartReport { name, reason: exit.clone(), delay, restarts, standing };
        log_panic("on_restart", caught(|| (self.hooks.on_restart)(&report)));
    }

    fn tell_escalation(&mut self, exit: &ExitReason) {
        tracing::error!(actor = %self.handle.status().name, %exit, "restarted too often");
        log_panic("on_escalate", caught(|| (self.hooks.on_escalate)(exit.clone())));
    }

    fn end(&mut self, exit: ExitReason) -> ExitReason {
        let exit = match (exit, self.actor.discard()) {
            (ExitReason::Stopped, Err(text)) => ExitReason::Panicked(text),
            (exit, _) => exit,
        };
        self.handle.ended(exit.clone());
        exit
    }
}

impl<A: Actor<Context = Context<A>> + Supervised> Drop for Restarting<A> {
    fn drop(&mut self) {
        self.handle.ended(ExitReason::Aborted);
    }
}

fn log_panic(hook: &'static str, called: Result<(), String>) {
    if let Err(text) = called {
        tracing::error!(hook, panic = text, "a hook panicked");
    }
}
