use std::fmt;
use std::marker::PhantomData;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt as _;
use futures::stream::{self, StreamExt as _};
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::answer::{read_body, require_success, status_in};
use super::frames::Frames;
use super::transport::BodyStream;
use super::{Request, Transport, item};
use crate::api::{
    ApiError, ListFuture, ListPage, ListRequest, ListerWatcher, Selection, Status, WatchEvent,
    WatchFuture, WatchRequest, WatchStream,
};
use crate::object::{Head, Kind, Resource, ResourceVersion, describe};

/// No page of a list may be larger.
const LIST_CAP: usize = 1 << 30;
/// No watch event may be larger: client-go's limit.
const FRAME_CAP: usize = 16 << 20;
/// After so many objects others get a turn.
const DECODE_SLICE: usize = 256;
/// The server gives up on a list after 60 s.
const LIST_TIMEOUT: Duration = Duration::from_secs(65);
/// Beyond the end it asked for, a watch is waited for this long.
const WATCH_GRACE: Duration = Duration::from_secs(15);

/// What has to be escaped in a segment of a path.
const SEGMENT: &AsciiSet =
    &CONTROLS.add(b' ').add(b'"').add(b'#').add(b'%').add(b'/').add(b'?').add(b'\\').add(b'|');

/// One kind of an API server, as a [`ListerWatcher`].
pub struct KubernetesSource<K> {
    transport: Rc<dyn Transport>,
    kind: Rc<Kind>,
    objects: PhantomData<fn() -> K>,
}

impl<K: Resource> KubernetesSource<K> {
    /// Lists and watches `kind` over a transport.
    pub fn new(transport: Rc<dyn Transport>, kind: Kind) -> Self {
        Self { transport, kind: Rc::new(kind), objects: PhantomData }
    }

    fn request(
        &self,
        selection: &Selection,
        query: Vec<(&'static str, String)>,
        list: bool,
    ) -> Request {
        let path = collection_path(&self.kind, selection.namespace.as_deref());
        Request { query, accept: accept::<K>(list), ..Request::get(path) }
    }
}

impl<K: Resource> ListerWatcher<K> for KubernetesSource<K> {
    fn list(&self, request: ListRequest) -> ListFuture<K> {
        let request = self.request(&request.selection, request.query(), true);
        let (sent, kind) = (self.transport.send(request), Rc::clone(&self.kind));
        let list = async move {
            let response = require_success(sent.await?).await?;
            let body = read_body(response.body, LIST_CAP).await?;
            decode_list(&body, &kind).await
        };
        within(LIST_TIMEOUT, list).boxed_local()
    }

    fn watch(&self, request: WatchRequest) -> WatchFuture<K> {
        let patience = request.timeout + WATCH_GRACE;
        let deadline = tokio::time::Instant::now() + patience;
        let request = self.request(&request.selection, request.query(), false);
        let (sent, kind) = (self.transport.send(request), Rc::clone(&self.kind));
        let open = async move {
            let response = require_success(sent.await?).await?;
            Ok(events(response.body, kind))
        };
        async move {
            // Some proxies hold the head back until the first event: only the whole watch has a deadline.
            let open = tokio::time::timeout_at(deadline, open).await;
            let events: WatchStream<K> =
                open.map_err(|_elapsed| ApiError::Timeout { waited: patience })??;
            let overdue = tokio::time::sleep_until(deadline);
            Ok(events.take_until(overdue).boxed_local())
        }
        .boxed_local()
    }
}

impl<K> fmt::Debug for KubernetesSource<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KubernetesSource").field("kind", &self.kind).finish_non_exhaustive()
    }
}

/// `/api/v1/pods`, `/apis/apps/v1/namespaces/default/deployments`.
fn collection_path(kind: &Kind, namespace: Option<&str>) -> String {
    let segment = |text: &str| utf8_percent_encode(text, SEGMENT).to_string();
    let root = if kind.group.is_empty() {
        "/api".to_owned()
    } else {
        format!("/apis/{}", segment(&kind.group))
    };
    let namespace = namespace
        .map(|namespace| format!("namespaces/{}/", segment(namespace)))
        .unwrap_or_default();
    format!("{root}/{}/{namespace}{}", segment(&kind.version), segment(&kind.plural))
}

fn accept<K: Resource>(list: bool) -> &'static str {
    match (K::metadata_only(), list) {
        (false, _) => "application/json",
        (true, true) => {
            "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"
        }
        (true, false) => {
            "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"
        }
    }
}

async fn within<T>(
    limit: Duration,
    work: impl Future<Output = Result<T, ApiError>>,
) -> Result<T, ApiError> {
    tokio::time::timeout(limit, work).await.unwrap_or(Err(ApiError::Timeout { waited: limit }))
}

#[derive(Deserialize)]
struct RawList<'a> {
    #[serde(default)]
    kind: String,
    #[serde(default)]
    metadata: RawListMetadata,
    /// `null` is none; not there at all is no list.
    #[serde(default, borrow, deserialize_with = "present")]
    items: Option<Option<Vec<&'a RawValue>>>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct RawListMetadata {
    resource_version: String,
    r#continue: String,
}

fn present<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: serde::Deserializer<'de>,
    T: Deserialize<'de>,
{
    T::deserialize(deserializer).map(Some)
}

/// Only a document that is complete parses: a body cut short is an error, never a shorter list. Nor is anything else
/// that happens to be JSON an empty list.
async fn decode_list<K: Resource>(body: &[u8], kind: &Kind) -> Result<ListPage<K>, ApiError> {
    let problem = |problem: &str| ApiError::malformed(format!("the list of {kind} {problem}"));
    let list: RawList<'_> = serde_json::from_slice(body)
        .map_err(|error| problem(&format!("can not be read: {}", describe(&error))))?;
    if !list.kind.ends_with("List") {
        return Err(problem(&format!("came as {:?}", list.kind)));
    }
    let items = list.items.ok_or_else(|| problem("has no items"))?.unwrap_or_default();
    let mut decoded = Vec::with_capacity(items.len());
    for slice in items.chunks(DECODE_SLICE) {
        decoded.extend(slice.iter().map(|json| item::decode(json.get().as_bytes(), kind)));
        tokio::task::yield_now().await;
    }
    Ok(ListPage {
        items: decoded,
        resource_version: ResourceVersion::new(&list.metadata.resource_version),
        continue_token: Some(list.metadata.r#continue).filter(|token| !token.is_empty()),
    })
}

/// Events until the body ends or something is wrong with it; then nothing more.
fn events<K: Resource>(body: BodyStream, kind: Rc<Kind>) -> WatchStream<K> {
    let state = Some((body, Frames::new(FRAME_CAP), kind));
    stream::unfold(state, |state| async move {
        let (mut body, mut frames, kind) = state?;
        loop {
            match frames.next() {
                Some(Ok(frame)) => {
                    let event = decode_event(&frame, &kind);
                    let state = event.is_ok().then_some((body, frames, kind));
                    return Some((event, state));
                }
                Some(Err(error)) => return Some((Err(error), None)),
                None => {}
            }
            match body.next().await? {
                Ok(chunk) => frames.push(&chunk),
                Err(error) => return Some((Err(error), None)),
            }
        }
    })
    .boxed_local()
}

fn decode_event<K: Resource>(frame: &Bytes, kind: &Kind) -> Result<WatchEvent<K>, ApiError> {
    #[derive(Deserialize)]
    struct Envelope<'a> {
        r#type: &'a str,
        #[serde(borrow)]
        object: &'a RawValue,
    }
    let envelope: Envelope<'_> = serde_json::from_slice(frame).map_err(|error| {
        ApiError::malformed(format!(
            "a watch event of {kind} can not be read: {}",
            describe(&error)
        ))
    })?;
    let object = envelope.object.get().as_bytes();
    match envelope.r#type {
        "ADDED" => Ok(WatchEvent::Added(item::decode(object, kind))),
        "MODIFIED" => Ok(WatchEvent::Modified(item::decode(object, kind))),
        "DELETED" => Ok(WatchEvent::Deleted(item::decode(object, kind))),
        "BOOKMARK" => decode_bookmark(object, kind),
        "ERROR" => Err(status_in(object)
            .unwrap_or_else(|| Status {
                code: 500,
                message: "the server reported an error that is no status".to_owned(),
                ..Status::default()
            })
            .into_error(None)),
        other => Ok(WatchEvent::Unknown { event_type: other.to_owned() }),
    }
}

/// A bookmark is metadata only: its empty object would not be valid as a whole one.
fn decode_bookmark<K>(object: &[u8], kind: &Kind) -> Result<WatchEvent<K>, ApiError> {
    #[derive(Deserialize, Default)]
    #[serde(default)]
    struct Bookmark {
        metadata: BookmarkMetadata,
    }
    #[derive(Deserialize, Default)]
    #[serde(default)]
    struct BookmarkMetadata {
        annotations: Option<std::collections::BTreeMap<String, String>>,
    }
    let problem = |what: &str| ApiError::malformed(format!("a bookmark of {kind} {what}"));
    let head: Head<'_> =
        serde_json::from_slice(object).map_err(|_error| problem("can not be read"))?;
    let bookmark: Bookmark =
        serde_json::from_slice(object).map_err(|_error| problem("can not be read"))?;
    let resource_version = head.metadata.resource_version.as_deref().and_then(ResourceVersion::new);
    let annotations = bookmark.metadata.annotations.unwrap_or_default();
    Ok(WatchEvent::Bookmark {
        resource_version: resource_version.ok_or_else(|| problem("has no version"))?,
        ends_initial_events: annotations
            .get("k8s.io/initial-events-end")
            .is_some_and(|value| value == "true"),
    })
}
