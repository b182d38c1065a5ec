use kubeflect::embedded::{ApiServer, Filter, RawAnswer, Verb};
use kubeflect::object::StaticKind as _;

use crate::support::{Folder, Served, output};

#[test]
fn a_cluster_that_lets_us_passes() {
    let served = Served::start(&ApiServer::demo_cluster(1));
    let output = output(&["check", "--server", &served.url]);
    let table = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{table}");
    for part in [
        "connect",
        "system:anonymous",
        "list pods",
        "watch deployments.apps",
        "the server has them",
    ] {
        assert!(table.contains(part), "{table}");
    }
}

#[test]
fn what_is_missing_is_named_with_what_to_do() {
    let api = ApiServer::demo_cluster(1).without_streaming_lists();
    api.forbid(&k8s_openapi::api::core::v1::Pod::static_kind(), Verb::Watch);
    let served = Served::start(&api);
    let folder = Folder::new();
    let text = "[reflectors.a]\nkind = 'pods'\n[reflectors.b]\nkind = 'widgets'\n[reflectors.c]\nkind = 'nodes'\n[reflectors.d]\nkind = 'nodes'\nnamespace = 'shop'";
    let config = folder.write("kubeflect.toml", text);
    let output = output(&["check", "--config", &config, "--server", &served.url]);
    let table = String::from_utf8(output.stdout).unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{table}");
    let line = |part: &str| {
        table
            .lines()
            .find(|line| line.starts_with(part))
            .unwrap_or_else(|| panic!("{part}: {table}"))
    };
    assert!(line("list pods").contains("ok"));
    assert!(
        line("watch pods")
            .contains("apiGroups [\"\"], resources [\"pods\"], verbs [\"list\", \"watch\"]")
    );
    assert!(
        line("kind of b").contains("the server has no kind \"widgets\"; install its definition")
    );
    assert!(line("kind of d").contains("a Node is in no namespace; leave reflectors.d.namespace"));
    assert!(line("streaming lists").contains("note"));
    assert!(error.contains("3 checks failed"), "{error}");
}

#[test]
fn a_server_that_is_not_there_is_named() {
    let output = output(&["check", "--server", "http://127.0.0.1:1"]);
    let table = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(table.contains("FAILED") && table.contains("is the server running"), "{table}");
}

#[test]
fn who_answers_but_is_no_api_server_is_not_taken_for_one() {
    let api = ApiServer::demo_cluster(1);
    let served = Served::start(&api);
    let check = || {
        let output = output(&["check", "--server", &served.url]);
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    };
    api.answer_with(Filter::verb(Verb::Watch), RawAnswer::text(503, "busy"), usize::MAX);
    let (_, table) = check();
    assert!(table.contains("not known: answered 503"), "{table}");
    api.answer_with(Filter::everything(), RawAnswer::text(200, "<html>Log in"), usize::MAX);
    let (code, table) = check();
    assert_eq!(code, Some(1), "{table}");
    assert!(table.contains("FAILED") && table.contains("is this the address of"), "{table}");
}

#[test]
fn a_server_without_tls_is_told_once() {
    let served = Served::start(&ApiServer::demo_cluster(1));
    let url = served.url.replace("http:", "https:");
    let output = output(&["check", "--server", &url]);
    let table = String::from_utf8(output.stdout).unwrap();
    assert_eq!(table.matches("does not speak TLS").count(), 1, "{table}");
}
