//! Control planes are started once and lent: to all tests together, or to one after the other.

use std::ops::Deref;
use std::sync::Mutex;

use tokio::sync::{OnceCell, Semaphore, SemaphorePermit};

use crate::control_plane::ControlPlane;

/// A control plane that a test may use. Afterwards it is the next one's, unless the test failed.
pub(crate) enum Lease {
    /// With everybody else: nothing is done to it but over its API.
    Shared(&'static ControlPlane),
    Alone {
        plane: Option<Box<ControlPlane>>,
        _turn: SemaphorePermit<'static>,
    },
}

/// The one all share.
static SHARED: OnceCell<ControlPlane> = OnceCell::const_new();

/// The one that somebody had alone last. Each wants memory: no more are kept.
static IDLE: Mutex<Option<Box<ControlPlane>>> = Mutex::new(None);

/// So many are alone with one at a time: each wants a core while it starts, and 350 MB.
static TURNS: Semaphore = Semaphore::const_new(2);

impl Lease {
    pub(crate) async fn shared() -> Self {
        Self::Shared(SHARED.get_or_init(|| ControlPlane::start(&[])).await)
    }

    /// One of one's own. `flags` are for the API server, and win over ours.
    pub(crate) async fn alone(flags: &[&str]) -> Self {
        let turn = TURNS.acquire().await.expect("nobody closes it");
        let idle = idle().take_if(|plane| plane.is_as_started_with(flags) && plane.runs());
        let plane = match idle {
            Some(plane) => plane,
            None => Box::new(ControlPlane::start(flags).await),
        };
        Self::Alone { plane: Some(plane), _turn: turn }
    }

    /// To do something to it.
    pub(crate) fn mine(&mut self) -> &mut ControlPlane {
        match self {
            Self::Alone { plane: Some(plane), .. } => plane,
            Self::Alone { .. } | Self::Shared(_) => panic!("others use it: ask for one alone"),
        }
    }
}

impl Deref for Lease {
    type Target = ControlPlane;

    fn deref(&self) -> &ControlPlane {
        match self {
            Self::Shared(plane) => plane,
            Self::Alone { plane, .. } => plane.as_ref().expect("it is given back at the end"),
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.keep_logs();
        } else if let Self::Alone { plane, .. } = self {
            let before = idle().replace(plane.take().expect("it is given back once"));
            drop(before);
        }
    }
}

fn idle() -> std::sync::MutexGuard<'static, Option<Box<ControlPlane>>> {
    IDLE.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
