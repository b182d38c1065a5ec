use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

use super::failure::Failure;

/// What tells the program to end: Ctrl-C and SIGTERM. Those that come while nobody waits are not lost.
pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    pub(crate) fn listen() -> Result<Self, Failure> {
        let problem =
            |error: io::Error| Failure::new(format!("can not listen for signals: {error}"));
        let listen = |kind| signal(kind).map_err(problem);
        Ok(Self {
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
        })
    }

    pub(crate) async fn received(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}
