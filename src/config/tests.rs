use std::path::Path;
use std::time::Duration;

use super::*;

const SAMPLE: &str = include_str!("../../config/kubeflect.toml");

fn parse(text: &str) -> Result<Config, InvalidConfig> {
    Config::parse(Path::new("k.toml"), text)
}

/// The settings that the sample has out of use, in use.
fn sample_in_full() -> String {
    let in_use = |line: &str| match line.strip_prefix('#') {
        Some(setting) if setting.starts_with(|c: char| c.is_alphabetic() || c == '[') => {
            // Two that write to stdout are one too many.
            format!("{}\n", setting.replace("path = \"-\"", "path = \"a.jsonl\""))
        }
        _ => format!("{line}\n"),
    };
    SAMPLE.lines().map(in_use).collect()
}

#[test]
fn the_sample_is_the_default() {
    assert_eq!(parse(SAMPLE).unwrap(), Config::default());
    assert_eq!(parse("").unwrap(), Config::default());
}

#[test]
fn what_the_sample_has_out_of_use_are_defaults_too() {
    let full = parse(&sample_in_full()).unwrap();
    let least = "
        [sinks.log]
        type = 'log'
        [sinks.lines]
        type = 'json'
        path = 'a.jsonl'
        [sinks.hook]
        type = 'webhook'
        url = 'http://127.0.0.1:8080/changes'
        [sinks.stream]
        type = 'events'";
    assert_eq!(full.sinks, parse(least).unwrap().sinks);
    assert_eq!(full.sinks.len(), 4);
}

/// A setting that is misspelt is answered with those there are; the sample has to have them all.
#[test]
fn the_sample_has_every_setting() {
    let full = sample_in_full();
    for (section, some) in [
        ("cluster", ""),
        ("page", ""),
        ("reflectors.a", "kind = 'pods'"),
        ("sinks.a", "type = 'log'"),
        ("sinks.a", "type = 'json'"),
        ("sinks.a", "type = 'webhook'\nurl = 'http://a'"),
        ("sinks.a", "type = 'events'"),
    ] {
        let answer = parse(&format!("[{section}]\n{some}\nmisspelt = 1")).unwrap_err().to_string();
        let (_, known) = answer.split_once("write one of ").unwrap();
        for setting in known.split(", ") {
            assert!(full.contains(&format!("\n{setting} = ")), "{section}: {setting}");
        }
    }
}

#[test]
fn settings_are_taken_as_they_are_meant() {
    let text = "
        [page]
        listen = 'off'
        [sinks.hook]
        type = 'webhook'
        url = 'https://[::1]:8443?key=1'
        [reflectors.web]
        kind = 'pods'
        namespace = 'shop'
        resync = '10m'
        representation = 'metadata'
        indices = { app = \"metadata.labels['app']\" }
        sinks = ['hook', 'hook']";
    let config = parse(text).unwrap();
    assert_eq!(config.page.listen, None);
    let web = &config.reflectors["web"];
    assert_eq!(web.resync, Some(Duration::from_secs(600)));
    assert_eq!(web.representation, Representation::Metadata);
    assert_eq!((web.sinks.as_slice(), web.indices.len()), (&["hook".to_owned()][..], 1));
    let SinkKind::Webhook(hook) = &config.sinks["hook"].kind else { panic!("{config:?}") };
    assert_eq!(
        (hook.server.to_string().as_str(), hook.path.as_str()),
        ("https://[::1]:8443", "/?key=1")
    );
}

#[test]
fn whoever_names_no_sink_tells_every_one_there_is() {
    let sinks = |text: &str| -> Vec<String> {
        let config = parse(text).unwrap();
        let mut sinks: Vec<_> =
            config.reflectors.into_values().map(|it| it.sinks.join(" ")).collect();
        sinks.dedup();
        sinks
    };
    assert_eq!(sinks("[reflectors.a]\nkind = 'pods'"), ["log"]);
    assert_eq!(sinks("[sinks.lines]\ntype = 'json'"), ["lines"]);
    let two = "[sinks.lines]\ntype = 'json'\n[sinks.stream]\ntype = 'events'\n";
    assert_eq!(sinks(two), ["lines stream"]);
    assert_eq!(sinks(&format!("{two}[reflectors.a]\nkind = 'pods'")), ["lines stream"]);
    assert_eq!(sinks(&format!("{two}[reflectors.a]\nkind = 'pods'\nsinks = []")), [""]);
}

#[test]
fn whatever_is_wrong_is_told_in_one_line_with_its_place_and_what_to_write() {
    for (text, expected) in [
        ("[page]\nlisten = 80", "k.toml:2: page.listen: found 80, write an address and a port"),
        (
            "[page]\n\nlisten = 'here'",
            "k.toml:3: page.listen: found \"here\", write an address and",
        ),
        ("[page]\nlisten = ''", "k.toml:2: page.listen: found \"\", write an address and a port"),
        ("[page]\nhosts = ['a:80']", "k.toml:2: page.hosts: found \"a:80\", write a list of names"),
        ("page = 1", "k.toml:1: page: found 1, write a table: [page]"),
        (
            "[page]\nport = 1",
            "k.toml:2: page.port: found a setting that is not known, write one of hosts, listen",
        ),
        (
            "[pages]",
            "k.toml:1: pages: found a table that is not known, write one of cluster, page, reflectors, sinks",
        ),
        ("[cluster]\nserver = 'a'", "k.toml:2: cluster.server: found \"a\", write an address"),
        (
            "[cluster]\ncontext = 'a'\nserver = 'http://a'",
            "k.toml:3: cluster.server: found \"http://a\", leave it out",
        ),
        ("[cluster]\nkubeconfig = 1", "k.toml:2: cluster.kubeconfig: found 1, write a text"),
        ("reflectors = []", "k.toml:1: reflectors: found a list, write a table: [reflectors]"),
        ("[reflectors]\na = 1", "k.toml:2: reflectors.a: found 1, write a table: [reflectors.a]"),
        (
            "[reflectors.a]\nsinks = []",
            "k.toml:1: reflectors.a.kind: found nothing, write the name of a kind",
        ),
        (
            "[reflectors.a]\nkind = ''",
            "k.toml:2: reflectors.a.kind: found \"\", write the name of a kind",
        ),
        (
            "[reflectors.a]\nkind = 'a b'",
            "k.toml:2: reflectors.a.kind: found \"a b\", write the name of",
        ),
        (
            "[reflectors.a]\nkind = 'a'\ngroup = '/'",
            "k.toml:3: reflectors.a.group: found \"/\", write the name of a group",
        ),
        (
            "[reflectors.a]\nkind = 'a'\nnamespace = '*'",
            "k.toml:3: reflectors.a.namespace: found \"*\", write the name of one",
        ),
        (
            "[reflectors.a]\nkind = 'a'\nlabels = 'a near b'",
            "k.toml:3: reflectors.a.labels: found \"a near b\", write a label selector",
        ),
        (
            "[reflectors.a]\nkind = 'a'\nfields = 'a'",
            "k.toml:3: reflectors.a.fields: found \"a\", write a field selector",
        ),
        (
            "[reflectors.a]\nkind = 'a'\nrepresentation = 'small'",
            "k.toml:3: reflectors.a.representation: found \"small\", write \"dynamic\", \"lazy\" or",
        ),
        (
            "[reflectors.a]\nkind = 'a'\nresync = '1ms'",
            "k.toml:3: reflectors.a.resync: found \"1ms\", write a duration of at least 1s",
        ),
        (
            "[reflectors.a]\nkind = 'a'\nresync = ''",
            "k.toml:3: reflectors.a.resync: found \"\", write a duration",
        ),
        (
            "[reflectors.a]\nkind = 'a'\nrepresentation = ''",
            "k.toml:3: reflectors.a.representation: found \"\", write \"dynamic\", \"lazy\" or",
        ),
        (
            "[reflectors.a]\nkind = 'a'\nresync = 10",
            "k.toml:3: reflectors.a.resync: found 10, write a duration",
        ),
        (
            "[reflectors.a]\nkind = 'a'\nindices = { b = '.' }",
            "k.toml:3: reflectors.a.indices.b: found \".\", write a path",
        ),
        (
            "[reflectors.a]\nkind = 'a'\nrepresentation = 'metadata'\nindices.b = 'spec'",
            "k.toml:4: reflectors.a.indices.b: found \"spec\", write a path below metadata",
        ),
        (
            "[reflectors.a]\nkind = 'a'\nsinks = 'log'",
            "k.toml:3: reflectors.a.sinks: found \"log\", write a list with any of \"log\"",
        ),
        (
            "[reflectors.a]\nkind = 'a'\nsinks = [\n'log',\n'lag']",
            "k.toml:5: reflectors.a.sinks: found \"lag\", write a list with any of \"log\"",
        ),
        (
            "[reflectors.a]\nkind = 'a'\n[reflectors.b]\nkind = 'a'",
            "k.toml:4: reflectors.b.kind: found \"a\", but a reflects the same: leave one of them",
        ),
        (
            "[sinks.a]\ntype = 'mail'",
            "k.toml:2: sinks.a.type: found \"mail\", write \"log\", \"json\", \"webhook\" or \"events\"",
        ),
        ("[sinks.a]\nbacklog = 1", "k.toml:1: sinks.a.type: found nothing, write \"log\""),
        (
            "[sinks.a]\ntype = 'log'\nbacklog = -1",
            "k.toml:3: sinks.a.backlog: found -1, write a number from 0 to 1000000",
        ),
        (
            "[sinks.a]\ntype = 'log'\npath = '-'",
            "k.toml:3: sinks.a.path: found a setting that is not known, write one of backlog, type",
        ),
        (
            "[sinks.a]\ntype = 'json'\npath = 1",
            "k.toml:3: sinks.a.path: found 1, write the path of a file, or \"-\"",
        ),
        (
            "[sinks.a]\ntype = 'json'\nrotate-size = '64'",
            "k.toml:3: sinks.a.rotate-size: found \"64\", write a size",
        ),
        (
            "[sinks.a]\ntype = 'json'\nkeep = 0",
            "k.toml:3: sinks.a.keep: found 0, write a number from 1 to 1000",
        ),
        ("[sinks.a]\ntype = 'webhook'", "k.toml:1: sinks.a.url: found nothing, write an address"),
        (
            "[sinks.a]\ntype = 'webhook'\nurl = 'ftp://a'",
            "k.toml:3: sinks.a.url: found \"ftp://a\", write an address",
        ),
        (
            "[sinks.a]\ntype = 'webhook'\nurl = 'http://a'\ntimeout = '1h'",
            "k.toml:4: sinks.a.timeout: found \"1h\", write a duration from 1s to 10m",
        ),
        (
            "[sinks.a]\ntype = 'webhook'\nurl = 'http://a'\ntoken-file = true",
            "k.toml:4: sinks.a.token-file: found true, write the path",
        ),
        (
            "[sinks.a]\ntype = 'events'\nlisten = '9181'",
            "k.toml:3: sinks.a.listen: found \"9181\", write an address and a port",
        ),
        (
            "[sinks.a]\ntype = 'events'\nclients = 1.5",
            "k.toml:3: sinks.a.clients: found 1.5, write a number from 1 to 10000",
        ),
        (
            "[sinks.a]\ntype = 'log'\n[sinks.b]\ntype = 'json'\n[reflectors]",
            "k.toml:4: sinks.b.type: found \"json\", but a writes to stdout too: leave one",
        ),
        ("[page", "k.toml:1: is not TOML: "),
        ("a = 1\na = 2", "k.toml:2: is not TOML: "),
    ] {
        let problem = parse(text).unwrap_err().to_string();
        assert!(problem.starts_with(expected), "{text}\n{problem}");
        assert_eq!(problem.lines().count(), 1, "{text}\n{problem}");
    }
}

#[test]
fn all_that_is_wrong_is_told_at_once_in_the_order_of_the_file() {
    let text = "[page]\nlisten = 1\n[reflectors.a]\nkind = 2\nresync = 3";
    let problem = parse(text).unwrap_err();
    let lines: Vec<_> = problem.problems.iter().map(|problem| problem.line).collect();
    assert_eq!(lines, [Some(2), Some(4), Some(5)]);
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let problem = Config::read(Path::new("/does/not/exist.toml")).unwrap_err().to_string();
    assert!(problem.starts_with("/does/not/exist.toml: can not be read"), "{problem}");
}
