use std::fmt;
use std::marker::PhantomData;
use std::rc::Rc;
use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::LocalBoxFuture;
use futures::stream::LocalBoxStream;

use super::{ApiError, IdentityPage, ListPage, ListRequest, WatchEvent, WatchRequest};
use crate::object::{ObjectKey, Resource};

/// The answer to a list.
pub type ListFuture<K> = LocalBoxFuture<'static, Result<ListPage<K>, ApiError>>;

/// The answer to a list of which only names and versions are wanted.
pub type IdentitiesFuture = LocalBoxFuture<'static, Result<IdentityPage, ApiError>>;

/// The answer to a watch: a stream that ends when the server, the network or its timeout ends it.
pub type WatchFuture<K> = LocalBoxFuture<'static, Result<WatchStream<K>, ApiError>>;

/// Events in the server's order. After an error nothing more comes.
pub type WatchStream<K> = LocalBoxStream<'static, Result<WatchEvent<K>, ApiError>>;

/// What is cached already. A source that sees by uid and version that an object is the same need not read it again:
/// it passes on what is cached.
pub trait Known<K> {
    /// The cached state of an object.
    fn cached(&self, key: &ObjectKey) -> Option<Arc<K>>;
}

/// Where a reflector gets its objects from.
///
/// Lives on the arbiter of its reflector and need not be `Send`. Dropping a future or a stream cancels the request.
pub trait ListerWatcher<K>: 'static {
    /// Asks for one page.
    fn list(&self, request: ListRequest) -> ListFuture<K>;

    /// Opens a stream.
    fn watch(&self, request: WatchRequest) -> WatchFuture<K>;

    /// As [`list`](Self::list), while much of it is cached.
    fn relist(&self, request: ListRequest, known: Rc<dyn Known<K>>) -> ListFuture<K> {
        drop(known);
        self.list(request)
    }

    /// As [`watch`](Self::watch) with initial events, while much of them is cached.
    fn restream(&self, request: WatchRequest, known: Rc<dyn Known<K>>) -> WatchFuture<K> {
        drop(known);
        self.watch(request)
    }

    /// Asks for one page of names and versions. A watch that stays silent is checked with a page of one, which is asked
    /// for how far the source has come; an audit compares the cache with all pages.
    fn identities(&self, request: ListRequest) -> IdentitiesFuture
    where
        K: Resource,
    {
        self.list(request).map(|page| Ok(page?.identities())).boxed_local()
    }

    /// Asks whether the source has this kind of object at all. Only asked after lists were answered 404 for a while.
    fn is_served(&self, request: ListRequest) -> LocalBoxFuture<'static, Result<bool, ApiError>>
    where
        K: Resource,
    {
        let page = self.identities(ListRequest { limit: Some(1), ..request });
        async move {
            match page.await {
                Ok(_page) => Ok(true),
                Err(ApiError::NotFound { .. }) => Ok(false),
                Err(error) => Err(error),
            }
        }
        .boxed_local()
    }

    /// Whether a watch may begin with initial events. Say no where the source is known not to have them: it saves
    /// a request that fails.
    fn has_streaming_lists(&self) -> bool {
        true
    }
}

/// A [`ListerWatcher`] made of two closures.
///
/// ```
/// use futures::FutureExt as _;
/// use futures::stream::{self, StreamExt as _};
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kubeflect::api::{ListPage, ListWatch};
/// use kubeflect::object::ResourceVersion;
///
/// let nothing_ever_happens = ListWatch::<ConfigMap, _, _>::new(
///     |_request| {
///         let page = ListPage { items: vec![], resource_version: ResourceVersion::new("1"), continue_token: None };
///         async { Ok(page) }.boxed_local()
///     },
///     |_request| async { Ok(stream::pending().boxed_local()) }.boxed_local(),
/// );
/// # let _: Box<dyn kubeflect::api::ListerWatcher<ConfigMap>> = Box::new(nothing_ever_happens);
/// ```
#[doc(alias("ListFunc", "WatchFunc"))]
pub struct ListWatch<K, L, W> {
    list: L,
    watch: W,
    streaming_lists: bool,
    kind: PhantomData<fn() -> K>,
}

impl<K, L, W> ListWatch<K, L, W>
where
    L: Fn(ListRequest) -> ListFuture<K> + 'static,
    W: Fn(WatchRequest) -> WatchFuture<K> + 'static,
{
    /// Lists with one closure and watches with the other.
    pub fn new(list: L, watch: W) -> Self {
        Self { list, watch, streaming_lists: false, kind: PhantomData }
    }

    /// Says that the watch closure understands a request for initial events.
    #[must_use]
    pub fn with_streaming_lists(self) -> Self {
        Self { streaming_lists: true, ..self }
    }
}

impl<K, L, W> ListerWatcher<K> for ListWatch<K, L, W>
where
    K: 'static,
    L: Fn(ListRequest) -> ListFuture<K> + 'static,
    W: Fn(WatchRequest) -> WatchFuture<K> + 'static,
{
    fn list(&self, request: ListRequest) -> ListFuture<K> {
        (self.list)(request)
    }

    fn watch(&self, request: WatchRequest) -> WatchFuture<K> {
        (self.watch)(request)
    }

    fn has_streaming_lists(&self) -> bool {
        self.streaming_lists
    }
}

impl<K, L, W> fmt::Debug for ListWatch<K, L, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ListWatch")
            .field("streaming_lists", &self.streaming_lists)
            .finish_non_exhaustive()
    }
}
