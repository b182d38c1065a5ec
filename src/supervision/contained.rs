use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context as TaskContext, Poll, Waker};
use std::thread;

use actix::dev::ContextFut;
use actix::fut::ready;
use actix::{Actor, ActorContext, AsyncContext, Context, Supervised};

use super::ExitReason;
use super::exit::caught;

/// The most spawn handles a restart passes over, see [`Contained::restart`].
const MAX_PASSED_OVER: usize = 1024;

/// An actor whose panics stay inside.
///
/// `started`, handlers, spawned futures, `stopping`, `stopped`, `restarting` and the actor's own drop are all run under
/// `catch_unwind`. None of them is run while another one's panic unwinds, where a second panic would end the process,
/// and neither `stopping` nor `stopped` is called on an actor that panicked or has not started.
pub(super) struct Contained<A: Actor<Context = Context<A>>> {
    /// Some until the actor is dropped.
    future: Option<ContextFut<A, Context<A>>>,
    /// `started` has been called, and the actor has neither ended nor panicked since.
    is_running: bool,
}

impl<A: Actor<Context = Context<A>>> Contained<A> {
    pub(super) fn new(context: Context<A>, actor: A) -> Self {
        Self { future: Some(context.into_future(actor)), is_running: false }
    }

    /// Whether anybody could send the actor a message.
    pub(super) fn is_connected(&mut self) -> bool {
        self.future.as_mut().is_some_and(|future| future.ctx().connected())
    }

    /// Runs the actor, beginning with `started`, until it waits or ends.
    pub(super) fn poll(&mut self, cx: &mut TaskContext<'_>) -> Poll<ExitReason> {
        let Some(future) = &mut self.future else { return Poll::Ready(ExitReason::Stopped) };
        self.is_running = true;
        let exit = match caught(|| Pin::new(future).poll(cx)) {
            Ok(Poll::Pending) => return Poll::Pending,
            Ok(Poll::Ready(())) => ExitReason::Stopped,
            Err(text) => ExitReason::Panicked(text),
        };
        self.is_running = false;
        Poll::Ready(exit)
    }

    /// Drops what the actor spawned and calls `restarting`. False if nobody could send it a message.
    ///
    /// actix counts spawn handles from 1 again but keeps cancellations that were not carried out yet: a handler that
    /// cancels a future and then panics would cancel whatever gets the same handle in the next `started`. So we pass
    /// over the handles in use: exact for an actor that spawned up to [`MAX_PASSED_OVER`] futures, a long shot beyond.
    pub(super) fn restart(&mut self) -> Result<bool, String>
    where
        A: Supervised,
    {
        self.is_running = false;
        let Some(future) = &mut self.future else { return Ok(false) };
        let last_handle = future.ctx().spawn(ready(())).into_usize();
        let is_restarted = caught(|| future.restart())?;
        if is_restarted {
            for _ in 0..last_handle.min(MAX_PASSED_OVER) {
                future.ctx().spawn(ready(()));
            }
        }
        Ok(is_restarted)
    }

    /// Stops the actor in an orderly way, if it runs: `stopping`, `stopped`. One that refuses by `Running::Continue` is
    /// dropped all the same, without `stopped`.
    pub(super) fn stop(&mut self, cx: &mut TaskContext<'_>) -> ExitReason {
        if self.is_running
            && let Some(future) = &mut self.future
        {
            future.ctx().stop();
            if let Poll::Ready(exit) = self.poll(cx) {
                return exit;
            }
        }
        ExitReason::Stopped
    }

    /// Drops the actor and all it holds, without `stopping` and `stopped`. An error is the text of a panic in there.
    pub(super) fn discard(&mut self) -> Result<(), String> {
        self.is_running = false;
        let Some(mut future) = self.future.take() else { return Ok(()) };
        // Terminated, it is not polled when dropped: actix would call even `started` there.
        future.ctx().terminate();
        caught(|| drop(future))
    }
}

impl<A: Actor<Context = Context<A>>> Drop for Contained<A> {
    /// Aborted. actix calls `stopping` and `stopped` only if the actor has an address or spawned something; we always do.
    fn drop(&mut self) {
        let stopped = if thread::panicking() {
            ExitReason::Stopped
        } else {
            self.stop(&mut TaskContext::from_waker(Waker::noop()))
        };
        for text in [stopped.panic_text(), self.discard().err()].into_iter().flatten() {
            tracing::error!(
                actor = std::any::type_name::<A>(),
                panic = text,
                "panicked while it was aborted"
            );
        }
    }
}

impl<A: Actor<Context = Context<A>>> fmt::Debug for Contained<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Contained").field("is_running", &self.is_running).finish_non_exhaustive()
    }
}
