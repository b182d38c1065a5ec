//! Credential plugins: programs that print an `ExecCredential`, as `aws`, `gke-gcloud-auth-plugin` and `kubelogin` do.

mod output;
mod process;
#[cfg(test)]
#[cfg(unix)]
mod tests;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use futures::future::BoxFuture;
use secrecy::SecretString;

use super::lease::{Lease, Output};
use super::leased::{Leased, Renew};
use crate::client::{ClientIdentity, CredentialError, Credentials};
use crate::supervision::BackoffOptions;

/// Credentials printed by a program.
///
/// However many ask, it runs once at a time, and again when what it printed expires or is rejected. After a failure, or
/// when all it prints is rejected, it rests: 0.8 s, 1.6 s and so on up to 30 s. It has no terminal.
pub struct CredentialPlugin {
    leased: Leased<PluginOptions>,
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
        let backoff = options.backoff;
        Self { leased: Leased::new(options, backoff, None) }
    }
}

impl Renew for PluginOptions {
    fn what(&self) -> String {
        format!("credential plugin {}", self.command.display())
    }

    fn renew(&self) -> BoxFuture<'_, Result<Output, String>> {
        Box::pin(async {
            let printed = process::run(self).await?;
            Output::parse(&printed, self.version)
        })
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
        Box::pin(self.leased.with(|lease| lease.output().and_then(|output| output.token.clone())))
    }

    fn identity(&self) -> BoxFuture<'_, Result<Option<ClientIdentity>, CredentialError>> {
        Box::pin(self.leased.with(Lease::identity))
    }

    fn rejected(&self) {
        self.leased.rejected();
    }
}

impl fmt::Debug for CredentialPlugin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CredentialPlugin").field(self.leased.source()).finish()
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
