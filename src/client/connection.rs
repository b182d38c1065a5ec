use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use futures::future::BoxFuture;
use secrecy::SecretString;

/// Where an API server is and how to be let in: what a kubeconfig, a service account and an address all become.
#[derive(Debug, Clone)]
pub struct Connection {
    /// `https://host:port`, with a path before `/api` if there is a gateway.
    pub server: ServerAddress,
    /// How its certificate is checked.
    pub tls: TlsOptions,
    /// The proxy to go through.
    pub proxy: Option<ProxyAddress>,
    /// Who we are.
    pub credentials: Arc<dyn Credentials>,
    /// Whom we act as.
    pub impersonation: Option<Impersonation>,
    /// The namespace of the context or of the pod.
    pub default_namespace: Option<String>,
}

/// The address of an API server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerAddress {
    /// Whether it is reached by TLS.
    pub scheme: Scheme,
    /// A name or an address; one of IPv6 without brackets.
    pub host: String,
    /// 443 or 80 unless given.
    pub port: u16,
    /// Empty, or begins with a slash and ends without.
    pub path: String,
}

/// How a server is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheme {
    /// Without TLS.
    Http,
    /// With TLS.
    Https,
}

/// How the certificate of a server is checked.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TlsOptions {
    /// Who may have signed it.
    pub authority: Authority,
    /// The name it has to be for, if not the host.
    pub server_name: Option<String>,
    /// Whether it is checked at all.
    pub verification: Verification,
}

/// Who may have signed the certificate of a server.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Authority {
    /// Those the operating system trusts.
    #[default]
    System,
    /// Those in this file, and no others. Read again when it changes.
    File(PathBuf),
    /// These, as PEM, and no others.
    Pem(Vec<u8>),
}

/// Whether the certificate of a server is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Verification {
    /// As it should be.
    #[default]
    Required,
    /// Not at all: `insecure-skip-tls-verify`. Warned about once.
    Skipped,
}

/// An HTTP proxy, asked with CONNECT.
#[derive(Clone, PartialEq, Eq)]
pub struct ProxyAddress {
    /// A name or an address; one of IPv6 without brackets.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// `user:password`, if the address has them, without the escapes of an address. Never shown.
    pub userinfo: Option<String>,
}

/// Whom we act as, in the headers the server knows.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Impersonation {
    /// `Impersonate-User`.
    pub user: String,
    /// `Impersonate-Uid`.
    pub uid: Option<String>,
    /// `Impersonate-Group`, once each.
    pub groups: Vec<String>,
    /// `Impersonate-Extra-…`, by name.
    pub extra: Vec<(String, Vec<String>)>,
}

/// Who we are. One value for the whole process: it may be asked from every thread, and refreshes itself.
pub trait Credentials: fmt::Debug + Send + Sync + 'static {
    /// The bearer token to send now, if there is one. Refreshed when it is due.
    fn token(&self) -> BoxFuture<'_, Result<Option<SecretString>, CredentialError>>;

    /// The client certificate to show now, if there is one. Read again when its files change.
    fn identity(&self) -> BoxFuture<'_, Result<Option<ClientIdentity>, CredentialError>>;

    /// The server answered 401: the next [`token`](Self::token) must be another one, if there can be one.
    fn rejected(&self);
}

/// A client certificate and its key, as PEM.
#[derive(Clone)]
pub struct ClientIdentity {
    /// The certificate, and those between it and its authority.
    pub certificates: Vec<u8>,
    /// The private key.
    pub key: SecretString,
    /// Another number for another pair: a connection made with an earlier one is not used again.
    pub generation: u64,
}

/// Credentials could not be had.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what}: {problem}")]
pub struct CredentialError {
    /// Which credentials: a file, a plugin, a field.
    pub what: String,
    /// What is wrong with them, and what to do. Holds nothing secret.
    pub problem: String,
}

/// Nobody in particular.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Anonymous;

impl Credentials for Anonymous {
    fn token(&self) -> BoxFuture<'_, Result<Option<SecretString>, CredentialError>> {
        Box::pin(async { Ok(None) })
    }

    fn identity(&self) -> BoxFuture<'_, Result<Option<ClientIdentity>, CredentialError>> {
        Box::pin(async { Ok(None) })
    }

    fn rejected(&self) {}
}

impl ServerAddress {
    /// Whether it is this machine: then a token may go without TLS.
    pub fn is_loopback(&self) -> bool {
        let address = self.host.parse::<std::net::IpAddr>();
        self.host == "localhost" || address.is_ok_and(|address| address.is_loopback())
    }
}

impl fmt::Display for ServerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = match self.scheme {
            Scheme::Http => "http",
            Scheme::Https => "https",
        };
        let (open, close) = if self.host.contains(':') { ("[", "]") } else { ("", "") };
        write!(f, "{scheme}://{open}{}{close}:{}{}", self.host, self.port, self.path)
    }
}

impl fmt::Debug for ProxyAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProxyAddress")
            .field("host", &self.host)
            .field("port", &self.port)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for ClientIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientIdentity")
            .field("generation", &self.generation)
            .finish_non_exhaustive()
    }
}
