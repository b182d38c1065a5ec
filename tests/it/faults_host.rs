//! What goes wrong in the process itself: faults 71 to 87 of `tests/faults.md`.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use actix::{Actor, Context};
use k8s_openapi::api::core::v1::Pod;
use kubeflect::embedded::ApiServer;
use kubeflect::reflector::{Freshness, Phase};
use kubeflect::supervision::{MemberState, MemberStatus};
use kubeflect::{Options, Runtime, RuntimeOptions, Threads};

use crate::support::{World, cached, key, on_a_paused_clock, pass, pod, settle, told_why};

/// Whatever happens within this happens; a test that waits longer hangs.
const LONG: Duration = Duration::from_secs(30);

#[test]
fn a_transform_that_panics_costs_its_object_only() {
    on_a_paused_clock(async {
        let world = World::new().pods(&["a", "bad"]);
        let picky = |pod: Pod| {
            assert_ne!(pod.metadata.name.as_deref(), Some("bad"), "not that one");
            Ok(pod)
        };
        let pods = world.reflect_with(Options::all().transform(picky)).await;
        pods.synced().await.unwrap();
        world.touch("bad");
        world.create("c");
        settle().await;
        assert_eq!(pods.store().keys(), [key("a"), key("c")]);
        assert!(pods.status().quarantined.objects[&key("bad")].contains("panicked"));
    });
}

/// Its clock jumps over all it should have done meanwhile, its connection is long gone, and so is its place in history.
#[test]
fn a_process_that_was_stopped_for_twenty_minutes_is_soon_up_to_date() {
    on_a_paused_clock(async {
        let world = World::new().pods(&["kept", "gone"]);
        let (pods, log) = world.follow(Options::all()).await;
        pass(100).await;
        world.server.lose_watches();
        world.delete("gone");
        world.create("new");
        world.server.forget_history();
        let before = world.server.requests().len();
        tokio::time::advance(Duration::from_secs(20 * 60)).await;
        pass(10).await;
        assert_eq!(cached(&pods), world.truth());
        let mut told = told_why(&log);
        told.sort();
        assert_eq!(told, ["added new (Relist)", "deleted gone (Relist)"]);
        let asked = world.server.requests().len() - before;
        assert!(asked <= 5, "{asked} requests: what was missed is not made up for");
    });
}

/// The thread of this test does nothing but look, and lets nobody else have a turn.
#[actix::test]
async fn a_thread_the_application_hogs_holds_up_no_reflector() {
    let server = ApiServer::new();
    server.create(pod("a")).unwrap();
    let runtime = Runtime::new(server.clone());
    let pods = runtime.reflect::<Pod>(Options::all()).await.unwrap();
    pods.synced_within(LONG).await.unwrap();
    server.create(pod("b")).unwrap();
    let began = tokio::time::Instant::now();
    while pods.store().len() < 2 && began.elapsed() < LONG {
        std::hint::spin_loop();
    }
    assert_eq!(pods.store().keys(), [key("a"), key("b")]);
    runtime.stop().await;
}

struct StopsTheSystem;

impl Actor for StopsTheSystem {
    type Context = Context<Self>;

    fn started(&mut self, _: &mut Context<Self>) {
        actix::System::current().stop();
    }
}

#[tokio::test]
async fn a_runtime_whose_threads_are_gone_says_so_and_stops_at_once() {
    let server = ApiServer::new();
    server.create(pod("a")).unwrap();
    let threads = Threads::OwnSystem { count: 1 };
    let options = RuntimeOptions { threads, ..RuntimeOptions::default() };
    let runtime = Runtime::with_options(server, options);
    let pods = runtime.reflect::<Pod>(Options::all()).await.unwrap();
    pods.synced_within(LONG).await.unwrap();
    let running = runtime.clone();
    let running = tokio::spawn(async move { running.run().await });
    runtime.start_actor(|| StopsTheSystem).await.ok();
    let error = tokio::time::timeout(LONG, running).await.unwrap().unwrap().unwrap_err();
    assert!(error.to_string().starts_with("the threads of the runtime have ended"), "{error}");
    let gone = async {
        // Each asks for another kind of cache, so that it is not one there already.
        for size in 1.. {
            let reflected = runtime.reflect::<Pod>(Options::all().page_size(size)).await;
            if let Err(error) = reflected {
                return error.to_string();
            }
        }
        unreachable!()
    };
    let error = tokio::time::timeout(LONG, gone).await.unwrap();
    assert_eq!(error, "the runtime has been stopped");
    assert_eq!(cached(&pods).len(), 1, "what was cached can be read");
    let is_gone = |actor: &MemberStatus| matches!(actor.state, MemberState::Stopped(_));
    let all_gone = async {
        while !pods.status().actors.iter().all(is_gone) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(LONG, all_gone).await.expect("its actors end with their thread");
    let status = pods.status();
    assert_eq!(status.phase, Phase::Stopped);
    assert!(matches!(status.freshness, Freshness::Stale { .. }), "{:?}", status.freshness);
    assert!(runtime.readiness().iter().all(|(_, ready)| ready.is_err()));
    tokio::time::timeout(LONG, runtime.stop()).await.unwrap();
}

#[test]
fn only_the_end_of_credentials_is_read_off_the_wall_clock() {
    // To know when credentials end, to stamp objects, and to say how old one is.
    let allowed = [
        "src/cli/watch/printer.rs",
        "src/client/credentials/",
        "src/client/config/",
        "src/embedded/mutation.rs",
    ];
    let reads = ["SystemTime::now", "Timestamp::now", "std::time::Instant", "Utc::now"];
    let reading: Vec<String> = sources()
        .into_iter()
        .filter(|(_, code)| reads.iter().any(|read| code.contains(read)))
        .map(|(path, _)| path)
        .collect();
    let is_allowed = |path: &&String| allowed.iter().any(|allowed| path.starts_with(allowed));
    let (known, other): (Vec<_>, Vec<_>) = reading.iter().partition(is_allowed);
    assert!(!known.is_empty() && other.is_empty(), "{other:#?}");
}

#[test]
fn no_lock_is_lost_when_its_holder_panics() {
    let mut found = Vec::new();
    for (path, code) in sources() {
        let code: String = code.split_whitespace().collect();
        for poisoned in
            [".lock().unwrap()", ".lock().expect(", ".read().unwrap()", ".write().unwrap()"]
        {
            if code.contains(poisoned) {
                found.push(format!("{path}: {poisoned}"));
            }
        }
    }
    assert!(found.is_empty(), "{found:#?}");
}

/// What is shipped, by its path in the project: without tests and comments.
fn sources() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    collect(&root.join("src"), &mut files);
    let shipped = files.into_iter().filter(|path| {
        let name = path.to_string_lossy();
        !name.contains("/tests") && !name.ends_with("_tests.rs") && !name.ends_with("testing.rs")
    });
    shipped
        .map(|path| {
            let text = fs::read_to_string(&path).unwrap();
            let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
            let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
            let code = lines.map(|line| format!("{line}\n")).collect();
            (path.strip_prefix(root).unwrap().to_string_lossy().into_owned(), code)
        })
        .collect()
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}
