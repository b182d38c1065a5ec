//! Remembers what was asked of the API server and what it answered, to the letter.

use std::fmt;
use std::rc::Rc;
use std::sync::{Arc, Mutex};

use futures::future::LocalBoxFuture;
use futures::{FutureExt as _, StreamExt as _};
use kubeflect::api::ApiError;
use kubeflect::client::{Cluster, Connection, HttpCluster, Request, Response, Transport};

/// A cluster over HTTP whose exchanges are kept.
#[derive(Debug, Clone)]
pub(crate) struct Recorded {
    cluster: Arc<HttpCluster>,
    exchanges: Arc<Mutex<Vec<Exchange>>>,
}

/// A request and what came back so far.
#[derive(Clone, Default)]
pub(crate) struct Exchange {
    pub(crate) path: String,
    pub(crate) query: Vec<(&'static str, String)>,
    /// None while there is no answer.
    pub(crate) status: Option<u16>,
    /// The beginning of the body.
    pub(crate) body: Vec<u8>,
    /// How it ended, if not well.
    pub(crate) error: Option<String>,
}

/// No more of a body is kept.
const KEPT: usize = 64 << 10;

impl Recorded {
    pub(crate) fn new(connection: Connection) -> Self {
        let cluster = Arc::new(HttpCluster::from_connection(connection));
        Self { cluster, exchanges: Arc::default() }
    }

    pub(crate) fn exchanges(&self) -> Vec<Exchange> {
        self.exchanges.lock().unwrap().clone()
    }
}

impl Exchange {
    pub(crate) fn parameter(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(key, _)| *key == name).map(|(_, value)| value.as_str())
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
        Ok(Rc::new(Recorder { transport, exchanges: Arc::clone(&self.exchanges) }))
    }
}

struct Recorder {
    transport: Rc<dyn Transport>,
    exchanges: Arc<Mutex<Vec<Exchange>>>,
}

impl Transport for Recorder {
    fn send(&self, request: Request) -> LocalBoxFuture<'static, Result<Response, ApiError>> {
        let note = self.begin(&request);
        let answer = self.transport.send(request);
        async move {
            let mut response = match answer.await {
                Ok(response) => response,
                Err(error) => {
                    note(&mut |exchange| exchange.error = Some(format!("{error:?}")));
                    return Err(error);
                }
            };
            note(&mut |exchange| exchange.status = Some(response.status));
            let body = response.body.inspect(move |chunk| match chunk {
                Ok(bytes) => note(&mut |exchange| {
                    let room = KEPT.saturating_sub(exchange.body.len()).min(bytes.len());
                    exchange.body.extend_from_slice(&bytes[..room]);
                }),
                Err(error) => note(&mut |exchange| exchange.error = Some(format!("{error:?}"))),
            });
            response.body = body.boxed_local();
            Ok(response)
        }
        .boxed_local()
    }
}

impl Recorder {
    /// Notes a request, and gives the way to note what comes of it.
    fn begin(&self, request: &Request) -> impl Fn(&mut dyn FnMut(&mut Exchange)) + 'static {
        let exchange = Exchange {
            path: request.path.clone(),
            query: request.query.clone(),
            ..Exchange::default()
        };
        let exchanges = Arc::clone(&self.exchanges);
        let mut all = exchanges.lock().unwrap();
        all.push(exchange);
        let place = all.len() - 1;
        drop(all);
        move |change| change(&mut exchanges.lock().unwrap()[place])
    }
}
