//! `kubeflect`: reflects a cluster and prints what happens in it.
//!
//! Without a cluster it starts one of its own: the embedded API server with a few objects that keep changing.

use std::error::Error;
use std::io::{self, IsTerminal as _, Write as _};
use std::process::ExitCode;
use std::sync::Arc;

use actix::{Actor, Context, Handler};
use clap::Parser;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Node, Pod};
use kubeflect::client::{Cluster, HttpCluster};
use kubeflect::embedded::ApiServer;
use kubeflect::object::{Resource, StaticKind};
use kubeflect::{Kind, Options, Reflector, ResourceEvent, Runtime};
use tokio::sync::Notify;
use tracing_subscriber::EnvFilter;

/// Reflects nodes, deployments and pods, and prints every change until Ctrl-C.
///
/// Without --server it starts an API server of its own, with a small cluster that keeps changing.
#[derive(Debug, Parser)]
#[command(
    version,
    after_help = "Examples:\n  kubeflect\n  kubectl proxy & kubeflect --server http://127.0.0.1:8001"
)]
struct Arguments {
    /// The API server to reflect, anonymously: as `kubectl proxy` offers it, or with a certificate this system trusts
    #[arg(long, value_name = "URL")]
    server: Option<String>,

    /// How often the cluster of its own changes
    #[arg(long, value_name = "PER_SECOND", default_value_t = 2.0, value_parser = rate, conflicts_with = "server")]
    changes: f64,

    /// Makes the cluster of its own change in the same way each time
    #[arg(long, default_value_t = 1, conflicts_with = "server")]
    seed: u64,
}

fn rate(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(rate) if (0.001..=10_000.0).contains(&rate) => Ok(rate),
        _ => Err("write a number from 0.001 to 10000".to_owned()),
    }
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("warn"));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(io::stderr().is_terminal())
        .with_writer(io::stderr)
        .init();
    match actix_rt::System::new().block_on(run(arguments)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            complain(&*error);
            ExitCode::FAILURE
        }
    }
}

async fn run(arguments: Arguments) -> Result<(), Box<dyn Error>> {
    match arguments.server {
        Some(url) => reflect(HttpCluster::new(&url)?).await,
        None => {
            let server = ApiServer::demo_cluster(arguments.seed);
            let serving = server.start().await?;
            say(&format!("cluster    {}  (kubectl --server {0} get pods -A -w)", serving.url()));
            let demo = actix_rt::spawn(server.run_demo(arguments.changes));
            let reflected = reflect(HttpCluster::new(&serving.url())?).await;
            demo.abort();
            serving.stop().await;
            reflected
        }
    }
}

async fn reflect(cluster: impl Cluster) -> Result<(), Box<dyn Error>> {
    let runtime = Runtime::new(cluster);
    let output_closed = Arc::new(Notify::new());
    print::<Node>(&runtime, &output_closed).await?;
    print::<Deployment>(&runtime, &output_closed).await?;
    print::<Pod>(&runtime, &output_closed).await?;
    tokio::select! {
        stopped = runtime.run() => stopped?,
        // `kubeflect | head` is done when head is.
        () = output_closed.notified() => runtime.stop().await,
    }
    say("stopped");
    Ok(())
}

async fn print<K: StaticKind>(
    runtime: &Runtime,
    output_closed: &Arc<Notify>,
) -> kubeflect::Result<Reflector<K>> {
    let reflector = runtime.reflect::<K>(Options::all()).await?;
    let printer = Printer { kind: K::static_kind(), output_closed: Arc::clone(output_closed) };
    reflector.subscribe(printer.start()).await?;
    Ok(reflector)
}

/// Prints what it is told of one kind.
struct Printer {
    kind: Kind,
    output_closed: Arc<Notify>,
}

impl Actor for Printer {
    type Context = Context<Self>;
}

impl<K: Resource> Handler<ResourceEvent<K>> for Printer {
    type Result = ();

    fn handle(&mut self, event: ResourceEvent<K>, _: &mut Context<Self>) {
        let cause = event.cause().map(|cause| format!("  {cause:?}")).unwrap_or_default();
        let (happened, key) = match &event {
            ResourceEvent::Added { object, .. } => ("added", object.key().to_string()),
            ResourceEvent::Updated { new, .. } => ("updated", new.key().to_string()),
            ResourceEvent::Deleted { last_known, .. } => ("deleted", last_known.key().to_string()),
            ResourceEvent::Synced => ("synced", String::new()),
        };
        let line = format!("{:<10} {:<17} {key}{cause}", happened, self.kind.to_string());
        if writeln!(io::stdout(), "{}", line.trim_end()).is_err() {
            self.output_closed.notify_one();
        }
    }
}

fn say(line: &str) {
    // Nobody listens any more if this fails, and there is nothing left to do about it.
    writeln!(io::stdout(), "{line}").ok();
}

/// Says what went wrong, and why, cause by cause.
fn complain(error: &dyn Error) {
    let mut message = format!("kubeflect: {error}");
    let mut cause = error.source();
    while let Some(error) = cause {
        message = format!("{message}: {error}");
        cause = error.source();
    }
    writeln!(io::stderr(), "{message}").ok();
}
