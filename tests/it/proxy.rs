//! A proxy between a reflector and the embedded server, on whatever clock the test runs.

use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use futures::future::LocalBoxFuture;
use futures::{FutureExt as _, StreamExt as _, stream};
use kubeflect::api::ApiError;
use kubeflect::client::{BodyStream, Cluster, Request, Response, Transport};
use kubeflect::embedded::ApiServer;
use kubeflect::{Runtime, RuntimeOptions, Threads};

use crate::support::World;

/// What the proxy does to every answer.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Proxy {
    /// Ends it after so long.
    Cuts(Duration),
    /// Lets so many bytes through each second.
    Throttles(usize),
}

#[derive(Debug)]
struct Proxied(ApiServer, Proxy);

struct ThroughProxy(Rc<dyn Transport>, Proxy);

impl Proxy {
    /// A server that is only reached through it.
    pub(crate) fn world(self, server: ApiServer) -> World {
        let options = RuntimeOptions {
            threads: Threads::Callers,
            seed: Some(1),
            ..RuntimeOptions::default()
        };
        let runtime = Runtime::with_options(Proxied(server.clone(), self), options);
        World { server, runtime }
    }

    fn pass(self, body: BodyStream) -> BodyStream {
        match self {
            Self::Cuts(life) => body.take_until(tokio::time::sleep(life)).boxed_local(),
            Self::Throttles(rate) => body
                .flat_map(move |chunk| match chunk {
                    Ok(chunk) => throttled(chunk, rate),
                    Err(error) => stream::iter([Err(error)]).boxed_local(),
                })
                .boxed_local(),
        }
    }
}

fn throttled(chunk: Bytes, rate: usize) -> BodyStream {
    stream::unfold(chunk, move |mut chunk| async move {
        let piece = chunk.split_to(rate.min(chunk.len()));
        if piece.is_empty() {
            return None;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
        Some((Ok(piece), chunk))
    })
    .boxed_local()
}

impl Cluster for Proxied {
    fn connect(&self) -> Result<Rc<dyn Transport>, ApiError> {
        Ok(Rc::new(ThroughProxy(self.0.connect()?, self.1)))
    }
}

impl Transport for ThroughProxy {
    fn send(&self, request: Request) -> LocalBoxFuture<'static, Result<Response, ApiError>> {
        let (sent, proxy) = (self.0.send(request), self.1);
        async move {
            let response = sent.await?;
            Ok(Response { body: proxy.pass(response.body), ..response })
        }
        .boxed_local()
    }
}
