//! The first list, as a stream and page by page.

use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kubeflect::Options;
use kubeflect::reflector::StreamingLists;

use crate::server::{Server, on_both_servers};
use crate::support::{config_map, pod, quick};

on_both_servers! {
    the_first_objects_come_as_a_stream: Shared,
    the_first_objects_come_page_by_page: Shared,
    a_server_without_streaming_lists_is_listed: WithoutStreamingLists,
    many_large_objects_arrive_whole: Shared,
}

async fn the_first_objects_come_as_a_stream(server: Server) {
    for name in ["a", "b"] {
        server.objects::<Pod>().create(&pod(name)).await.unwrap();
        server.objects::<ConfigMap>().create(&config_map(name)).await.unwrap();
    }
    let mut pods = server.follow::<Pod>(Options::all()).await;
    pods.expect(&["added a (InitialList)", "added b (InitialList)"]).await;
    pods.expect(&["synced"]).await;
    let mut maps = server.follow::<ConfigMap>(Options::all()).await;
    maps.expect(&["added a (InitialList)", "added b (InitialList)"]).await;
    maps.expect(&["synced"]).await;
    for exchanges in [pods.exchanges(), maps.exchanges()] {
        assert!(exchanges[0].is_streaming_list(), "{exchanges:?}");
        assert_eq!(exchanges.len(), 1, "one request is enough: {exchanges:?}");
    }
    pods.stop().await;
    maps.stop().await;
}

async fn the_first_objects_come_page_by_page(server: Server) {
    for name in ["a", "b", "c", "d", "e"] {
        server.objects::<ConfigMap>().create(&config_map(name)).await.unwrap();
    }
    let options = Options::all().streaming_lists(StreamingLists::Never).page_size(2);
    let mut maps = server.follow::<ConfigMap>(options).await;
    let added = ["a", "b", "c", "d", "e"].map(|name| format!("added {name} (InitialList)"));
    maps.expect(&added.each_ref().map(String::as_str)).await;
    maps.expect(&["synced"]).await;
    let exchanges = maps.exchanges();
    let pages = exchanges.iter().take_while(|exchange| exchange.is_list()).count();
    assert_eq!(pages, 3, "{exchanges:?}");
    assert!(exchanges[1].parameter("continue").is_some(), "{exchanges:?}");
    maps.stop().await;
}

async fn a_server_without_streaming_lists_is_listed(server: Server) {
    server.objects::<ConfigMap>().create(&config_map("a")).await.unwrap();
    let mut maps = server.follow::<ConfigMap>(quick()).await;
    maps.expect(&["added a (InitialList)"]).await;
    maps.expect(&["synced"]).await;
    let exchanges = maps.exchanges();
    assert!(exchanges[0].is_streaming_list() && exchanges[1].is_list(), "{exchanges:?}");
    server.objects::<ConfigMap>().create(&config_map("b")).await.unwrap();
    assert_eq!(maps.next().await, "added b (Watch)");
    maps.stop().await;
}

/// Large enough for a real server to compress it.
async fn many_large_objects_arrive_whole(server: Server) {
    let maps = server.objects::<ConfigMap>();
    for number in 0..200 {
        let mut map = config_map(&format!("map-{number:03}"));
        map.data = Some([("text".to_owned(), format!("{number} ").repeat(2000))].into());
        maps.create(&map).await.unwrap();
    }
    let streamed = Options::all();
    let paged = streamed.clone().streaming_lists(StreamingLists::Never).page_size(70);
    let whole = streamed.clone().streaming_lists(StreamingLists::Never);
    for options in [streamed, paged, whole] {
        let maps = server.follow::<ConfigMap>(options).await;
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
