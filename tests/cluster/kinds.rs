//! Kinds that come and go while they are reflected.

use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kubeflect::api::ApiError;
use kubeflect::client::DeleteOptions;
use kubeflect::reflector::NotSynced;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::control_plane::{ControlPlane, User};
use crate::support::{Followed, quick};

#[derive(kube::CustomResource, Clone, Debug, Deserialize, Serialize, schemars::JsonSchema)]
#[kube(group = "example.com", version = "v1", kind = "Widget", namespaced)]
struct WidgetSpec {
    size: u32,
}

fn widget(name: &str, size: u32) -> Widget {
    let mut widget = Widget::new(name, WidgetSpec { size });
    widget.metadata.namespace = Some("default".to_owned());
    widget
}

async fn define(plane: &ControlPlane) {
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
    plane.cluster_objects::<CustomResourceDefinition>().create(&definition).await.unwrap();
}

/// A definition is served a while after it was made, and its objects can be made a little later still.
async fn create(plane: &ControlPlane, name: &str, size: u32) {
    let widgets = plane.objects::<Widget>();
    let deadline = tokio::time::Instant::now() + Duration::from_secs(60);
    while let Err(error) = widgets.create(&widget(name, size)).await {
        assert!(tokio::time::Instant::now() < deadline, "{error:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[actix::test]
async fn a_kind_is_awaited_followed_removed_and_found_again() {
    let plane = ControlPlane::start(&[]).await;
    let mut widgets = Followed::<Widget>::start(plane.connection(User::Admin), quick()).await;
    let Err(NotSynced::NeedsHelp(condition)) = widgets.reflector.synced().await else {
        panic!("there is no such kind: {}", widgets.report());
    };
    assert!(matches!(condition.error, ApiError::NotFound { .. }), "{condition}");

    for round in 1..=2 {
        define(&plane).await;
        create(&plane, "a", round).await;
        create(&plane, "b", round).await;
        // By the list or by the watch, as it comes; the first time with the word that it is whole.
        let mut told = Vec::new();
        for _ in 0..if round == 1 { 3 } else { 2 } {
            told.push(widgets.next().await);
        }
        told.sort();
        assert!(told[0].starts_with("added default/a"), "{told:?} {}", widgets.report());
        assert!(told[1].starts_with("added default/b"), "{told:?} {}", widgets.report());
        let kept = widgets.reflector.store().list();
        assert!(kept.iter().all(|widget| widget.spec.size == round));

        let definitions = plane.cluster_objects::<CustomResourceDefinition>();
        definitions.delete("widgets.example.com", &DeleteOptions::default()).await.unwrap();
        // The server deletes the objects of a definition first, and tells so.
        widgets.expect(&["deleted default/a (Watch)", "deleted default/b (Watch)"]).await;
        widgets
            .until_reflector("the kind is missed", |widgets| {
                let condition = widgets.status().condition;
                condition.is_some_and(|it| matches!(it.error, ApiError::NotFound { .. }))
            })
            .await;
    }
    widgets.stop().await;
}
