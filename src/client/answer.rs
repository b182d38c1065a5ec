use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures::StreamExt as _;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::Response;
use super::transport::BodyStream;
use crate::api::{ApiError, Status};
use crate::object::describe;

/// Of an error's body no more is read.
const ERROR_BODY_CAP: usize = 64 << 10;
/// Of what a proxy writes, no more is kept.
const LONGEST_LINE: usize = 1000;
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

/// A whole body that is JSON.
pub(super) async fn json_of<T: DeserializeOwned>(
    body: BodyStream,
    cap: usize,
    what: &str,
) -> Result<T, ApiError> {
    let body = read_body(body, cap).await?;
    serde_json::from_slice(&body).map_err(|error| {
        ApiError::malformed(format!("the answer to {what} can not be read: {}", describe(&error)))
    })
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
        None => ApiError::from_code(code, readable(&body), retry_after),
    })
}

/// What a proxy, or a handler that writes plain text, means: the title of a page, or the first line.
fn readable(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let lower = text.to_ascii_lowercase();
    let title = lower.find("<title>").and_then(|from| {
        let length = lower[from..].find("</title>")?;
        Some(&text[from + "<title>".len()..from + length])
    });
    let lines = title.unwrap_or(&text).lines().map(without_tags);
    let line = lines.map(|line| line.trim().to_owned()).find(|line| !line.is_empty());
    line.unwrap_or_default().chars().take(LONGEST_LINE).collect()
}

fn without_tags(line: &str) -> String {
    let mut inside = false;
    let outside = |c: &char| {
        let was_inside = inside;
        inside = (inside || *c == '<') && *c != '>';
        !was_inside && !inside && !c.is_control()
    };
    line.chars().filter(outside).collect()
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
#[path = "answer_tests.rs"]
mod tests;
