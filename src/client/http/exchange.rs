use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use awc::error::{ConnectError, HeaderValue, SendRequestError};
use awc::http::header::{self, HeaderName};
use futures::FutureExt as _;
use futures::future::LocalBoxFuture;
use futures::stream::StreamExt as _;
use secrecy::{ExposeSecret as _, SecretString};
use tokio::sync::OwnedSemaphorePermit;

use super::body::{self, Guard};
use super::dialer::{DialError, Dialer, Route};
use super::{Shared, gzip, headers};
use crate::api::ApiError;
use crate::client::purpose::Purpose;
use crate::client::{CredentialError, Method, Request, Response, Scheme, Transport};

/// Sends requests by awc, from one arbiter.
pub(super) struct HttpTransport {
    arbiter: Rc<Arbiter>,
}

struct Arbiter {
    shared: Arc<Shared>,
    origin: String,
    user_agent: String,
    impersonation: Vec<(HeaderName, HeaderValue)>,
    /// Made anew when certificates change: no connection of before is used again.
    client: RefCell<Option<(Option<u64>, awc::Client)>>,
}

impl HttpTransport {
    pub(super) fn new(shared: Arc<Shared>) -> Result<Self, ApiError> {
        let impersonation = shared.connection.impersonation.as_ref().map(headers::impersonation);
        let arbiter = Arbiter {
            origin: shared.origin()?,
            user_agent: headers::user_agent(),
            impersonation: impersonation.transpose()?.unwrap_or_default(),
            client: RefCell::new(None),
            shared,
        };
        Ok(Self { arbiter: Rc::new(arbiter) })
    }
}

impl Transport for HttpTransport {
    fn send(&self, request: Request) -> LocalBoxFuture<'static, Result<Response, ApiError>> {
        let arbiter = Rc::clone(&self.arbiter);
        async move { arbiter.send(request).await }.boxed_local()
    }
}

impl Arbiter {
    async fn send(&self, request: Request) -> Result<Response, ApiError> {
        let purpose = Purpose::of(&request);
        let permit = match purpose {
            Purpose::List => Some(self.shared.budget.list().await),
            Purpose::Watch | Purpose::Other => None,
        };
        let token = self.token().await?;
        let mut answer = self.attempt(&request, purpose, token.as_ref()).await?;
        if answer.status().as_u16() == 401 {
            match &token {
                Some(refused) => {
                    if let Some(renewed) = self.renewed(refused).await? {
                        answer = self.attempt(&request, purpose, Some(&renewed)).await?;
                    }
                }
                None if self.has_other_identity().await? => {
                    answer = self.attempt(&request, purpose, None).await?;
                }
                None => {}
            }
        }
        self.response(answer, purpose, permit)
    }

    /// Another token than the one that was not accepted, if there is one.
    async fn renewed(&self, refused: &SecretString) -> Result<Option<SecretString>, ApiError> {
        if let Some(tls) = &self.shared.tls {
            tls.expire();
        }
        let is_other = |token: &SecretString| token.expose_secret() != refused.expose_secret();
        // Others may have been refused before us: then there is another one already.
        if let Some(token) = self.token().await?.filter(is_other) {
            return Ok(Some(token));
        }
        self.shared.connection.credentials.rejected();
        Ok(self.token().await?.filter(is_other))
    }

    /// Whether there is another client certificate than the one that was not accepted.
    async fn has_other_identity(&self) -> Result<bool, ApiError> {
        let Some(tls) = &self.shared.tls else { return Ok(false) };
        let refused = tls.current().await.map_err(|error| not_had(&error))?.number;
        self.shared.connection.credentials.rejected();
        tls.expire();
        Ok(tls.current().await.map_err(|error| not_had(&error))?.number != refused)
    }

    async fn token(&self) -> Result<Option<SecretString>, ApiError> {
        let connection = &self.shared.connection;
        let token = connection.credentials.token().await.map_err(|error| not_had(&error))?;
        let server = &connection.server;
        let is_private =
            server.scheme == Scheme::Https || (server.is_loopback() && connection.proxy.is_none());
        if token.is_some() && !is_private {
            return Err(ApiError::Unauthorized {
                message: format!("a token is not sent to {server} without TLS: write https://"),
            });
        }
        Ok(token)
    }

    async fn attempt(
        &self,
        request: &Request,
        purpose: Purpose,
        token: Option<&SecretString>,
    ) -> Result<awc::ClientResponse, ApiError> {
        self.shared.budget.admit().await;
        let client = self.client().await?;
        let method = match request.method {
            Method::Get => awc::http::Method::GET,
            Method::Post => awc::http::Method::POST,
            Method::Put => awc::http::Method::PUT,
            Method::Patch => awc::http::Method::PATCH,
            Method::Delete => awc::http::Method::DELETE,
        };
        let query =
            form_urlencoded::Serializer::new(String::new()).extend_pairs(&request.query).finish();
        let separator = if query.is_empty() { "" } else { "?" };
        let encoding = match purpose {
            Purpose::List => "gzip",
            // Compression would hold events back.
            Purpose::Watch | Purpose::Other => "identity",
        };
        let mut sent = client
            .request(method, format!("{}{}{separator}{query}", self.origin, request.path))
            .no_decompress()
            .insert_header((header::USER_AGENT, self.user_agent.as_str()))
            .insert_header((header::ACCEPT, request.accept))
            .insert_header((header::ACCEPT_ENCODING, encoding));
        for (name, value) in &self.impersonation {
            sent = sent.append_header((name.clone(), value.clone()));
        }
        if let Some(token) = token {
            sent = sent.insert_header((header::AUTHORIZATION, headers::bearer(token)?));
        }
        if let Some(content_type) = request.content_type {
            sent = sent.insert_header((header::CONTENT_TYPE, content_type));
        }
        let sent = sent.send_body(request.body.clone());
        let answer = match purpose {
            Purpose::Watch => sent.await,
            Purpose::List | Purpose::Other => {
                let waited = self.shared.options.head_timeout;
                let answer = tokio::time::timeout(waited, sent).await;
                answer.map_err(|_elapsed| ApiError::Timeout { waited })?
            }
        };
        answer.map_err(|error| not_sent(&error))
    }

    /// The client for the certificates of now.
    async fn client(&self) -> Result<awc::Client, ApiError> {
        let shared = &self.shared;
        let tls = match &shared.tls {
            None => None,
            Some(tls) => {
                Some((Arc::clone(tls), tls.current().await.map_err(|error| not_had(&error))?))
            }
        };
        let number = tls.as_ref().map(|(_, trust)| trust.number);
        if let Some((current, client)) = &*self.client.borrow()
            && *current == number
        {
            return Ok(client.clone());
        }
        let options = shared.options.clone();
        // Ours are shorter, and say what took so long.
        let patience = (options.connect_timeout.saturating_mul(2))
            .saturating_add(options.tls_timeout)
            .saturating_add(Duration::from_secs(5));
        let dialer = Dialer::new(Route {
            server: shared.connection.server.clone(),
            proxy: shared.connection.proxy.clone(),
            tls,
            options,
        });
        // One connection per watch: a pool limit would make the watches beyond it wait for ever.
        let connector = awc::Connector::new().connector(dialer).limit(0).timeout(patience);
        let client = awc::Client::builder()
            .connector(connector)
            .disable_redirects()
            .disable_timeout()
            .finish();
        self.client.replace(Some((number, client.clone())));
        Ok(client)
    }

    fn response(
        &self,
        answer: awc::ClientResponse,
        purpose: Purpose,
        permit: Option<OwnedSemaphorePermit>,
    ) -> Result<Response, ApiError> {
        let fields = answer.headers();
        let status = answer.status().as_u16();
        let cap = self.shared.options.head_cap;
        if headers::size(fields) > cap {
            return Err(ApiError::malformed(format!(
                "the head of the answer is larger than {cap} bytes"
            )));
        }
        for warning in fields.get_all(header::WARNING) {
            warning.to_str().into_iter().for_each(|text| self.shared.warnings.log(text));
        }
        if answer.status().is_redirection() {
            let target = headers::redirect_target(fields);
            return Err(ApiError::Unexpected {
                code: status,
                message: format!(
                    "the server redirects to {target}, which is never followed: check its address"
                ),
            });
        }
        let fairness = headers::fairness(fields);
        if status == 429 {
            tracing::debug!(?fairness, "too many requests");
        }
        let encoding = headers::text(fields, header::CONTENT_ENCODING).unwrap_or("identity");
        let is_gzip = match encoding.trim().to_ascii_lowercase().as_str() {
            "identity" | "" => false,
            "gzip" | "x-gzip" => true,
            // What is wrong is in the status; what was said about it is lost.
            _ if !answer.status().is_success() => {
                let retry_after = headers::retry_after(fields);
                let body = futures::stream::empty().boxed_local();
                return Ok(Response {
                    status,
                    content_type: String::new(),
                    retry_after,
                    fairness,
                    body,
                });
            }
            other => {
                let problem =
                    format!("the answer is encoded as {other:?}, which was not asked for");
                return Err(ApiError::malformed(problem));
            }
        };
        let guard = Guard {
            idle_timeout: (purpose != Purpose::Watch).then_some(self.shared.options.idle_timeout),
            length: headers::text(fields, header::CONTENT_LENGTH)
                .and_then(|text| text.parse().ok()),
        };
        let content_type =
            headers::text(fields, header::CONTENT_TYPE).unwrap_or_default().to_owned();
        let retry_after = headers::retry_after(fields);
        let received = answer.map(|chunk| chunk.map_err(|error| broken(&error))).boxed_local();
        let guarded = body::guarded(received, guard, permit);
        let body = if is_gzip { gzip::decoded(guarded) } else { guarded };
        Ok(Response { status, content_type, retry_after, fairness, body })
    }
}

fn not_had(error: &CredentialError) -> ApiError {
    ApiError::Unauthorized { message: error.to_string() }
}

/// The dialer's own words, where it has some.
fn not_sent(error: &SendRequestError) -> ApiError {
    use std::error::Error as _;
    let dialed = |error: &std::io::Error| {
        error.get_ref().and_then(|inner| inner.downcast_ref::<DialError>()).cloned()
    };
    let said = match error {
        SendRequestError::Connect(ConnectError::Io(error)) | SendRequestError::Send(error) => {
            dialed(error)
        }
        SendRequestError::Response(error) => error
            .source()
            .and_then(|source| source.downcast_ref::<std::io::Error>())
            .and_then(dialed),
        _ => None,
    };
    match said {
        Some(said) => ApiError::connection(said),
        None => ApiError::connection(error.to_string()),
    }
}

fn broken(error: &awc::error::PayloadError) -> ApiError {
    ApiError::connection(error.to_string())
}
