//! The embedded server answers as a real kube-apiserver did, whose answers are kept in `tests/transcripts`.
//!
//! To record them again, after a question or the version of Kubernetes changed:
//!
//! ```sh
//! KUBEFLECT_RECORD=1 cargo test --test cluster wire
//! ```
//!
//! Without the variable, the same tests hold the files against the real server. What is asked, and where the embedded
//! server is known to differ, is in `tests/cluster/questions.rs`.

use std::fs;

use kubeflect::client::Cluster as _;
use kubeflect::embedded::ApiServer;
use serde_json::Value;

use crate::questions::{Group, Page, set_up, set_up_to_forget};
use crate::support::on_a_paused_clock;

#[test]
fn the_embedded_server_answers_as_the_real_one_did() {
    let differences = on_a_paused_clock(async {
        let transport = ApiServer::new().connect().unwrap();
        set_up(&transport).await;
        let mut differences = Vec::new();
        for group in [Group::Lists, Group::Watches, Group::Writes] {
            let answers = group.ask(&transport, &Page::default()).await;
            differences.extend(group.differences(&group.recorded()["exchanges"], &answers));
        }
        differences
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
    let groups = [Group::Forgotten, Group::Lists, Group::Watches, Group::Writes];
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
