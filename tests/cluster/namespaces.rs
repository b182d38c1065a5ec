//! Namespaces that are removed with all that is in them.

use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kubeflect::client::{DeleteOptions, Method, Request};
use serde_json::json;

use crate::questions::read;
use crate::server::{Make, Server, on_both_servers, until};
use crate::support::{Followed, config_map, quick};
use crate::users::User;

on_both_servers! {
    a_namespace_that_is_removed_leaves_nothing_and_may_come_back: Shared,
}

/// Removes the namespace of a test.
async fn remove_namespace(server: &Server) {
    let namespaces = server.cluster_objects::<Namespace>();
    namespaces.delete(&server.namespace, &DeleteOptions::default()).await.unwrap();
    if let Make::Real(_) = server.make {
        for name in ["a", "b"] {
            let maps = server.objects::<ConfigMap>();
            maps.delete(name, &DeleteOptions::default()).await.unwrap();
        }
        let finalized = json!({
            "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": server.namespace },
            "spec": { "finalizers": [] },
        });
        let request = Request {
            method: Method::Put,
            content_type: Some("application/json"),
            body: finalized.to_string().into(),
            ..Request::get(format!("/api/v1/namespaces/{}/finalize", server.namespace))
        };
        read(&server.admin, request).await;
    }
    until("the namespace is gone", async || namespaces.get(&server.namespace).await.is_err()).await;
}

async fn a_namespace_that_is_removed_leaves_nothing_and_may_come_back(server: Server) {
    let maps = server.objects::<ConfigMap>();
    for name in ["a", "b"] {
        maps.create(&config_map(name)).await.unwrap();
    }
    let mut inside = server.follow::<ConfigMap>(quick()).await;
    inside.expect(&["added a (InitialList)", "added b (InitialList)"]).await;
    inside.expect(&["synced"]).await;
    let itself = format!("metadata.name={}", server.namespace);
    let connection = server.connection(User::Admin);
    let mut spaces = Followed::<Namespace>::start(connection, quick().fields(&itself)).await;
    spaces.expect(&[&format!("added {} (InitialList)", server.namespace)]).await;
    spaces.expect(&["synced"]).await;

    remove_namespace(&server).await;
    inside.expect(&["deleted a (Watch)", "deleted b (Watch)"]).await;
    let change = spaces.next().await;
    assert_eq!(change, format!("updated {} (Watch)", server.namespace), "it is terminating first");
    spaces.last_of(&server.namespace).await;
    assert!(inside.cached().is_empty() && spaces.cached().is_empty());

    server.create_namespace().await;
    assert_eq!(spaces.next().await, format!("added {} (Watch)", server.namespace));
    maps.create(&config_map("a")).await.unwrap();
    assert_eq!(inside.next().await, "added a (Watch)");
    inside.stop().await;
    spaces.stop().await;
}
