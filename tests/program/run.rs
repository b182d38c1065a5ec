use kubeflect::embedded::ApiServer;

use crate::support::{Folder, Running, Served, eventually, get, get_as, kubeflect};

const ANY_PORT: &str = "127.0.0.1:0";

#[test]
fn the_program_shows_a_cluster_of_its_own_and_ends_cleanly() {
    for interrupt in ["-INT", "-TERM"] {
        let mut program = Running::start(&["--churn", "50", "--listen", ANY_PORT]);
        for part in ["kubectl --server http://127.0.0.1:", "page       http://127.0.0.1:"] {
            program.stderr.wait_for(part);
        }
        program.stderr.wait_for("reflects   deployments, nodes, pods");
        for line in ["synced     nodes", "synced     deployments.apps", "synced     pods", "Watch"]
        {
            program.stdout.wait_for(line);
        }
        program.signal(interrupt);
        assert_eq!(program.wait().code(), Some(0), "{interrupt}");
        program.stderr.wait_for("stopped");
    }
}

#[test]
fn colours_and_status_lines_are_for_terminals() {
    let mut program = Running::start(&["--churn", "50", "--listen", ANY_PORT]);
    program.stdout.wait_for("Watch");
    program.signal("-INT");
    program.wait();
    let said = [program.stdout.lines(), program.stderr.lines()].concat();
    assert!(said.iter().all(|line| !line.contains('\x1b') && !line.contains('\r')), "{said:#?}");
}

#[test]
fn the_program_ends_when_nobody_reads_what_it_prints() {
    for command in ["", "watch pods -A --server "] {
        let server = Running::start(&["api-server", "--listen", ANY_PORT, "--churn", "100/s"]);
        let url = server.stdout.wait_for("http://");
        let program = env!("CARGO_BIN_EXE_kubeflect");
        let command = match command {
            "" => format!("{program} --churn 200 --listen {ANY_PORT} | head -n 3"),
            watch => format!("{program} {watch}{url} | head -n 3"),
        };
        let script = format!("set -o pipefail; {command}");
        let output = std::process::Command::new("bash").args(["-c", &script]).output().unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(0), "{error}");
        assert!(!error.contains("panic") && !error.contains("pipe"), "{error}");
        assert_eq!(String::from_utf8(output.stdout).unwrap().lines().count(), 3);
    }
}

#[test]
fn a_configuration_may_be_tried_on_a_cluster_of_its_own() {
    let folder = Folder::new();
    let config = folder.write(
        "kubeflect.toml",
        "[sinks.out]
        type = 'json'
        [reflectors.workers]
        kind = 'po'
        namespace = 'shop'
        labels = 'app=worker'
        representation = 'metadata'
        sinks = ['out']",
    );
    let program = Running::start(&["run", "--config", &config, "--demo", "--listen", ANY_PORT]);
    program.stdout.wait_for("SYNCED");
    let lines = program.stdout.lines();
    assert!(lines.len() > 3, "{lines:#?}");
    for line in &lines {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!((&line["apiVersion"], &line["kind"]), (&"v1".into(), &"Pod".into()));
        assert!(line["name"].as_str().is_none_or(|name| name.starts_with("worker-")), "{line}");
        assert!(line["object"]["spec"].is_null(), "{line}");
    }
}

#[test]
fn a_kind_that_is_not_there_is_waited_for() {
    let folder = Folder::new();
    let text = "[reflectors.widgets]\nkind = 'widgets'\nsinks = ['log']\n[reflectors.nodes]\nkind = 'nodes'\nsinks = ['log']";
    let config = folder.write("kubeflect.toml", text);
    let program = Running::start(&["run", "--config", &config, "--demo", "--listen", ANY_PORT]);
    program.stderr.wait_for("widgets: the server has no kind \"widgets\"; trying again");
    program.stdout.wait_for("synced     nodes");
}

fn page(program: &Running) -> String {
    program.stderr.wait_for("page       ").split_whitespace().nth(1).unwrap().to_owned()
}

#[test]
fn what_is_not_reflected_yet_is_not_ready_and_says_why() {
    let served = Served::start(&ApiServer::demo_cluster(1));
    let folder = Folder::new();
    let text = "[reflectors.gadgets]\nkind = 'gadgets'\n[reflectors.nodes]\nkind = 'nodes'\nnamespace = 'shop'\n\
                [reflectors.pods]\nkind = 'pods'\n";
    let file = folder.write("kubeflect.toml", text);
    let run = |url: &str| {
        Running::start(&["run", "--config", &file, "--listen", ANY_PORT, "--server", url])
    };
    let program = run(&served.url);
    let url = page(&program);
    eventually("each to be told with its reason", || {
        let answer = get(&url, "/readyz");
        let parts = [
            "503 ",
            "[+] pods: ok\n",
            "[-] gadgets: the server has no kind \"gadgets\"\n",
            "kubeflect.toml:5: reflectors.nodes.namespace: found \"shop\", a Node is in no namespace",
        ];
        parts.iter().all(|part| answer.contains(part))
    });
    let status = get(&url, "/status.json");
    assert!(
        status.contains("\"pending\":[{\"name\":\"gadgets\",\"reason\":\"the server has"),
        "{status}"
    );
    folder.write("kubeflect.toml", "[reflectors.pods]\nkind = 'pods'\n");
    eventually("what is not asked for any more to be forgotten", || {
        get(&url, "/readyz").ends_with("\r\n\r\n[+] pods: ok\nready\n")
    });
    let nobody = run("http://127.0.0.1:1");
    let answer = get(&page(&nobody), "/readyz");
    assert!(answer.contains("503 ") && answer.contains("[-] pods: "), "{answer}");
}

#[test]
fn reflectors_and_sinks_are_shown_by_their_names() {
    let folder = Folder::new();
    let text = "[sinks.out]\ntype = 'log'\n[reflectors.web]\nkind = 'pods'\nlabels = 'app=web'\n\
                [reflectors.all]\nkind = 'pods'\n";
    let file = folder.write("kubeflect.toml", text);
    let program = Running::start(&["run", "--config", &file, "--demo", "--listen", ANY_PORT]);
    let url = page(&program);
    eventually("both", || get(&url, "/readyz").contains("[+] web: pods: ok\n"));
    let metrics = get(&url, "/metrics");
    for part in
        ["{resource=\"pods\",reflector=\"all\"}", ",reflector=\"web\",labels=", "name=\"out\""]
    {
        assert!(metrics.contains(part), "{part}: {metrics}");
    }
    let status = get(&url, "/status.json");
    assert!(status.contains("\"name\":\"out\"") && status.contains("\"name\":\"web\""), "{status}");
}

#[test]
fn every_second_a_line_tells_where_the_page_is_and_how_much_happens() {
    let program = Running::start(&["--churn", "50", "--listen", ANY_PORT]);
    let url = page(&program);
    program.stderr.wait_until("two of them", |lines| {
        let is_live = |line: &&String| {
            line.starts_with(&url) && line.contains("pods ") && line.ends_with(" changes/s │ fresh")
        };
        lines.iter().filter(is_live).count() > 1
    });
}

#[test]
fn only_a_cluster_that_was_asked_for_is_touched() {
    let api = ApiServer::demo_cluster(1);
    let served = Served::start(&api);
    let home = Folder::new();
    std::fs::create_dir(home.path(".kube")).unwrap();
    let text = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: a\nclusters: [{{ name: a, cluster: {{ server: '{}' }} }}]\n\
         users: [{{ name: a, user: {{}} }}]\ncontexts: [{{ name: a, context: {{ cluster: a, user: a }} }}]\n",
        served.url,
    );
    let kubeconfig = home.write(".kube/config", &text);
    let run = |arguments: &[&str], variable: &str| {
        let mut command = kubeflect(&[arguments, &["--listen", ANY_PORT]].concat());
        let program = Running::of(command.env("HOME", home.path("")).env("KUBECONFIG", variable));
        program.stderr.wait_for("cluster    ")
    };
    for (arguments, variable) in
        [(&[][..], ""), (&["--demo"], &kubeconfig), (&["--seed", "2"], &kubeconfig)]
    {
        let line = run(arguments, variable);
        assert!(line.contains("(its own: nothing of yours is touched)"), "{arguments:?}: {line}");
    }
    assert!(api.requests().is_empty());
    for (arguments, variable) in [(&[][..], kubeconfig.as_str()), (&["--context", "a"], "")] {
        assert_eq!(run(arguments, variable), format!("cluster    {}", served.url));
    }
}

#[test]
fn the_page_is_reached_by_the_names_it_was_given() {
    let folder = Folder::new();
    let text = "[page]\nhosts = ['kubeflect.default.svc']\n";
    let file = folder.write("kubeflect.toml", text);
    let program = Running::start(&["run", "--config", &file, "--demo", "--listen", ANY_PORT]);
    let url = page(&program);
    assert!(get_as(&url, "kubeflect.default.svc", "/metrics").starts_with("HTTP/1.1 200 "));
    assert!(get_as(&url, "evil.example", "/metrics").starts_with("HTTP/1.1 421 "));
}
