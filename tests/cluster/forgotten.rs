//! Versions that are forgotten, or still to come.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use k8s_openapi::api::core::v1::ConfigMap;
use kubeflect::api::{
    ApiError, ListRequest, ListerWatcher as _, Selection, VersionMatch, WatchRequest, WatchStart,
};
use kubeflect::client::{DeleteOptions, KubernetesSource};
use kubeflect::object::{ResourceVersion, StaticKind as _};
use kubeflect::reflector::StreamingLists;

use crate::recorded::Recorded;
use crate::server::{Server, on_both_servers};
use crate::support::{Followed, LONG, config_map, eventually, quick};
use crate::users::User;

on_both_servers! {
    a_list_whose_pages_are_forgotten_is_asked_for_in_one_piece: WithoutWatchCache,
    what_is_forgotten_is_refused_in_lists_pages_and_watches: WithoutWatchCache,
    a_version_that_is_still_to_come_is_refused: Shared,
}

async fn a_list_whose_pages_are_forgotten_is_asked_for_in_one_piece(server: Server) {
    let maps = server.objects::<ConfigMap>();
    for name in ["a", "b", "c", "d", "e"] {
        maps.create(&config_map(name)).await.unwrap();
    }
    let line = Recorded::new(server.connection(User::Admin));
    line.allow(1);
    let options = quick().namespace(&server.namespace).page_size(2);
    let options = options.streaming_lists(StreamingLists::Never);
    let kind = ConfigMap::static_kind();
    let mut followed =
        Followed::<ConfigMap>::over(line.clone(), &server.namespace, kind, options).await;
    let second = eventually(LONG, || followed.exchanges().len() == 2).await;
    assert!(second, "a second page: {}", followed.report());
    maps.delete("a", &DeleteOptions::default()).await.unwrap();
    maps.create(&config_map("f")).await.unwrap();
    server.compact().await;
    line.allow(usize::MAX);
    let added = ["b", "c", "d", "e", "f"].map(|name| format!("added {name} (InitialList)"));
    followed.expect(&added.each_ref().map(String::as_str)).await;
    followed.expect(&["synced"]).await;
    let exchanges = followed.exchanges();
    assert!(exchanges[1].is_expired() && exchanges[2].is_list(), "{exchanges:?}");
    assert!(exchanges[2].parameter("limit").is_none(), "{exchanges:?}");
    followed.stop().await;
}

fn source(server: &Server) -> (KubernetesSource<ConfigMap>, Arc<Selection>) {
    let source = KubernetesSource::new(Rc::clone(&server.admin), ConfigMap::static_kind());
    let selection = Selection { namespace: Some(server.namespace.clone()), ..Selection::default() };
    (source, Arc::new(selection))
}

fn watch(selection: &Arc<Selection>, version: ResourceVersion) -> WatchRequest {
    WatchRequest {
        selection: Arc::clone(selection),
        start: WatchStart::After(version),
        timeout: Duration::from_secs(30),
        bookmarks: true,
    }
}

async fn what_is_forgotten_is_refused_in_lists_pages_and_watches(server: Server) {
    let maps = server.objects::<ConfigMap>();
    for name in ["a", "b"] {
        maps.create(&config_map(name)).await.unwrap();
    }
    let (source, selection) = source(&server);
    let list = ListRequest { selection: Arc::clone(&selection), ..ListRequest::default() };
    let first = source.list(ListRequest { limit: Some(1), ..list.clone() }).await.unwrap();
    let version = first.resource_version.unwrap();
    for name in ["c", "d"] {
        maps.create(&config_map(name)).await.unwrap();
    }
    let exact = Some(VersionMatch::Exact(version.clone()));
    let past = source.list(ListRequest { version: exact.clone(), ..list.clone() }).await.unwrap();
    assert_eq!(past.items.len(), 2, "it is not forgotten yet");

    server.compact().await;
    for refused in [
        ListRequest { continue_token: first.continue_token, limit: Some(1), ..list.clone() },
        ListRequest { version: exact, ..list.clone() },
    ] {
        let error = source.list(refused).await.unwrap_err();
        assert!(matches!(error, ApiError::Expired { .. }), "{error:?}");
    }
    let not_older = Some(VersionMatch::NotOlderThan(version.clone()));
    let newest = source.list(ListRequest { version: not_older, ..list }).await.unwrap();
    assert_eq!(newest.items.len(), 4, "what is newer is not older");
    let mut events = source.watch(watch(&selection, version)).await.unwrap();
    let event = tokio::time::timeout(LONG, events.next()).await.unwrap().unwrap();
    assert!(matches!(event, Err(ApiError::Expired { .. })), "{event:?}");
}

async fn a_version_that_is_still_to_come_is_refused(server: Server) {
    let (source, selection) = source(&server);
    let version = ResourceVersion::new("999999999").unwrap();
    let list = |version| ListRequest {
        selection: Arc::clone(&selection),
        version: Some(version),
        ..ListRequest::default()
    };
    for version in
        [VersionMatch::NotOlderThan(version.clone()), VersionMatch::Exact(version.clone())]
    {
        let error = source.list(list(version)).await.unwrap_err();
        assert!(matches!(error, ApiError::NotYetServed { .. }), "{error:?}");
    }
    let start = WatchStart::InitialEvents { not_older_than: Some(version.clone()) };
    let stream = WatchRequest { start, ..watch(&selection, version) };
    let error = match source.watch(stream).await {
        Ok(mut events) => events.next().await.unwrap().unwrap_err(),
        Err(error) => error,
    };
    assert!(matches!(error, ApiError::NotYetServed { .. }), "{error:?}");
}
