//! The first list, as a stream and page by page.

use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kubeflect::Options;
use kubeflect::reflector::StreamingLists;

use crate::control_plane::{ControlPlane, User};
use crate::support::{Followed, config_map, pod, quick};

#[actix::test]
async fn the_first_objects_come_as_a_stream() {
    let plane = ControlPlane::start(&[]).await;
    for name in ["a", "b"] {
        plane.objects::<Pod>().create(&pod(name)).await.unwrap();
        plane.objects::<ConfigMap>().create(&config_map(name)).await.unwrap();
    }
    let mut pods = Followed::<Pod>::start(plane.connection(User::Admin), Options::all()).await;
    pods.expect(&["added default/a (InitialList)", "added default/b (InitialList)"]).await;
    pods.expect(&["synced"]).await;
    let options = Options::all().namespace("default");
    let mut maps = Followed::<ConfigMap>::start(plane.connection(User::Admin), options).await;
    maps.expect(&["added default/a (InitialList)", "added default/b (InitialList)"]).await;
    maps.expect(&["synced"]).await;
    for exchanges in [pods.exchanges(), maps.exchanges()] {
        assert!(exchanges[0].is_streaming_list(), "{exchanges:?}");
        assert_eq!(exchanges.len(), 1, "one request is enough: {exchanges:?}");
    }
    pods.stop().await;
    maps.stop().await;
}

#[actix::test]
async fn the_first_objects_come_page_by_page() {
    let plane = ControlPlane::start(&[]).await;
    for name in ["a", "b", "c", "d", "e"] {
        plane.objects::<ConfigMap>().create(&config_map(name)).await.unwrap();
    }
    let options =
        Options::all().namespace("default").streaming_lists(StreamingLists::Never).page_size(2);
    let mut maps = Followed::<ConfigMap>::start(plane.connection(User::Admin), options).await;
    let added = ["a", "b", "c", "d", "e"].map(|name| format!("added default/{name} (InitialList)"));
    maps.expect(&added.each_ref().map(String::as_str)).await;
    maps.expect(&["synced"]).await;
    let exchanges = maps.exchanges();
    let pages = exchanges.iter().take_while(|exchange| exchange.is_list()).count();
    assert_eq!(pages, 3, "{exchanges:?}");
    assert!(exchanges[1].parameter("continue").is_some(), "{exchanges:?}");
    maps.stop().await;
}

#[actix::test]
async fn a_server_without_streaming_lists_is_listed() {
    let plane = ControlPlane::start(&["--feature-gates=WatchList=false"]).await;
    plane.objects::<ConfigMap>().create(&config_map("a")).await.unwrap();
    let options = quick().namespace("default");
    let mut maps = Followed::<ConfigMap>::start(plane.connection(User::Admin), options).await;
    maps.expect(&["added default/a (InitialList)"]).await;
    maps.expect(&["synced"]).await;
    let exchanges = maps.exchanges();
    assert!(exchanges[0].is_streaming_list() && exchanges[1].is_list(), "{exchanges:?}");
    plane.objects::<ConfigMap>().create(&config_map("b")).await.unwrap();
    assert_eq!(maps.next().await, "added default/b (Watch)");
    maps.stop().await;
}

/// Large enough for the server to compress it.
#[actix::test]
async fn many_large_objects_arrive_whole() {
    let plane = ControlPlane::start(&[]).await;
    let maps = plane.objects::<ConfigMap>();
    for number in 0..200 {
        let mut map = config_map(&format!("map-{number:03}"));
        map.data = Some([("text".to_owned(), format!("{number} ").repeat(2000))].into());
        maps.create(&map).await.unwrap();
    }
    let streamed = Options::all().namespace("default");
    let paged = streamed.clone().streaming_lists(StreamingLists::Never).page_size(70);
    let whole = streamed.clone().streaming_lists(StreamingLists::Never);
    for options in [streamed, paged, whole] {
        let maps = Followed::<ConfigMap>::start(plane.connection(User::Admin), options).await;
        maps.reflector.synced().await.unwrap();
        let cached = maps.reflector.store().list();
        assert_eq!(cached.len(), 200, "{}", maps.report());
        for map in cached {
            let text = &map.data.as_ref().unwrap()["text"];
            let number = text.split(' ').next().unwrap();
            assert_eq!(*text, format!("{number} ").repeat(2000));
        }
        maps.stop().await;
    }
}
