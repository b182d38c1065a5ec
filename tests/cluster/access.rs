//! Rights and credentials that are taken away and given.

use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use kubeflect::api::{ApiError, Verb};
use kubeflect::client::DeleteOptions;
use kubeflect::embedded::Verb as Right;
use kubeflect::object::StaticKind as _;
use kubeflect::reflector::NotSynced;
use serde_json::json;

use crate::server::{Make, Server, on_both_servers};
use crate::support::{Followed, config_map, quick};
use crate::users::User;

on_both_servers! {
    a_right_that_is_granted_lets_a_reflector_go_on_and_one_taken_away_is_named: Shared,
    every_way_to_say_who_one_is_works: Alone,
    a_token_that_is_replaced_on_both_sides_is_asked_for_again: Alone,
}

/// What a reflector asks for.
const VERBS: [Right; 2] = [Right::List, Right::Watch];

/// Lets a user read the config maps of the namespace of a test. The embedded server knows no users: it lets everybody.
pub(crate) async fn grant(server: &Server, user: &str) {
    if let Make::Embedded { server, .. } = &server.make {
        VERBS.iter().for_each(|&verb| server.permit(&ConfigMap::static_kind(), verb));
        return;
    }
    let group = "rbac.authorization.k8s.io";
    let role = json!({
        "metadata": { "name": user },
        "rules": [{ "apiGroups": [""], "resources": ["configmaps"], "verbs": ["list", "watch"] }],
    });
    let binding = json!({
        "metadata": { "name": user },
        "roleRef": { "apiGroup": group, "kind": "Role", "name": user },
        "subjects": [{ "apiGroup": group, "kind": "User", "name": user }],
    });
    // A role without a binding gives no right, and may be left from before.
    match server.objects::<Role>().create(&serde_json::from_value(role).unwrap()).await {
        Ok(_) | Err(ApiError::AlreadyExists { .. }) => {}
        Err(error) => panic!("the role can not be made: {error:?}"),
    }
    let binding = serde_json::from_value(binding).unwrap();
    server.objects::<RoleBinding>().create(&binding).await.unwrap();
}

/// Takes it away, or says that it was never there.
async fn revoke(server: &Server, user: &str) {
    match &server.make {
        Make::Embedded { server, .. } => {
            VERBS.iter().for_each(|&verb| server.forbid(&ConfigMap::static_kind(), verb));
        }
        Make::Real(_) => {
            let bindings = server.objects::<RoleBinding>();
            match bindings.delete(user, &DeleteOptions::default()).await {
                Ok(()) | Err(ApiError::NotFound { .. }) => {}
                Err(error) => panic!("the right can not be taken away: {error:?}"),
            }
        }
    }
}

async fn a_right_that_is_granted_lets_a_reflector_go_on_and_one_taken_away_is_named(
    server: Server,
) {
    revoke(&server, "reader").await;
    server.objects::<ConfigMap>().create(&config_map("a")).await.unwrap();
    let mut maps = server.follow_as::<ConfigMap>(User::Token("reader-token"), quick()).await;

    let Err(NotSynced::NeedsHelp(condition)) = maps.reflector.synced().await else {
        panic!("it may not read them: {}", maps.report());
    };
    assert!(matches!(condition.error, ApiError::Forbidden { .. }), "{condition}");
    let text = condition.to_string();
    let place = format!("namespace \"{}\"", server.namespace);
    for part in ["User \"", "configmaps", &place] {
        assert!(text.contains(part), "{text}");
    }

    grant(&server, "reader").await;
    maps.expect(&["added a (InitialList)"]).await;
    maps.expect(&["synced"]).await;

    revoke(&server, "reader").await;
    server.objects::<ConfigMap>().create(&config_map("b")).await.unwrap();
    assert_eq!(maps.next().await, "added b (Watch)", "a watch that runs goes on");
    server.link.cut();
    server.link.mend();
    maps.until_reflector("the right is missed", |maps| {
        let condition = maps.status().condition;
        condition.is_some_and(|it| {
            it.verb == Verb::Watch && matches!(it.error, ApiError::Forbidden { .. })
        })
    })
    .await;
    assert_eq!(maps.reflector.store().len(), 2, "what is known stays");

    server.objects::<ConfigMap>().create(&config_map("c")).await.unwrap();
    grant(&server, "reader").await;
    assert_eq!(maps.next().await, "added c (Watch)");
    maps.until_reflector("nothing stands in the way", |maps| maps.status().condition.is_none())
        .await;
    maps.stop().await;
}

/// Starts the server again, which now knows these tokens and no others. Each may do everything.
async fn restart_with_tokens(server: &mut Server, tokens: &[&str]) {
    server.stop().await;
    match &mut server.make {
        Make::Embedded { server, .. } => server.demand_tokens(tokens.iter().copied()),
        Make::Real(lease) => {
            let lines = tokens.iter().map(|token| format!("{token},somebody,1,system:masters\n"));
            lease.mine().write_tokens(&lines.collect::<String>());
        }
    }
    server.start().await;
}

async fn until_refused(maps: &Followed<ConfigMap>) {
    maps.until_reflector("the token is refused", |maps| {
        let condition = maps.status().condition;
        condition.is_some_and(|it| matches!(it.error, ApiError::Unauthorized { .. }))
    })
    .await;
}

async fn a_token_that_is_replaced_on_both_sides_is_asked_for_again(mut server: Server) {
    server.write_file("token", "first\n");
    restart_with_tokens(&mut server, &["admin-token", "first"]).await;
    let mut followers = Vec::new();
    for user in [User::TokenFile, User::Plugin] {
        let mut maps = server.follow_as::<ConfigMap>(user, quick()).await;
        maps.expect(&["synced"]).await;
        followers.push(maps);
    }
    restart_with_tokens(&mut server, &["admin-token", "second"]).await;
    for maps in &followers {
        until_refused(maps).await;
    }
    server.write_file("token", "second\n");
    for maps in &followers {
        maps.until_recovered().await;
    }
    server.objects::<ConfigMap>().create(&config_map("a")).await.unwrap();
    for mut maps in followers {
        assert_eq!(maps.next_change().await, "added a");
        maps.stop().await;
    }
}

async fn every_way_to_say_who_one_is_works(mut server: Server) {
    restart_with_tokens(&mut server, &["admin-token"]).await;
    server.write_file("token", "admin-token\n");
    for user in [User::Admin, User::Token("admin-token"), User::TokenFile, User::Plugin] {
        let mut maps = server.follow_as::<ConfigMap>(user, quick()).await;
        maps.expect(&["synced"]).await;
        maps.stop().await;
    }
    let maps = server.follow_as::<ConfigMap>(User::Token("no"), quick()).await;
    let Err(NotSynced::NeedsHelp(condition)) = maps.reflector.synced().await else {
        panic!("nobody knows that token: {}", maps.report());
    };
    assert!(matches!(condition.error, ApiError::Unauthorized { .. }), "{condition}");
    maps.stop().await;
}
