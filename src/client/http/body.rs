use std::time::Duration;

use futures::stream::{self, StreamExt as _};
use tokio::sync::OwnedSemaphorePermit;

use crate::api::ApiError;
use crate::client::BodyStream;

/// What a body is held to while it arrives.
pub(super) struct Guard {
    /// It may not pause longer.
    pub(super) idle_timeout: Option<Duration>,
    /// It has to be so long: to awc a body cut short is one that ended.
    pub(super) length: Option<u64>,
}

/// A body that ends with an error when it is cut short or stalls. The permit is given back when it ends.
pub(super) fn guarded(
    body: BodyStream,
    guard: Guard,
    permit: Option<OwnedSemaphorePermit>,
) -> BodyStream {
    stream::unfold(Some((body, guard, permit, 0_u64)), |state| async move {
        let (mut body, guard, permit, received) = state?;
        let next = match guard.idle_timeout {
            None => body.next().await,
            Some(waited) => match tokio::time::timeout(waited, body.next()).await {
                Ok(next) => next,
                Err(_elapsed) => return Some((Err(ApiError::Timeout { waited }), None)),
            },
        };
        match next {
            Some(Ok(chunk)) => {
                let received = received + chunk.len() as u64;
                Some((Ok(chunk), Some((body, guard, permit, received))))
            }
            Some(Err(error)) => Some((Err(error), None)),
            None => {
                let length = guard.length.filter(|length| received < *length)?;
                let problem =
                    format!("the answer was cut short: {received} of {length} bytes came");
                Some((Err(ApiError::connection(problem)), None))
            }
        }
    })
    .boxed_local()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bytes::Bytes;
    use tokio::sync::Semaphore;

    use super::*;

    fn chunk() -> Result<Bytes, ApiError> {
        Ok(Bytes::from_static(b"12345"))
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_stalls_or_is_cut_short_ends_with_an_error() {
        let guard = |length| Guard { idle_timeout: Some(Duration::from_secs(30)), length };
        let stalled = stream::iter([chunk()]).chain(stream::pending()).boxed_local();
        let read: Vec<_> = guarded(stalled, guard(None), None).collect().await;
        assert!(matches!(read.as_slice(), [Ok(_), Err(ApiError::Timeout { .. })]), "{read:?}");
        let cut = stream::iter([chunk()]).boxed_local();
        let read: Vec<_> = guarded(cut, guard(Some(100)), None).collect().await;
        assert!(matches!(read.as_slice(), [Ok(_), Err(ApiError::Connection(_))]), "{read:?}");
        let whole = stream::iter([chunk()]).boxed_local();
        let read: Vec<_> = guarded(whole, guard(Some(5)), None).collect().await;
        assert!(matches!(read.as_slice(), [Ok(_)]), "{read:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_came_while_nobody_could_read_has_not_stalled() {
        use futures::FutureExt as _;
        let (sender, body) = futures::channel::mpsc::unbounded();
        let guard = Guard { idle_timeout: Some(Duration::from_secs(30)), length: None };
        let mut body = guarded(body.boxed_local(), guard, None);
        assert!(body.next().now_or_never().is_none(), "it waits");
        sender.unbounded_send(chunk()).unwrap();
        tokio::time::advance(Duration::from_secs(3600)).await;
        let read = body.next().await;
        assert!(matches!(read, Some(Ok(_))), "{read:?}");
    }

    #[tokio::test]
    async fn a_permit_is_given_back_when_the_body_ends() {
        let permits = Arc::new(Semaphore::new(1));
        let permit = Arc::clone(&permits).try_acquire_owned().ok();
        let mut body = guarded(
            stream::iter([chunk()]).boxed_local(),
            Guard { idle_timeout: None, length: None },
            permit,
        );
        assert!(body.next().await.is_some());
        assert_eq!(permits.available_permits(), 0);
        assert!(body.next().await.is_none());
        assert_eq!(permits.available_permits(), 1);
    }
}
