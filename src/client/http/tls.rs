use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustls::client::ResolvesClientCert;
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::sign::CertifiedKey;
use rustls::{ClientConfig, RootCertStore, SignatureScheme};
use secrecy::ExposeSecret as _;
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::unverified::Unverified;
use crate::client::{
    Authority, ClientIdentity, Connection, CredentialError, Credentials, ServerAddress, TlsOptions,
    Verification,
};

/// No file of authorities is larger.
const AUTHORITY_CAP: u64 = 1 << 20;

/// Whom we trust and who we are, kept up to date. One for all arbiters.
#[derive(Debug)]
pub(super) struct Tls {
    server: ServerAddress,
    options: TlsOptions,
    credentials: Arc<dyn Credentials>,
    reload_interval: Duration,
    stale: AtomicBool,
    current: Mutex<Option<Current>>,
}

#[derive(Debug)]
struct Current {
    trust: Arc<Trust>,
    authority: Pem,
    /// Of the identity.
    generation: Option<u64>,
    checked_at: Instant,
}

/// What a handshake needs. Another one after a change.
pub(super) struct Trust {
    pub(super) config: Arc<ClientConfig>,
    pub(super) name: ServerName<'static>,
    shown_name: String,
    /// Counts the changes.
    pub(super) number: u64,
    identity: Arc<Identity>,
}

/// The PEM of the authorities; none for those of the system.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Pem(Option<Vec<u8>>);

impl Tls {
    pub(super) fn new(connection: &Connection, reload_interval: Duration) -> Self {
        if connection.tls.verification == Verification::Skipped {
            tracing::warn!(
                server = %connection.server,
                "the certificate of the server is not checked (insecure-skip-tls-verify): anybody in between can read and change everything"
            );
        }
        Self {
            server: connection.server.clone(),
            options: connection.tls.clone(),
            credentials: Arc::clone(&connection.credentials),
            reload_interval,
            stale: AtomicBool::new(false),
            current: Mutex::new(None),
        }
    }

    /// Looks at the files again before the next connection.
    pub(super) fn expire(&self) {
        self.stale.store(true, Ordering::Relaxed);
    }

    /// What to use now. Files that can not be read leave what was good before.
    pub(super) async fn current(&self) -> Result<Arc<Trust>, CredentialError> {
        let mut current = self.current.lock().await;
        let stale = self.stale.swap(false, Ordering::Relaxed);
        if let Some(current) = &*current
            && !stale
            && current.checked_at.elapsed() < self.reload_interval
        {
            return Ok(Arc::clone(&current.trust));
        }
        match self.load(current.as_ref()).await {
            Ok(loaded) => Ok(Arc::clone(&current.insert(loaded).trust)),
            Err(error) => match &mut *current {
                Some(current) => {
                    tracing::warn!(%error, "certificates can not be read again: those read before stay in use");
                    current.checked_at = Instant::now();
                    Ok(Arc::clone(&current.trust))
                }
                None => Err(error),
            },
        }
    }

    async fn load(&self, before: Option<&Current>) -> Result<Current, CredentialError> {
        let authority = read_authority(&self.options.authority).await?;
        let identity = self.credentials.identity().await?;
        let generation = identity.as_ref().map(|identity| identity.generation);
        let checked_at = Instant::now();
        if let Some(before) = before
            && before.authority == authority
            && before.generation == generation
        {
            let trust = Arc::clone(&before.trust);
            return Ok(Current { trust, authority, generation, checked_at });
        }
        let number = before.map_or(0, |before| before.trust.number + 1);
        let trust = self.build(&authority, identity.as_ref(), number).await?;
        Ok(Current { trust: Arc::new(trust), authority, generation, checked_at })
    }

    async fn build(
        &self,
        authority: &Pem,
        identity: Option<&ClientIdentity>,
        number: u64,
    ) -> Result<Trust, CredentialError> {
        let provider = Arc::new(ring::default_provider());
        let shown_name = self.options.server_name.as_ref().unwrap_or(&self.server.host).clone();
        let name = ServerName::try_from(shown_name.clone()).map_err(|_error| {
            problem("tls-server-name", format!("{shown_name:?} is no name and no address"))
        })?;
        let identity = Arc::new(Identity::new(identity, &provider)?);
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| problem("TLS", error.to_string()))?;
        let builder = match self.options.verification {
            Verification::Required => {
                builder.with_root_certificates(roots(authority, &self.options.authority).await?)
            }
            Verification::Skipped => builder
                .dangerous()
                .with_custom_certificate_verifier(Arc::new(Unverified::new(provider))),
        };
        let resolver: Arc<dyn ResolvesClientCert> = Arc::<Identity>::clone(&identity);
        let mut config = builder.with_client_cert_resolver(resolver);
        // A watch must not share its connection: in HTTP/2 the slowest one stalls the others.
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Trust { config: Arc::new(config), name, shown_name, number, identity })
    }
}

impl Trust {
    /// The name the certificate of the server has to be for.
    pub(super) fn server_name(&self) -> &str {
        &self.shown_name
    }

    /// Whether the server asked for a client certificate, we had none, and that may be why it does not answer.
    pub(super) fn misses_identity(&self) -> bool {
        let identity = &self.identity;
        identity.key.is_none()
            && identity.asked.load(Ordering::Relaxed)
            && !identity.answered.load(Ordering::Relaxed)
    }

    /// The server answered: it asks every client for a certificate, and needs none.
    pub(super) fn answered(&self) {
        self.identity.answered.store(true, Ordering::Relaxed);
    }
}

/// Shows our certificate to a server that asks, and remembers that one did.
#[derive(Debug)]
struct Identity {
    key: Option<Arc<CertifiedKey>>,
    asked: AtomicBool,
    /// Whether a server said anything after a handshake.
    answered: AtomicBool,
}

impl Identity {
    fn new(
        identity: Option<&ClientIdentity>,
        provider: &CryptoProvider,
    ) -> Result<Self, CredentialError> {
        let key = identity.map(|identity| certified_key(identity, provider)).transpose()?;
        Ok(Self {
            key: key.map(Arc::new),
            asked: AtomicBool::new(false),
            answered: AtomicBool::new(false),
        })
    }
}

impl ResolvesClientCert for Identity {
    fn resolve(&self, _authorities: &[&[u8]], _: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        self.asked.store(true, Ordering::Relaxed);
        self.key.clone()
    }

    fn has_certs(&self) -> bool {
        self.key.is_some()
    }
}

fn certified_key(
    identity: &ClientIdentity,
    provider: &CryptoProvider,
) -> Result<CertifiedKey, CredentialError> {
    let certificates = certificates(&identity.certificates)
        .ok_or_else(|| problem("client-certificate", "is not a certificate in PEM"))?;
    // What is wrong with a key is not shown: it may show the key.
    let key = PrivateKeyDer::from_pem_slice(identity.key.expose_secret().as_bytes())
        .map_err(|_error| problem("client-key", "is not a private key in PEM"))?;
    CertifiedKey::from_der(certificates, key, provider).map_err(|error| match error {
        rustls::Error::InconsistentKeys(_) => {
            problem("client-key", "does not belong to client-certificate: give both of one pair")
        }
        _ => problem("client-key", "is of a kind that is not supported: use RSA, ECDSA or Ed25519"),
    })
}

async fn read_authority(authority: &Authority) -> Result<Pem, CredentialError> {
    match authority {
        Authority::System => Ok(Pem(None)),
        Authority::Pem(pem) => Ok(Pem(Some(pem.clone()))),
        Authority::File(path) => read_file(path).await.map(|pem| Pem(Some(pem))),
    }
}

async fn read_file(path: &Path) -> Result<Vec<u8>, CredentialError> {
    use tokio::io::AsyncReadExt as _;
    let what = || format!("certificate-authority {}", path.display());
    let read = async {
        let mut pem = Vec::new();
        let file = tokio::fs::File::open(path).await?;
        file.take(AUTHORITY_CAP + 1).read_to_end(&mut pem).await?;
        Ok::<_, std::io::Error>(pem)
    };
    let pem = read.await.map_err(|error| problem(what(), format!("can not be read: {error}")))?;
    if pem.len() as u64 > AUTHORITY_CAP {
        return Err(problem(what(), format!("is larger than {AUTHORITY_CAP} bytes")));
    }
    Ok(pem)
}

async fn roots(pem: &Pem, authority: &Authority) -> Result<RootCertStore, CredentialError> {
    let (what, certificates) = match (&pem.0, authority) {
        (Some(pem), Authority::File(path)) => {
            (format!("certificate-authority {}", path.display()), certificates(pem))
        }
        (Some(pem), Authority::System | Authority::Pem(_)) => {
            ("certificate-authority-data".to_owned(), certificates(pem))
        }
        (None, _) => {
            let what = "the certificate authorities of this system".to_owned();
            let loaded = tokio::task::spawn_blocking(rustls_native_certs::load_native_certs).await;
            (what, loaded.ok().map(|loaded| loaded.certs))
        }
    };
    let mut roots = RootCertStore::empty();
    let (usable, _unusable) = roots.add_parsable_certificates(certificates.unwrap_or_default());
    if usable == 0 {
        return Err(problem(
            what,
            "no usable certificate in PEM: give the authority of the cluster",
        ));
    }
    Ok(roots)
}

/// The certificates in a PEM: at least one, all of them readable.
fn certificates(pem: &[u8]) -> Option<Vec<CertificateDer<'static>>> {
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    certificates.ok().filter(|certificates| !certificates.is_empty())
}

fn problem(what: impl Into<String>, problem: impl Into<String>) -> CredentialError {
    CredentialError { what: what.into(), problem: problem.into() }
}

impl fmt::Debug for Trust {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Trust")
            .field("name", &self.shown_name)
            .field("number", &self.number)
            .finish_non_exhaustive()
    }
}
