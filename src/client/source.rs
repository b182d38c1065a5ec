use std::fmt;
use std::marker::PhantomData;
use std::rc::Rc;

use bytes::Bytes;
use futures::FutureExt as _;
use futures::future::LocalBoxFuture;
use futures::stream::{self, StreamExt as _};
use kube_core::DynamicObject;
use kube_core::metadata::PartialObjectMeta;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::time::{Instant, timeout, timeout_at};

use super::answer::{require_success, status_in};
use super::frames::Frames;
use super::page::read_page;
use super::path::Place;
use super::transport::BodyStream;
use super::{Discovery, Request, SourceOptions, Transport, item};
use crate::api::{
    ApiError, IdentitiesFuture, ListFuture, ListRequest, ListerWatcher, Selection, Status,
    WatchEvent, WatchFuture, WatchRequest, WatchStream,
};
use crate::object::{Head, Kind, Resource, ResourceVersion, describe};

/// One kind of an API server, as a [`ListerWatcher`].
pub struct KubernetesSource<K> {
    transport: Rc<dyn Transport>,
    kind: Rc<Kind>,
    options: Rc<SourceOptions>,
    objects: PhantomData<fn() -> K>,
}

impl<K: Resource> KubernetesSource<K> {
    /// Lists and watches `kind` over a transport.
    pub fn new(transport: Rc<dyn Transport>, kind: Kind) -> Self {
        Self { transport, kind: Rc::new(kind), options: Rc::default(), objects: PhantomData }
    }

    /// The same, with other limits.
    #[must_use]
    pub fn with_options(self, options: SourceOptions) -> Self {
        Self { options: Rc::new(options), ..self }
    }

    fn request(
        &self,
        selection: &Selection,
        query: Vec<(&'static str, String)>,
        list: bool,
    ) -> Result<Request, ApiError> {
        let place = Place { kind: &self.kind, namespace: selection.namespace.as_deref() };
        Ok(Request { query, accept: accept::<K>(list), ..Request::get(place.collection()?) })
    }
}

impl<K: Resource> ListerWatcher<K> for KubernetesSource<K> {
    fn list(&self, request: ListRequest) -> ListFuture<K> {
        let request = match self.request(&request.selection, request.query(), true) {
            Ok(request) => request,
            Err(error) => return futures::future::ready(Err(error)).boxed_local(),
        };
        let sent = self.transport.send(request);
        let (kind, options) = (Rc::clone(&self.kind), Rc::clone(&self.options));
        async move {
            let patience = options.list_timeout;
            let head = async { require_success(sent.await?).await };
            let head = timeout(patience, head).await;
            let response = head.map_err(|_elapsed| ApiError::Timeout { waited: patience })??;
            read_page(response.body, &kind, &options, Instant::now() + patience).await
        }
        .boxed_local()
    }

    fn identities(&self, request: ListRequest) -> IdentitiesFuture {
        let metadata = KubernetesSource::<PartialObjectMeta<DynamicObject>> {
            transport: Rc::clone(&self.transport),
            kind: Rc::clone(&self.kind),
            options: Rc::clone(&self.options),
            objects: PhantomData,
        };
        metadata.list(request).map(|page| Ok(page?.identities())).boxed_local()
    }

    fn is_served(&self, _: ListRequest) -> LocalBoxFuture<'static, Result<bool, ApiError>> {
        let (transport, kind) = (Rc::clone(&self.transport), Rc::clone(&self.kind));
        async move { Discovery::serves(&*transport, &kind).await }.boxed_local()
    }

    fn watch(&self, request: WatchRequest) -> WatchFuture<K> {
        let patience = request.timeout + self.options.watch_grace;
        let deadline = Instant::now() + patience;
        let request = match self.request(&request.selection, request.query(), false) {
            Ok(request) => request,
            Err(error) => return futures::future::ready(Err(error)).boxed_local(),
        };
        let sent = self.transport.send(request);
        let (kind, cap) = (Rc::clone(&self.kind), self.options.event_cap);
        let open = async move {
            let response = require_success(sent.await?).await?;
            Ok(events(response.body, kind, cap))
        };
        async move {
            // Some proxies hold the head back until the first event: only the whole watch has a deadline.
            let open = timeout_at(deadline, open).await;
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

/// Events until the body ends or something is wrong with it; then nothing more.
fn events<K: Resource>(body: BodyStream, kind: Rc<Kind>, cap: usize) -> WatchStream<K> {
    let state = Some((body, Frames::new(cap), kind));
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
