//! `/livez` and `/readyz`: what a kubelet does with a process follows from them.

use std::time::Duration;

use k8s_openapi::api::core::v1::{Node, Pod};
use kubeflect::dashboard::Dashboard;
use kubeflect::embedded::{ApiServer, Verb};
use kubeflect::object::StaticKind as _;
use kubeflect::reflector::StreamingLists;
use kubeflect::{Options, Runtime, RuntimeOptions, Threads};

use crate::support::{World, on_a_paused_clock};

#[test]
fn ready_is_who_has_applied_every_first_list() {
    on_a_paused_clock(async {
        let world = World::new();
        world.pods(&["a"]).await;
        let answer = world.get("/readyz").await;
        assert_eq!((answer.status, answer.body.as_str()), (200, "[+] pods: ok\nready\n"));

        world.server.forbid(&Node::static_kind(), Verb::List);
        let options = Options::all().streaming_lists(StreamingLists::Never);
        let nodes = world.runtime.reflect::<Node>(options).await.unwrap();
        assert!(nodes.synced().await.is_err());
        let answer = world.get("/readyz").await;
        assert_eq!(answer.status, 503);
        let lines: Vec<&str> = answer.body.lines().collect();
        assert_eq!((lines[0], lines[2]), ("[+] pods: ok", "not ready"));
        assert!(lines[1].starts_with("[-] nodes: can not list nodes: not allowed"), "{}", lines[1]);
        assert_eq!(world.get("/livez").await.status, 200, "a new process would not help");
    });
}

#[test]
fn what_is_to_be_reflected_and_is_not_yet_is_not_ready() {
    on_a_paused_clock(async {
        let world = World::new();
        world.pods(&["a"]).await;
        world.dashboard.set_pending("widgets", "the server has\nno kind");
        let answer = world.get("/readyz").await;
        let expected = "[+] pods: ok\n[-] widgets: the server has no kind\nnot ready\n";
        assert_eq!((answer.status, answer.body.as_str()), (503, expected));
        let status = world.get("/status.json").await.body;
        assert!(status.contains("\"pending\":[{\"name\":\"widgets\","), "{status}");
        world.dashboard.clear_pending("widgets");
        assert_eq!(world.get("/readyz").await.status, 200);
    });
}

#[test]
fn a_stale_cache_is_still_ready_and_says_so() {
    on_a_paused_clock(async {
        let world = World::new();
        world.pods(&["a"]).await;
        world.server.refuse_connections(true);
        world.server.cut_watches();
        tokio::time::sleep(Duration::from_secs(300)).await;
        let answer = world.get("/readyz").await;
        assert_eq!(answer.status, 200);
        assert!(answer.body.starts_with("[+] pods: ok, but stale: "), "{}", answer.body);
    });
}

#[test]
fn a_runtime_that_stops_is_not_ready_but_lives() {
    on_a_paused_clock(async {
        let world = World::new();
        world.pods(&["a"]).await;
        world.runtime.stop().await;
        assert_eq!(world.get("/readyz").await.status, 503);
        assert_eq!(world.get("/livez").await.status, 200);
    });
}

#[test]
fn what_a_server_says_stays_in_its_line() {
    on_a_paused_clock(async {
        let world = World::new();
        let answer = kubeflect::embedded::RawAnswer::text(403, "no\n[+] pods: ok\u{1b}[2J");
        world.server.answer_with(kubeflect::embedded::Filter::everything(), answer, 100);
        let pods = world.runtime.reflect::<Pod>(Options::all()).await.unwrap();
        assert!(pods.synced().await.is_err());
        let body = world.get("/readyz").await.body;
        assert_eq!(body.lines().count(), 2, "{body:?}");
        assert!(!body.contains('\u{1b}'), "{body:?}");
    });
}

#[test]
fn a_process_whose_reflectors_lost_their_threads_does_not_live() {
    let system = actix_rt::System::new();
    let (dashboard, runtime) = system.block_on(async {
        let options =
            RuntimeOptions { threads: Threads::Own { count: 1 }, ..RuntimeOptions::default() };
        let runtime = Runtime::with_options(ApiServer::new(), options);
        runtime.reflect::<Pod>(Options::all()).await.unwrap().synced().await.unwrap();
        assert!(runtime.is_alive());
        (Dashboard::new(runtime.clone()), runtime)
    });
    // Somebody stops the system they run in, and its arbiters end with it.
    actix_rt::System::current().stop();
    system.run().unwrap();
    actix_rt::System::new().block_on(async {
        for _ in 0..10_000 {
            if !runtime.is_alive() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let world = World { dashboard, runtime, server: ApiServer::new() };
        let answer = world.get("/livez").await;
        assert_eq!(
            (answer.status, answer.body.as_str()),
            (503, "the threads of the reflectors have ended\n")
        );
    });
}
