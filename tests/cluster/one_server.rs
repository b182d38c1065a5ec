//! What is not asked of both servers, and why.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Tests of one server, or of both side by side. Every other test is a scenario that runs with either.
const ONE_SERVER: &[(&str, &str)] = &[
    (
        "a_storage_that_was_killed_comes_back_without_a_gap",
        "real: the embedded server and its storage are one",
    ),
    (
        "a_server_that_sends_clients_away_leaves_us_where_we_are",
        "real: a flag about HTTP/2, which the embedded server does not speak",
    ),
    (
        "after_every_round_the_cache_and_its_subscribers_are_what_kubectl_sees",
        "real: what it does to the embedded server, tests/it/storm.rs does on a paused clock",
    ),
    (
        "informers_of_three_makes_agree_with_a_real_server",
        "real: the embedded server has its own, which uses faults that no real one has",
    ),
    (
        "informers_of_three_makes_and_kubectl_come_to_the_same_contents",
        "embedded: the twin of the above",
    ),
    (
        "objects_are_printed_as_a_real_server_would_have_them_printed",
        "embedded: what kubectl says of the real one is no news",
    ),
    (
        "what_is_applied_twice_is_merged_as_kubernetes_merges_it",
        "embedded: what kubectl says of the real one is no news",
    ),
    (
        "objects_are_created_changed_and_deleted",
        "embedded: what kubectl says of the real one is no news",
    ),
    (
        "a_watch_prints_what_is_created_changed_and_deleted",
        "embedded: what kubectl says of the real one is no news",
    ),
    (
        "kinds_and_the_server_describe_themselves",
        "embedded: what kubectl says of the real one is no news",
    ),
    (
        "the_embedded_server_makes_kubectl_say_what_the_real_one_makes_it_say",
        "both side by side: their answers are compared",
    ),
    (
        "the_embedded_server_answers_as_the_real_one_does",
        "both side by side: their answers are compared",
    ),
    ("both_refuse_what_they_have_forgotten", "both side by side: their answers are compared"),
];

/// What scenarios do to each server in another way.
const OTHER_WAYS: &[(&str, &str)] = &[
    ("grant", "the embedded server knows no users: it lets everybody, or nobody"),
    ("revoke", "the embedded server knows no users: it lets everybody, or nobody"),
    ("restart_with_tokens", "a real server reads its tokens from a file when it starts"),
    ("overload", "the embedded server never has too much to do: it is told to say so"),
    ("relieve", "the embedded server never has too much to do: it is told to say so"),
    (
        "remove_namespace",
        "a real server leaves the end of a namespace to a controller, which is us",
    ),
    ("a_storage_that_was_killed_comes_back_without_a_gap", "for the real one only"),
    ("suffer", "for the real one only"),
];

#[test]
fn what_is_done_in_another_way_to_each_server_is_known() {
    let mut found = BTreeSet::new();
    for text in files().iter().filter(|text| !text.contains("pub(crate) enum Make")) {
        let functions = text.split("fn ").skip(1).filter(|function| function.contains("Make::"));
        found.extend(functions.filter_map(|it| it.split('(').next().map(str::to_owned)));
    }
    found.retain(|name| name != "what_is_done_in_another_way_to_each_server_is_known");
    assert_eq!(found, names(OTHER_WAYS));
}

#[test]
fn what_is_not_asked_of_both_servers_is_known() {
    let mut found = BTreeSet::new();
    for text in files() {
        let tests = text.split("#[actix::test]\nasync fn ").skip(1);
        found.extend(tests.filter_map(|it| it.split('(').next().map(str::to_owned)));
    }
    assert_eq!(found, names(ONE_SERVER));
}

fn names(table: &[(&str, &str)]) -> BTreeSet<String> {
    table.iter().map(|(name, _)| (*name).to_owned()).collect()
}

/// The text of each file of this suite.
fn files() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cluster");
    let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let sources = paths.filter(|path| path.extension().is_some_and(|extension| extension == "rs"));
    sources.map(|path| fs::read_to_string(path).unwrap()).collect()
}
