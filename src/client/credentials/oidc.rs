use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use futures::future::BoxFuture;
use k8s_openapi::jiff::Timestamp;
use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;

use super::check_token;
use super::lease::{Lease, Output};
use super::leased::{Leased, Renew};
use crate::client::answer::read_body;
use crate::client::{
    Anonymous, Authority, ClientIdentity, Cluster as _, Connection, CredentialError, Credentials,
    HttpCluster, Method, Request, Scheme, ServerAddress, TlsOptions,
};
use crate::supervision::BackoffOptions;

/// No answer of a provider is longer.
const LONGEST_ANSWER: usize = 1 << 20;
/// Nor does it take longer.
const PATIENCE: Duration = Duration::from_secs(30);

/// The ID token of an OpenID provider, renewed with a refresh token when it expires or is rejected.
///
/// What the provider gives is kept in memory only: a kubeconfig is never written.
pub struct OidcToken {
    leased: Leased<Provider>,
}

/// Where ID tokens come from.
#[derive(Clone)]
pub struct OidcOptions {
    /// The issuer: `/.well-known/openid-configuration` is asked below it.
    pub issuer: ServerAddress,
    /// Who may have signed its certificate.
    pub authority: Authority,
    /// The client the tokens are for.
    pub client_id: String,
    /// Its secret, if it has one.
    pub client_secret: Option<SecretString>,
    /// What is given for a new ID token.
    pub refresh_token: SecretString,
    /// An ID token to begin with.
    pub id_token: Option<SecretString>,
}

struct Provider {
    options: OidcOptions,
    /// Some providers give another one with each ID token.
    refresh_token: Mutex<SecretString>,
}

impl OidcToken {
    /// A token that has not been renewed yet.
    pub fn new(mut options: OidcOptions) -> Self {
        let held = options.id_token.take().and_then(|token| {
            let expires = expiry(token.expose_secret())?;
            Some(Output { token: Some(token), pair: None, expires: Some(expires) })
        });
        let refresh_token = Mutex::new(options.refresh_token.clone());
        let provider = Provider { options, refresh_token };
        Self { leased: Leased::new(provider, BackoffOptions::default(), held) }
    }
}

/// `exp` of a JWT, which is not checked otherwise: the server does that.
pub(in crate::client) fn expiry(token: &str) -> Option<Timestamp> {
    let payload = token.split('.').nth(1)?;
    let payload = URL_SAFE_NO_PAD.decode(payload.trim_end_matches('=')).ok()?;
    let payload: serde_json::Value = serde_json::from_slice(&payload).ok()?;
    Timestamp::from_second(payload.get("exp")?.as_i64()?).ok()
}

impl Renew for Provider {
    fn what(&self) -> String {
        format!("OpenID provider {}", self.options.issuer)
    }

    fn renew(&self) -> BoxFuture<'_, Result<Output, String>> {
        let refresh_token =
            self.refresh_token.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let options = self.options.clone();
        Box::pin(async move {
            // awc stays on one thread, which must not be one of an application.
            let asked = move || actix_rt::System::new().block_on(ask(&options, &refresh_token));
            let asked = tokio::task::spawn_blocking(asked);
            // Two requests; and the thread may hang in a lookup of a name, which nothing ends.
            let asked = tokio::time::timeout(3 * PATIENCE, asked).await;
            let asked = asked.map_err(|_elapsed| "did not answer in time")?;
            let answer = asked.unwrap_or_else(|_panicked| Err("could not be asked".to_owned()))?;
            let token = check_token(&answer.id_token)
                .map_err(|problem| format!("gave an ID token that {problem}"))?;
            let expires = expiry(&answer.id_token).ok_or("gave no ID token that can be read")?;
            if let Some(next) = answer.refresh_token {
                *self.refresh_token.lock().unwrap_or_else(PoisonError::into_inner) = next.into();
            }
            Ok(Output { token: Some(token), pair: None, expires: Some(expires) })
        })
    }
}

#[derive(Deserialize)]
struct Configuration {
    token_endpoint: String,
}

#[derive(Deserialize)]
struct TokenAnswer {
    id_token: String,
    refresh_token: Option<String>,
}

async fn ask(options: &OidcOptions, refresh_token: &SecretString) -> Result<TokenAnswer, String> {
    let well_known = Request::get("/.well-known/openid-configuration");
    let configuration = send(options, options.issuer.clone(), well_known).await?;
    let configuration: Configuration = serde_json::from_slice(&configuration)
        .map_err(|_error| "gave a configuration without a token_endpoint")?;
    let endpoint = ServerAddress::parse(&configuration.token_endpoint)
        .map_err(|error| format!("gave a token_endpoint that {error}"))?;

    let mut form = form_urlencoded::Serializer::new(String::new());
    form.append_pair("grant_type", "refresh_token");
    form.append_pair("refresh_token", refresh_token.expose_secret());
    form.append_pair("client_id", &options.client_id);
    if let Some(secret) = &options.client_secret {
        form.append_pair("client_secret", secret.expose_secret());
    }
    let request = Request {
        method: Method::Post,
        content_type: Some("application/x-www-form-urlencoded"),
        body: Bytes::from(form.finish()),
        ..Request::get("")
    };
    let answer = send(options, endpoint, request).await?;
    serde_json::from_slice(&answer).map_err(|_error| "gave no ID token".to_owned())
}

/// Sends one request, and gives the body of a good answer.
async fn send(
    options: &OidcOptions,
    server: ServerAddress,
    request: Request,
) -> Result<Bytes, String> {
    if server.scheme == Scheme::Http && !server.is_loopback() {
        return Err(format!("is at {server}, but a refresh token needs TLS: write https"));
    }
    let connection = Connection {
        server,
        tls: TlsOptions { authority: options.authority.clone(), ..TlsOptions::default() },
        proxy: None,
        credentials: Arc::new(Anonymous),
        impersonation: None,
        default_namespace: None,
    };
    let transport =
        HttpCluster::from_connection(connection).connect().map_err(|error| error.to_string())?;
    let exchange = async {
        let response = transport.send(request).await?;
        let status = response.status;
        Ok((status, read_body(response.body, LONGEST_ANSWER).await?))
    };
    let answered = tokio::time::timeout(PATIENCE, exchange)
        .await
        .map_err(|_elapsed| "did not answer in time")?;
    let (status, body) = answered.map_err(|error: crate::api::ApiError| {
        let cause =
            std::error::Error::source(&error).map(|cause| format!(": {cause}")).unwrap_or_default();
        format!("did not answer: {error}{cause}")
    })?;
    if (200..300).contains(&status) {
        return Ok(body);
    }
    // Of a refusal nothing but its code is shown: what else it holds is the provider's secret.
    #[derive(Deserialize)]
    struct Refusal {
        error: String,
    }
    let code =
        serde_json::from_slice::<Refusal>(&body).map(|refusal| refusal.error).unwrap_or_default();
    let code: String =
        code.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '_').take(60).collect();
    Err(format!(
        "refused with HTTP {status} {code}: log in again, or use an exec plugin such as kubelogin"
    ))
}

impl Credentials for OidcToken {
    fn token(&self) -> BoxFuture<'_, Result<Option<SecretString>, CredentialError>> {
        Box::pin(
            self.leased
                .with(|lease: &Lease| lease.output().and_then(|output| output.token.clone())),
        )
    }

    fn identity(&self) -> BoxFuture<'_, Result<Option<ClientIdentity>, CredentialError>> {
        Box::pin(async { Ok(None) })
    }

    fn rejected(&self) {
        self.leased.rejected();
    }
}

impl fmt::Debug for OidcToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("OidcToken").field(&self.leased.source().options).finish()
    }
}

/// Without anything secret.
impl fmt::Debug for OidcOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OidcOptions")
            .field("issuer", &self.issuer)
            .field("client_id", &self.client_id)
            .finish_non_exhaustive()
    }
}
