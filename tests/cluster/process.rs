//! One program of a control plane.

use std::fs::OpenOptions;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::support::eventually;

/// A program that is started, ended and started again with the same arguments. It may outlive the test that started it.
pub(crate) struct Process {
    program: PathBuf,
    log: PathBuf,
    arguments: Vec<String>,
    child: Option<Child>,
}

/// A server that was asked to end has ended after this.
const END: Duration = Duration::from_secs(30);

impl Process {
    pub(crate) fn new(program: PathBuf, log: PathBuf) -> Self {
        Self { program, log, arguments: Vec::new(), child: None }
    }

    pub(crate) fn start(&mut self, arguments: Vec<String>) {
        self.arguments = arguments;
        self.start_again();
    }

    /// As before.
    pub(crate) fn start_again(&mut self) {
        assert!(self.child.is_none(), "{} runs already", self.name());
        let log = || OpenOptions::new().create(true).append(true).open(&self.log).unwrap();
        let child = Command::new(&self.program)
            .args(&self.arguments)
            // It ends when we do, even if we are killed: see control-plane/tether.
            .env("KUBEFLECT_TETHER", "yes")
            .stdin(Stdio::piped())
            .stdout(log())
            .stderr(log())
            .spawn()
            .unwrap_or_else(|error| panic!("can not start {}: {error}", self.name()));
        self.child = Some(child);
    }

    /// As an administrator does: SIGTERM.
    pub(crate) async fn stop(&mut self) {
        let child = self.child.as_ref().expect("it runs");
        let asked = Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap();
        assert!(asked.success(), "can not stop {}", self.name());
        let ended = eventually(END, || !self.runs()).await;
        assert!(ended, "{} did not end within {END:?}", self.name());
        self.child = None;
    }

    /// As a crash does: SIGKILL.
    pub(crate) fn kill(&mut self) {
        let mut child = self.child.take().expect("it runs");
        child.kill().unwrap();
        child.wait().unwrap();
    }

    pub(crate) fn runs(&mut self) -> bool {
        self.child.as_mut().is_some_and(|child| child.try_wait().unwrap().is_none())
    }

    /// What it wrote last, if it has ended by itself.
    pub(crate) fn obituary(&mut self) -> Option<String> {
        let status = self.child.as_mut()?.try_wait().unwrap()?;
        Some(format!("{} ended with {status}:\n{}", self.name(), last_lines(&self.log)))
    }

    fn name(&self) -> String {
        self.program.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            // It may have ended by itself.
            child.kill().ok();
            child.wait().ok();
        }
    }
}

fn last_lines(log: &Path) -> String {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(10)..].join("\n")
}
