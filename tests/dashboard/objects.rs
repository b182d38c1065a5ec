//! `/objects`: one object's metadata and history, and nothing it should keep to itself.

use std::time::Duration;

use k8s_openapi::api::core::v1::{Pod, Secret};
use kubeflect::object::StaticKind as _;
use kubeflect::{ObjectKey, Options};
use serde_json::json;

use crate::support::{Frames, World, on_a_paused_clock};

#[test]
fn an_object_is_told_with_its_history() {
    on_a_paused_clock(async {
        let world = World::new();
        let pods = world.pods(&["a"]).await;
        for revision in ["1", "2"] {
            world.apply("a", revision);
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let path = format!("/objects?reflector={}&namespace=shop&name=a", pods.status().id);
        let object = world.get_json(&path).await;
        assert_eq!((&object["kind"], &object["apiVersion"]), (&json!("Pod"), &json!("v1")));
        assert_eq!(object["metadata"]["labels"], json!({ "app": "web" }));
        assert_eq!(object["metadata"]["annotations"], json!({ "revision": "2" }));
        assert!(
            object["metadata"]["uid"].is_string()
                && object["metadata"]["creationTimestamp"].is_string()
        );
        let history = object["history"].as_array().unwrap();
        let told: Vec<_> = history
            .iter()
            .map(|it| (it["type"].as_str().unwrap(), it["what"].as_str().unwrap()))
            .collect();
        assert_eq!(told, [("ADDED", ""), ("UPDATED", "annotations"), ("UPDATED", "annotations")]);
        assert_eq!(history[2]["resourceVersion"], object["metadata"]["resourceVersion"]);
        assert_eq!(history[0]["cause"], "InitialList");

        world.server.delete(&Pod::static_kind(), &ObjectKey::new("shop", "a")).unwrap();
        tokio::time::sleep(Duration::from_millis(10)).await;
        let object = world.get_json(&path).await;
        assert!(object["metadata"].is_null());
        assert_eq!(object["history"][3]["type"], "DELETED");
    });
}

#[test]
fn a_question_that_can_not_be_answered_says_how_to_ask() {
    on_a_paused_clock(async {
        let world = World::new();
        let pods = world.pods(&["a"]).await;
        for path in ["/objects", "/objects?reflector=x&name=a", "/objects?reflector=1"] {
            let answer = world.get(path).await;
            assert!(answer.status == 400 && answer.body.contains("reflector=ID"), "{path}");
        }
        let path = format!("/objects?reflector={}&namespace=shop&name=b", pods.status().id);
        assert_eq!(world.get(&path).await.status, 404);
        assert_eq!(world.get("/objects?reflector=999999&name=a").await.status, 404);
    });
}

#[test]
fn nothing_of_a_secret_but_its_metadata_leaves() {
    on_a_paused_clock(async {
        let world = World::new();
        let applied = json!({ "data": { "password": "aHVudGVyMg==" } }).to_string();
        let secret = |revision: &str| {
            json!({
                "apiVersion": "v1", "kind": "Secret",
                "metadata": { "name": "login", "namespace": "shop", "annotations": {
                    "kubectl.kubernetes.io/last-applied-configuration": applied, "revision": revision } },
                "data": { "password": "aHVudGVyMg==" },
            })
        };
        world.server.apply(secret("1")).unwrap();
        let secrets = world.runtime.reflect::<Secret>(Options::all()).await.unwrap();
        assert!(world.dashboard.observe(&secrets).await.unwrap().synced().await);
        world.server.apply(secret("2")).unwrap();
        tokio::time::sleep(Duration::from_millis(10)).await;

        let path = format!("/objects?reflector={}&namespace=shop&name=login", secrets.status().id);
        let mut told = world.get(&path).await.body;
        assert!(told.contains("\"revision\":\"2\""), "{told}");
        told += &world.get("/status.json").await.body;
        told += &world.get("/metrics").await.body;
        let mut frames = Frames::open(&world).await;
        told += &frames.next_of("changes").await.to_string();
        assert!(told.contains("login") && !told.contains("aHVudGVyMg"), "{told}");
    });
}
