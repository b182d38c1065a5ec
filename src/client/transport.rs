use std::fmt;
use std::rc::Rc;

use bytes::Bytes;
use futures::future::LocalBoxFuture;
use futures::stream::LocalBoxStream;

use crate::api::ApiError;

/// Carries requests to one API server and its answers back, as bytes.
///
/// Lives on one arbiter. Dropping a future or a body cancels the request.
pub trait Transport: 'static {
    /// Sends a request. The future ends with the head of the answer, whatever its status.
    fn send(&self, request: Request) -> LocalBoxFuture<'static, Result<Response, ApiError>>;
}

/// An API server one can connect to, from any arbiter.
pub trait Cluster: fmt::Debug + Send + Sync + 'static {
    /// Makes a transport for the current arbiter.
    ///
    /// # Errors
    /// When what was configured can not be used at all. A server that is down is not such a case.
    fn connect(&self) -> Result<Rc<dyn Transport>, ApiError>;
}

/// An HTTP request to an API server.
#[derive(Clone, PartialEq, Eq)]
pub struct Request {
    /// What to do.
    pub method: Method,
    /// Path, escaped, without the query: `/api/v1/pods`.
    pub path: String,
    /// Query, unescaped.
    pub query: Vec<(&'static str, String)>,
    /// The `Accept` header.
    pub accept: &'static str,
    /// The `Content-Type` of the body.
    pub content_type: Option<&'static str>,
    /// The body.
    pub body: Bytes,
}

/// What to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// Read, list or watch.
    Get,
    /// Create.
    Post,
    /// Replace.
    Put,
    /// Change parts.
    Patch,
    /// Remove.
    Delete,
}

/// The answer of an API server.
pub struct Response {
    /// The HTTP status.
    pub status: u16,
    /// The `Content-Type` header.
    pub content_type: String,
    /// The `Retry-After` header, in seconds.
    pub retry_after: Option<u64>,
    /// What API Priority and Fairness made of the request, if the server says.
    pub fairness: Option<Fairness>,
    /// The body, as it arrives.
    pub body: BodyStream,
}

/// How API Priority and Fairness classified a request: with a 429, where to look.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Fairness {
    /// The uid of the `FlowSchema`.
    pub flow_schema: Option<String>,
    /// The uid of the `PriorityLevelConfiguration`.
    pub priority_level: Option<String>,
}

/// The bytes of a body, in chunks that mean nothing.
pub type BodyStream = LocalBoxStream<'static, Result<Bytes, ApiError>>;

impl Request {
    /// A request to read.
    pub fn get(path: impl Into<String>) -> Self {
        Self {
            method: Method::Get,
            path: path.into(),
            query: Vec::new(),
            accept: "application/json",
            content_type: None,
            body: Bytes::new(),
        }
    }
}

/// Without the body and what is asked for: they may hold secrets.
impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parameters: Vec<&str> = self.query.iter().map(|(name, _)| *name).collect();
        f.debug_struct("Request")
            .field("method", &self.method)
            .field("path", &self.path)
            .field("parameters", &parameters)
            .field("body", &format_args!("{} bytes", self.body.len()))
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Response {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Response")
            .field("status", &self.status)
            .field("content_type", &self.content_type)
            .finish_non_exhaustive()
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_shown_without_its_body() {
        let body = Bytes::from_static(b"canary");
        let query = vec![("fieldSelector", "canary".to_owned())];
        let shown = format!("{:?}", Request { body, query, ..Request::get("/api/v1/secrets") });
        assert!(shown.contains("/api/v1/secrets") && shown.contains("6 bytes"), "{shown}");
        assert!(shown.contains("fieldSelector") && !shown.contains("canary"), "{shown}");
    }
}
