//! The same answers through a real socket, on the real clock.

use std::time::Duration;

use futures::StreamExt as _;
use serde_json::{Value, json};

use super::{pod, server_with};

#[actix_rt::test]
async fn objects_can_be_listed_written_and_watched_over_http() {
    let serving = server_with(&["a"]).start().await.unwrap();
    let client = awc::Client::builder().timeout(Duration::from_secs(10)).finish();
    let url = |rest: &str| format!("{}{rest}", serving.url());

    let mut response = client.get(url("/api/v1/pods?limit=5")).send().await.unwrap();
    assert_eq!(response.headers().get("content-type").unwrap(), "application/json");
    let list: Value = serde_json::from_slice(&response.body().await.unwrap()).unwrap();
    assert_eq!(list["kind"], "PodList");

    let mut stream =
        client.get(url("/api/v1/pods?watch=true&resourceVersion=2")).send().await.unwrap();
    assert_eq!(stream.status(), 200, "the head arrives before the first event");

    let body = pod("b", json!({})).to_string();
    let post = client.post(url("/api/v1/namespaces/default/pods"));
    let created = post.content_type("application/json").send_body(body).await.unwrap();
    assert_eq!(created.status(), 201);

    let chunk = tokio::time::timeout(Duration::from_secs(10), stream.next()).await.unwrap();
    let event: Value = serde_json::from_slice(&chunk.unwrap().unwrap()).unwrap();
    assert_eq!(
        (&event["type"], &event["object"]["metadata"]["name"]),
        (&json!("ADDED"), &json!("b"))
    );

    serving.server().cut_watches();
    let end = tokio::time::timeout(Duration::from_secs(10), stream.next()).await.unwrap();
    assert!(end.is_none());
    serving.stop().await;
}

#[actix_rt::test]
async fn who_brings_no_token_that_is_demanded_is_not_let_in() {
    let serving = server_with(&[]).start().await.unwrap();
    let client = awc::Client::new();
    let ask = async |token: &str| {
        let request = client.get(format!("{}/api/v1/pods", serving.url())).bearer_auth(token);
        request.send().await.unwrap().status().as_u16()
    };
    assert_eq!(ask("any").await, 200);
    serving.server().demand_tokens(["first", "second"]);
    assert_eq!([ask("second").await, ask("any").await, ask("").await], [200, 401, 401]);
    serving.server().heal();
    assert_eq!(ask("any").await, 200);
    serving.stop().await;
}

#[actix_rt::test]
async fn a_name_that_somebody_points_here_is_not_answered() {
    let serving = server_with(&["a"]).start().await.unwrap();
    let client = awc::Client::new();
    let ask = async |host: &str| {
        let request = client.get(format!("{}/api/v1/pods", serving.url()));
        request.insert_header(("host", host)).send().await.unwrap().status().as_u16()
    };
    for ours in
        ["127.0.0.1", "127.0.0.1:8001", "localhost:8001", "LOCALHOST", "[::1]:8001", "[::1]"]
    {
        assert_eq!(ask(ours).await, 200, "{ours}");
    }
    for other in
        ["evil.example", "evil.example:8001", "localhost.evil.example", "10.0.0.7", "", "[::1].x"]
    {
        assert_eq!(ask(other).await, 421, "{other}");
    }
    serving.server().answer_to(["kubernetes.test"]);
    assert_eq!([ask("Kubernetes.test:1").await, ask("evil.example").await], [200, 421]);
    serving.stop().await;
}

#[actix_rt::test]
async fn a_watch_is_closed_when_its_reader_hangs_up() {
    let serving = server_with(&[]).start().await.unwrap();
    let client = awc::Client::new();
    let url = format!("{}/api/v1/pods?watch=true", serving.url());
    let stream = client.get(url).send().await.unwrap();
    assert_eq!(serving.server().open_watches(), 1);
    drop(stream);
    drop(client);
    let closed = async {
        while serving.server().open_watches() > 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), closed).await.unwrap();
    serving.stop().await;
}

#[actix_rt::test]
async fn a_compressed_streaming_list_is_one_gzip_file_after_the_other() {
    use std::io::Read as _;
    let serving = server_with(&["a"]).start().await.unwrap();
    serving.server().compress_streaming_lists(true);
    let client = awc::Client::builder().timeout(Duration::from_secs(10)).finish();
    let streaming =
        "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    let ask = |query: &str, encoding: &'static str| {
        let url = format!("{}/api/v1/pods?watch=true&{query}", serving.url());
        client.get(url).insert_header(("accept-encoding", encoding)).no_decompress().send()
    };
    for (query, encoding) in [(streaming, "identity"), ("resourceVersion=2", "gzip")] {
        let plain = ask(query, encoding).await.unwrap();
        assert!(!plain.headers().contains_key("content-encoding"), "{query} {encoding}");
    }
    let mut stream = ask(streaming, "gzip, deflate").await.unwrap();
    assert_eq!(stream.headers().get("content-encoding").unwrap(), "gzip");
    let mut read = Vec::new();
    for name in ["b", "c"] {
        let chunk = tokio::time::timeout(Duration::from_secs(10), stream.next()).await.unwrap();
        let mut text = String::new();
        flate2::read::GzDecoder::new(&*chunk.unwrap().unwrap()).read_to_string(&mut text).unwrap();
        read.push(text);
        serving.server().create(pod(name, json!({}))).unwrap();
    }
    let lines: Vec<usize> = read.iter().map(|text| text.lines().count()).collect();
    assert_eq!(lines, [2, 1], "{read:?}");
    serving.stop().await;
}
