use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use super::{
    PODS, config_maps, get, key, names_of, pod, pods, request, server_with, text_of, watch,
};
use crate::api::{ApiError, Status};
use crate::client::{Access, Cluster as _, Method, Request};
use crate::embedded::{Filter, RawAnswer, Verb};
use crate::object::Kind;

fn unavailable() -> Status {
    Status { reason: "ServiceUnavailable".to_owned(), code: 503, ..Status::default() }
}

#[tokio::test]
async fn a_refusal_hits_what_it_is_meant_for_and_so_often() {
    let server = server_with(&["a"]);
    server.refuse(Filter::verb(Verb::List).of(&pods()), unavailable(), 2);
    assert_eq!(get(&server, "/api/v1/configmaps", &[]).await.0, 200);
    assert_eq!(get(&server, "/api/v1/namespaces/default/pods/a", &[]).await.0, 200);
    let (status, body) = get(&server, PODS, &[]).await;
    assert_eq!(
        (status, &body["reason"], &body["status"]),
        (503, &json!("ServiceUnavailable"), &json!("Failure"))
    );
    assert_eq!(get(&server, PODS, &[]).await.0, 503);
    assert_eq!(get(&server, PODS, &[]).await.0, 200);
}

#[tokio::test]
async fn an_answer_can_be_anything() {
    let server = server_with(&[]);
    let answer = RawAnswer::text(429, "Too many requests, please try again later.").retry_after(7);
    server.answer_with(Filter::everything(), answer, 1);
    let response = server.handle(Request::get(PODS)).await;
    assert_eq!((response.status, response.retry_after), (429, Some(7)));
    assert_eq!(text_of(response).await, "Too many requests, please try again later.");
}

#[tokio::test(start_paused = true)]
async fn a_delay_delays_until_it_is_taken_back() {
    let server = server_with(&[]);
    server.delay(Filter::kind(&pods()), Duration::from_secs(5));
    let start = Instant::now();
    get(&server, PODS, &[]).await;
    assert_eq!(start.elapsed(), Duration::from_secs(5));
    server.delay(Filter::kind(&pods()), Duration::ZERO);
    get(&server, PODS, &[]).await;
    assert_eq!(start.elapsed(), Duration::from_secs(5));
}

#[tokio::test]
async fn a_missing_right_is_told_as_kubernetes_does() {
    let server = server_with(&["a"]);
    server.forbid(&pods(), Verb::List);
    let (status, body) = get(&server, PODS, &[]).await;
    let expected = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "reason": "Forbidden", "code": 403,
        "message": "pods is forbidden: User \"system:anonymous\" cannot list resource \"pods\" in API group \"\" at the cluster scope",
        "details": { "kind": "pods" },
    });
    assert_eq!((status, body), (403, expected));
    let (_, body) = get(&server, "/api/v1/namespaces/shop/pods", &[]).await;
    assert!(body["message"].as_str().unwrap().ends_with("in the namespace \"shop\""));
    server.permit(&pods(), Verb::List);
    assert_eq!(get(&server, PODS, &[]).await.0, 200);
}

#[tokio::test]
async fn a_role_grants_what_it_names_and_nothing_else() {
    let server = server_with(&["a"]);
    server.allow_only(&json!({
        "rules": [{ "apiGroups": [""], "resources": ["pods"], "verbs": ["list", "watch"] }],
    }));
    assert_eq!(get(&server, PODS, &[]).await.0, 200);
    assert_eq!(get(&server, "/api/v1/namespaces/default/pods/a", &[]).await.0, 403);
    assert_eq!(get(&server, "/api/v1/configmaps", &[]).await.0, 403);

    let transport = server.connect().unwrap();
    let may = async |kind: &Kind, verb| {
        Access::review(&*transport, kind, verb, None).await.unwrap().allowed
    };
    assert!(may(&pods(), "watch").await && !may(&pods(), "get").await);
    assert!(!may(&config_maps(), "list").await);
    assert_eq!(Access::user(&*transport).await.unwrap(), "system:anonymous");
    server.heal();
    assert!(may(&config_maps(), "list").await);
}

#[tokio::test(start_paused = true)]
async fn watches_can_be_cut_broken_and_failed() {
    let server = server_with(&["a"]);
    let from = [("resourceVersion", "2")];

    let mut reader = watch(&server, PODS, &from).await;
    server.create(pod("b", json!({}))).unwrap();
    server.cut_watches();
    assert_eq!(reader.brief().await.unwrap(), "ADDED b@3");
    assert_eq!(reader.brief().await, None);

    let mut reader = watch(&server, PODS, &from).await;
    server.break_watches();
    assert_eq!(reader.brief().await.unwrap(), "ADDED b@3");
    assert!(matches!(reader.line().await, Some(Err(ApiError::Connection(_)))));
    assert!(reader.line().await.is_none());

    let mut reader = watch(&server, PODS, &[("resourceVersion", "3")]).await;
    server.fail_watches(&pods(), unavailable());
    let error = reader.event().await.unwrap();
    assert_eq!((&error["type"], &error["object"]["code"]), (&json!("ERROR"), &json!(503)));
    assert_eq!(reader.brief().await, None);
    assert_eq!(server.open_watches(), 0);
}

#[tokio::test(start_paused = true)]
async fn raw_frames_come_in_order_with_events() {
    let server = server_with(&["a"]);
    let mut reader = watch(&server, PODS, &[("resourceVersion", "2")]).await;
    let mut other = watch(&server, "/api/v1/configmaps", &[]).await;
    server.create(pod("b", json!({}))).unwrap();
    server.emit_raw_frame(&pods(), &b"garbage\n"[..]);
    server.create(pod("c", json!({}))).unwrap();
    assert_eq!(reader.brief().await.unwrap(), "ADDED b@3");
    assert_eq!(reader.line().await.unwrap().unwrap(), b"garbage\n");
    assert_eq!(reader.brief().await.unwrap(), "ADDED c@4");
    assert!(other.is_silent_for(Duration::from_secs(1)).await);
}

#[tokio::test(start_paused = true)]
async fn a_corrupted_object_is_shown_as_it_is_wanted() {
    let server = server_with(&["a", "b"]);
    let mut reader = watch(&server, PODS, &[("resourceVersion", "3")]).await;
    let text = r#"{"metadata":{"name":"a","namespace":"default","resourceVersion":"4"},"spec":"nonsense"}"#;
    server.corrupt(&pods(), &key("a"), text).unwrap();
    let event = reader.event().await.unwrap();
    assert_eq!(
        (&event["type"], &event["object"]["spec"]),
        (&json!("MODIFIED"), &json!("nonsense"))
    );
    let (_, list) = get(&server, PODS, &[]).await;
    assert_eq!((names_of(&list), &list["items"][0]["spec"]), (vec!["a", "b"], &json!("nonsense")));
    assert_eq!(server.corrupt(&config_maps(), &key("a"), text).unwrap_err().code, 404);
}

#[tokio::test]
async fn connections_can_be_refused() {
    let server = server_with(&[]);
    let transport = server.connect().unwrap();
    server.refuse_connections(true);
    let refused = transport.send(Request::get(PODS)).await;
    assert!(matches!(refused, Err(ApiError::Connection(_))));
    server.heal();
    assert_eq!(transport.send(Request::get(PODS)).await.unwrap().status, 200);
}

#[tokio::test(start_paused = true)]
async fn requests_are_remembered() {
    let server = server_with(&[]);
    drop(watch(&server, PODS, &[("resourceVersion", "1")]).await);
    tokio::time::sleep(Duration::from_secs(3)).await;
    server.handle(request(Method::Post, "/api/v1/namespaces/a/pods", &[], &Value::Null)).await;
    let requests = server.requests();
    let verbs: Vec<Verb> = requests.iter().map(|request| request.verb).collect();
    assert_eq!(verbs, [Verb::Watch, Verb::Create]);
    assert_eq!(
        (requests[0].path.as_str(), requests[0].parameter("resourceVersion")),
        (PODS, Some("1"))
    );
    assert_eq!(requests[1].at - requests[0].at, Duration::from_secs(3));
}

#[tokio::test]
async fn requests_are_counted_for_ever_and_remembered_as_long_as_wanted() {
    let server = server_with(&[]);
    server.remember_requests(2);
    for _ in 0..3 {
        get(&server, PODS, &[]).await;
    }
    get(&server, "/version", &[]).await;
    let remembered: Vec<Verb> = server.requests().iter().map(|request| request.verb).collect();
    assert_eq!(remembered, [Verb::List, Verb::Discover]);
    let counts: Vec<(Verb, u64)> = server.request_counts().into_iter().collect();
    assert_eq!(counts, [(Verb::List, 3), (Verb::Discover, 1)]);
}
