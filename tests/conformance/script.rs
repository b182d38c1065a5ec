//! A source that plays a script and remembers what it was asked, in place of client-go's fakes.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use futures::channel::mpsc::{UnboundedSender, unbounded};
use futures::future::LocalBoxFuture;
use futures::{FutureExt as _, StreamExt as _};
use k8s_openapi::api::core::v1::Pod;
use kubeflect::api::{
    ApiError, Item, ListFuture, ListPage, ListRequest, ListerWatcher, Status, StatusCause,
    StatusDetails, WatchEvent, WatchFuture, WatchRequest,
};
use kubeflect::object::{Resource, StaticKind as _};
use kubeflect::reflector::Condition;
use kubeflect::{Options, Reflector, ResourceVersion, Runtime, RuntimeOptions, Threads};
use serde::de::DeserializeOwned;
use tokio::time::Instant;

/// One event of a scripted stream, or the error that ends it.
pub(crate) type Told<K> = Result<WatchEvent<K>, ApiError>;

/// Answers each list and each watch with the next line of its script. Once the script is over, lists fail and watches
/// stay open. Clones play the same script.
pub(crate) struct Source<K>(Arc<Mutex<Script<K>>>);

struct Script<K> {
    has_streaming_lists: bool,
    lists: VecDeque<Answer<ListPage<K>>>,
    watches: VecDeque<Answer<Stream<K>>>,
    asked: Vec<Asked>,
    streams: Vec<UnboundedSender<Told<K>>>,
    /// The newest version anybody was told, at which a question out of turn is answered.
    newest: u64,
}

enum Answer<T> {
    Given(Result<T, ApiError>),
    Never,
}

struct Stream<K> {
    events: Vec<Told<K>>,
    end: End,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Open,
    Closed,
}

/// One request, and when it came.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) at: Instant,
    pub(crate) request: Request,
}

#[derive(Debug, Clone)]
pub(crate) enum Request {
    List(ListRequest),
    Watch(WatchRequest),
}

impl<K> Source<K> {
    /// One that has no streaming lists.
    pub(crate) fn new() -> Self {
        Self(Arc::new(Mutex::new(Script {
            has_streaming_lists: false,
            lists: VecDeque::new(),
            watches: VecDeque::new(),
            asked: Vec::new(),
            streams: Vec::new(),
            newest: 1,
        })))
    }

    pub(crate) fn streaming() -> Self {
        let source = Self::new();
        source.script().has_streaming_lists = true;
        source
    }

    pub(crate) fn lists(self, page: ListPage<K>) -> Self {
        self.script().lists.push_back(Answer::Given(Ok(page)));
        self
    }

    pub(crate) fn list_fails(self, error: ApiError) -> Self {
        self.script().lists.push_back(Answer::Given(Err(error)));
        self
    }

    pub(crate) fn list_hangs(self) -> Self {
        self.script().lists.push_back(Answer::Never);
        self
    }

    /// A stream that stays open.
    pub(crate) fn watches(self, events: Vec<Told<K>>) -> Self {
        self.stream(events, End::Open)
    }

    /// A stream that ends after these.
    pub(crate) fn watch_closes(self, events: Vec<Told<K>>) -> Self {
        self.stream(events, End::Closed)
    }

    pub(crate) fn watch_fails(self, error: ApiError) -> Self {
        self.script().watches.push_back(Answer::Given(Err(error)));
        self
    }

    pub(crate) fn watch_hangs(self) -> Self {
        self.script().watches.push_back(Answer::Never);
        self
    }

    fn stream(self, events: Vec<Told<K>>, end: End) -> Self {
        self.script().watches.push_back(Answer::Given(Ok(Stream { events, end })));
        self
    }

    /// Every request so far but those that only check on a silent watch.
    pub(crate) fn requests(&self) -> Vec<Asked> {
        self.script().asked.clone()
    }

    /// Every request so far, as it is written on the wire, but for how long a watch is to last.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.requests().iter().map(Asked::written).collect()
    }

    /// The waits between one request and the next.
    pub(crate) fn gaps(&self) -> Vec<Duration> {
        self.requests().windows(2).map(|pair| pair[1].at - pair[0].at).collect()
    }

    /// How many streams are still listened to.
    pub(crate) fn open_watches(&self) -> usize {
        self.script().streams.iter().filter(|stream| !stream.is_closed()).count()
    }

    fn script(&self) -> MutexGuard<'_, Script<K>> {
        self.0.lock().unwrap()
    }
}

impl<K: Resource> Source<K> {
    /// Tells the open stream of one more event, and lets everybody take it in.
    pub(crate) async fn tell(&self, event: Told<K>) {
        {
            let mut script = self.script();
            script.saw(&event);
            script.streams.last().expect("a watch is open").unbounded_send(event).unwrap();
        }
        crate::words::settle().await;
    }

    /// Ends the open stream as a server does.
    pub(crate) fn close(&self) {
        self.script().streams.pop().expect("a watch is open");
    }
}

impl Source<Pod> {
    pub(crate) async fn reflect(&self, options: Options<Pod>) -> Reflector<Pod> {
        self.reflect_in(&runtime(), options).await.unwrap()
    }

    pub(crate) async fn reflect_in(
        &self,
        runtime: &Runtime,
        options: Options<Pod>,
    ) -> kubeflect::Result<Reflector<Pod>> {
        let source = self.clone();
        runtime.reflect_from(Pod::static_kind(), move || source, options).await
    }
}

/// A runtime on this thread, whose chance is decided by a seed.
pub(crate) fn runtime() -> Runtime {
    Runtime::without_cluster(RuntimeOptions {
        threads: Threads::Callers,
        seed: Some(1),
        ..RuntimeOptions::default()
    })
}

/// Options that write down every error they are told of.
pub(crate) fn noting_errors(options: Options<Pod>) -> (Options<Pod>, Arc<Mutex<Vec<String>>>) {
    let errors = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&errors);
    let note = move |condition: &Condition| noted.lock().unwrap().push(condition.error.to_string());
    (options.on_error(note), errors)
}

impl<K: Resource> ListerWatcher<K> for Source<K> {
    fn list(&self, request: ListRequest) -> ListFuture<K> {
        let mut script = self.script();
        if is_check(&request) {
            let page = page_of(vec![], script.newest, None);
            return async { Ok(page) }.boxed_local();
        }
        script.asked.push(Asked { at: Instant::now(), request: Request::List(request) });
        match script.lists.pop_front() {
            Some(Answer::Given(answer)) => {
                if let Ok(page) = &answer {
                    script.passed(page.resource_version.as_ref());
                }
                after_a_moment(answer)
            }
            Some(Answer::Never) => futures::future::pending().boxed_local(),
            None => after_a_moment(Err(status(500, "InternalError"))),
        }
    }

    fn watch(&self, request: WatchRequest) -> WatchFuture<K> {
        let mut script = self.script();
        script.asked.push(Asked { at: Instant::now(), request: Request::Watch(request) });
        let nothing = Answer::Given(Ok(Stream { events: vec![], end: End::Open }));
        match script.watches.pop_front().unwrap_or(nothing) {
            Answer::Given(Ok(Stream { events, end })) => {
                let (sender, receiver) = unbounded();
                for event in events {
                    script.saw(&event);
                    sender.unbounded_send(event).unwrap();
                }
                if end == End::Open {
                    script.streams.push(sender);
                }
                after_a_moment(Ok(receiver.boxed_local()))
            }
            Answer::Given(Err(error)) => after_a_moment(Err(error)),
            Answer::Never => futures::future::pending().boxed_local(),
        }
    }

    fn has_streaming_lists(&self) -> bool {
        self.script().has_streaming_lists
    }
}

impl<K: Resource> Script<K> {
    fn saw(&mut self, event: &Told<K>) {
        if let Ok(event) = event {
            self.passed(event.resource_version().as_ref());
        }
    }
}

impl<K> Script<K> {
    fn passed(&mut self, version: Option<&ResourceVersion>) {
        let version = version.and_then(|version| version.as_str().parse().ok());
        self.newest = self.newest.max(version.unwrap_or_default());
    }
}

/// An answer takes a moment: who subscribes to a reflector as soon as it is there hears everything.
fn after_a_moment<T: 'static>(answer: T) -> LocalBoxFuture<'static, T> {
    tokio::time::sleep(Duration::from_millis(1)).map(|()| answer).boxed_local()
}

/// Whether a list only asks where the server is, in the middle of a watch.
fn is_check(request: &ListRequest) -> bool {
    request.limit == Some(1) && request.version.is_none() && request.continue_token.is_none()
}

impl Asked {
    fn written(&self) -> String {
        let (verb, query) = match &self.request {
            Request::List(request) => ("list", request.query()),
            Request::Watch(request) => ("watch", request.query()),
        };
        let said = query.iter().filter(|(name, _)| *name != "timeoutSeconds" && *name != "watch");
        let said: Vec<String> = said.map(|(name, value)| format!("{name}={value}")).collect();
        format!("{verb} {}", said.join("&")).trim_end().to_owned()
    }
}

impl<K> Clone for Source<K> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

/// An object of the default namespace.
pub(crate) fn object<K: DeserializeOwned>(name: &str, version: u64) -> Item<K> {
    let mut object = crate::words::pod(name);
    object["metadata"]["resourceVersion"] = version.to_string().into();
    item(object)
}

pub(crate) fn item<K: DeserializeOwned>(object: serde_json::Value) -> Item<K> {
    Item::Object(Arc::new(serde_json::from_value(object).unwrap()))
}

/// A whole list, at a version.
pub(crate) fn page<K: DeserializeOwned>(version: u64, objects: &[(&str, u64)]) -> ListPage<K> {
    page_of(objects.iter().map(|(name, version)| object(name, *version)).collect(), version, None)
}

/// A page after which there are more.
pub(crate) fn page_before<K: DeserializeOwned>(
    token: &str,
    version: u64,
    objects: &[(&str, u64)],
) -> ListPage<K> {
    ListPage { continue_token: Some(token.to_owned()), ..page(version, objects) }
}

pub(crate) fn page_of<K>(items: Vec<Item<K>>, version: u64, token: Option<&str>) -> ListPage<K> {
    ListPage {
        items,
        resource_version: ResourceVersion::new(&version.to_string()),
        continue_token: token.map(str::to_owned),
    }
}

pub(crate) fn added<K: DeserializeOwned>(name: &str, version: u64) -> Told<K> {
    Ok(WatchEvent::Added(object(name, version)))
}

pub(crate) fn modified<K: DeserializeOwned>(name: &str, version: u64) -> Told<K> {
    Ok(WatchEvent::Modified(object(name, version)))
}

pub(crate) fn deleted<K: DeserializeOwned>(name: &str, version: u64) -> Told<K> {
    Ok(WatchEvent::Deleted(object(name, version)))
}

pub(crate) fn bookmark<K>(version: u64) -> Told<K> {
    let resource_version = ResourceVersion::new(&version.to_string()).unwrap();
    Ok(WatchEvent::Bookmark { resource_version, ends_initial_events: false })
}

/// The bookmark that ends the initial events.
pub(crate) fn initial_events_end<K>(version: u64) -> Told<K> {
    let resource_version = ResourceVersion::new(&version.to_string()).unwrap();
    Ok(WatchEvent::Bookmark { resource_version, ends_initial_events: true })
}

/// What a server means by a code and a reason.
pub(crate) fn status(code: u16, reason: &str) -> ApiError {
    Status { code, reason: reason.to_owned(), ..Status::default() }.into_error(None)
}

pub(crate) fn expired() -> ApiError {
    status(410, "Expired")
}

pub(crate) fn refused() -> ApiError {
    ApiError::Connection(Arc::new(std::io::Error::from(std::io::ErrorKind::ConnectionRefused)))
}

/// The three ways servers have said that they are not at a version yet.
pub(crate) fn too_large() -> [ApiError; 3] {
    let text = "Too large resource version";
    let caused = |reason: &str, message: &str| StatusDetails {
        causes: vec![StatusCause {
            reason: reason.to_owned(),
            message: message.to_owned(),
            ..StatusCause::default()
        }],
        ..StatusDetails::default()
    };
    let timeout = |message: String, details| {
        let reason = "Timeout".to_owned();
        Status { code: 504, reason, message, details, ..Status::default() }.into_error(None)
    };
    [
        timeout(format!("Timeout: {text}: 30, current: 20"), None),
        timeout(String::new(), Some(caused("", text))),
        timeout(String::new(), Some(caused("ResourceVersionTooLarge", text))),
    ]
}
