use std::path::PathBuf;
use std::process::Command;

use crate::options::Options;

/// One client in one mode.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Client {
    pub name: &'static str,
    pub mode: String,
    pub version: String,
    pub program: PathBuf,
}

/// A client that can not run here, and why.
pub type Absent = String;

const LOCK: &str = include_str!("../../Cargo.lock");

/// All that are wanted, and those of them that are not there.
pub fn find(options: &Options) -> Result<(Vec<Client>, Vec<Absent>), String> {
    let mut clients = Vec::new();
    let mut absent = Vec::new();
    for name in ["kube-rs", "client-go", "kubeflect"] {
        let program = options.programs.join(match name {
            "kube-rs" => "bench-kube-rs",
            "kubeflect" => "bench-kubeflect",
            other => other,
        });
        if !program.exists() {
            absent.push(format!("{name} is left out: there is no Go to build it"));
            continue;
        }
        let version = match name {
            "kube-rs" => locked("kube"),
            "kubeflect" => locked("kubeflect"),
            _ => ask(&program, "version")?.trim_start_matches('v').to_owned(),
        };
        let usual = ask(&program, "modes")?;
        let usual: Vec<&str> =
            usual.split_whitespace().filter(|mode| options.wants(name, mode)).collect();
        let picked = options.picked(name).filter(|mode| !usual.contains(mode));
        for mode in usual.iter().copied().chain(picked) {
            let (version, program) = (version.clone(), program.clone());
            clients.push(Client { name, mode: mode.to_owned(), version, program });
        }
    }
    if clients.is_empty() {
        return Err(format!("there is nothing to run: --only {}", options.only.join(",")));
    }
    Ok((clients, absent))
}

fn ask(program: &PathBuf, question: &str) -> Result<String, String> {
    let problem = |error: String| format!("{}: {error}", program.display());
    let output =
        Command::new(program).arg(question).output().map_err(|error| problem(error.to_string()))?;
    if !output.status.success() {
        return Err(problem(String::from_utf8_lossy(&output.stderr).into_owned()));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// The version that was built.
fn locked(package: &str) -> String {
    let entry = format!("name = \"{package}\"\nversion = \"");
    let version = LOCK.split_once(&entry).map_or("", |(_, rest)| rest);
    version.split('"').next().unwrap_or_default().to_owned()
}
