//! Where an API server is and who we are: from kubeconfigs, a service account or an address.

mod address;
mod command;
mod environment;
mod error;
mod in_cluster;
mod kubeconfig;
mod oidc;
mod proxy;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod user;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

pub use self::address::AddressError;
pub use self::command::PluginPolicy;
pub use self::environment::Environment;
pub use self::error::ConfigError;
#[cfg(test)]
pub(super) use self::testing::{Folder, self_signed};
use super::{Anonymous, Connection, ServerAddress, TlsOptions};

/// Which kubeconfig, and what of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigOptions {
    /// The only file to read. Unless given: those of `KUBECONFIG`, else `~/.kube/config`.
    pub kubeconfig: Option<PathBuf>,
    /// The context to use, if not `current-context`.
    pub context: Option<String>,
    /// The cluster to use, if not that of the context.
    pub cluster: Option<String>,
    /// The user to be, if not that of the context.
    pub user: Option<String>,
    /// The namespace to use, if not that of the context.
    pub namespace: Option<String>,
    /// Which credential plugins may run.
    pub plugins: PluginPolicy,
    /// A plugin is stopped after this.
    pub plugin_timeout: Duration,
    /// Variables that plugins do not see.
    pub plugins_without: Vec<String>,
    /// The variables and folders to go by.
    pub environment: Environment,
}

impl Default for ConfigOptions {
    fn default() -> Self {
        Self {
            kubeconfig: None,
            context: None,
            cluster: None,
            user: None,
            namespace: None,
            plugins: PluginPolicy::default(),
            plugin_timeout: Duration::from_secs(60),
            plugins_without: Vec::new(),
            environment: Environment::of_process(),
        }
    }
}

/// Files are read on the calling thread: make a connection when the program starts.
impl Connection {
    /// By the kubeconfig, if there is one; else as the pod we are in.
    ///
    /// # Errors
    /// When there is neither, or the one that is there can not be used.
    pub fn infer() -> Result<Self, ConfigError> {
        Self::infer_with(&ConfigOptions::default())
    }

    /// By the kubeconfig of `options`, if there is one; else as the pod we are in.
    ///
    /// A file that is named, in `options` or in `KUBECONFIG`, has to be there; only `~/.kube/config` may be missing.
    ///
    /// # Errors
    /// When there is neither, or the one that is there can not be used.
    pub fn infer_with(options: &ConfigOptions) -> Result<Self, ConfigError> {
        if kubeconfig::is_there(options) {
            return Self::from_kubeconfig(options);
        }
        if in_cluster::is_there(&options.environment) {
            let mut connection = Self::in_cluster_with(&options.environment)?;
            if let Some(namespace) = &options.namespace {
                connection.default_namespace = Some(namespace.clone());
            }
            return Ok(connection);
        }
        let file = options.environment.default_kubeconfig();
        let file = file.map_or("~/.kube/config".to_owned(), |file| file.display().to_string());
        Err(ConfigError::new(
            "no cluster",
            format!(
                "{file} is not there and KUBERNETES_SERVICE_HOST is not set: \
                 set KUBECONFIG to a kubeconfig, or run in a pod"
            ),
        ))
    }

    /// By a kubeconfig. Several in `KUBECONFIG` are as one, in which the first to name something counts.
    ///
    /// # Errors
    /// When it is not there or can not be used; the text names the file, the field and what to do.
    pub fn from_kubeconfig(options: &ConfigOptions) -> Result<Self, ConfigError> {
        kubeconfig::connection(options)
    }

    /// As the service account of the pod we are in.
    ///
    /// # Errors
    /// When we are in none, or it has no service account.
    pub fn in_cluster() -> Result<Self, ConfigError> {
        Self::in_cluster_with(&Environment::of_process())
    }

    /// As the service account that is in this environment.
    ///
    /// # Errors
    /// When there is none.
    pub fn in_cluster_with(environment: &Environment) -> Result<Self, ConfigError> {
        in_cluster::connection(environment)
    }

    /// At this address, as nobody, trusting whom the operating system trusts, without a proxy.
    ///
    /// ```
    /// let connection = kubeflect::client::Connection::at("http://127.0.0.1:8001")?;
    /// assert!(connection.server.is_loopback());
    /// # Ok::<(), kubeflect::client::ConfigError>(())
    /// ```
    ///
    /// # Errors
    /// When it is none.
    pub fn at(address: &str) -> Result<Self, ConfigError> {
        let server = ServerAddress::parse(address)
            .map_err(|error| ConfigError::new(address::shown(address), error.to_string()))?;
        Ok(Self {
            server,
            tls: TlsOptions::default(),
            proxy: None,
            credentials: Arc::new(Anonymous),
            impersonation: None,
            default_namespace: None,
        })
    }
}
