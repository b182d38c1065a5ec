//! `/events`: live, and bounded whatever the browser does.

use std::time::Duration;

use kubeflect::dashboard::DashboardOptions;
use tokio::time::Instant;

use crate::support::{Frames, World, local, on_a_paused_clock};

#[test]
fn a_browser_gets_the_status_and_what_happened_before_it_came() {
    on_a_paused_clock(async {
        let world = World::new();
        let pods = world.pods(&["a", "b"]).await;
        let mut frames = Frames::open(&world).await;
        let (event, _, status) = frames.next().await;
        assert_eq!((event.as_str(), &status["reflectors"][0]["objects"]), ("status", &2.into()));
        let (event, id, news) = frames.next().await;
        assert_eq!((event.as_str(), &news["missed"]), ("changes", &0.into()));
        assert_eq!(id, format!("{}-3", status["boot"].as_str().unwrap()));
        let types: Vec<_> = news["changes"]
            .as_array()
            .unwrap()
            .iter()
            .map(|it| it["type"].as_str().unwrap())
            .collect();
        assert_eq!(types, ["ADDED", "ADDED", "SYNCED"]);
        assert_eq!(news["changes"][0]["reflector"], pods.status().id);
        assert_eq!(
            (&news["changes"][0]["resource"], &news["changes"][0]["name"]),
            (&"pods".into(), &"a".into())
        );
    });
}

#[test]
fn changes_are_told_as_they_come_and_the_status_once_a_second() {
    on_a_paused_clock(async {
        let world = World::new();
        world.pods(&["a"]).await;
        let mut frames = Frames::open(&world).await;
        frames.next_of("changes").await;
        let begun = Instant::now();
        world.apply("a", "1");
        let news = frames.next_of("changes").await;
        assert_eq!(
            (&news["changes"][0]["type"], &news["changes"][0]["what"]),
            (&"UPDATED".into(), &"annotations".into())
        );
        assert!(begun.elapsed() <= Duration::from_millis(300), "{:?}", begun.elapsed());
        let status = frames.next_of("status").await;
        assert_eq!(status["reflectors"][0]["changes"]["updated"], 1);
        assert!(begun.elapsed() <= Duration::from_millis(1_100), "{:?}", begun.elapsed());
    });
}

#[test]
fn while_nothing_changes_only_signs_of_life_are_sent() {
    on_a_paused_clock(async {
        let world = World::new();
        world.pods(&["a"]).await;
        // The last minute's rates are part of the status until they are all zero.
        tokio::time::sleep(Duration::from_secs(70)).await;
        let mut frames = Frames::open(&world).await;
        frames.next_of("changes").await;
        let begun = Instant::now();
        let (event, _, data) = frames.next().await;
        assert_eq!((event.as_str(), data.is_null()), ("", true), "{data}");
        assert!(begun.elapsed() >= Duration::from_secs(14), "{:?}", begun.elapsed());
    });
}

#[test]
fn a_slow_browser_is_told_less() {
    on_a_paused_clock(async {
        let world = World::new();
        world.pods(&["a"]).await;
        let mut frames = Frames::open(&world).await;
        frames.next_of("changes").await;
        for revision in 1..=1_000 {
            world.apply("a", &revision.to_string());
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let news = frames.next_of("changes").await;
        assert_eq!(news["changes"].as_array().unwrap().len(), 200);
        assert_eq!(news["missed"], 800);
        let version = world.server.resource_version();
        assert_eq!(news["changes"][199]["resourceVersion"], version, "the newest are told");
    });
}

#[test]
fn a_browser_that_comes_back_goes_on_where_it_was() {
    on_a_paused_clock(async {
        let world = World::new();
        world.pods(&["a"]).await;
        world.apply("a", "1");
        tokio::time::sleep(Duration::from_millis(10)).await;
        let boot = world.get_json("/status.json").await["boot"].clone();
        let id = format!("{}-2", boot.as_str().unwrap());
        let request = local("/events").insert_header(("last-event-id", id));
        let news = Frames::open_with(&world, request).await.next_of("changes").await;
        assert_eq!(news["changes"].as_array().unwrap().len(), 1);
        assert_eq!((&news["changes"][0]["number"], &news["missed"]), (&3.into(), &0.into()));
    });
}

#[test]
fn a_browser_that_knows_an_earlier_program_is_told_everything_anew() {
    on_a_paused_clock(async {
        let (earlier, world) = (World::new(), World::new());
        earlier.pods(&["a", "b"]).await;
        world.pods(&["a", "b"]).await;
        let mut frames = Frames::open(&earlier).await;
        frames.next_of("status").await;
        let (_, before, _) = frames.next().await;
        let request = local("/events").insert_header(("last-event-id", before));
        let mut frames = Frames::open_with(&world, request).await;
        let (_, _, status) = frames.next().await;
        assert_ne!(status["boot"], earlier.get_json("/status.json").await["boot"]);
        let news = frames.next_of("changes").await;
        assert_eq!(news["changes"].as_array().unwrap().len(), 3, "numbers of another program");
        assert_eq!(news["missed"], 0);
    });
}

#[test]
fn only_so_many_browsers_are_served_and_a_place_that_is_left_is_free() {
    on_a_paused_clock(async {
        let world = World::with(DashboardOptions { streams: 2, ..DashboardOptions::default() });
        let first = Frames::open(&world).await;
        let _second = Frames::open(&world).await;
        let refused = world.get("/events").await;
        assert_eq!(refused.status, 503);
        assert!(refused.body.contains("too many browsers"));
        assert!(world.get("/metrics").await.body.contains("kubeflect_dashboard_streams 2\n"));
        drop(first);
        Frames::open(&world).await;
    });
}
