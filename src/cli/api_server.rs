use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use kubeflect::client::{Cluster as _, Discovery};
use kubeflect::embedded::ApiServer;

use super::failure::Failure;
use super::objects::Population;
use super::screen::Screen;
use super::signals::Signals;

const EXAMPLES: &str = "\
Examples:
  kubeflect api-server                                   3 nodes, 5 deployments and their pods
  kubeflect api-server --objects pods=1000,nodes=10 --churn 50/s
  kubeflect api-server --kubeconfig-out k.yaml & kubectl --kubeconfig k.yaml get pods -A -w";

/// Serves the Kubernetes API from memory: for trying things out, for tests, and for kubectl
///
/// There is no password, and nothing is kept when it ends: keep it on this machine.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ApiServerArguments {
    /// Where to listen; port 0 is any that is free
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8001")]
    listen: SocketAddr,

    /// What is there to begin with, instead of a small cluster: KIND=COUNT,…
    #[arg(long, value_name = "OBJECTS", value_delimiter = ',', value_parser = objects)]
    objects: Vec<(String, usize)>,

    /// How many changes are made: 50/s, or 0 for none
    #[arg(long, value_name = "RATE", default_value = "0", value_parser = rate)]
    churn: f64,

    /// Makes the same objects and changes each time
    #[arg(long, default_value_t = 1)]
    seed: u64,

    /// Writes a kubeconfig for this server, once it listens
    #[arg(long, value_name = "FILE")]
    kubeconfig_out: Option<PathBuf>,

    /// Writes it even where somebody else's file is
    #[arg(long, requires = "kubeconfig_out")]
    force: bool,
}

const MOST_OBJECTS: usize = 1_000_000;
const MOST_CHANGES: f64 = 100_000.0;

fn objects(text: &str) -> Result<(String, usize), String> {
    let wrong = || format!("write KIND=COUNT with a count up to {MOST_OBJECTS}, like pods=1000");
    let (kind, count) = text.split_once('=').ok_or_else(wrong)?;
    let count = count.parse().ok().filter(|count| *count <= MOST_OBJECTS).ok_or_else(wrong)?;
    Ok((kind.to_owned(), count))
}

/// Reads `50/s`, `30/m` or `50`.
pub(crate) fn rate(text: &str) -> Result<f64, String> {
    let (number, seconds) = match text.split_once('/') {
        Some((number, "s")) => (number, 1.0),
        Some((number, "m")) => (number, 60.0),
        Some(_) => ("", 1.0),
        None => (text, 1.0),
    };
    let rate = number.trim().parse::<f64>().map(|number| number / seconds);
    match rate {
        Ok(rate) if (0.0..=MOST_CHANGES).contains(&rate) => Ok(rate),
        _ => {
            Err("write a number of changes per second, like 50/s, or 30/m; at most 100000/s"
                .to_owned())
        }
    }
}

pub(crate) async fn serve(
    arguments: ApiServerArguments,
    screen: &Arc<Screen>,
) -> Result<(), Failure> {
    let mut signals = Signals::listen()?;
    if let Some(file) = arguments.kubeconfig_out.as_deref().filter(|_| !arguments.force) {
        check_is_ours(file)?;
    }
    let (server, mut populations) = furnish(&arguments).await?;
    let serving = server.start_on(arguments.listen).await.map_err(|error| {
        Failure::new(format!(
            "can not listen on {}: {error}; choose another --listen",
            arguments.listen
        ))
    })?;
    let url = serving.url();
    if let Some(file) = &arguments.kubeconfig_out {
        write_kubeconfig(file, &url)?;
    }
    // Whoever starts it waits for this line.
    screen.print(format!("{url}\n").as_bytes());
    screen.check_printed().map_err(|error| Failure::stdout(&error))?;
    screen.note(&format!("kubectl    kubectl --server {url} get pods -A -w"));
    screen.note(&format!("kubeflect  kubeflect watch pods -A --server {url}"));
    let churn = async {
        if arguments.churn == 0.0 {
            return std::future::pending().await;
        }
        if populations.is_empty() {
            return server.clone().run_demo(arguments.churn).await;
        }
        let mut turn = fastrand::Rng::with_seed(arguments.seed);
        let mut ticks = tokio::time::interval(Duration::from_secs_f64(arguments.churn.recip()));
        loop {
            ticks.tick().await;
            let population = turn.usize(..populations.len());
            populations[population].change();
        }
    };
    tokio::select! {
        () = churn => {}
        () = signals.received() => {}
    }
    serving.stop().await;
    Ok(())
}

async fn furnish(arguments: &ApiServerArguments) -> Result<(ApiServer, Vec<Population>), Failure> {
    if arguments.objects.is_empty() {
        return Ok((ApiServer::demo_cluster(arguments.seed), Vec::new()));
    }
    let server = ApiServer::seeded(arguments.seed);
    server.limit_history(100_000);
    let discovery = Discovery::run(&*server.connect()?).await?;
    let mut populations = Vec::new();
    for (seed, (name, count)) in (arguments.seed..).zip(&arguments.objects) {
        let served = discovery.resolve(name).map_err(|error| Failure::Usage(error.to_string()))?;
        populations.push(Population::new(&server, served.kind.clone(), *count, seed));
    }
    Ok((server, populations))
}

/// What a kubeconfig of ours begins with.
const OURS: &str = "# Written by kubeflect api-server, which writes it again.";

/// A kubeconfig may be all somebody has to get into their cluster.
fn check_is_ours(file: &Path) -> Result<(), Failure> {
    match fs::read(file) {
        Ok(text) if !text.starts_with(OURS.as_bytes()) => Err(Failure::Usage(format!(
            "{} is there already and was not written by kubeflect: choose another file, or add --force",
            file.display()
        ))),
        _ => Ok(()),
    }
}

fn write_kubeconfig(file: &Path, url: &str) -> Result<(), Failure> {
    let text = format!(
        "{OURS}
apiVersion: v1
kind: Config
clusters:
  - name: kubeflect
    cluster:
      server: {url}
users:
  - name: nobody
    user: {{}}
contexts:
  - name: kubeflect
    context:
      cluster: kubeflect
      user: nobody
current-context: kubeflect
"
    );
    fs::write(file, text)
        .map_err(|error| Failure::new(format!("can not write {}: {error}", file.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_per_second_or_per_minute() {
        assert_eq!((rate("50/s"), rate("30/m"), rate("2.5")), (Ok(50.0), Ok(0.5), Ok(2.5)));
        for wrong in ["", "fast", "50/h", "-1", "1e9/s", "NaN"] {
            assert!(rate(wrong).is_err(), "{wrong}");
        }
    }
}
