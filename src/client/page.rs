use futures::StreamExt as _;
use serde_json::value::RawValue;
use tokio::time::{Instant, timeout_at};

use super::item::Reading;
use super::list::{Found, ListDecoder, ListLimits, ListProblem};
use super::slice::Slice;
use super::transport::BodyStream;
use super::{SourceOptions, beginning};
use crate::api::{ApiError, Item, ListPage};
use crate::object::{Kind, Resource, ResourceVersion};

/// However large the chunks of a body are, no more than this of it is copied at once.
const PIECE: usize = 64 << 10;

/// Reads one page while it arrives. In memory are its objects, and the bytes of the one being read.
pub(super) async fn read_page<K: Resource>(
    mut body: BodyStream,
    reading: &Reading<K>,
    options: &SourceOptions,
    deadline: Instant,
) -> Result<ListPage<K>, ApiError> {
    let kind = &*reading.kind;
    let problem = |problem: ListProblem| malformed(kind, &problem);
    let mut decoder = ListDecoder::new(ListLimits {
        item: options.item_cap,
        envelope: options.envelope_cap,
        total: options.list_cap,
    });
    let mut items = Vec::new();
    let mut slice = Slice::begin();
    while let Some(chunk) = next_chunk(&mut body, options, deadline).await? {
        for piece in chunk.chunks(PIECE) {
            decoder.push(piece).map_err(problem)?;
            while let Some(found) = decoder.next_item().map_err(problem)? {
                items.push(match found {
                    Found::Item(json) => read_item(json, reading)?,
                    Found::Large(beginning) => large_item(beginning, kind, options.item_cap)?,
                });
                slice.count().await;
            }
        }
    }
    let envelope = decoder.finish().map_err(problem)?;
    Ok(ListPage {
        items,
        resource_version: ResourceVersion::new(&envelope.metadata.resource_version),
        continue_token: Some(envelope.metadata.r#continue).filter(|token| !token.is_empty()),
    })
}

async fn next_chunk(
    body: &mut BodyStream,
    options: &SourceOptions,
    deadline: Instant,
) -> Result<Option<bytes::Bytes>, ApiError> {
    let pause = Instant::now() + options.list_idle_timeout;
    let (until, waited) = if pause < deadline {
        (pause, options.list_idle_timeout)
    } else {
        (deadline, options.list_timeout)
    };
    let chunk = timeout_at(until, body.next());
    chunk.await.map_err(|_elapsed| ApiError::Timeout { waited })?.transpose()
}

/// One object that can not be used must not cost the others; bytes that are no JSON make the whole answer void.
fn read_item<K: Resource>(json: &str, reading: &Reading<K>) -> Result<Item<K>, ApiError> {
    let item = reading.item(json.as_bytes());
    if matches!(item, Item::Undecodable(_)) && serde_json::from_str::<&RawValue>(json).is_err() {
        return Err(ApiError::malformed(format!(
            "the list of {} can not be read: one of its items is no JSON",
            reading.kind
        )));
    }
    Ok(item)
}

/// One object that is too large must not cost the others either, if it can be said which it is.
fn large_item<K>(beginning: &[u8], kind: &Kind, cap: usize) -> Result<Item<K>, ApiError> {
    let reason = format!("it is larger than {cap} bytes");
    beginning::report(beginning, kind, reason).map(Item::Undecodable).ok_or_else(|| {
        ApiError::malformed(format!(
            "the list of {kind} has an item larger than {cap} bytes that can not be named"
        ))
    })
}

fn malformed(kind: &Kind, problem: &ListProblem) -> ApiError {
    ApiError::malformed(format!("the list of {kind} {problem}"))
}

#[cfg(test)]
#[path = "page_tests.rs"]
mod tests;
