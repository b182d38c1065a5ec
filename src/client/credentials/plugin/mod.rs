//! Credential plugins: programs that print an `ExecCredential`, as `aws`, `gke-gcloud-auth-plugin` and `kubelogin` do.

mod lease;
mod output;
mod process;
#[cfg(test)]
#[cfg(unix)]
mod tests;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::future::BoxFuture;
use k8s_openapi::jiff::Timestamp;
use secrecy::SecretString;
use tokio::sync::Mutex;
use tokio::time::Instant;
use tracing::{debug, warn};

use self::lease::{Lease, Verdict};
use self::output::Output;
use crate::client::{ClientIdentity, CredentialError, Credentials};
use crate::supervision::{Backoff, BackoffOptions};

/// Credentials printed by a program.
///
/// However many ask, it runs once at a time, and again when what it printed expires or is rejected. After a failure, or
/// when all it prints is rejected, it rests: 0.8 s, 1.6 s and so on up to 30 s. It has no terminal.
pub struct CredentialPlugin {
    shared: Arc<Shared>,
}

struct Shared {
    options: PluginOptions,
    is_rejected: AtomicBool,
    lease: Mutex<Lease>,
}

/// How a plugin is run.
#[derive(Clone)]
pub struct PluginOptions {
    /// The program, as an absolute path. No shell reads it.
    pub command: PathBuf,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// All the variables it sees, beside `KUBERNETES_EXEC_INFO`.
    pub environment: BTreeMap<OsString, OsString>,
    /// What it is asked to print.
    pub version: PluginVersion,
    /// The cluster it is told of: `spec.cluster` of an `ExecCredential`.
    pub cluster: Option<serde_json::Value>,
    /// What to do when it is not there.
    pub install_hint: Option<String>,
    /// It is stopped after this.
    pub timeout: Duration,
    /// How long it rests after a run.
    pub backoff: BackoffOptions,
}

/// The version of `client.authentication.k8s.io` a plugin speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PluginVersion {
    /// `client.authentication.k8s.io/v1beta1`.
    V1Beta1,
    /// `client.authentication.k8s.io/v1`.
    V1,
}

impl CredentialPlugin {
    /// A plugin that has not run yet.
    pub fn new(options: PluginOptions) -> Self {
        let what = format!("credential plugin {}", options.command.display());
        let backoff = Backoff::new(options.backoff, fastrand::Rng::new());
        let lease = Mutex::new(Lease::new(what, backoff));
        Self { shared: Arc::new(Shared { options, is_rejected: AtomicBool::new(false), lease }) }
    }

    /// What `take` takes of good credentials.
    async fn with<T: Send + 'static>(&self, take: fn(&Lease) -> T) -> Result<T, CredentialError> {
        {
            let lease = self.shared.lease.lock().await;
            match self.shared.verdict(&lease) {
                Verdict::Use => return Ok(take(&lease)),
                Verdict::Refuse(error) => return Err(error),
                Verdict::Run => {}
            }
        }
        // In a task of its own: a request that is given up does not end a run that others wait for.
        let shared = Arc::clone(&self.shared);
        let fresh = tokio::spawn(async move {
            let mut lease = shared.lease.lock().await;
            shared.refresh(&mut lease).await.map(|()| take(&lease))
        });
        fresh.await.unwrap_or_else(|_stopped| {
            Err(CredentialError {
                what: format!("credential plugin {}", self.shared.options.command.display()),
                problem: "was stopped with the runtime".to_owned(),
            })
        })
    }
}

impl Shared {
    fn verdict(&self, lease: &Lease) -> Verdict {
        lease.verdict(Instant::now(), Timestamp::now(), self.is_rejected.load(Ordering::Acquire))
    }

    /// Whoever waited for the lock meanwhile finds what the one before has got.
    async fn refresh(&self, lease: &mut Lease) -> Result<(), CredentialError> {
        match self.verdict(lease) {
            Verdict::Use => return Ok(()),
            Verdict::Refuse(error) => return Err(error),
            Verdict::Run => {}
        }
        self.is_rejected.store(false, Ordering::Release);
        debug!(command = %self.options.command.display(), "running a credential plugin");
        let printed = process::run(&self.options).await;
        let result = printed.and_then(|printed| Output::parse(&printed, self.options.version));
        lease.ran(result, Instant::now());
        if let Some(error) = lease.failure() {
            warn!(%error, "a credential plugin did not work");
        }
        match self.verdict(lease) {
            Verdict::Refuse(error) => Err(error),
            Verdict::Use => Ok(()),
            // Its rest is already over: with a tiny backoff.
            Verdict::Run => lease.failure().cloned().map_or(Ok(()), Err),
        }
    }
}

impl PluginOptions {
    /// How `command` is run unless said otherwise: v1, no arguments, no variables, 60 s.
    pub fn new(command: impl Into<PathBuf>) -> Self {
        Self {
            command: command.into(),
            arguments: Vec::new(),
            environment: BTreeMap::new(),
            version: PluginVersion::V1,
            cluster: None,
            install_hint: None,
            timeout: Duration::from_secs(60),
            backoff: BackoffOptions::default(),
        }
    }

    fn exec_info(&self) -> String {
        let mut spec = serde_json::json!({ "interactive": false });
        if let Some(cluster) = &self.cluster {
            spec["cluster"] = cluster.clone();
        }
        let version = self.version.as_str();
        serde_json::json!({ "apiVersion": version, "kind": "ExecCredential", "spec": spec })
            .to_string()
    }

    fn hint(&self) -> String {
        match &self.install_hint {
            Some(hint) => format!(": {}", hint.split_whitespace().collect::<Vec<_>>().join(" ")),
            None => String::new(),
        }
    }
}

impl PluginVersion {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::V1Beta1 => "client.authentication.k8s.io/v1beta1",
            Self::V1 => "client.authentication.k8s.io/v1",
        }
    }
}

impl Credentials for CredentialPlugin {
    fn token(&self) -> BoxFuture<'_, Result<Option<SecretString>, CredentialError>> {
        Box::pin(self.with(|lease| lease.output().and_then(|output| output.token.clone())))
    }

    fn identity(&self) -> BoxFuture<'_, Result<Option<ClientIdentity>, CredentialError>> {
        Box::pin(self.with(Lease::identity))
    }

    fn rejected(&self) {
        self.shared.is_rejected.store(true, Ordering::Release);
    }
}

impl fmt::Debug for CredentialPlugin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CredentialPlugin").field(&self.shared.options).finish()
    }
}

/// Without arguments and values of variables, which may be secret.
impl fmt::Debug for PluginOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PluginOptions")
            .field("command", &self.command)
            .field("version", &self.version)
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}
