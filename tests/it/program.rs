//! The program and the examples, as a user runs them. Real processes on the real clock: tests wait for what they print.

use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

const PROGRAM: &str = env!("CARGO_BIN_EXE_kubeflect");

fn start(arguments: &[&str]) -> Child {
    Command::new(PROGRAM)
        .args(arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

fn signal(child: &Child, signal: &str) {
    let sent = Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap();
    assert!(sent.success());
}

/// Reads lines until one satisfies the condition, and gives them all.
fn read_until(child: &mut Child, wanted: impl Fn(&str) -> bool) -> Vec<String> {
    let output = child.stdout.take().unwrap();
    let mut lines = Vec::new();
    for line in BufReader::new(output).lines().map_while(Result::ok) {
        lines.push(line);
        if lines.last().is_some_and(|line| wanted(line)) {
            return lines;
        }
    }
    panic!("the program ended after {lines:#?}");
}

#[test]
fn the_program_shows_a_cluster_of_its_own_and_ends_cleanly() {
    for interrupt in ["-INT", "-TERM"] {
        let mut program = start(&["--changes", "50"]);
        let output = program.stdout.take().unwrap();
        let mut lines = BufReader::new(output).lines().map_while(Result::ok);
        let mut awaited =
            vec!["synced     nodes", "synced     deployments.apps", "synced     pods", "Watch"];
        while !awaited.is_empty() {
            let line = lines.next().expect("the program goes on until it is told to stop");
            awaited.retain(|awaited| !line.ends_with(awaited));
        }
        signal(&program, interrupt);
        assert_eq!(lines.last().as_deref(), Some("stopped"));
        assert_eq!(program.wait().unwrap().code(), Some(0), "{interrupt}");
    }
}

#[test]
fn the_program_ends_when_nobody_reads_what_it_prints() {
    let mut program = start(&["--changes", "200"]);
    read_until(&mut program, |line| line.starts_with("synced"));
    assert_eq!(program.wait().unwrap().code(), Some(0));
}

#[test]
fn a_wrong_argument_is_answered_with_what_to_write() {
    for (arguments, answer) in [
        (&["--server", "https://user@127.0.0.1:1"][..], "holds a user or a password"),
        (&["--server", "127.0.0.1:1"], "write https://HOST:PORT"),
        (&["--kubeconfig", "/does/not/exist"], "give the path of a kubeconfig"),
        (&["--changes", "none"], "write a number from 0.001 to 10000"),
        (&["--server", "http://127.0.0.1:1", "--seed", "2"], "cannot be used with"),
    ] {
        let output = Command::new(PROGRAM).args(arguments).output().unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success() && error.contains(answer), "{arguments:?}: {error}");
    }
}

#[test]
fn every_example_runs_without_a_cluster() {
    let expected = [
        ("chaos", "the subscriber knows all"),
        ("custom_resource", "reduced: default/large has size 9"),
        ("print", "20 pods"),
        ("tokio", "3 nodes"),
        ("web", "/nodes/node-9/pods: []"),
    ];
    let examples = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("examples");
    let mut names: Vec<String> = std::fs::read_dir(examples)
        .unwrap()
        .map(|entry| entry.unwrap().path().file_stem().unwrap().to_string_lossy().into_owned())
        .collect();
    names.sort();
    assert_eq!(names, expected.map(|(name, _)| name), "each example is run here");

    for (name, line) in expected {
        let run = ["run", "--quiet", "--example", name];
        let output = Command::new(env!("CARGO")).args(run).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success() && text.contains(line), "{name}: {text}");
    }
}
