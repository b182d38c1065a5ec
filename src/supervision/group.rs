use std::any::Any;
use std::fmt;

use actix::{Actor, Addr};
use tokio::task::JoinHandle;

use super::{ExitReason, MemberState, MemberStatus, Running, StopHandle};

/// Supervised actors that belong together: started in order, stopped in reverse.
///
/// Start first what others send to: then nobody stops while somebody still sends to it. A group keeps an address of each
/// member, so its members live until the group is stopped or dropped. Dropping it orders all members to stop, last first,
/// and does not wait.
#[derive(Default)]
pub struct Group {
    members: Vec<Member>,
}

struct Member {
    handle: StopHandle,
    task: JoinHandle<ExitReason>,
    /// The member's address.
    _addr: Box<dyn Any + Send>,
}

impl Group {
    /// A group without members.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an actor just started: it will be stopped before all members so far. Gives its address.
    pub fn add<A: Actor>(&mut self, running: Running<A>) -> Addr<A> {
        let Running { addr, handle, task } = running;
        self.members.push(Member { handle, task, _addr: Box::new(addr.clone()) });
        addr
    }

    /// What each member is doing, in the order they were started.
    pub fn status(&self) -> Vec<MemberStatus> {
        self.members.iter().map(|member| member.handle.status()).collect()
    }

    /// Stops the members, last first, each when the one before has stopped and what it held is dropped.
    ///
    /// May be called again, also after it was dropped half way: it goes on where it was.
    pub async fn stop(&mut self) {
        for member in self.members.iter_mut().rev() {
            member.stop().await;
        }
    }
}

impl Member {
    async fn stop(&mut self) {
        self.handle.stop();
        if !self.task.is_finished() {
            // How it ended is in its status.
            drop((&mut self.task).await);
        }
        debug_assert!(
            matches!(self.handle.status().state, MemberState::Stopped(_)),
            "a task that ended says so"
        );
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.members.iter().rev().for_each(|member| member.handle.stop());
    }
}

impl fmt::Debug for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.status()).finish()
    }
}
