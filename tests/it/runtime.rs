//! Many reflectors together: shared, waited for, stopped; on their own threads, over real sockets.

use std::time::Duration;

use actix::{Actor, Context, Handler};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::core::PartialObjectMeta;
use kubeflect::client::HttpCluster;
use kubeflect::embedded::{ApiServer, Filter, Verb};
use kubeflect::object::{DynamicObject, Resource, StaticKind as _};
use kubeflect::reflector::{NotSynced, Phase};
use kubeflect::{Options, ResourceEvent, Runtime, RuntimeOptions, Threads};
use tokio::sync::mpsc;

use crate::support::{Recorder, World, cached, key, on_a_paused_clock, pass, pod, settle, told};

#[test]
fn the_same_options_share_one_reflector() {
    on_a_paused_clock(async {
        let world = World::new().pods(&["a"]);
        let first = world.reflect().await;
        let second = world.reflect().await;
        let other = world.reflect_with(Options::all().namespace("default")).await;
        world.runtime.synced().await.unwrap();
        assert_eq!(world.seen("streaming list"), 2);
        assert_eq!((first.store().len(), second.store().len(), other.store().len()), (1, 1, 1));
        assert_eq!(world.runtime.status().len(), 2);

        first.stop(Duration::ZERO).await;
        let again = world.reflect().await;
        again.synced().await.unwrap();
        assert_eq!(world.seen("streaming list"), 3, "a stopped reflector is not shared");
        assert_eq!(world.runtime.status().len(), 2, "nor kept");
        world.runtime.synced().await.unwrap();
    });
}

#[test]
fn a_kind_may_be_reflected_in_several_forms() {
    on_a_paused_clock(async {
        let world = World::new().pods(&["a"]);
        let kind = Pod::static_kind();
        let dynamic =
            world.runtime.reflect_kind::<DynamicObject>(kind, Options::all()).await.unwrap();
        let metadata =
            world.runtime.reflect::<PartialObjectMeta<Pod>>(Options::all()).await.unwrap();
        world.runtime.synced().await.unwrap();
        let pod = dynamic.store().get(&key("a")).unwrap();
        assert_eq!(pod.data["spec"]["containers"][0]["image"], "app");
        assert_eq!(pod.stated_type(), Some(("v1", "Pod")));
        let pod = metadata.store().get(&key("a")).unwrap();
        assert_eq!(pod.types.as_ref().unwrap().kind, "PartialObjectMetadata");
    });
}

#[test]
fn waiting_for_all_ends_with_the_reason_of_the_one_that_can_not() {
    on_a_paused_clock(async {
        let world = World::new();
        world.server.forbid(&Node::static_kind(), Verb::List);
        world.server.forbid(&Node::static_kind(), Verb::Watch);
        world.reflect().await;
        world.runtime.reflect::<Node>(Options::all()).await.unwrap();
        let error = world.runtime.synced().await.unwrap_err();
        assert!(
            matches!(&error, NotSynced::NeedsHelp(condition) if condition.kind.plural == "nodes"),
            "{error:?}"
        );
        let ready: Vec<(String, bool)> = world
            .runtime
            .readiness()
            .into_iter()
            .map(|(kind, ready)| (kind.to_string(), ready.is_ok()))
            .collect();
        assert_eq!(ready, [("pods".to_owned(), true), ("nodes".to_owned(), false)]);
    });
}

#[test]
fn waiting_with_a_limit_ends_with_what_went_wrong_last() {
    on_a_paused_clock(async {
        let world = World::new();
        world.server.refuse_connections(true);
        let pods = world.reflect().await;
        let error = pods.synced_within(Duration::from_secs(10)).await.unwrap_err();
        assert!(matches!(error, NotSynced::TooSlow { condition: Some(_), .. }), "{error:?}");
    });
}

#[test]
fn options_that_can_not_be_meant_are_refused() {
    on_a_paused_clock(async {
        let world = World::new();
        let refused = world.runtime.reflect::<Node>(Options::all().namespace("default")).await;
        assert_eq!(
            refused.unwrap_err().to_string(),
            "can not reflect nodes: a Node is in no namespace: leave the namespace out"
        );
        let without = Runtime::without_cluster(RuntimeOptions {
            threads: Threads::Callers,
            ..RuntimeOptions::default()
        });
        assert!(
            without
                .reflect::<Pod>(Options::all())
                .await
                .unwrap_err()
                .to_string()
                .contains("has no cluster")
        );
    });
}

#[test]
fn stopping_delivers_what_is_pending_within_the_grace_period() {
    on_a_paused_clock(async {
        let world = World::new().pods(&["a", "b", "c"]);
        let pods = world.reflect().await;
        pods.synced().await.unwrap();
        let (slow, log) = Recorder::start_slow(Duration::from_secs(2));
        pods.subscribe(slow).await.unwrap();
        settle().await;
        let before = tokio::time::Instant::now();
        world.runtime.stop().await;
        assert!(before.elapsed() < Duration::from_secs(10));
        assert_eq!(told(&log), ["added a", "added b", "added c", "synced"]);

        assert_eq!(pods.status().phase, Phase::Stopped);
        assert_eq!(world.server.open_watches(), 0);
        assert_eq!(pods.store().len(), 3, "the cache can still be read");
        let (late, _) = Recorder::start();
        assert_eq!(
            pods.subscribe(late).await.unwrap_err().to_string(),
            "the reflector of pods has been stopped"
        );
        let requests = world.server.requests().len();
        pass(3600).await;
        assert_eq!(world.server.requests().len(), requests, "nothing is asked any more");
        world.runtime.stop().await;
        let after = world.runtime.reflect::<Pod>(Options::all()).await;
        assert_eq!(after.unwrap_err().to_string(), "the runtime has been stopped");
    });
}

#[test]
fn stopping_does_not_wait_for_a_subscriber_longer_than_the_grace_period() {
    on_a_paused_clock(async {
        let world = World::new().pods(&["a"]);
        let pods = world.reflect().await;
        pods.synced().await.unwrap();
        let (slow, _) = Recorder::start_slow(Duration::from_secs(3600));
        pods.subscribe(slow).await.unwrap();
        settle().await;
        let before = tokio::time::Instant::now();
        world.runtime.stop().await;
        let took = before.elapsed();
        assert!(took >= Duration::from_secs(10) && took < Duration::from_secs(11), "{took:?}");
    });
}

#[test]
fn stopping_works_at_any_moment() {
    for moment in 0..40 {
        on_a_paused_clock(async move {
            let world = World::new().pods(&["a", "b"]);
            world.server.delay(Filter::everything(), Duration::from_millis(300));
            if moment % 2 == 1 {
                world.server.refuse_connections(true);
            }
            let pods = world
                .reflect_with(Options::all().page_size(1).resync(Duration::from_secs(1)))
                .await;
            tokio::time::sleep(Duration::from_millis(moment * 70)).await;
            let stopped = tokio::time::timeout(Duration::from_secs(1), world.runtime.stop()).await;
            assert!(stopped.is_ok(), "after {} ms", moment * 70);
            assert!(pods.synced().await.is_ok() || pods.status().phase == Phase::Stopped);
            assert_eq!(world.server.open_watches(), 0);
        });
    }
}

/// Passes events on as texts.
struct Teller(mpsc::UnboundedSender<String>);

impl Actor for Teller {
    type Context = Context<Self>;
}

impl<K: Resource> Handler<ResourceEvent<K>> for Teller {
    type Result = ();

    fn handle(&mut self, event: ResourceEvent<K>, _: &mut Context<Self>) {
        self.0.send(event.to_string()).ok();
    }
}

/// Over real sockets, and so on the real clock: waits for what it is told, never for time.
async fn follow_over_sockets(server: &ApiServer, runtime: &Runtime) {
    let pods = runtime.reflect::<Pod>(Options::all()).await.unwrap();
    runtime.reflect::<Deployment>(Options::all()).await.unwrap();
    let (sender, mut events) = mpsc::unbounded_channel();
    let teller = runtime.start_actor(|| Teller(sender)).await.unwrap();
    pods.subscribe(teller).await.unwrap();
    assert_eq!(events.recv().await.unwrap(), "added default/a");
    assert_eq!(events.recv().await.unwrap(), "synced");
    server.create(pod("b")).unwrap();
    assert_eq!(events.recv().await.unwrap(), "added default/b");
    server.cut_watches();
    server.delete(&Pod::static_kind(), &key("a")).unwrap();
    assert_eq!(events.recv().await.unwrap(), "deleted default/a");
    server.break_watches();
    server.forget_history();
    server.create(pod("c")).unwrap();
    assert_eq!(events.recv().await.unwrap(), "added default/c");
    runtime.synced().await.unwrap();
    assert_eq!(cached(&pods).len(), 2);
    runtime.stop().await;
}

#[actix::test]
async fn an_actix_application_reflects_over_http_on_threads_of_its_own() {
    let server = ApiServer::new();
    server.create(pod("a")).unwrap();
    let serving = server.start().await.unwrap();
    let runtime = Runtime::new(HttpCluster::new(&serving.url()).unwrap());
    follow_over_sockets(&server, &runtime).await;
    serving.stop().await;
}

#[test]
fn a_plain_tokio_program_reflects_in_a_system_of_its_own() {
    let (sender, address) = std::sync::mpsc::channel();
    let server = ApiServer::new();
    server.create(pod("a")).unwrap();
    let serving = server.clone();
    let (finished, finish) = tokio::sync::oneshot::channel::<()>();
    let serve = std::thread::spawn(move || {
        actix_rt::System::new().block_on(async move {
            let serving = serving.start().await.unwrap();
            sender.send(serving.url()).unwrap();
            finish.await.ok();
            serving.stop().await;
        });
    });
    let tokio = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    tokio.block_on(async {
        let options = RuntimeOptions {
            threads: Threads::OwnSystem { count: 2 },
            ..RuntimeOptions::default()
        };
        let cluster = HttpCluster::new(&address.recv().unwrap()).unwrap();
        let runtime = Runtime::with_options(cluster, options);
        follow_over_sockets(&server, &runtime).await;
    });
    finished.send(()).unwrap();
    serve.join().unwrap();
}

/// A source of the user's own, which hands over whatever it was given.
fn source_of(objects: Vec<DynamicObject>) -> impl kubeflect::api::ListerWatcher<DynamicObject> {
    use futures::{FutureExt as _, StreamExt as _};
    let list = move |_| {
        let items = objects
            .iter()
            .map(|object| kubeflect::api::Item::Object(std::sync::Arc::new(object.clone())));
        let resource_version = kubeflect::ResourceVersion::new("1");
        let page = kubeflect::api::ListPage {
            items: items.collect(),
            resource_version,
            continue_token: None,
        };
        async { Ok(page) }.boxed_local()
    };
    let watch = |_| async { Ok(futures::stream::pending().boxed_local()) }.boxed_local();
    kubeflect::api::ListWatch::new(list, watch)
}

#[test]
fn a_source_of_ones_own_is_not_trusted_with_kinds_and_names() {
    on_a_paused_clock(async {
        let object = |value| serde_json::from_value::<DynamicObject>(value).unwrap();
        let mut service = pod("service");
        service["kind"] = "Service".into();
        let mut nameless = pod("nameless");
        nameless["metadata"]["name"] = "".into();
        let objects = vec![object(pod("a")), object(service), object(nameless)];
        let world = World::new();
        let pods = world
            .runtime
            .reflect_from(Pod::static_kind(), move || source_of(objects), Options::all())
            .await
            .unwrap();
        pods.synced().await.unwrap();
        assert_eq!(pods.store().keys(), [key("a")]);
        let quarantined = pods.status().quarantined;
        assert_eq!(quarantined.objects[&key("service")], "it is a Service of v1, not a Pod of v1");
        assert_eq!(
            quarantined.last_other.as_deref(),
            Some("an object without a name: the object has no name")
        );
    });
}

#[test]
fn a_list_without_a_version_is_an_error_in_the_status() {
    on_a_paused_clock(async {
        use futures::{FutureExt as _, StreamExt as _};
        let source = || {
            kubeflect::api::ListWatch::<Pod, _, _>::new(
                |_| {
                    let page = kubeflect::api::ListPage {
                        items: vec![],
                        resource_version: None,
                        continue_token: None,
                    };
                    async { Ok(page) }.boxed_local()
                },
                |_| async { Ok(futures::stream::pending().boxed_local()) }.boxed_local(),
            )
        };
        let world = World::new();
        let pods =
            world.runtime.reflect_from(Pod::static_kind(), source, Options::all()).await.unwrap();
        settle().await;
        let error = pods.status().condition.unwrap().to_string();
        assert_eq!(
            error,
            "can not list pods: answer not understood: the list has no resourceVersion to watch from"
        );
        assert!(!pods.has_synced());
    });
}
