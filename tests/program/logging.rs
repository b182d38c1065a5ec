//! What is logged when somebody wants to know why.

use kubeflect::embedded::ApiServer;

use crate::support::{Running, Served, kubeflect};

#[test]
fn every_decision_is_in_the_debug_log_and_none_without() {
    let api = ApiServer::demo_cluster(1);
    let served = Served::start(&api);
    let parameters = ["watch", "pods", "-A", "-o", "name", "--server", &served.url];
    let quiet = Running::start(&parameters);
    let mut program = Running::of(kubeflect(&parameters).env("RUST_LOG", "kubeflect=debug"));
    let streamed = program.stderr.wait_for("started");
    assert!(streamed.contains("kind=pods") && streamed.contains("stream a list"), "{streamed}");
    program.stderr.wait_for("the streamed list came to its end at ");
    quiet.stdout.wait_for("/web-");
    let version = api.resource_version();
    api.cut_watches();
    let ended = program.stderr.wait_for("the watch was closed at ");
    assert!(ended.contains("decided=\"wait "), "{ended}");
    let resumed = program.stderr.wait_for("waited");
    assert!(resumed.contains(&format!("watch after {version}")), "{resumed}");
    program.signal("-INT");
    program.wait();
    let log = program.stderr.lines().join("\n");
    assert!(!log.contains("registry.example"), "nothing of an object: {log}");
    assert_eq!(quiet.stderr.lines().join("\n"), "");
}
