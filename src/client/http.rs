use std::fmt;
use std::rc::Rc;
use std::time::Duration;

use awc::http::{Uri, header};
use futures::FutureExt as _;
use futures::future::LocalBoxFuture;
use futures::stream::StreamExt as _;

use super::{Cluster, Method, Request, Response, Transport};
use crate::api::ApiError;

/// How long a connection may take to come about.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// An API server behind an `http://` address, such as the one `kubectl proxy` prints.
#[derive(Clone)]
pub struct HttpCluster {
    origin: String,
}

/// An address that can not be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{address:?} {problem}")]
pub struct InvalidAddress {
    address: String,
    problem: &'static str,
}

struct HttpTransport {
    client: awc::Client,
    origin: String,
}

impl HttpCluster {
    /// The API server at an address like `http://127.0.0.1:8001`.
    ///
    /// # Errors
    /// When the address is none, or asks for TLS.
    pub fn new(url: &str) -> Result<Self, InvalidAddress> {
        let invalid = |problem| InvalidAddress { address: url.to_owned(), problem };
        let uri: Uri =
            url.parse().map_err(|_error| invalid("is no address: write http://HOST:PORT"))?;
        match (uri.scheme_str(), uri.authority()) {
            (Some("http"), Some(authority)) if !authority.as_str().contains('@') => {
                Ok(Self { origin: format!("http://{authority}") })
            }
            (Some("https"), Some(_)) => Err(invalid(
                "asks for TLS, which this version does not speak: run kubectl proxy and give its address",
            )),
            _ => Err(invalid("is no address: write http://HOST:PORT")),
        }
    }
}

impl Cluster for HttpCluster {
    fn connect(&self) -> Result<Rc<dyn Transport>, ApiError> {
        // One connection per watch: a pool limit would make the watches beyond it wait for ever.
        let connector = awc::Connector::new().limit(0).timeout(CONNECT_TIMEOUT);
        let client = awc::Client::builder()
            .connector(connector)
            .disable_redirects()
            .disable_timeout()
            .add_default_header((
                header::USER_AGENT,
                concat!("kubeflect/", env!("CARGO_PKG_VERSION")),
            ))
            .finish();
        Ok(Rc::new(HttpTransport { client, origin: self.origin.clone() }))
    }
}

impl Transport for HttpTransport {
    fn send(&self, request: Request) -> LocalBoxFuture<'static, Result<Response, ApiError>> {
        let method = match request.method {
            Method::Get => awc::http::Method::GET,
            Method::Post => awc::http::Method::POST,
            Method::Put => awc::http::Method::PUT,
            Method::Patch => awc::http::Method::PATCH,
            Method::Delete => awc::http::Method::DELETE,
        };
        let query =
            form_urlencoded::Serializer::new(String::new()).extend_pairs(&request.query).finish();
        let mut sent = self
            .client
            .request(method, format!("{}{}?{query}", self.origin, request.path))
            .insert_header((header::ACCEPT, request.accept))
            // Watches must not be compressed: gzip would hold events back.
            .insert_header((header::ACCEPT_ENCODING, "identity"));
        if let Some(content_type) = request.content_type {
            sent = sent.insert_header((header::CONTENT_TYPE, content_type));
        }
        let sent = sent.send_body(request.body);
        async move {
            let response = sent.await.map_err(|error| ApiError::connection(error.to_string()))?;
            let text = |name| response.headers().get(name).and_then(|value| value.to_str().ok());
            Ok(Response {
                status: response.status().as_u16(),
                content_type: text(header::CONTENT_TYPE).unwrap_or_default().to_owned(),
                retry_after: text(header::RETRY_AFTER).and_then(|value| value.trim().parse().ok()),
                body: response
                    .map(|chunk| chunk.map_err(|error| ApiError::connection(error.to_string())))
                    .boxed_local(),
            })
        }
        .boxed_local()
    }
}

impl fmt::Debug for HttpCluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpCluster").field("origin", &self.origin).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_says_what_is_wrong_with_it() {
        for (url, problem) in [
            ("127.0.0.1:8001", "write http://HOST:PORT"),
            ("https://127.0.0.1:6443", "asks for TLS"),
            ("http://user:secret@host", "write http://HOST:PORT"),
            ("ftp://host", "write http://HOST:PORT"),
        ] {
            let error = HttpCluster::new(url).unwrap_err().to_string();
            assert!(error.contains(problem), "{error}");
        }
        assert!(HttpCluster::new("http://127.0.0.1:8001/").is_ok());
    }
}
