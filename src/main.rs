//! `kubeflect`: shows what happens in a Kubernetes cluster, and tells others of it.
//!
//! Arguments, then a command, then an exit code: see `cli`.

mod cli;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::main()
}
