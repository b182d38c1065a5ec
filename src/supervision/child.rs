use std::future::Future;
use std::pin::Pin;
use std::task::{Context as TaskContext, Poll, ready};

use actix::{Actor, Addr, AsyncContext, Context};
use tokio::task::{AbortHandle, JoinHandle};

use super::ExitReason;
use super::contained::Contained;

/// Spawns a temporary actor on the current arbiter: one that is not restarted.
///
/// Its parent waits for the end and decides what comes next.
pub fn spawn<A>(actor: A) -> Child<A>
where
    A: Actor<Context = Context<A>>,
{
    spawn_in(Context::new(), actor)
}

/// As [`spawn`], in a context made before: with another mailbox capacity, or an address already given away.
pub fn spawn_in<A>(context: Context<A>, actor: A) -> Child<A>
where
    A: Actor<Context = Context<A>>,
{
    let addr = context.address();
    let task = actix_rt::spawn(Once(Contained::new(context, actor)));
    Child { addr, task: AbortOnDrop(task) }
}

/// A temporary actor, owned: dropped, it aborts the actor.
///
/// An abort is immediate. All the actor holds is dropped, its spawned futures with it; `stopping` and `stopped` are
/// called as usual, and a panic in them is logged. After a panic they are not called: the actor is only dropped.
#[derive(Debug)]
pub struct Child<A: Actor> {
    addr: Addr<A>,
    task: AbortOnDrop,
}

impl<A: Actor> Child<A> {
    /// The actor's address.
    pub fn addr(&self) -> &Addr<A> {
        &self.addr
    }

    /// Ends the actor now, unless it has ended.
    pub fn abort(&self) {
        self.task.0.abort();
    }

    /// To abort the actor while somebody else waits for its end.
    pub fn abort_handle(&self) -> AbortHandle {
        self.task.0.abort_handle()
    }

    /// Waits until the actor has ended and all it held is dropped, and tells how it ended.
    ///
    /// Keeps no address, so an actor with nothing left to do ends by itself. Dropping the future aborts the actor.
    pub async fn ended(self) -> ExitReason {
        let Self { addr, mut task } = self;
        drop(addr);
        ExitReason::of((&mut task.0).await)
    }
}

#[derive(Debug)]
struct AbortOnDrop(JoinHandle<ExitReason>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Runs an actor until it ends, then drops it.
struct Once<A: Actor<Context = Context<A>>>(Contained<A>);

impl<A: Actor<Context = Context<A>>> Future for Once<A> {
    type Output = ExitReason;

    fn poll(mut self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<ExitReason> {
        let exit = ready!(self.0.poll(cx));
        Poll::Ready(match (exit, self.0.discard()) {
            (ExitReason::Stopped, Err(text)) => ExitReason::Panicked(text),
            (exit, _) => exit,
        })
    }
}
