//! Kinds that come and go while they are reflected.

use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kubeflect::api::ApiError;
use kubeflect::client::{DeleteOptions, Discovery};
use kubeflect::object::StaticKind as _;
use kubeflect::reflector::NotSynced;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::server::{Server, on_both_servers};
use crate::support::quick;

on_both_servers! {
    kinds_are_discovered_with_their_names_and_verbs: Shared,
    a_kind_is_awaited_followed_removed_and_found_again: Alone,
}

#[derive(kube::CustomResource, Clone, Debug, Deserialize, Serialize, schemars::JsonSchema)]
#[kube(group = "example.com", version = "v1", kind = "Widget", namespaced)]
struct WidgetSpec {
    size: u32,
}

fn widget(name: &str, size: u32) -> Widget {
    Widget::new(name, WidgetSpec { size })
}

async fn define(server: &Server) {
    let schema = json!({
        "type": "object",
        "properties": { "spec": { "type": "object", "properties": { "size": { "type": "integer" } } } },
    });
    let definition = json!({
        "metadata": { "name": "widgets.example.com" },
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": { "plural": "widgets", "singular": "widget", "kind": "Widget" },
            "versions": [
                { "name": "v1", "served": true, "storage": true, "schema": { "openAPIV3Schema": schema } },
            ],
        },
    });
    let definition = serde_json::from_value(definition).unwrap();
    server.cluster_objects::<CustomResourceDefinition>().create(&definition).await.unwrap();
}

/// A definition is served a while after it was made, and its objects can be made a little later still.
async fn create(server: &Server, name: &str, size: u32) {
    let widgets = server.objects::<Widget>();
    let deadline = tokio::time::Instant::now() + Duration::from_secs(60);
    while let Err(error) = widgets.create(&widget(name, size)).await {
        assert!(tokio::time::Instant::now() < deadline, "{error:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

async fn kinds_are_discovered_with_their_names_and_verbs(server: Server) {
    let discovery = Discovery::run(&*server.admin).await.unwrap();
    assert!(discovery.problems().is_empty(), "{:?}", discovery.problems());
    for (plural, short) in [("pods", "po"), ("configmaps", "cm"), ("deployments", "deploy")] {
        let found = discovery.kinds().iter().find(|it| it.kind.plural == plural).unwrap();
        assert!(found.short_names.iter().any(|name| name == short), "{found:?}");
        assert!(found.can_be_watched() && found.preferred, "{found:?}");
    }
    let served = Discovery::serves(&*server.admin, &ConfigMap::static_kind()).await;
    assert!(served.unwrap());
    let mut unknown = ConfigMap::static_kind();
    unknown.plural = "nothings".into();
    assert!(!Discovery::serves(&*server.admin, &unknown).await.unwrap());
}

async fn a_kind_is_awaited_followed_removed_and_found_again(server: Server) {
    let mut widgets = server.follow::<Widget>(quick()).await;
    let Err(NotSynced::NeedsHelp(condition)) = widgets.reflector.synced().await else {
        panic!("there is no such kind: {}", widgets.report());
    };
    assert!(matches!(condition.error, ApiError::NotFound { .. }), "{condition}");

    for round in 1..=2 {
        define(&server).await;
        create(&server, "a", round).await;
        create(&server, "b", round).await;
        // By the list or by the watch, as it comes; the first time with the word that it is whole.
        let mut told = Vec::new();
        for _ in 0..if round == 1 { 3 } else { 2 } {
            told.push(widgets.next().await);
        }
        told.sort();
        assert!(told[0].starts_with("added a"), "{told:?} {}", widgets.report());
        assert!(told[1].starts_with("added b"), "{told:?} {}", widgets.report());
        let rest: &[&str] = if round == 1 { &["synced"] } else { &[] };
        assert_eq!(told[2..], *rest, "{}", widgets.report());
        let kept = widgets.reflector.store().list();
        assert!(kept.iter().all(|widget| widget.spec.size == round));

        let definitions = server.cluster_objects::<CustomResourceDefinition>();
        definitions.delete("widgets.example.com", &DeleteOptions::default()).await.unwrap();
        // The server deletes the objects of a definition first, and tells so.
        widgets.expect(&["deleted a (Watch)", "deleted b (Watch)"]).await;
        widgets
            .until_reflector("the kind is missed", |widgets| {
                let condition = widgets.status().condition;
                condition.is_some_and(|it| matches!(it.error, ApiError::NotFound { .. }))
            })
            .await;
    }
    widgets.stop().await;
}
