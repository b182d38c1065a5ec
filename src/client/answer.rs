use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures::StreamExt as _;
use serde::Deserialize;

use super::Response;
use super::transport::BodyStream;
use crate::api::{ApiError, Status};

/// Of an error's body no more is read.
const ERROR_BODY_CAP: usize = 64 << 10;
/// Nor is it waited for longer.
const ERROR_BODY_TIMEOUT: Duration = Duration::from_secs(5);

/// The whole body, up to `cap` bytes.
pub(super) async fn read_body(mut body: BodyStream, cap: usize) -> Result<Bytes, ApiError> {
    let mut read = BytesMut::new();
    while let Some(chunk) = body.next().await {
        let chunk = chunk?;
        if read.len() + chunk.len() > cap {
            return Err(ApiError::malformed(format!("the answer is larger than {cap} bytes")));
        }
        read.extend_from_slice(&chunk);
    }
    Ok(read.freeze())
}

/// Passes a good answer on, and makes an error of any other.
pub(super) async fn require_success(response: Response) -> Result<Response, ApiError> {
    if (200..300).contains(&response.status) {
        return Ok(response);
    }
    let retry_after = response.retry_after.map(Duration::from_secs);
    let code = response.status;
    let beginning = read_beginning(response.body, ERROR_BODY_CAP);
    // What is not here by then is not worth the wait.
    let body = tokio::time::timeout(ERROR_BODY_TIMEOUT, beginning).await.unwrap_or_default();
    Err(match status_in(&body) {
        Some(status) => {
            Status { code: if status.code == 0 { code } else { status.code }, ..status }
                .into_error(retry_after)
        }
        // A proxy, or a handler that writes plain text: its first line says enough.
        None => {
            let text = String::from_utf8_lossy(&body);
            let line = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
            ApiError::from_code(code, line.trim().to_owned(), retry_after)
        }
    })
}

/// The `Status` that these bytes hold, if they do.
pub(super) fn status_in(json: &[u8]) -> Option<Status> {
    #[derive(Deserialize)]
    struct Tagged {
        kind: String,
        #[serde(flatten)]
        status: Status,
    }
    let tagged: Tagged = serde_json::from_slice(json).ok()?;
    (tagged.kind == "Status").then_some(tagged.status)
}

/// As much as arrives of a body that is read for its message only.
async fn read_beginning(mut body: BodyStream, cap: usize) -> Bytes {
    let mut read = BytesMut::new();
    while let Some(Ok(chunk)) = body.next().await {
        read.extend_from_slice(&chunk[..chunk.len().min(cap - read.len())]);
        if read.len() == cap {
            break;
        }
    }
    read.freeze()
}

#[cfg(test)]
mod tests {
    use futures::stream;

    use super::*;

    fn response(status: u16, body: &'static str) -> Response {
        Response {
            status,
            content_type: String::new(),
            retry_after: Some(3),
            fairness: None,
            body: stream::iter([Ok(Bytes::from_static(body.as_bytes()))]).boxed_local(),
        }
    }

    async fn error(status: u16, body: &'static str) -> ApiError {
        require_success(response(status, body)).await.unwrap_err()
    }

    #[tokio::test]
    async fn a_status_is_classified_by_its_reason() {
        let body = r#"{"kind":"Status","apiVersion":"v1","reason":"Expired","code":410,"message":"too old"}"#;
        assert!(
            matches!(error(410, body).await, ApiError::Expired { message } if message == "too old")
        );
    }

    #[tokio::test]
    async fn plain_text_html_and_nothing_are_classified_by_the_http_status() {
        assert!(
            matches!(error(404, "404 page not found\n").await, ApiError::NotFound { message } if message == "404 page not found")
        );
        assert!(matches!(error(502, "<html>\nBad").await, ApiError::Unavailable { code: 502, .. }));
        assert_eq!(error(429, "").await.retry_after(), Some(Duration::from_secs(3)));
        assert!(matches!(error(302, "").await, ApiError::Unexpected { code: 302, .. }));
    }

    #[tokio::test]
    async fn a_body_beyond_the_cap_is_an_error() {
        let body = stream::iter([Ok(Bytes::from_static(b"12345678"))]).boxed_local();
        assert!(read_body(body, 7).await.is_err());
    }
}
