//! Answers that are not plain ones.

use std::io::Write as _;
use std::sync::Arc;

use flate2::Compression;
use flate2::write::GzEncoder;
use k8s_openapi::api::core::v1::Pod;
use kubeflect::Options;
use kubeflect::api::ApiError;
use kubeflect::client::{Cluster as _, Fairness, HttpCluster, Request, Scheme};

use crate::support::{World, list, pod, whole};

/// A list of pods, as text.
fn pods(names: &[&str]) -> Vec<u8> {
    let items: Vec<_> = names
        .iter()
        .map(|name| {
            let mut pod = pod(name);
            pod["metadata"]["resourceVersion"] = "5".into();
            pod["metadata"]["uid"] = (*name).into();
            pod
        })
        .collect();
    serde_json::to_vec(&serde_json::json!({
        "kind": "PodList", "apiVersion": "v1", "metadata": { "resourceVersion": "5" }, "items": items,
    }))
    .unwrap()
}

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

fn answer(head: &str, body: &[u8]) -> Vec<u8> {
    let mut answer =
        format!("HTTP/1.1 {head}\r\ncontent-length: {}\r\n\r\n", body.len()).into_bytes();
    answer.extend_from_slice(body);
    answer
}

/// What a list over a front comes to that always answers the same.
async fn listed(answer: Vec<u8>) -> Result<(u16, Vec<u8>), ApiError> {
    let world = World::gated(Arc::new(move |_head| Some(answer.clone()))).await;
    list(world.connection(Scheme::Http, "127.0.0.1")).await
}

#[actix::test]
async fn a_compressed_list_is_read_in_all_its_members() {
    let text = pods(&["a", "b", "c"]);
    let (begin, end) = text.split_at(100);
    let body = [gzip(begin), gzip(end)].concat();
    let gzipped =
        answer("200 OK\r\ncontent-type: application/json\r\ncontent-encoding: gzip", &body);
    assert_eq!(listed(gzipped).await.unwrap(), (200, text));
}

#[actix::test]
async fn a_compressed_list_that_is_cut_short_or_a_bomb_is_an_error() {
    let body = gzip(&pods(&["a"]));
    let head = "200 OK\r\ncontent-encoding: gzip";
    let error = listed(answer(head, &body[..body.len() - 4])).await.unwrap_err();
    assert!(whole(&error).contains("cut short"), "{error:?}");
    let bomb = gzip(&vec![b' '; 64 << 20]);
    let error = listed(answer(head, &bomb)).await.unwrap_err();
    assert!(whole(&error).contains("compressed more than 200:1"), "{error:?}");
}

/// A server of 1.37 compresses streaming lists; some proxy might do so though nobody asked.
#[actix::test]
async fn a_streaming_list_is_read_though_each_flush_is_a_gzip_file_of_its_own() {
    let event = |event_type: &str, object: serde_json::Value| {
        format!("{}\n", serde_json::json!({ "type": event_type, "object": object })).into_bytes()
    };
    let mut added = pod("b");
    added["metadata"]["resourceVersion"] = "5".into();
    let end = serde_json::json!({
        "kind": "Pod", "apiVersion": "v1",
        "metadata": { "resourceVersion": "5", "annotations": { "k8s.io/initial-events-end": "true" } },
    });
    let (added, end) = (event("ADDED", added), event("BOOKMARK", end));
    let (first, second) = added.split_at(50);
    let body = [gzip(first), gzip(second), gzip(&end)].concat();
    let head = "200 OK\r\ncontent-type: application/json\r\ncontent-encoding: gzip";
    let streamed = answer(head, &body);
    let world = World::gated(Arc::new(move |head| {
        head.contains("sendInitialEvents").then(|| streamed.clone())
    }))
    .await;
    let cluster = HttpCluster::from_connection(world.connection(Scheme::Http, "127.0.0.1"));
    let runtime = kubeflect::Runtime::new(cluster);
    let reflected = runtime.reflect::<Pod>(Options::all()).await.unwrap();
    reflected.synced_within(crate::support::LONG).await.unwrap();
    assert_eq!(reflected.store().keys()[0].name(), "b");
    assert!(!world.front.heads().iter().any(|head| head.contains("limit=")), "nothing was listed");
    world.stop(runtime).await;
}

#[actix::test]
async fn a_body_shorter_than_announced_is_an_error() {
    let mut cut = answer("200 OK", &pods(&["a"]));
    cut.truncate(cut.len() - 10);
    let error = listed(cut).await.unwrap_err();
    assert!(whole(&error).contains("cut short"), "{error:?}");
}

#[actix::test]
async fn an_encoding_nobody_asked_for_is_an_error() {
    let error = listed(answer("200 OK\r\ncontent-encoding: br", b"x")).await.unwrap_err();
    assert!(whole(&error).contains("was not asked for"), "{error:?}");
}

#[actix::test]
async fn a_redirect_is_never_followed() {
    let world = World::plain().await;
    let elsewhere = world.front.address;
    for redirect in [301, 302, 303, 307, 308] {
        let location =
            format!("{redirect} Go\r\nlocation: http://{elsewhere}/api/v1/pods?token=canary");
        let refusal = answer(&location, b"");
        let redirecting = World::gated(Arc::new(move |_head| Some(refusal.clone()))).await;
        let connection = redirecting.connection(Scheme::Http, "127.0.0.1");
        let error = list(connection).await.unwrap_err();
        assert_eq!(redirecting.front.heads().len(), 1, "asked once");
        assert!(
            matches!(error, ApiError::Unexpected { code, .. } if code == redirect),
            "{error:?}"
        );
        assert!(error.to_string().contains("http://127.0.0.1"), "{error}");
        assert!(!format!("{error:?}").contains("canary"), "{error:?}");
    }
    assert!(world.front.heads().is_empty());
}

#[actix::test]
async fn a_head_beyond_the_cap_is_an_error() {
    for (size, problem) in [(70 << 10, "larger than 65536 bytes"), (200 << 10, "too large")] {
        let field = "x".repeat(size);
        let error =
            listed(answer(&format!("200 OK\r\nx-large: {field}"), b"{}")).await.unwrap_err();
        assert!(!whole(&error).contains("xxxx"), "nor is it shown");
        assert!(whole(&error).to_lowercase().contains(problem), "{}", whole(&error));
    }
}

#[actix::test]
async fn a_refusal_says_how_long_to_wait_and_where_to_look() {
    let head = "429 Too Many Requests\r\n\
        date: Sun, 06 Nov 1994 08:49:37 GMT\r\n\
        retry-after: Sun, 06 Nov 1994 08:49:47 GMT\r\n\
        warning: 299 - \"old\"\r\n\
        x-kubernetes-pf-flowschema-uid: flow\r\n\
        x-kubernetes-pf-prioritylevel-uid: level";
    let refusal = answer(head, b"");
    let world = World::gated(Arc::new(move |_head| Some(refusal.clone()))).await;
    let cluster = HttpCluster::from_connection(world.connection(Scheme::Http, "127.0.0.1"));
    let response = cluster.connect().unwrap().send(Request::get("/api/v1/pods")).await.unwrap();
    assert_eq!((response.status, response.retry_after), (429, Some(10)));
    let [flow_schema, priority_level] = ["flow", "level"].map(|uid| Some(uid.to_owned()));
    assert_eq!(response.fairness, Some(Fairness { flow_schema, priority_level }));
}

#[actix::test]
async fn a_watch_is_never_compressed_and_a_reflector_takes_a_compressed_list() {
    let compressed = answer(
        "200 OK\r\ncontent-type: application/json\r\ncontent-encoding: gzip",
        &gzip(&pods(&["a", "b"])),
    );
    let world =
        World::gated(Arc::new(move |head| (!head.contains("watch=")).then(|| compressed.clone())))
            .await;
    world.server.allow_streaming_lists(false);
    let cluster = HttpCluster::from_connection(world.connection(Scheme::Http, "127.0.0.1"));
    let runtime = kubeflect::Runtime::new(cluster);
    let reflected = runtime.reflect::<Pod>(Options::all()).await.unwrap();
    reflected.synced_within(crate::support::LONG).await.unwrap();
    assert_eq!(reflected.store().len(), 2);
    for head in world.front.heads().iter().filter(|head| head.contains("watch=")) {
        assert_eq!(crate::front::header(head, "accept-encoding"), Some("identity"), "{head}");
    }
    world.stop(runtime).await;
}
