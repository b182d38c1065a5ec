//! Rights and credentials that are taken away and given.

use std::fs;

use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use kubeflect::api::{ApiError, Verb};
use kubeflect::client::DeleteOptions;
use kubeflect::reflector::NotSynced;
use serde_json::json;

use crate::control_plane::{ControlPlane, User};
use crate::link::Link;
use crate::support::{Followed, config_map, quick};

async fn grant(plane: &ControlPlane) {
    let binding = json!({
        "metadata": { "name": "reader" },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader" },
        "subjects": [{ "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "reader" }],
    });
    let binding = serde_json::from_value(binding).unwrap();
    plane.objects::<RoleBinding>().create(&binding).await.unwrap();
}

async fn revoke(plane: &ControlPlane) {
    let bindings = plane.objects::<RoleBinding>();
    bindings.delete("reader", &DeleteOptions::default()).await.unwrap();
}

#[actix::test]
async fn a_right_that_is_granted_lets_a_reflector_go_on_and_one_taken_away_is_named() {
    let plane = ControlPlane::start(&[]).await;
    let role = json!({
        "metadata": { "name": "reader" },
        "rules": [{ "apiGroups": [""], "resources": ["configmaps"], "verbs": ["list", "watch"] }],
    });
    plane.objects::<Role>().create(&serde_json::from_value(role).unwrap()).await.unwrap();
    plane.objects::<ConfigMap>().create(&config_map("a")).await.unwrap();
    let link = Link::to(plane.address()).await;
    let connection = plane.connection_through(link.port, User::Token("reader-token"));
    let options = quick().namespace("default");
    let mut maps = Followed::<ConfigMap>::start(connection, options).await;

    let Err(NotSynced::NeedsHelp(condition)) = maps.reflector.synced().await else {
        panic!("it may not read them: {}", maps.report());
    };
    assert!(matches!(condition.error, ApiError::Forbidden { .. }), "{condition}");
    let text = condition.to_string();
    for part in ["User \"reader\"", "configmaps", "namespace \"default\""] {
        assert!(text.contains(part), "{text}");
    }

    grant(&plane).await;
    maps.expect(&["added default/a (InitialList)"]).await;
    maps.expect(&["synced"]).await;

    revoke(&plane).await;
    plane.objects::<ConfigMap>().create(&config_map("b")).await.unwrap();
    assert_eq!(maps.next().await, "added default/b (Watch)", "a watch that runs goes on");
    link.cut();
    link.mend();
    maps.until_reflector("the right is missed", |maps| {
        let condition = maps.status().condition;
        condition.is_some_and(|it| {
            it.verb == Verb::Watch && matches!(it.error, ApiError::Forbidden { .. })
        })
    })
    .await;
    assert_eq!(maps.reflector.store().len(), 2, "what is known stays");

    plane.objects::<ConfigMap>().create(&config_map("c")).await.unwrap();
    grant(&plane).await;
    assert_eq!(maps.next().await, "added default/c (Watch)");
    maps.until_reflector("nothing stands in the way", |maps| maps.status().condition.is_none())
        .await;
    maps.stop().await;
}

#[actix::test]
async fn a_token_that_is_replaced_on_both_sides_is_read_again() {
    let mut plane = ControlPlane::start(&[]).await;
    let token = plane.file("token");
    fs::write(&token, "first").unwrap();
    plane.write_tokens("first,somebody,1,system:masters\n");
    plane.api_server.stop().await;
    plane.start_api_server().await;
    let options = quick().namespace("default");
    let connection = plane.connection(User::TokenFile("token"));
    let mut maps = Followed::<ConfigMap>::start(connection, options).await;
    maps.expect(&["synced"]).await;

    plane.write_tokens("second,somebody,1,system:masters\n");
    plane.api_server.stop().await;
    plane.start_api_server().await;
    maps.until_reflector("the token is refused", |maps| {
        let condition = maps.status().condition;
        condition.is_some_and(|it| matches!(it.error, ApiError::Unauthorized { .. }))
    })
    .await;
    fs::write(&token, "second").unwrap();
    maps.until_recovered().await;
    plane.objects::<ConfigMap>().create(&config_map("a")).await.unwrap();
    assert_eq!(maps.next().await, "added default/a (Watch)");
    maps.stop().await;
}

#[actix::test]
async fn every_way_to_say_who_one_is_works() {
    let plane = ControlPlane::start(&[]).await;
    fs::write(plane.file("token"), "admin-token\n").unwrap();
    for user in [User::Admin, User::Token("admin-token"), User::TokenFile("token")] {
        let options = quick().namespace("default");
        let mut maps = Followed::<ConfigMap>::start(plane.connection(user), options).await;
        maps.expect(&["synced"]).await;
        maps.stop().await;
    }
    let maps = Followed::<ConfigMap>::start(plane.connection(User::Token("no")), quick()).await;
    let Err(NotSynced::NeedsHelp(condition)) = maps.reflector.synced().await else {
        panic!("nobody knows that token: {}", maps.report());
    };
    assert!(matches!(condition.error, ApiError::Unauthorized { .. }), "{condition}");
    maps.stop().await;
}
