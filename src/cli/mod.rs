//! The commands of the program.

mod api_server;
mod check;
mod cluster;
mod columns;
mod failure;
mod line;
mod objects;
mod run;
mod screen;
mod signals;
mod sinks;
mod table;
mod watch;

use std::process::ExitCode;
use std::sync::Arc;

use clap::{CommandFactory as _, Parser, Subcommand};
use clap_complete::Shell;
use tracing_subscriber::EnvFilter;

use self::failure::Failure;
use self::screen::Screen;

const EXAMPLES: &str = "\
Examples:
  kubeflect                                   a cluster of its own, and all that happens in it
  kubeflect --context production              the same for a cluster of yours
  kubeflect run --config kubeflect.toml       what the file says, until it says something else
  kubeflect watch pods -A                     kubectl get -w, but it never gives up
  kubeflect watch deploy -n shop -o json | jq .name
  kubeflect check --config kubeflect.toml     whether the cluster lets us
  kubeflect api-server --objects pods=1000 --churn 50/s

Exit codes:
  0    done, or ended by Ctrl-C, SIGTERM or a reader that went away
  1    failed, as the message on stderr says
  2    the arguments or the configuration can not be meant
  130  `watch --once` was interrupted before it was done

What goes to stdout is what was asked for; all else goes to stderr. RUST_LOG=info shows more of it. NO_COLOR turns
colours off, which are on on a terminal only.";

/// Reflects Kubernetes resources: keeps them in memory, shows them, and tells others of every change.
///
/// Without a command it is `kubeflect run`. Without --config, --kubeconfig, --context, --server and $KUBECONFIG, and
/// not in a pod, that is an API server of its own, with a small cluster that keeps changing.
#[derive(Debug, Parser)]
#[command(version, after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
struct Arguments {
    #[command(flatten)]
    run: run::RunArguments,

    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    Run(run::RunArguments),
    Watch(watch::WatchArguments),
    ApiServer(api_server::ApiServerArguments),
    Check(check::CheckArguments),
    /// Prints a script that completes commands and flags in a shell
    #[command(after_help = "Example:\n  source <(kubeflect completions bash)")]
    Completions {
        /// Of which shell
        shell: Shell,
    },
}

impl Command {
    /// What is logged unless `RUST_LOG` says otherwise.
    fn default_log(&self) -> &'static str {
        match self {
            // It says itself what is in its way, in fewer words.
            Self::Watch(_) | Self::Check(_) => "error",
            Self::Run(_) | Self::ApiServer(_) | Self::Completions { .. } => "warn",
        }
    }
}

/// Does what the arguments say.
pub(crate) fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let screen = Arc::new(Screen::of_process());
    let command = arguments.command.unwrap_or(Command::Run(arguments.run));
    log_to(&screen, command.default_log());
    let done = actix_rt::System::new().block_on(carry_out(command, &screen));
    screen.end();
    match done.and_then(|()| screen.check_printed().map_err(|error| Failure::stdout(&error))) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            screen.note(&format!("kubeflect: {failure}"));
            failure.exit_code()
        }
    }
}

async fn carry_out(command: Command, screen: &Arc<Screen>) -> Result<(), Failure> {
    match command {
        Command::Run(arguments) => run::run(arguments, screen).await,
        Command::Watch(arguments) => watch::watch(arguments, screen).await,
        Command::ApiServer(arguments) => api_server::serve(arguments, screen).await,
        Command::Check(arguments) => check::check(arguments, screen).await,
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Arguments::command(), "kubeflect", &mut script);
            screen.print(&script);
            Ok(())
        }
    }
}

/// Logs go above the status line.
fn log_to(screen: &Arc<Screen>, default: &str) {
    let wanted = std::env::var(EnvFilter::DEFAULT_ENV).unwrap_or_default();
    let filter = EnvFilter::try_new(if wanted.is_empty() { default } else { &wanted });
    let filter = filter.unwrap_or_else(|error| {
        screen.note(&format!(
            "kubeflect: RUST_LOG is not understood ({error}): write it like info or kubeflect=debug"
        ));
        EnvFilter::new(default)
    });
    let writer = Arc::clone(screen);
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(screen.has_coloured_notes())
        .with_writer(move || writer.notes())
        .init();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_arguments_are_well_formed() {
        Arguments::command().debug_assert();
    }
}
