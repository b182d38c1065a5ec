use std::io::Read as _;
use std::process::{Command, Stdio};

use k8s_openapi::api::core::v1::Pod;
use kubeflect::ObjectKey;
use kubeflect::embedded::ApiServer;
use kubeflect::object::StaticKind as _;
use serde_json::{Value, json};

use crate::support::{Folder, Running, Served, eventually, fold, kubeflect, output, pod, truth};

/// Creates, changes and deletes pods, differently in each round.
fn churn(api: &ApiServer, round: usize) {
    for number in 0..60 {
        let name = format!("pod-{number}");
        let key = ObjectKey::new("default", &name);
        match (number + round) % 4 {
            0 => drop(api.delete(&Pod::static_kind(), &key)),
            _ => drop(api.apply(pod(&name, round)).unwrap()),
        }
    }
}

/// Waits until the lines come to what the server has.
fn converges(program: &Running, api: &ApiServer) {
    eventually("the fold of the lines to be what the server has", || {
        fold(&program.stdout.lines()) == truth(api, &Pod::static_kind())
    });
}

#[test]
fn the_lines_fold_to_what_the_server_has_through_churn_and_restarts() {
    let api = ApiServer::seeded(1);
    churn(&api, 0);
    let mut served = Served::start(&api);
    let address = served.address();
    let mut program = Running::start(&["watch", "pods", "-o", "json", "--server", &served.url]);
    program.stdout.wait_for("SYNCED");
    for round in 1..4 {
        churn(&api, round * 3);
        served.stop();
        churn(&api, round * 3 + 1);
        served = Served::start_on(&api, &address);
        churn(&api, round * 3 + 2);
        converges(&program, &api);
    }
    program.signal("-INT");
    assert_eq!(program.wait().code(), Some(0));
    let keys = [
        "apiVersion",
        "cause",
        "event",
        "kind",
        "name",
        "namespace",
        "object",
        "resourceVersion",
        "uid",
    ];
    for line in program.stdout.lines() {
        let line: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(line.as_object().unwrap().keys().collect::<Vec<_>>(), keys);
    }
}

#[test]
fn a_server_that_was_killed_and_has_forgotten_all_is_believed() {
    let objects = |seed: &'static str, listen: &str, churn: &'static str| {
        let listen = listen.to_owned();
        Running::start(&[
            "api-server",
            "--listen",
            &listen,
            "--objects",
            "pods=100",
            "--seed",
            seed,
            "--churn",
            churn,
        ])
    };
    let server = objects("1", "127.0.0.1:0", "200/s");
    let url = server.stdout.wait_for("http://");
    let program = Running::start(&["watch", "pods", "-A", "-o", "json", "--server", &url]);
    program.stdout.wait_until("changes", |lines| lines.len() > 300);
    server.kill();
    program.stderr.wait_for("trying again");
    let server = objects("2", url.trim_start_matches("http://"), "0");
    server.stdout.wait_for("http://");
    let once = output(&["watch", "pods", "-A", "-o", "json", "--once", "--server", &url]);
    let lines: Vec<String> =
        String::from_utf8(once.stdout).unwrap().lines().map(str::to_owned).collect();
    let there = fold(&lines);
    assert_eq!(there.len(), 100);
    eventually("the fold to be the new server's", || fold(&program.stdout.lines()) == there);
}

#[test]
fn a_watch_waits_for_a_server_that_is_not_there_yet() {
    let api = ApiServer::demo_cluster(1);
    let served = Served::start(&api);
    let (url, address) = (served.url.clone(), served.address());
    served.stop();
    let program = Running::start(&["watch", "pods", "-A", "-o", "name", "--server", &url]);
    program.stderr.wait_for("trying again until it answers");
    let _served = Served::start_on(&api, &address);
    program.stdout.wait_for("pod/");
}

#[test]
fn any_kind_is_shown_by_any_name_in_the_columns_of_kubectl() {
    let api = ApiServer::demo_cluster(1);
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "widgets.example.com" },
        "spec": {
            "group": "example.com", "scope": "Cluster",
            "names": { "kind": "Widget", "plural": "widgets", "singular": "widget", "shortNames": ["wd"] },
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "additionalPrinterColumns": [
                    { "name": "Size", "type": "integer", "jsonPath": ".spec.size" },
                    { "name": "Ready", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Ready\")].status" },
                    { "name": "Secret", "type": "string", "jsonPath": ".spec.secret", "priority": 1 },
                    { "name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp" },
                ],
            }],
        },
    });
    api.create(definition).unwrap();
    let widget = json!({
        "apiVersion": "example.com/v1", "kind": "Widget", "metadata": { "name": "large" }, "spec": { "size": 9 },
        "status": { "conditions": [{ "type": "Ready", "status": "True" }] },
    });
    api.create(widget).unwrap();
    let served = Served::start(&api);
    let folder = Folder::new();
    let kubeconfig = folder.write("k.yaml", &format!(
        "apiVersion: v1\nkind: Config\nclusters: [{{ name: a, cluster: {{ server: '{}' }} }}]\nusers: [{{ name: a, user: {{}} }}]\ncontexts: [{{ name: shop, context: {{ cluster: a, user: a, namespace: shop }} }}]\n",
        served.url,
    ));
    for (arguments, title, count) in [
        (&["po"][..], "NAME READY STATUS RESTARTS AGE", 15),
        (&["Pod", "-A"], "NAMESPACE NAME READY STATUS RESTARTS AGE", 20),
        (&["pods", "-n", "platform"], "NAME READY STATUS RESTARTS AGE", 5),
        (&["pods", "-l", "app=web"], "NAME READY STATUS RESTARTS AGE", 5),
        (
            &["pods", "-A", "--field-selector", "status.phase=Running"],
            "NAMESPACE NAME READY STATUS RESTARTS AGE",
            20,
        ),
        (&["deployments.apps"], "NAME READY UP-TO-DATE AVAILABLE AGE", 3),
        (&["deploy/web"], "NAME READY UP-TO-DATE AVAILABLE AGE", 1),
        (&["deploy", "web"], "NAME READY UP-TO-DATE AVAILABLE AGE", 1),
        (&["no"], "NAME STATUS ROLES AGE VERSION", 3),
        (&["wd"], "NAME SIZE READY AGE", 1),
        (&["widgets.v1.example.com"], "NAME SIZE READY AGE", 1),
        (&["crd"], "NAME AGE", 1),
    ] {
        let mut all = vec!["watch", "--once", "--kubeconfig", &kubeconfig, "--context", "shop"];
        all.extend(arguments);
        let output = output(&all);
        let table = String::from_utf8(output.stdout).unwrap();
        assert!(*arguments != ["wd"] || table.contains("\nlarge   9      True    "), "{table}");
        let mut lines = table.lines();
        let titles: Vec<&str> = lines.next().unwrap_or_default().split_whitespace().collect();
        assert_eq!(
            (titles.join(" ").as_str(), lines.count()),
            (title, count),
            "{arguments:?}\n{table}"
        );
    }
}

#[test]
fn a_wrong_kind_suggests_the_nearest_and_a_wrong_field_ends_it() {
    let served = Served::start(&ApiServer::demo_cluster(1));
    for (arguments, answer) in [
        (&["deploymets"][..], "did you mean deployments"),
        (&["pods", "--field-selector", "spec.colour=blue"], "field label not supported"),
    ] {
        let output = output(&[&["watch", "--server", &served.url], arguments].concat());
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{error}");
        assert!(error.contains(answer), "{error}");
    }
}

#[test]
fn a_change_is_a_row_that_says_what_happened() {
    let api = ApiServer::seeded(1);
    api.apply(pod("a", 1)).unwrap();
    let served = Served::start(&api);
    let program = Running::start(&["watch", "pods", "--server", &served.url]);
    program.stdout.wait_for("ADDED     a");
    api.apply(pod("a", 2)).unwrap();
    program.stdout.wait_for("UPDATED   a");
    api.delete(&Pod::static_kind(), &ObjectKey::new("default", "a")).unwrap();
    program.stdout.wait_for("DELETED   a");
}

#[test]
fn ctrl_c_ends_a_watch_whose_reader_has_stopped_reading() {
    let server =
        Running::start(&["api-server", "--listen", "127.0.0.1:0", "--objects", "pods=2000"]);
    let url = server.stdout.wait_for("http://");
    let mut command = kubeflect(&["watch", "pods", "-A", "-o", "json", "--server", &url]);
    let mut program = command.stdout(Stdio::piped()).spawn().unwrap();
    // It has begun, and there is more than a pipe holds.
    let mut output = program.stdout.take().unwrap();
    output.read_exact(&mut [0; 1]).unwrap();
    let id = program.id().to_string();
    assert!(Command::new("kill").args(["-INT", &id]).status().unwrap().success());
    eventually("the end", || program.try_wait().unwrap().is_some());
    assert_eq!(program.wait().unwrap().code(), Some(0));
}

/// Whoever may name objects would else get to write to the terminals of those who look at them.
#[test]
fn a_name_that_would_move_the_cursor_is_shown_as_text() {
    let api = ApiServer::seeded(1);
    api.apply(pod("good", 1)).unwrap();
    let mut evil = pod("evil\u{1b}]0;pwned\u{7}\n\u{9b}2J", 1);
    evil["metadata"]["uid"] = json!("evil");
    evil["metadata"]["resourceVersion"] = json!("1");
    let key = ObjectKey::new("default", "good");
    api.corrupt(&Pod::static_kind(), &key, evil.to_string()).unwrap();
    let served = Served::start(&api);
    let is_text = |what: &str, bytes: &[u8]| {
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        let shown = || text.lines().filter(|line| line.contains("evil"));
        assert_eq!(shown().count(), 1, "{what}: {text:?}");
        assert!(shown().all(|line| !line.contains(char::is_control)), "{what}: {text:?}");
    };
    for format in ["table", "name", "json"] {
        let once = ["watch", "pods", "--once", "-o", format, "--server", &served.url];
        is_text(format, &output(&once).stdout);
    }
    let folder = Folder::new();
    for sink in ["log", "json"] {
        let file = folder.write("kubeflect.toml", &format!(
            "[page]\nlisten = 'off'\n[sinks.out]\ntype = '{sink}'\n[reflectors.pods]\nkind = 'pods'\nsinks = ['out']\n",
        ));
        let program = Running::start(&["run", "--config", &file, "--server", &served.url]);
        program.stdout.wait_for("evil");
        is_text(sink, program.stdout.lines().join("\n").as_bytes());
    }
}

#[test]
fn once_prints_the_snapshot_and_nothing_after_it() {
    let server = Running::start(&[
        "api-server",
        "--listen",
        "127.0.0.1:0",
        "--objects",
        "pods=3000",
        "--churn",
        "2000/s",
    ]);
    let url = server.stdout.wait_for("http://");
    let print = |format: &str| -> Vec<String> {
        let once = output(&["watch", "pods", "-A", "--once", "-o", format, "--server", &url]);
        String::from_utf8(once.stdout).unwrap().lines().map(str::to_owned).collect()
    };
    assert!(print("json").last().unwrap().contains("\"event\":\"SYNCED\""));
    let mut names: Vec<String> = print("table")
        .iter()
        .map(|row| row.split_whitespace().nth(1).unwrap_or_default().to_owned())
        .collect();
    let printed = names.len();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), printed, "an object was printed twice");
}

#[test]
fn a_signal_before_the_first_snapshot_is_no_failure() {
    // One takes connections and says nothing, the other never comes to the end of the list.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let nowhere = format!("http://{}", silent.local_addr().unwrap());
    let api = ApiServer::demo_cluster(1);
    api.hold_bookmarks(true);
    let slow = Served::start(&api);
    let mut held = Vec::new();
    for url in [&nowhere, &slow.url] {
        for (signal, once, code) in
            [("-INT", true, 130), ("-TERM", true, 130), ("-INT", false, 0), ("-TERM", false, 0)]
        {
            let mut arguments = vec!["watch", "pods", "--server", url.as_str()];
            arguments.extend(once.then_some("--once"));
            let mut program = Running::start(&arguments);
            if *url == nowhere {
                held.push(silent.accept().unwrap());
            } else {
                eventually("a list to be asked for", || api.open_watches() > 0);
            }
            program.signal(signal);
            assert_eq!(program.wait().code(), Some(code), "{signal} {once} {url}");
            let said = program.stderr.lines();
            assert!(!said.iter().any(|line| line.contains("stopped")), "{said:#?}");
            eventually("the watch to be closed", || api.open_watches() == 0);
        }
    }
}

#[test]
fn one_object_that_is_not_there_is_a_failure_and_none_of_many_is_an_answer() {
    let served = Served::start(&ApiServer::demo_cluster(1));
    for (arguments, code, answer) in [
        (&["pod/nope"][..], 1, "there is no pod nope in default"),
        (&["pod", "nope", "-o", "json"], 1, "there is no pod nope in default"),
        (&["node/nope"], 1, "there is no node nope\n"),
        (&["pods", "-n", "empty"], 0, "no pods found in empty"),
        (&["nodes", "-n", "shop"], 0, ""),
    ] {
        let once = ["watch", "--once", "--server", &served.url];
        let output = output(&[&once, arguments].concat());
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {error}");
        assert!(error.contains(answer), "{arguments:?}: {error}");
        assert!(error.lines().count() <= 1, "{arguments:?}: {error}");
    }
}

#[test]
fn who_is_not_let_in_is_told_at_once() {
    let api = ApiServer::demo_cluster(1);
    api.demand_tokens(["secret"]);
    let served = Served::start(&api);
    let output = output(&["watch", "pods", "--server", &served.url]);
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(error.contains("does not say what it serves"), "{error}");
}

#[test]
fn an_outage_is_told_once_and_so_is_its_end() {
    let api = ApiServer::demo_cluster(1);
    let served = Served::start(&api);
    let address = served.address();
    let program = Running::start(&["watch", "pods", "-w", "-A", "--server", &served.url]);
    program.stdout.wait_for("ADDED");
    served.stop();
    program.stderr.wait_for("trying again");
    let _served = Served::start_on(&api, &address);
    program.stderr.wait_for("pods are fresh again");
}
