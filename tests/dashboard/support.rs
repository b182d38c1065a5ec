//! Words the tests are written in.

use std::future::Future;

use actix_web::body::{BoxBody, MessageBody};
use actix_web::dev::ServiceResponse;
use actix_web::test::TestRequest;
use actix_web::{App, test, web};
use k8s_openapi::api::core::v1::Pod;
use kubeflect::dashboard::{self, Dashboard, DashboardOptions};
use kubeflect::embedded::ApiServer;
use kubeflect::{Options, Reflector, Runtime, RuntimeOptions, Threads};
use serde_json::{Value, json};

/// Runs a test in an actix system whose clock stands still unless everybody waits for it.
pub(crate) fn on_a_paused_clock<T>(test: impl Future<Output = T>) -> T {
    let runtime = || {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        builder.enable_all().start_paused(true).build().unwrap()
    };
    actix_rt::System::with_tokio_rt(runtime).block_on(test)
}

/// A server, a runtime that reflects it on one thread, and its dashboard.
pub(crate) struct World {
    pub(crate) server: ApiServer,
    pub(crate) runtime: Runtime,
    pub(crate) dashboard: Dashboard,
}

impl World {
    pub(crate) fn new() -> Self {
        Self::with(DashboardOptions::default())
    }

    pub(crate) fn with(options: DashboardOptions) -> Self {
        let server = ApiServer::seeded(1);
        let threads = Threads::Callers;
        let runtime_options =
            RuntimeOptions { threads, seed: Some(1), ..RuntimeOptions::default() };
        let runtime = Runtime::with_options(server.clone(), runtime_options);
        let dashboard = Dashboard::with_options(runtime.clone(), options);
        Self { server, runtime, dashboard }
    }

    /// Pods, reflected, synced and observed.
    pub(crate) async fn pods(&self, names: &[&str]) -> Reflector<Pod> {
        self.pods_with(names, Options::all()).await
    }

    pub(crate) async fn pods_with(&self, names: &[&str], options: Options<Pod>) -> Reflector<Pod> {
        names.iter().for_each(|name| self.apply(name, "0"));
        let pods = self.runtime.reflect::<Pod>(options).await.unwrap();
        pods.synced().await.unwrap();
        let observed = self.dashboard.observe(&pods).await.unwrap();
        assert!(observed.synced().await);
        pods
    }

    pub(crate) fn apply(&self, name: &str, revision: &str) {
        let metadata = json!({
            "name": name, "namespace": "shop", "labels": { "app": "web" },
            "annotations": { "revision": revision },
        });
        let pod = json!({ "apiVersion": "v1", "kind": "Pod", "metadata": metadata });
        self.server.apply(pod).unwrap();
    }

    pub(crate) async fn call(&self, request: TestRequest) -> ServiceResponse {
        let data = web::Data::new(self.dashboard.clone());
        let app = App::new().app_data(data).configure(dashboard::configure);
        test::call_service(&test::init_service(app).await, request.to_request()).await
    }

    /// What a browser on this machine gets.
    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.ask(local(path)).await
    }

    pub(crate) async fn get_json(&self, path: &str) -> Value {
        serde_json::from_str(&self.get(path).await.body).unwrap()
    }

    pub(crate) async fn ask(&self, request: TestRequest) -> Answer {
        Answer::of(self.call(request).await).await
    }
}

/// A request as a browser on this machine makes it.
pub(crate) fn local(path: &str) -> TestRequest {
    TestRequest::get().uri(path).insert_header(("host", "127.0.0.1:8080"))
}

pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) async fn of(response: ServiceResponse) -> Self {
        let headers = response.headers().iter();
        let headers = headers
            .map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned()))
            .collect();
        let status = response.status().as_u16();
        let body = actix_web::body::to_bytes(response.into_body()).await.unwrap();
        Self { status, headers, body: String::from_utf8(body.to_vec()).unwrap() }
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str()).unwrap_or_default()
    }
}

/// The frames of a live stream, as they come.
pub(crate) struct Frames(std::pin::Pin<Box<BoxBody>>);

impl Frames {
    pub(crate) async fn open(world: &World) -> Self {
        Self::open_with(world, local("/events")).await
    }

    pub(crate) async fn open_with(world: &World, request: TestRequest) -> Self {
        let response = world.call(request).await;
        assert_eq!(response.status(), 200);
        Self(Box::pin(response.into_body()))
    }

    /// The next frame: its event, its id, its data.
    pub(crate) async fn next(&mut self) -> (String, String, Value) {
        let chunk =
            std::future::poll_fn(|cx| self.0.as_mut().poll_next(cx)).await.unwrap().unwrap();
        let text = String::from_utf8(chunk.to_vec()).unwrap();
        let field = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name));
            line.unwrap_or_default().trim_start_matches(": ").to_owned()
        };
        let data = serde_json::from_str(&field("data")).unwrap_or(Value::Null);
        (field("event"), field("id"), data)
    }

    /// The next frame of a kind, those before left out.
    pub(crate) async fn next_of(&mut self, event: &str) -> Value {
        loop {
            let (told, _, data) = self.next().await;
            if told == event {
                return data;
            }
        }
    }
}
