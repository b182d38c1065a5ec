use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Context as TaskContext;
use std::time::Duration;

use futures::task::AtomicWaker;
use tokio::time::Instant;

use super::ExitReason;

/// What a supervised actor is doing, and how it has fared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberStatus {
    /// The name it was started with.
    pub name: Arc<str>,
    /// What it is doing.
    pub state: MemberState,
    /// How many times it was restarted.
    pub restarts: u64,
    /// How it ended last, if it ever did.
    pub last_exit: Option<ExitReason>,
    /// The last restarts, oldest first; at most [`MemberStatus::KEPT`].
    pub last_restarts: VecDeque<Restart>,
}

/// Why an actor was restarted, and when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restart {
    /// When it ended.
    pub at: Instant,
    /// How it ended.
    pub reason: ExitReason,
    /// How long after that it was started again.
    pub delay: Duration,
}

/// What a supervised actor is doing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MemberState {
    /// It runs.
    Running,
    /// It ended and is started again then.
    BackingOff {
        /// When.
        until: Instant,
    },
    /// It ended more often than is normal. It is tried again then.
    Escalated {
        /// When.
        until: Instant,
    },
    /// It is not started again.
    Stopped(ExitReason),
}

/// Stops a supervised actor for good, from any thread.
#[derive(Debug, Clone)]
pub struct StopHandle(Arc<Shared>);

impl MemberStatus {
    /// No more restarts are kept.
    pub const KEPT: usize = 10;

    pub(super) fn restarted(&mut self, restart: Restart) {
        self.restarts += 1;
        self.last_exit = Some(restart.reason.clone());
        if self.last_restarts.len() == Self::KEPT {
            self.last_restarts.pop_front();
        }
        self.last_restarts.push_back(restart);
    }
}

impl StopHandle {
    /// Orders the actor to stop, and not to be restarted. Messages it has not handled are lost.
    pub fn stop(&self) {
        self.0.is_stop_ordered.store(true, Ordering::Release);
        self.0.task.wake();
    }

    /// What the actor is doing, and how it has fared.
    pub fn status(&self) -> MemberStatus {
        self.lock().clone()
    }

    pub(super) fn new(name: Arc<str>) -> Self {
        let status = MemberStatus {
            name,
            state: MemberState::Running,
            restarts: 0,
            last_exit: None,
            last_restarts: VecDeque::new(),
        };
        let shared = Shared {
            is_stop_ordered: false.into(),
            task: AtomicWaker::new(),
            status: status.into(),
        };
        Self(Arc::new(shared))
    }

    /// Whether a stop has been ordered; if not, the task is woken when it is.
    pub(super) fn poll_is_stop_ordered(&self, cx: &TaskContext<'_>) -> bool {
        self.0.task.register(cx.waker());
        self.0.is_stop_ordered.load(Ordering::Acquire)
    }

    pub(super) fn update(&self, change: impl FnOnce(&mut MemberStatus)) {
        change(&mut self.lock());
    }

    /// The actor is not started again. What is said first is true: the drop of its task says this too.
    pub(super) fn ended(&self, exit: ExitReason) {
        self.update(|status| {
            if !matches!(status.state, MemberState::Stopped(_)) {
                status.last_exit = Some(exit.clone());
                status.state = MemberState::Stopped(exit);
            }
        });
    }

    /// A status is written field by field from ready values, so it is whole even if poisoned.
    fn lock(&self) -> MutexGuard<'_, MemberStatus> {
        self.0.status.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Between the task of an actor and those who watch it.
#[derive(Debug)]
struct Shared {
    is_stop_ordered: AtomicBool,
    task: AtomicWaker,
    status: Mutex<MemberStatus>,
}
