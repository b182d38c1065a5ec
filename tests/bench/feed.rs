//! An API server made of bytes that were rendered beforehand: what is measured against it is ours alone.

use std::fmt;
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard};

use bytes::Bytes;
use futures::channel::mpsc::{UnboundedSender, unbounded};
use futures::future::LocalBoxFuture;
use futures::{FutureExt as _, StreamExt as _, stream};
use kubeflect::api::ApiError;
use kubeflect::client::{BodyStream, Cluster, Request, Response, Transport};

use crate::pods::{self, FIRST_VERSION, PodText, Shape};

/// As much as a socket gives at a time.
const CHUNK: usize = 64 << 10;

/// Changes jump about: a prime, so that all pods get theirs.
const STRIDE: usize = 7919;

/// The server. Clones are the same.
#[derive(Clone)]
pub(crate) struct Feed(Arc<Mutex<Contents>>);

struct Contents {
    pods: Vec<PodText>,
    version: u64,
    changes: usize,
    /// The list, as it is now.
    list: Vec<Bytes>,
    watch: Option<UnboundedSender<Bytes>>,
}

impl Feed {
    pub(crate) fn new(objects: usize, shape: Shape) -> Self {
        let pods = (0..objects).map(|number| pods::pod(1, number, shape)).collect();
        let contents =
            Contents { pods, version: FIRST_VERSION, changes: 0, list: Vec::new(), watch: None };
        let feed = Self(Arc::new(Mutex::new(contents)));
        feed.render_list();
        feed
    }

    /// Makes `count` changes, and gives the chunks that tell of them.
    pub(crate) fn changes(&self, count: usize) -> Vec<Bytes> {
        let mut contents = self.lock();
        let mut chunks = Chunks::default();
        for _ in 0..count {
            let number = contents.changes.wrapping_mul(STRIDE) % contents.pods.len();
            contents.changes += 1;
            contents.version += 1;
            let version = contents.version;
            let pod = &mut contents.pods[number];
            pod.set_version(version);
            chunks.push(br#"{"type":"MODIFIED","object":{"kind":"Pod","apiVersion":"v1","#);
            chunks.push(&pod.bytes[1..]);
            chunks.push(b"}\n");
            chunks.cut();
        }
        chunks.finish()
    }

    /// Tells the watch.
    pub(crate) fn send(&self, chunk: Bytes) {
        let contents = self.lock();
        let watch = contents.watch.as_ref().expect("there is a watch");
        watch.unbounded_send(chunk).expect("the watch is open");
    }

    pub(crate) fn is_watched(&self) -> bool {
        self.lock().watch.as_ref().is_some_and(|watch| !watch.is_closed())
    }

    /// Ends the watch in a way that has to be answered with a list, which shows all changes so far.
    pub(crate) fn expire(&self) {
        self.lock().version += 1;
        self.render_list();
        let status = r#"{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","status":"Failure","message":"too old resource version","reason":"Expired","code":410}}"#;
        self.send(Bytes::from_static(status.as_bytes()));
        self.lock().watch = None;
    }

    /// The version of all that was changed so far.
    pub(crate) fn version(&self) -> String {
        self.lock().version.to_string()
    }

    fn render_list(&self) {
        let mut contents = self.lock();
        let mut chunks = Chunks::default();
        let version = contents.version;
        let head = format!(
            r#"{{"kind":"PodList","apiVersion":"v1","metadata":{{"resourceVersion":"{version}"}},"items":["#
        );
        chunks.push(head.as_bytes());
        for (number, pod) in contents.pods.iter().enumerate() {
            chunks.push(if number == 0 { b"" } else { b"," });
            chunks.push(&pod.bytes);
            chunks.cut();
        }
        chunks.push(b"]}\n");
        contents.list = chunks.finish();
    }

    fn lock(&self) -> MutexGuard<'_, Contents> {
        self.0.lock().expect("nobody panics with it")
    }
}

#[derive(Default)]
struct Chunks {
    done: Vec<Bytes>,
    next: Vec<u8>,
}

impl Chunks {
    fn push(&mut self, bytes: &[u8]) {
        self.next.extend_from_slice(bytes);
    }

    /// Ends the chunk if it is large enough.
    fn cut(&mut self) {
        if self.next.len() >= CHUNK {
            self.done.push(std::mem::take(&mut self.next).into());
        }
    }

    fn finish(mut self) -> Vec<Bytes> {
        self.done.push(self.next.into());
        self.done
    }
}

impl Transport for Feed {
    fn send(&self, request: Request) -> LocalBoxFuture<'static, Result<Response, ApiError>> {
        let mut contents = self.lock();
        let body: BodyStream = if request.query.iter().any(|(name, _)| *name == "watch") {
            let (sender, events) = unbounded();
            contents.watch = Some(sender);
            events.map(Ok).boxed_local()
        } else {
            stream::iter(contents.list.clone()).map(Ok).boxed_local()
        };
        let content_type = "application/json".to_owned();
        async move {
            Ok(Response { status: 200, content_type, retry_after: None, fairness: None, body })
        }
        .boxed_local()
    }
}

impl Cluster for Feed {
    fn connect(&self) -> Result<Rc<dyn Transport>, ApiError> {
        Ok(Rc::new(self.clone()))
    }
}

impl fmt::Debug for Feed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Feed").finish_non_exhaustive()
    }
}
