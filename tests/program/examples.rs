//! The examples, which `cargo test` has built next to this test, as a user runs them.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, fs};

use crate::support::{PATIENCE, Running, Said, eventually, repository};

#[test]
fn every_example_is_short_says_how_to_run_it_and_is_run_here() {
    let (readme, here) = (read(&repository("examples/README.md")), include_str!("examples.rs"));
    for entry in fs::read_dir(repository("examples")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "rs") {
            continue;
        }
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let text = read(&path);
        assert!(text.lines().count() < 100, "{name} is too long");
        assert!(text.starts_with("//! "), "{name} does not say what it shows");
        assert!(text.contains(&format!("//! Run with `cargo run --example {name}`")), "{name}");
        assert!(
            readme.contains(&format!("| `{name}` |")),
            "examples/README.md does not name {name}"
        );
        assert!(here.contains(&format!("(\"{name}\")")), "{name} is not run");
    }
}

#[test]
fn hello_pods_prints_the_pods_and_what_happens_to_them() {
    let lines = run("hello_pods");
    assert!(lines[..20].iter().all(|line| line.starts_with("added ")), "{lines:#?}");
    assert_eq!(lines[20..22], ["synced", "20 pods; now what happens to them:"]);
    assert!(lines.len() >= 32, "{lines:#?}");
}

#[test]
fn web_app_answers_from_the_cache_and_tells_browsers() {
    let mut app = start("web_app");
    let address = app.stdout.wait_for("open ").replace("open http://", "").replace('/', "");
    eventually("readiness", || get(&address, "/readyz").ends_with("\r\n\r\nready\n"));
    assert!(get(&address, "/nodes/node-1/pods").contains("web-"));
    assert!(!get(&address, "/nodes/node-9/pods").contains("web-"));
    assert!(get(&address, "/").contains("EventSource('/events')"));

    let events = Said::listen(ask(&address, "/events"));
    events.wait_for("data: added shop/web-");
    events.wait_until("changes after the first snapshot", |lines| {
        let synced = lines.iter().position(|line| line == "data: synced");
        let later = synced.map_or(&[][..], |synced| &lines[synced + 1..]);
        later.iter().any(|line| line.starts_with("data: "))
    });
    app.signal("-INT");
    assert!(app.wait().success());
    assert_eq!(app.stdout.lines()[1..], ["stopped"]);
}

#[test]
fn tokio_hears_of_three_nodes() {
    assert_eq!(run("tokio"), ["added node-1", "added node-2", "added node-3", "synced", "3 nodes"]);
}

#[test]
fn two_subscribers_know_the_same_and_the_slow_one_is_told_less() {
    let lines = run("two_subscribers");
    let told = |line: &str| -> usize { line.split(' ').nth(2).unwrap().parse().unwrap() };
    let ends = |line: &String| line.ends_with("knows how all pods ended");
    assert!(lines.len() == 2 && lines.iter().all(ends), "{lines:#?}");
    assert!(lines[0].starts_with("fast: ") && lines[1].starts_with("slow: "), "{lines:#?}");
    assert!(told(&lines[1]) <= told(&lines[0]), "{lines:#?}");
}

#[test]
fn many_kinds_are_reflected_side_by_side() {
    let lines = run("many_kinds");
    let one_actor = [" 5 Deployments", " 3 Nodes", "15 Pods"];
    assert_eq!(lines[..3], one_actor.map(|told| format!("one actor was told of {told}")));
    assert!(lines[3].ends_with(" kinds, with objects of:"), "{lines:#?}");
    let all = ["  namespaces: 3", "  nodes: 3", "  pods: 20", "  deployments.apps: 5"];
    assert_eq!(lines[4..], all);
}

#[test]
fn crash_and_recover_loses_nothing() {
    let lines = run("crash_and_recover");
    let panics = lines.iter().filter(|line| line.starts_with("panic: planned fault: ")).count();
    assert_eq!(panics, 4, "{lines:#?}");
    for actor in ["publisher", "delta_fifo_store", "supervisor"] {
        let restarted = |line: &String| line.starts_with(actor) && line.ends_with("restarts: 1");
        assert!(lines.iter().any(restarted), "{actor}: {lines:#?}");
    }
    assert!(lines.last().unwrap().starts_with("the subscriber knows all "), "{lines:#?}");
}

#[test]
fn custom_resource_is_followed_from_size_to_size() {
    assert_eq!(
        run("custom_resource"),
        [
            "default/large has size 9",
            "default/small has size 1",
            "that is all for now",
            "default/large went from size 9 to 12",
            "default/large is gone",
            "1 widget is left",
        ]
    );
}

#[test]
fn custom_index_finds_pods_by_node_and_image() {
    let lines = run("custom_index");
    assert_eq!(lines[0], "on node-1:");
    let images = lines.iter().filter(|line| line.starts_with("registry.example/")).count();
    assert_eq!(images, 5, "{lines:#?}");
    let unknown =
        "there is no index \"colour\": add it with Options::index or Reflector::add_index";
    assert_eq!(lines.last().unwrap(), unknown);
}

#[test]
fn projection_reads_less_when_pruned() {
    let lines = run("projection");
    assert_eq!(lines.len(), 2, "{lines:#?}");
    assert!(lines[0].starts_with("shop/web-1 is on node-1: read "), "{lines:#?}");
    for line in lines {
        let numbers = line.split(' ').filter_map(|word| word.parse().ok());
        let [read, there] = numbers.collect::<Vec<u32>>()[..] else { panic!("{line}") };
        assert!(read < there, "{line}");
    }
}

#[test]
fn lazy_reads_what_is_asked_for() {
    let lines = run("lazy");
    assert!(lines[0].starts_with("20 pods in "), "{lines:#?}");
    assert_eq!(lines[1], "20 of them run");
    assert!(lines[2].ends_with(" runs \"registry.example/cache:1.0\""), "{lines:#?}");
    assert_eq!(lines[3..], ["read twice, kept once: true"]);
}

#[test]
fn resync_mends_what_nobody_tells_of_without_a_request() {
    let lines = run("resync");
    let initial = ["kitchen is new: made it white", "porch is new: made it blue"];
    assert_eq!(lines[..2], initial.map(|line| format!("InitialList: {line}")));
    let mended = "Resync: porch was broken: made it blue";
    assert!(lines.iter().any(|line| line == mended), "{lines:#?}");
    assert_eq!(lines.last().unwrap(), "requests meanwhile: 0");
}

#[test]
fn testing_your_actor_passes_its_tests() {
    assert_eq!(
        run("testing_your_actor"),
        [
            "a failed pod is shown until it is deleted: ok",
            "a pod that fails during an outage of an hour is shown after it: ok",
        ]
    );
}

#[test]
fn own_lister_watcher_is_reflected_like_any_other() {
    assert_eq!(
        run("own_lister_watcher"),
        [
            "version 1: ada@shop",
            "version 2: ada@shop, bob@shop",
            "version 3: countess@shop, bob@shop",
            "version 4: countess@shop",
        ]
    );
}

#[test]
fn dashboard_serves_until_its_input_ends() {
    let mut dashboard = example("dashboard");
    let mut running = Running::of(dashboard.stdin(Stdio::piped()));
    let address = running.stdout.wait_for("http://").replace("http://", "").replace('/', "");
    assert!(get(&address, "/").contains("<title>"));
    running.tell("watcher\nnobody\n");
    running.stdout.wait_for("watcher will panic at its next batch");
    running.stdout.wait_for("write one of ");
    assert!(running.wait().success());
}

/// Runs an example to its end, and gives what it printed.
fn run(name: &str) -> Vec<String> {
    let mut running = start(name);
    let succeeded = running.wait().success();
    let (lines, errors) = (running.stdout.lines(), running.stderr.lines());
    assert!(succeeded && errors.is_empty(), "{name}: {lines:#?} {errors:#?}");
    lines
}

fn start(name: &str) -> Running {
    Running::of(&mut example(name))
}

/// The program that was made of an example. With all others it is made by `cargo test`, but not when one test is named.
fn example(name: &str) -> Command {
    let test = env::current_exe().unwrap();
    let program = test.ancestors().nth(2).unwrap().join("examples").join(name);
    let modified = |path: &Path| fs::metadata(path).and_then(|file| file.modified()).ok();
    let source: PathBuf = repository(&format!("examples/{name}.rs"));
    assert!(
        modified(&program) > modified(&source),
        "{} is missing or old: run cargo build --examples",
        program.display()
    );
    let mut command = Command::new(program);
    command.env_remove("RUST_LOG").stdin(Stdio::null());
    command
}

fn get(address: &str, path: &str) -> String {
    let mut answer = String::new();
    ask(address, path).read_to_string(&mut answer).unwrap();
    answer
}

fn ask(address: &str, path: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").unwrap();
    stream
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap()
}
