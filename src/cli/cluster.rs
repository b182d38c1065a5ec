use std::env;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use kubeflect::api::ApiError;
use kubeflect::client::{
    Cluster as _, ConfigOptions, Connection, Discovery, HttpCluster, ServedKind, UnknownKind,
};
use kubeflect::config::ClusterSettings;

use super::failure::{Failure, chain};
use super::screen::Screen;

/// Which cluster. Without any of these: the one kubectl would take.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Cluster")]
pub(crate) struct ClusterArguments {
    /// The kubeconfig, instead of those in KUBECONFIG or ~/.kube/config
    #[arg(long, value_name = "FILE", conflicts_with = "server")]
    pub(crate) kubeconfig: Option<PathBuf>,

    /// The context of the kubeconfig, instead of its current one
    #[arg(long, value_name = "NAME", conflicts_with = "server")]
    pub(crate) context: Option<String>,

    /// The API server, entered as nobody in particular: what `kubectl proxy` offers
    #[arg(long, value_name = "URL")]
    pub(crate) server: Option<String>,
}

const SERVICE_ACCOUNT_TOKEN: &str = "/var/run/secrets/kubernetes.io/serviceaccount/token";

impl ClusterArguments {
    /// Whether one is named.
    pub(crate) fn is_given(&self) -> bool {
        self.kubeconfig.is_some() || self.context.is_some() || self.server.is_some()
    }

    /// Whether this process was given one: by `KUBECONFIG`, or as the pod it runs in.
    pub(crate) fn is_in_the_environment() -> bool {
        let is_set = |name: &str| env::var_os(name).is_some_and(|value| !value.is_empty());
        is_set("KUBECONFIG")
            || (is_set("KUBERNETES_SERVICE_HOST") && Path::new(SERVICE_ACCOUNT_TOKEN).exists())
    }

    /// These, or else those of a configuration.
    pub(crate) fn or(self, settings: &ClusterSettings) -> Self {
        if self.is_given() {
            return self;
        }
        let ClusterSettings { kubeconfig, context, server } = settings.clone();
        Self { kubeconfig, context, server }
    }

    pub(crate) fn connect(self) -> Result<HttpCluster, Failure> {
        if let Some(url) = &self.server {
            return HttpCluster::new(url).map_err(|error| Failure::Usage(chain(&error)));
        }
        let (kubeconfig, context) = (self.kubeconfig, self.context);
        let options = ConfigOptions { kubeconfig, context, ..ConfigOptions::default() };
        Ok(HttpCluster::from_connection(Connection::infer_with(&options)?))
    }
}

/// How often a server that does not answer is asked what it serves.
const RETRY: Duration = Duration::from_secs(2);

/// Finds the kind that a name means. Waits for a server that does not answer, and says so once, and when it does.
pub(crate) async fn resolve(
    cluster: &HttpCluster,
    name: &str,
    screen: &Screen,
) -> Result<ServedKind, Failure> {
    let mut told = String::new();
    loop {
        match try_resolve(cluster, name).await {
            Ok(found) => {
                if !told.is_empty() {
                    screen.note(&format!("kubeflect: {} answers", cluster.connection().server));
                }
                return found.map_err(|unknown| Failure::new(unknown.to_string()));
            }
            Err(problem) if problem.needs_help => return Err(problem.into()),
            Err(Unresolved { reason, .. }) if reason != told => {
                screen.note(&format!("kubeflect: {reason}; trying again until it answers"));
                told = reason;
            }
            Err(_) => {}
        }
        tokio::time::sleep(RETRY).await;
    }
}

/// Why a server does not say what it serves.
pub(crate) struct Unresolved {
    pub(crate) reason: String,
    /// Whether it will not pass by itself.
    needs_help: bool,
}

impl From<Unresolved> for Failure {
    fn from(problem: Unresolved) -> Self {
        Self::Failed(problem.reason)
    }
}

/// Asks once.
pub(crate) async fn try_resolve(
    cluster: &HttpCluster,
    name: &str,
) -> Result<Result<ServedKind, UnknownKind>, Unresolved> {
    let problem = |error: ApiError| {
        let server = &cluster.connection().server;
        let reason = format!("{server} does not say what it serves: {}", chain(&error));
        Unresolved { reason, needs_help: error.needs_help() }
    };
    let transport = cluster.connect().map_err(problem)?;
    let discovery = Discovery::run(&*transport).await.map_err(problem)?;
    Ok(discovery.resolve(name).cloned())
}
