use std::time::Duration;

use std::sync::Arc;

use bytes::Bytes;
use futures::stream;
use k8s_openapi::api::core::v1::Pod;

use super::*;
use crate::object::{Prune, StaticKind as _};

async fn read(chunks: BodyStream, options: &SourceOptions) -> Result<ListPage<Pod>, ApiError> {
    let deadline = Instant::now() + options.list_timeout;
    let reading = Reading {
        kind: Arc::new(Pod::static_kind()),
        prune: Prune::Nothing,
        known: None,
        room: None,
    };
    read_page(chunks, &reading, options, deadline).await
}

async fn read_text(text: &str) -> Result<ListPage<Pod>, ApiError> {
    let body = stream::iter([Ok(Bytes::from(text.to_owned()))]).boxed_local();
    read(body, &SourceOptions::default()).await
}

#[tokio::test]
async fn an_object_that_can_not_be_used_does_not_cost_the_others() {
    let page = read_text(
        r#"{"kind":"PodList","items":[{"metadata":{"name":"a"}},{"metadata":{"name":"b"},"spec":7},null],"metadata":{"resourceVersion":"7","continue":"t"}}"#,
    );
    let page = page.await.unwrap();
    assert!(matches!(
        page.items[..],
        [Item::Object(_), Item::Undecodable(_), Item::Undecodable(_)]
    ));
    assert_eq!(page.resource_version, ResourceVersion::new("7"));
    assert_eq!(page.continue_token.as_deref(), Some("t"));
}

#[tokio::test]
async fn an_item_that_is_no_json_makes_the_list_void() {
    for item in [r#"{"metadata":{"name":"hunter2"},}"#, "[}", "hunter2", r#"{"a":tru}"#] {
        let error = read_text(&format!(r#"{{"kind":"PodList","items":[{item}]}}"#)).await;
        let error = error.unwrap_err().to_string();
        assert!(error.ends_with("the list of pods can not be read: one of its items is no JSON"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_list_that_pauses_for_too_long_is_given_up() {
    let began = Instant::now();
    let start = stream::iter([Ok(Bytes::from_static(br#"{"kind":"#))]);
    let error = read(start.chain(stream::pending()).boxed_local(), &SourceOptions::default()).await;
    assert!(matches!(error, Err(ApiError::Timeout { waited }) if waited.as_secs() == 30));
    assert_eq!(began.elapsed().as_secs(), 30);
}

#[tokio::test(start_paused = true)]
async fn a_list_that_came_while_nobody_could_read_did_not_pause() {
    use futures::FutureExt as _;
    let (sender, body) = futures::channel::mpsc::unbounded();
    let options = SourceOptions::default();
    let mut page = Box::pin(read(body.boxed_local(), &options));
    assert!(page.as_mut().now_or_never().is_none(), "it waits");
    let whole = r#"{"kind":"PodList","items":[],"metadata":{"resourceVersion":"7"}}"#;
    sender.unbounded_send(Ok(Bytes::from_static(whole.as_bytes()))).unwrap();
    drop(sender);
    tokio::time::advance(options.list_idle_timeout * 2).await;
    assert_eq!(page.await.unwrap().resource_version, ResourceVersion::new("7"));
}

#[tokio::test(start_paused = true)]
async fn a_list_that_trickles_has_an_end_too() {
    let began = Instant::now();
    let trickle = stream::unfold((), |()| async {
        tokio::time::sleep(Duration::from_secs(7)).await;
        Some((Ok(Bytes::from_static(b" ")), ()))
    });
    let error = read(trickle.boxed_local(), &SourceOptions::default()).await;
    assert!(matches!(error, Err(ApiError::Timeout { waited }) if waited.as_secs() == 300));
    assert_eq!(began.elapsed().as_secs(), 300);
}

#[tokio::test]
async fn a_broken_connection_in_mid_list_leaves_nothing() {
    let whole = r#"{"kind":"PodList","items":[{"metadata":{"name":"a"}}"#;
    let body = stream::iter([
        Ok(Bytes::from_static(whole.as_bytes())),
        Err(ApiError::connection("reset")),
    ]);
    let error = read(body.boxed_local(), &SourceOptions::default()).await;
    assert!(matches!(error, Err(ApiError::Connection(_))));
    // As awc reports a body cut short: as its end.
    assert!(read_text(whole).await.unwrap_err().to_string().contains("was cut short"));
}

#[tokio::test]
async fn each_cap_is_an_error_that_says_so() {
    let caps = SourceOptions {
        item_cap: 100,
        envelope_cap: 100,
        list_cap: 1000,
        ..SourceOptions::default()
    };
    let long = "x".repeat(200);
    for (text, expected) in [
        (format!(r#"{{"kind":"PodList","items":["{long}"]}}"#), "an item larger than 100 bytes"),
        (format!(r#"{{"a":"{long}"}}"#), "more than 100 bytes beside its items"),
        (format!("{{{}", " ".repeat(2000)), "is larger than 1000 bytes"),
    ] {
        let body = stream::iter([Ok(Bytes::from(text))]).boxed_local();
        let error = read(body, &caps).await.unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[tokio::test]
async fn others_get_a_turn_while_a_large_list_is_read() {
    use std::cell::Cell;
    use std::rc::Rc;

    let items = vec![r#"{"metadata":{"name":"a"}}"#; 2000].join(",");
    let text = format!(r#"{{"kind":"PodList","items":[{items}]}}"#);
    let turns = Rc::new(Cell::new(0));
    let counter = async {
        loop {
            turns.set(turns.get() + 1);
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        page = read_text(&text) => assert_eq!(page.unwrap().items.len(), 2000),
        () = counter => {}
    }
    assert!(turns.get() >= 7, "{}", turns.get());
}
