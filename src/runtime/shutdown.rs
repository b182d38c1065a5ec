use std::io;
use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};

use super::{Error, Result, Runtime};

/// Waits for a signal, then stops; a second one cuts the grace short. Ends when there is nothing left to stop.
pub(super) async fn run(runtime: &Runtime) -> Result<()> {
    let listen = |kind| {
        signal(kind)
            .map_err(|error: io::Error| Error::Io { doing: "can not listen for signals", error })
    };
    let mut interrupt = listen(SignalKind::interrupt())?;
    let mut terminate = listen(SignalKind::terminate())?;
    let mut signalled = async || {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    };
    tokio::select! {
        biased;
        () = signalled() => {}
        () = runtime.inner.arbiters.ended() => {
            return if runtime.is_stopped() { Ok(()) } else { Err(Error::ThreadsEnded) };
        }
    }
    tracing::info!("stopping; a second signal does not wait for subscribers");
    tokio::select! {
        biased;
        () = runtime.stop() => {}
        () = signalled() => runtime.stop_within(Duration::ZERO).await,
    }
    Ok(())
}
