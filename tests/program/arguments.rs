use std::fs::File;
use std::process::Stdio;

use kubeflect::embedded::ApiServer;

use crate::support::{Folder, Running, Served, kubeflect, output};

#[test]
fn a_wrong_argument_is_answered_with_what_to_write() {
    let folder = Folder::new();
    let wrong = folder.write("wrong.toml", "[reflectors.a]\nkind = 3\n");
    for (arguments, code, answer) in [
        (&["--server", "https://user@127.0.0.1:1"][..], 2, "holds a user or a password"),
        (&["--server", "127.0.0.1:1"], 2, "write https://HOST:PORT"),
        (&["--kubeconfig", "/does/not/exist"], 1, "give the path of a kubeconfig"),
        (&["--churn", "none"], 2, "like 50/s"),
        (&["--server", "http://127.0.0.1:1", "--seed", "2"], 2, "cannot be used with"),
        (&["--listen", "here"], 2, "invalid socket address"),
        (&["run", "--config", "/does/not/exist"], 2, "give the path of a configuration"),
        (&["run", "--config", &wrong], 2, "wrong.toml:2: reflectors.a.kind: found 3, write"),
        (&["check", "--config", &wrong], 2, "wrong.toml:2: reflectors.a.kind: found 3, write"),
        (&["watch"], 2, "<RESOURCE>"),
        (&["watch", "pods"], 1, "set KUBECONFIG to a kubeconfig, or run in a pod"),
        (&["watch", "pods", "-o", "yaml"], 2, "possible values: table, json, name"),
        (&["watch", "pods", "-A", "-n", "shop"], 2, "cannot be used with"),
        (&["watch", "pods,nodes", "--server", "http://127.0.0.1:1"], 2, "one kind at a time"),
        (&["watch", "pods/", "--server", "http://127.0.0.1:1"], 2, "as KIND/NAME"),
        (&["watch", "pods", "--once", "--server", "http://127.0.0.1:1"], 1, "can not be reached"),
        (&["api-server", "--objects", "pods"], 2, "write KIND=COUNT"),
        (&["api-server", "--objects", "pdos=1"], 2, "did you mean pods?"),
        (&["api-server", "--churn", "50/h"], 2, "like 50/s"),
        (&["completions", "tcl"], 2, "possible values"),
        (&["wach"], 2, "'watch'"),
    ] {
        let output = output(arguments);
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(error.contains(answer), "{arguments:?}: {error}");
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {error}");
        assert!(output.stdout.is_empty(), "{arguments:?}");
    }
}

#[test]
fn help_has_examples_and_exit_codes_and_completions_are_scripts() {
    for (arguments, part) in [
        (&["--help"][..], "Exit codes:"),
        (&["--help"], "kubeflect watch pods -A"),
        (&["run", "--help"], "kill -HUP"),
        (&["watch", "--help"], "\"event\":\"ADDED|UPDATED|DELETED|SYNCED\""),
        (&["api-server", "--help"], "--churn 50/s"),
        (&["check", "--help"], "Ends with 0"),
        (&["--version"], env!("CARGO_PKG_VERSION")),
        (&["completions", "bash"], "_kubeflect()"),
        (&["completions", "zsh"], "#compdef kubeflect"),
        (&["completions", "fish"], "complete -c kubeflect"),
    ] {
        let output = output(arguments);
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success() && text.contains(part), "{arguments:?}: {text}");
    }
}

#[test]
fn what_can_not_be_written_is_a_failure() {
    let served = Served::start(&ApiServer::demo_cluster(1));
    for arguments in [
        &["check", "--server", &served.url][..],
        &["completions", "bash"],
        &["api-server", "--listen", "127.0.0.1:0"],
        &["watch", "pods", "-A", "--once", "--server", &served.url],
        &["watch", "pods", "-A", "--server", &served.url],
    ] {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let mut command = kubeflect(arguments);
        let program = command.stdout(full).stderr(Stdio::piped()).spawn().unwrap();
        let output = program.wait_with_output().unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {error}");
        assert_eq!(error.matches("can not write to stdout: ").count(), 1, "{arguments:?}: {error}");
    }
}

#[test]
fn a_log_filter_that_is_not_understood_is_told() {
    let output =
        kubeflect(&["completions", "bash"]).env("RUST_LOG", "kubeflect=loud").output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.contains("RUST_LOG is not understood"), "{error}");
    assert!(output.status.success());
}

#[test]
fn a_kubeconfig_of_somebody_else_is_not_overwritten() {
    let folder = Folder::new();
    let file = folder.write("config", "the only way into production");
    let serve = ["api-server", "--listen", "127.0.0.1:0", "--kubeconfig-out", &file];
    let refused = output(&serve);
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8(refused.stderr).unwrap().contains("or add --force"));
    assert_eq!(folder.read("config"), "the only way into production");
    for arguments in [&[&serve[..], &["--force"]].concat()[..], &serve] {
        let server = Running::start(arguments);
        let url = server.stdout.wait_for("http://");
        assert!(folder.read("config").contains(&format!("server: {url}\n")));
    }
}
