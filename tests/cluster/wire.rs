//! The embedded server answers as the real one does: the same requests to both, and the same answers in all that counts.
//! What the real one answered is kept in `tests/transcripts`, where `tests/it/transcripts.rs` finds it.

use std::rc::Rc;
use std::{env, fs};

use kubeflect::client::{Cluster as _, Request, Transport};
use kubeflect::embedded::ApiServer;
use serde_json::{Value, json};

use crate::questions::{Group, Page, change, read, set_up, set_up_to_forget};
use crate::server::{Server, Setup, unlimited};
use crate::users::User;

#[actix::test]
async fn the_embedded_server_answers_as_the_real_one_does() {
    // The namespace `default` is ours alone.
    let server = Server::real(Setup::Shared).await;
    let real = Rc::clone(&server.admin);
    let embedded = ApiServer::new().connect().unwrap();
    for transport in [&real, &embedded] {
        set_up(transport).await;
    }
    let page = Page::default();
    let mut differences = Vec::new();
    for group in [Group::Lists, Group::Watches, Group::Forms, Group::Discovery, Group::Refusals] {
        let (truth, imitation) =
            futures::join!(group.ask(&real, &page), group.ask(&embedded, &page));
        differences.extend(group.differences(&truth, &imitation));
        differences.extend(keep(group, &real, truth).await);
    }

    // A user whom nobody gave a right here.
    let reader = unlimited(server.connection(User::Token("reader-token")));
    let forbidding = ApiServer::new();
    forbidding.allow_only(&json!({ "rules": [] }));
    let group = Group::Forbidden;
    let (truth, imitation) =
        (group.ask(&reader, &page).await, group.ask(&forbidding.connect().unwrap(), &page).await);
    differences.extend(group.differences(&truth, &imitation));
    differences.extend(keep(group, &real, truth).await);

    let (at_real, at_embedded) = (change(&real).await, change(&embedded).await);
    for (group, at_real, at_embedded) in
        [(Group::Changes, &at_real, &at_embedded), (Group::Writes, &page, &page)]
    {
        let truth = group.ask(&real, at_real).await;
        differences.extend(group.differences(&truth, &group.ask(&embedded, at_embedded).await));
        differences.extend(keep(group, &real, truth).await);
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

#[actix::test]
async fn both_refuse_what_they_have_forgotten() {
    // Without a cache of its own, which would remember longer.
    let plane = Server::real(Setup::WithoutWatchCache).await;
    let server = ApiServer::new();
    let (real, embedded) = (Rc::clone(&plane.admin), server.connect().unwrap());
    let (at_real, at_embedded) = (set_up_to_forget(&real).await, set_up_to_forget(&embedded).await);
    plane.compact().await;
    server.forget_history();
    let group = Group::Forgotten;
    let truth = group.ask(&real, &at_real).await;
    for exchange in truth.as_array().unwrap() {
        assert!(exchange.to_string().contains(r#""code":410"#), "{exchange}");
    }
    let mut differences = group.differences(&truth, &group.ask(&embedded, &at_embedded).await);
    differences.extend(keep(group, &real, truth).await);
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

/// Records what the real server answered if `KUBEFLECT_RECORD` is set; else tells where it answers otherwise than it was
/// recorded.
async fn keep(group: Group, real: &Rc<dyn Transport>, exchanges: Value) -> Option<String> {
    let version = read(real, Request::get("/version")).await;
    let transcript = json!({ "kubernetes": version["gitVersion"], "exchanges": exchanges });
    let file = group.file();
    if env::var_os("KUBEFLECT_RECORD").is_some() {
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, format!("{transcript:#}\n")).unwrap();
        return None;
    }
    let recorded = group.recorded();
    (recorded != transcript).then(|| {
        let file = file.display();
        format!(
            "{file}\n  recorded {recorded}\n  answered {transcript}\n  see tests/it/transcripts.rs"
        )
    })
}
