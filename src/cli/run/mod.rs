//! `kubeflect run`: reflectors and sinks as a configuration names them, until it names others.

mod banner;
mod page;
mod reflection;
mod reflections;
mod reload;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use kubeflect::Runtime;
use kubeflect::client::HttpCluster;
use kubeflect::config::Config;
use kubeflect::embedded::ApiServer;
use tokio::signal::unix::{SignalKind, signal};

use self::banner::Banner;
use self::page::{Page, Place};
use self::reflections::Reflections;
use self::reload::ConfigFile;
use super::api_server::rate;
use super::cluster::ClusterArguments;
use super::failure::Failure;
use super::screen::Screen;

const EXAMPLES: &str = "\
Examples:
  kubeflect run                               a cluster of its own, and all that happens in it
  kubeflect run --context production          nodes, deployments and pods of a cluster of yours
  kubeflect run --config kubeflect.toml       your cluster, as the file says
  kubeflect run --config kubeflect.toml --demo
  kill -HUP PID                               reads the file again; so does changing it

Which cluster: that of --server, --kubeconfig or --context; else that of the configuration; else that of $KUBECONFIG;
else, in a pod, the one it runs in; else, with a configuration, that of ~/.kube/config; else one of its own. So what is
in ~/.kube/config is not touched unless somebody asks for it. --demo, --churn and --seed ask for one of its own.

Without a configuration nodes, deployments and pods are reflected, and a line on stdout tells of each change, on a
terminal as well as in a pipe. Every second there is a line with the page, what is reflected and rates: below all else
on a terminal, on stderr elsewhere if the cluster is one of its own.";

/// Reflects what a configuration names, and tells its sinks of every change
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct RunArguments {
    /// What to reflect and whom to tell; config/kubeflect.toml of the sources has every setting
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// Where the page is, instead of where the configuration says
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<SocketAddr>,

    /// Reflect a cluster of its own, whatever the configuration says
    #[arg(long, conflicts_with_all = ["server", "kubeconfig", "context"])]
    demo: bool,

    /// How many changes are made in the cluster of its own: 50/s, or 0 for none [default: 5/s]
    #[arg(long, value_name = "RATE", value_parser = rate, conflicts_with_all = ["server", "kubeconfig", "context"])]
    churn: Option<f64>,

    /// Makes the cluster of its own another one, which changes in the same way each time [default: 1]
    #[arg(long, conflicts_with_all = ["server", "kubeconfig", "context"])]
    seed: Option<u64>,

    #[command(flatten)]
    cluster: ClusterArguments,
}

/// Changes per second of the cluster of its own.
const CHURN: f64 = 5.0;

impl RunArguments {
    /// Whether to reflect a cluster of its own. That of a kubeconfig nobody has pointed at is none of our business.
    fn is_demo(&self) -> bool {
        let is_meant = self.demo || self.churn.is_some() || self.seed.is_some();
        let other = self.config.is_some() || self.cluster.is_given();
        is_meant || !(other || ClusterArguments::is_in_the_environment())
    }
}

pub(crate) async fn run(arguments: RunArguments, screen: &Arc<Screen>) -> Result<(), Failure> {
    let (file, config) = match &arguments.config {
        Some(path) => ConfigFile::read(path).map(|(file, config)| (Some(file), config))?,
        None => (None, Config::default()),
    };
    let place = match (arguments.listen, config.page.listen) {
        (Some(listen), _) => Place::At(listen),
        (None, None) => Place::Off,
        (None, Some(listen)) if file.is_none() => Place::Preferably(listen),
        (None, Some(listen)) => Place::At(listen),
    };
    if !arguments.is_demo() {
        let cluster = arguments.cluster.or(&config.cluster).connect()?;
        let banner = Banner::of_cluster(cluster.connection().server.to_string());
        return supervise(cluster, config, file, place, banner, screen).await;
    }
    let server = ApiServer::demo_cluster(arguments.seed.unwrap_or(1));
    let serving = server
        .start()
        .await
        .map_err(|error| Failure::new(format!("the cluster of its own can not listen: {error}")))?;
    let demo = actix_rt::spawn(async move {
        match arguments.churn.unwrap_or(CHURN) {
            0.0 => std::future::pending().await,
            churn => server.run_demo(churn).await,
        }
    });
    let banner = Banner::of_demo(serving.url());
    let done =
        supervise(HttpCluster::new(&serving.url())?, config, file, place, banner, screen).await;
    demo.abort();
    serving.stop().await;
    done
}

async fn supervise(
    cluster: HttpCluster,
    config: Config,
    mut file: Option<ConfigFile>,
    place: Place,
    banner: Banner,
    screen: &Arc<Screen>,
) -> Result<(), Failure> {
    let runtime = Runtime::new(cluster.clone());
    let page = Page::serve(runtime.clone(), place, config.page.hosts.clone()).await?;
    let mut reflections =
        Reflections::new(cluster, runtime.clone(), page.shower(), Arc::clone(screen));
    let source = file.as_ref().map(ConfigFile::source).unwrap_or_default();
    reflections.change_to(config, source).await?;
    banner.show(page.url(), &reflections, screen);
    let url = page.url().map(|url| format!("{url} │ ")).unwrap_or_default();
    let mut hangup = signal(SignalKind::hangup())
        .map_err(|error| Failure::new(format!("can not listen for signals: {error}")))?;
    let mut seconds = tokio::time::interval(Duration::from_secs(1));
    let ended = {
        let mut stopped = std::pin::pin!(runtime.run());
        loop {
            tokio::select! {
                biased;
                stopped = &mut stopped => break stopped.map_err(Failure::from),
                closed = screen.closed() => break closed.map_err(|error| Failure::stdout(&error)),
                _ = hangup.recv() => {
                    if let Some(file) = &mut file {
                        file.reload(&mut reflections, screen).await;
                    }
                }
                _ = seconds.tick() => {
                    let line = format!("{url}{}", reflections.status_line());
                    if screen.has_status() {
                        screen.set_status(&line);
                    } else if banner.is_demo() && !screen.is_on_a_terminal() {
                        screen.note(&line);
                    }
                    if let Some(file) = &mut file && file.has_changed() {
                        file.reload(&mut reflections, screen).await;
                    }
                }
            }
        }
    };
    runtime.stop().await;
    page.stop().await;
    reflections.stop_sinks().await;
    screen.end();
    screen.note("stopped");
    ended
}
