//! kubectl as a program.

use std::cell::{Cell, RefCell};
use std::path::PathBuf;
use std::process::{Output, Stdio};
use std::rc::Rc;
use std::{env, fs};

use actix_rt::task::JoinHandle;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::Command;

use crate::contents::Contents;
use crate::control_plane::programs;
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
        let program = programs().await.join("kubectl");
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

/// `kubectl get -w`, run again whenever it ends, as somebody does who wants to see more.
pub(crate) struct KubectlWatch {
    seen: Rc<RefCell<Contents>>,
    runs: Rc<Cell<usize>>,
    running: JoinHandle<()>,
}

/// One line for each event: type, key, uid, version.
const LINES: &str = "jsonpath={.type} {.object.metadata.namespace}/{.object.metadata.name} \
                     {.object.metadata.uid} {.object.metadata.resourceVersion}{\"\\n\"}";

impl KubectlWatch {
    /// `what` are resources and their selection.
    pub(crate) fn start(kubectl: Kubectl, what: &[&str]) -> Self {
        let mut arguments = vec!["get", "-w", "--output-watch-events", "-o", LINES];
        arguments.extend(what);
        let arguments: Vec<String> = arguments.into_iter().map(str::to_owned).collect();
        let (seen, runs) = (Rc::<RefCell<Contents>>::default(), Rc::<Cell<usize>>::default());
        let (told, count) = (Rc::clone(&seen), Rc::clone(&runs));
        let running = actix_rt::spawn(async move {
            let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
            loop {
                count.set(count.get() + 1);
                told.borrow_mut().clear();
                let mut child = kubectl.command(&arguments).stderr(Stdio::null()).spawn().unwrap();
                let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
                while let Ok(Some(line)) = lines.next_line().await {
                    see(&mut told.borrow_mut(), &line);
                }
                child.wait().await.unwrap();
            }
        });
        Self { seen, runs, running }
    }

    /// What the last run has shown to be there.
    pub(crate) fn contents(&self) -> Contents {
        self.seen.borrow().clone()
    }

    /// How often it was run.
    pub(crate) fn runs(&self) -> usize {
        self.runs.get()
    }
}

fn see(seen: &mut Contents, line: &str) {
    let words: Vec<&str> = line.split(' ').collect();
    match words[..] {
        ["ADDED" | "MODIFIED", key, uid, version] => {
            seen.insert(key.to_owned(), (uid.to_owned(), version.to_owned()));
        }
        ["DELETED", key, ..] => drop(seen.remove(key)),
        // It says why it ends.
        _ => {}
    }
}

impl Drop for KubectlWatch {
    fn drop(&mut self) {
        self.running.abort();
    }
}

/// The words of each line.
pub(crate) fn words(text: &str) -> Vec<Vec<&str>> {
    text.lines().map(|line| line.split_whitespace().collect()).collect()
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap()
}
