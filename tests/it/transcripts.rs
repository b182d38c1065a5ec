//! The embedded server answers as a real kube-apiserver did, whose answers are kept in `tests/transcripts`.
//!
//! To record them again, after a question or the version of Kubernetes changed:
//!
//! ```sh
//! KUBEFLECT_RECORD=1 cargo test --test cluster wire
//! ```
//!
//! Without the variable, the same tests hold the files against the real server. What is asked is in
//! `tests/cluster/questions.rs`, and where the embedded server is known to differ in `tests/cluster/known.rs`.

use std::fs;

use kubeflect::client::Cluster as _;
use kubeflect::embedded::ApiServer;
use serde_json::{Value, json};

use crate::questions::{Group, Page, change, set_up, set_up_to_forget};
use crate::support::on_a_paused_clock;

#[test]
fn the_embedded_server_answers_as_the_real_one_did() {
    let differences = on_a_paused_clock(async {
        let transport = ApiServer::new().connect().unwrap();
        set_up(&transport).await;
        let mut differences = Vec::new();
        let reads = [Group::Lists, Group::Watches, Group::Forms, Group::Discovery, Group::Refusals];
        for group in reads {
            let answers = group.ask(&transport, &Page::default()).await;
            differences.extend(group.differences(&group.recorded()["exchanges"], &answers));
        }
        let before = change(&transport).await;
        for (group, page) in [(Group::Changes, before), (Group::Writes, Page::default())] {
            let answers = group.ask(&transport, &page).await;
            differences.extend(group.differences(&group.recorded()["exchanges"], &answers));
        }
        differences
    });
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

#[test]
fn it_lets_nobody_do_what_the_real_one_forbade() {
    let differences = on_a_paused_clock(async {
        let server = ApiServer::new();
        server.allow_only(&json!({ "rules": [] }));
        let answers = Group::Forbidden.ask(&server.connect().unwrap(), &Page::default()).await;
        Group::Forbidden.differences(&Group::Forbidden.recorded()["exchanges"], &answers)
    });
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

#[test]
fn it_refuses_what_it_has_forgotten_as_the_real_one_did() {
    let differences = on_a_paused_clock(async {
        let server = ApiServer::new();
        let transport = server.connect().unwrap();
        let page = set_up_to_forget(&transport).await;
        server.forget_history();
        let answers = Group::Forgotten.ask(&transport, &page).await;
        Group::Forgotten.differences(&Group::Forgotten.recorded()["exchanges"], &answers)
    });
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

#[test]
fn every_transcript_is_of_the_same_kubernetes_and_replayed() {
    // As their files are sorted.
    let groups = [
        Group::Changes,
        Group::Discovery,
        Group::Forbidden,
        Group::Forgotten,
        Group::Forms,
        Group::Lists,
        Group::Refusals,
        Group::Watches,
        Group::Writes,
    ];
    let folder = Group::Lists.file().parent().unwrap().to_owned();
    let mut files: Vec<_> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert_eq!(files, groups.map(Group::file));
    let version = Group::Lists.recorded()["kubernetes"].clone();
    assert!(version.as_str().is_some_and(|version| version.starts_with('v')), "{version}");
    let versions: Vec<Value> =
        groups.iter().map(|group| group.recorded()["kubernetes"].clone()).collect();
    assert_eq!(versions, vec![version; groups.len()]);
}
