//! kubectl as a program.

use std::path::PathBuf;
use std::process::{Output, Stdio};
use std::{env, fs};

use serde_json::Value;
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;

use crate::control_plane::build;
use crate::support::LONG;

/// kubectl with a home of its own, and one server it knows of.
pub(crate) struct Kubectl {
    program: PathBuf,
    home: PathBuf,
    server: Vec<String>,
}

impl Kubectl {
    /// `server` are the flags that lead there.
    pub(crate) async fn new(server: &[&str]) -> Self {
        let program = build().await.join("kubectl");
        let home = env::temp_dir().join(format!("kubeflect-kubectl-{:x}", fastrand::u64(..)));
        fs::create_dir_all(&home).unwrap();
        let server = server.iter().map(|flag| (*flag).to_owned()).collect();
        Self { program, home, server }
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.server).args(arguments);
        command.env_clear().env("HOME", &self.home).env("PATH", env::var_os("PATH").unwrap());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.kill_on_drop(true);
        command
    }

    pub(crate) async fn run(&self, arguments: &[&str], input: &Value) -> Output {
        let mut child = self.command(arguments).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        // Whoever reads no input may have ended by now.
        stdin.write_all(input.to_string().as_bytes()).await.ok();
        drop(stdin);
        let output = tokio::time::timeout(LONG, child.wait_with_output()).await;
        output.unwrap_or_else(|_| panic!("kubectl {arguments:?} does not end")).unwrap()
    }

    /// What it prints, without a word of complaint.
    pub(crate) async fn say(&self, command: &str) -> String {
        self.feed(command, &Value::Null).await
    }

    /// The same, with an object to read.
    pub(crate) async fn feed(&self, command: &str, input: &Value) -> String {
        let arguments: Vec<&str> = command.split(' ').collect();
        let output = self.run(&arguments, input).await;
        let complaint = text(output.stderr);
        let quiet = complaint.is_empty() || complaint.starts_with("No resources found");
        assert!(output.status.success() && quiet, "kubectl {command}: {complaint}");
        text(output.stdout) + &complaint
    }

    /// What it complains about.
    pub(crate) async fn fail(&self, command: &str, input: &Value) -> String {
        let arguments: Vec<&str> = command.split(' ').collect();
        let output = self.run(&arguments, input).await;
        assert!(!output.status.success(), "kubectl {command} succeeded");
        text(output.stderr)
    }

    /// Whatever it says, good or bad.
    pub(crate) async fn speak(&self, command: &str, input: &Value) -> String {
        let arguments: Vec<&str> = command.split(' ').collect();
        let output = self.run(&arguments, input).await;
        text(output.stdout) + &text(output.stderr)
    }
}

impl Drop for Kubectl {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.home).ok();
    }
}

/// The words of each line.
pub(crate) fn words(text: &str) -> Vec<Vec<&str>> {
    text.lines().map(|line| line.split_whitespace().collect()).collect()
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap()
}
