//! Remembers what was asked of the API server and what it answered, to the letter.

use std::collections::BTreeSet;
use std::fmt;
use std::rc::Rc;
use std::sync::{Arc, Mutex};

use futures::future::LocalBoxFuture;
use futures::{FutureExt as _, StreamExt as _};
use kubeflect::api::ApiError;
use kubeflect::client::{Cluster, Connection, HttpCluster, Request, Response, Transport};
use tokio::sync::watch;
use tokio::time::Instant;

/// A cluster over HTTP whose exchanges are kept.
#[derive(Debug, Clone)]
pub(crate) struct Recorded {
    cluster: Arc<HttpCluster>,
    exchanges: Arc<Mutex<Vec<Exchange>>>,
    /// How many requests may go out.
    allowed: Arc<watch::Sender<usize>>,
}

/// A request and what came back so far.
#[derive(Clone)]
pub(crate) struct Exchange {
    pub(crate) asked: Instant,
    pub(crate) answered: Option<Instant>,
    pub(crate) path: String,
    pub(crate) query: Vec<(&'static str, String)>,
    /// None while there is no answer.
    pub(crate) status: Option<u16>,
    pub(crate) retry_after: Option<u64>,
    /// The beginning of the body.
    pub(crate) body: Vec<u8>,
    /// What was said anywhere in it.
    said: BTreeSet<Said>,
    /// How it ended, if not well.
    pub(crate) error: Option<String>,
}

/// What counts in a body, wherever it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Said {
    /// The server has forgotten what was asked for.
    Expired,
    /// The initial events of a stream have come to their end.
    StreamedAll,
}

/// No more of a body is kept.
const KEPT: usize = 64 << 10;

/// Nothing that is looked for in a body is longer.
const OVERLAP: usize = 64;

impl Recorded {
    pub(crate) fn new(connection: Connection) -> Self {
        let cluster = Arc::new(HttpCluster::from_connection(connection));
        let allowed = Arc::new(watch::Sender::new(usize::MAX));
        Self { cluster, exchanges: Arc::default(), allowed }
    }

    /// Lets so many requests out; what is asked after them has to wait.
    pub(crate) fn allow(&self, requests: usize) {
        self.allowed.send_replace(requests);
    }

    pub(crate) fn exchanges(&self) -> Vec<Exchange> {
        self.exchanges.lock().unwrap().clone()
    }
}

impl Exchange {
    pub(crate) fn parameter(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(key, _)| *key == name).map(|(_, value)| value.as_str())
    }

    /// The server has forgotten what was asked for, and said so at once or in the stream.
    pub(crate) fn is_expired(&self) -> bool {
        self.said.contains(&Said::Expired)
    }

    /// Everything and its changes in one stream.
    pub(crate) fn is_streaming_list(&self) -> bool {
        self.parameter("sendInitialEvents").is_some()
    }

    pub(crate) fn is_watch(&self) -> bool {
        self.parameter("watch").is_some() && !self.is_streaming_list()
    }

    pub(crate) fn is_list(&self) -> bool {
        self.parameter("watch").is_none()
    }

    /// Everything is asked for, as a stream or as the first of its pages. A list of one object only asks how far the server
    /// has come, and one of an exact version is an audit.
    pub(crate) fn lists_everything(&self) -> bool {
        let is_audit = self.parameter("resourceVersionMatch") == Some("Exact");
        let is_first_page = self.is_list() && self.parameter("continue").is_none();
        let is_probe = self.parameter("limit") == Some("1");
        self.is_streaming_list() || (is_first_page && !is_probe && !is_audit)
    }

    /// It was given what it asked for.
    pub(crate) fn succeeded(&self) -> bool {
        match self.is_streaming_list() {
            true => self.said.contains(&Said::StreamedAll),
            false => self.status == Some(200) && self.error.is_none(),
        }
    }

    fn read(&mut self, text: &str) {
        let end = r#""k8s.io/initial-events-end":"true""#;
        let sayings = [(Said::Expired, r#""code":410"#), (Said::StreamedAll, end)];
        self.said.extend(sayings.iter().filter(|(_, it)| text.contains(it)).map(|(said, _)| *said));
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

impl fmt::Debug for Exchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let query: Vec<String> = self.query.iter().map(|(k, v)| format!("{k}={v}")).collect();
        let body: String = self.text().chars().take(2000).collect();
        write!(f, "{}?{} -> {:?} ", self.path, query.join("&"), self.status)?;
        write!(f, "{body} {}", self.error.as_deref().unwrap_or_default())
    }
}

impl Cluster for Recorded {
    fn connect(&self) -> Result<Rc<dyn Transport>, ApiError> {
        let transport = self.cluster.connect()?;
        let (exchanges, allowed) = (Arc::clone(&self.exchanges), self.allowed.subscribe());
        Ok(Rc::new(Recorder { transport, exchanges, allowed }))
    }
}

struct Recorder {
    transport: Rc<dyn Transport>,
    exchanges: Arc<Mutex<Vec<Exchange>>>,
    allowed: watch::Receiver<usize>,
}

impl Transport for Recorder {
    fn send(&self, request: Request) -> LocalBoxFuture<'static, Result<Response, ApiError>> {
        let note = self.begin(&request);
        let (transport, mut allowed) = (Rc::clone(&self.transport), self.allowed.clone());
        async move {
            // Whoever would allow more is gone if this fails.
            allowed.wait_for(|allowed| note.place < *allowed).await.ok();
            let mut response = match transport.send(request).await {
                Ok(response) => response,
                Err(error) => {
                    note.down(|exchange| exchange.error = Some(format!("{error:?}")));
                    return Err(error);
                }
            };
            note.down(|exchange| {
                exchange.answered = Some(Instant::now());
                exchange.status = Some(response.status);
                exchange.retry_after = response.retry_after;
            });
            // What is looked for may be in two chunks.
            let mut seen = Vec::new();
            let body = response.body.inspect(move |chunk| match chunk {
                Ok(bytes) => note.down(|exchange| {
                    let room = KEPT.saturating_sub(exchange.body.len()).min(bytes.len());
                    exchange.body.extend_from_slice(&bytes[..room]);
                    seen.extend_from_slice(bytes);
                    exchange.read(&String::from_utf8_lossy(&seen));
                    seen.drain(..seen.len().saturating_sub(OVERLAP));
                }),
                Err(error) => note.down(|exchange| exchange.error = Some(format!("{error:?}"))),
            });
            response.body = body.boxed_local();
            Ok(response)
        }
        .boxed_local()
    }
}

impl Recorder {
    /// Notes a request, and gives the place for what comes of it.
    fn begin(&self, request: &Request) -> Note {
        let exchange = Exchange {
            asked: Instant::now(),
            answered: None,
            path: request.path.clone(),
            query: request.query.clone(),
            status: None,
            retry_after: None,
            body: Vec::new(),
            said: BTreeSet::new(),
            error: None,
        };
        let mut all = self.exchanges.lock().unwrap();
        all.push(exchange);
        Note { place: all.len() - 1, exchanges: Arc::clone(&self.exchanges) }
    }
}

/// Where one exchange is noted.
struct Note {
    exchanges: Arc<Mutex<Vec<Exchange>>>,
    place: usize,
}

impl Note {
    fn down(&self, change: impl FnOnce(&mut Exchange)) {
        change(&mut self.exchanges.lock().unwrap()[self.place]);
    }
}
