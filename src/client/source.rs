use std::fmt;
use std::marker::PhantomData;
use std::rc::Rc;
use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::LocalBoxFuture;
use futures::stream::StreamExt as _;
use kube_core::DynamicObject;
use kube_core::metadata::PartialObjectMeta;
use tokio::time::{Instant, timeout, timeout_at};

use super::answer::require_success;
use super::events::read_events;
use super::item::{Reading, Room};
use super::page::read_page;
use super::path::Place;
use super::{Discovery, Request, SourceOptions, Transport};
use crate::api::{
    ApiError, IdentitiesFuture, Known, ListFuture, ListRequest, ListerWatcher, Selection,
    WatchFuture, WatchRequest, WatchStart, WatchStream,
};
use crate::object::{Kind, Prune, Resource};

/// One kind of an API server, as a [`ListerWatcher`].
pub struct KubernetesSource<K> {
    transport: Rc<dyn Transport>,
    kind: Arc<Kind>,
    prune: Prune,
    options: Rc<SourceOptions>,
    objects: PhantomData<fn() -> K>,
}

impl<K: Resource> KubernetesSource<K> {
    /// Lists and watches `kind` over a transport.
    pub fn new(transport: Rc<dyn Transport>, kind: Kind) -> Self {
        let (kind, options) = (Arc::new(kind), Rc::default());
        Self { transport, kind, prune: Prune::default(), options, objects: PhantomData }
    }

    /// The same, without parts of the metadata.
    #[must_use]
    pub fn pruned(self, prune: Prune) -> Self {
        Self { prune, ..self }
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
        self.list_beside(&request, None)
    }

    fn relist(&self, request: ListRequest, known: Rc<dyn Known<K>>) -> ListFuture<K> {
        self.list_beside(&request, Some(known))
    }

    fn identities(&self, request: ListRequest) -> IdentitiesFuture {
        let metadata = KubernetesSource::<PartialObjectMeta<DynamicObject>> {
            transport: Rc::clone(&self.transport),
            kind: Arc::clone(&self.kind),
            prune: Prune::Nothing,
            options: Rc::clone(&self.options),
            objects: PhantomData,
        };
        metadata.list(request).map(|page| Ok(page?.identities())).boxed_local()
    }

    fn is_served(&self, _: ListRequest) -> LocalBoxFuture<'static, Result<bool, ApiError>> {
        let (transport, kind) = (Rc::clone(&self.transport), Arc::clone(&self.kind));
        async move { Discovery::serves(&*transport, &kind).await }.boxed_local()
    }

    fn watch(&self, request: WatchRequest) -> WatchFuture<K> {
        self.watch_beside(&request, None)
    }

    fn restream(&self, request: WatchRequest, known: Rc<dyn Known<K>>) -> WatchFuture<K> {
        self.watch_beside(&request, Some(known))
    }
}

impl<K: Resource> KubernetesSource<K> {
    fn list_beside(&self, request: &ListRequest, known: Option<Rc<dyn Known<K>>>) -> ListFuture<K> {
        let sent = match self.request(&request.selection, request.query(), true) {
            Ok(request) => self.transport.send(request),
            Err(error) => return futures::future::ready(Err(error)).boxed_local(),
        };
        let reading = self.reading(known, Some(Room::default()));
        let options = Rc::clone(&self.options);
        async move {
            let patience = options.list_timeout;
            let head = async { require_success(sent.await?).await };
            let head = timeout(patience, head).await;
            let response = head.map_err(|_elapsed| ApiError::Timeout { waited: patience })??;
            read_page(response.body, &reading, &options, Instant::now() + patience).await
        }
        .boxed_local()
    }

    fn watch_beside(
        &self,
        request: &WatchRequest,
        known: Option<Rc<dyn Known<K>>>,
    ) -> WatchFuture<K> {
        let patience = request.timeout + self.options.watch_grace;
        let deadline = Instant::now() + patience;
        let sent = match self.request(&request.selection, request.query(), false) {
            Ok(request) => self.transport.send(request),
            Err(error) => return futures::future::ready(Err(error)).boxed_local(),
        };
        let is_list = matches!(request.start, WatchStart::InitialEvents { .. });
        let reading = self.reading(known, is_list.then(Room::default));
        let cap = self.options.event_cap;
        let open = async move {
            let response = require_success(sent.await?).await?;
            Ok(read_events(response.body, reading, cap))
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

    fn reading(&self, known: Option<Rc<dyn Known<K>>>, room: Option<Room>) -> Reading<K> {
        Reading { kind: Arc::clone(&self.kind), prune: self.prune, known, room }
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
