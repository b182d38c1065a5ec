//! Words the tests are written in.

use std::error::Error as _;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use actix::{Actor, Context, Handler};
use futures::future::BoxFuture;
use futures::{FutureExt as _, StreamExt as _};
use k8s_openapi::api::core::v1::Pod;
use kubeflect::api::ApiError;
use kubeflect::client::{
    Anonymous, Authority, ClientIdentity, Cluster as _, Connection, CredentialError, Credentials,
    HttpCluster, HttpOptions, Request, Response, Scheme, ServerAddress, TlsOptions,
};
use kubeflect::embedded::{ApiServer, ServingApiServer};
use kubeflect::{Options, Reflector, ResourceEvent, Runtime};
use rustls::ServerConfig;
use secrecy::SecretString;
use serde_json::json;
use tokio::sync::mpsc;

use crate::front::{Front, Gate};

/// Whatever happens within this happens; a test that waits longer hangs.
pub(crate) const LONG: Duration = Duration::from_secs(30);

/// A server with one pod, and a front before it.
pub(crate) struct World {
    pub(crate) server: ApiServer,
    pub(crate) front: Front,
    serving: ServingApiServer,
}

impl World {
    pub(crate) async fn plain() -> Self {
        Self::with("127.0.0.1", None, Some(Arc::new(|_head| None))).await
    }

    /// Plain HTTP, and `gate` answers what it wants to.
    pub(crate) async fn gated(gate: Gate) -> Self {
        Self::with("127.0.0.1", None, Some(gate)).await
    }

    pub(crate) async fn tls(config: Arc<ServerConfig>) -> Self {
        Self::with("127.0.0.1", Some(config), Some(Arc::new(|_head| None))).await
    }

    pub(crate) async fn with(
        host: &str,
        tls: Option<Arc<ServerConfig>>,
        gate: Option<Gate>,
    ) -> Self {
        let server = ApiServer::new();
        server.create(pod("a")).unwrap();
        let serving = server.start().await.unwrap();
        let address = serving.url().trim_start_matches("http://").parse().unwrap();
        let front = Front::start(host, address, tls, gate).await.unwrap();
        Self { server, front, serving }
    }

    /// The way to the front, by any name of it.
    pub(crate) fn connection(&self, scheme: Scheme, host: &str) -> Connection {
        connection(scheme, host, self.front.address.port())
    }

    pub(crate) async fn stop(self, runtime: Runtime) {
        runtime.stop().await;
        self.serving.stop().await;
    }
}

pub(crate) fn connection(scheme: Scheme, host: &str, port: u16) -> Connection {
    Connection {
        server: ServerAddress { scheme, host: host.to_owned(), port, path: String::new() },
        tls: TlsOptions::default(),
        proxy: None,
        credentials: Arc::new(Anonymous),
        impersonation: None,
        default_namespace: None,
    }
}

/// With the authority that is to be trusted.
pub(crate) fn trusting(mut connection: Connection, authority: &[u8]) -> Connection {
    connection.tls.authority = Authority::Pem(authority.to_vec());
    connection
}

/// An address nobody listens on.
pub(crate) async fn nobody() -> SocketAddr {
    tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap()
}

pub(crate) fn pod(name: &str) -> serde_json::Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": { "name": name, "namespace": "default" },
        "spec": { "containers": [{ "name": "main", "image": "app" }] },
    })
}

/// Lists pods once, and reads the body.
pub(crate) async fn list(connection: Connection) -> Result<(u16, Vec<u8>), ApiError> {
    list_with(connection, HttpOptions::default()).await
}

pub(crate) async fn list_with(
    connection: Connection,
    options: HttpOptions,
) -> Result<(u16, Vec<u8>), ApiError> {
    let transport = HttpCluster::with_options(connection, options).connect()?;
    let sent = transport.send(Request::get("/api/v1/pods"));
    let response = tokio::time::timeout(LONG, sent).await.unwrap()?;
    read(response).await
}

pub(crate) async fn read(mut response: Response) -> Result<(u16, Vec<u8>), ApiError> {
    let mut body = Vec::new();
    while let Some(chunk) = tokio::time::timeout(LONG, response.body.next()).await.unwrap() {
        body.extend_from_slice(&chunk?);
    }
    Ok((response.status, body))
}

/// An error and all its causes, in one text.
pub(crate) fn whole(error: &ApiError) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text += &format!(": {error}");
        cause = error.source();
    }
    text
}

/// A reflector of pods, whose events come as texts.
pub(crate) struct Followed {
    pub(crate) runtime: Runtime,
    pub(crate) pods: Reflector<Pod>,
    events: mpsc::UnboundedReceiver<String>,
}

impl Followed {
    pub(crate) async fn start(connection: Connection, options: HttpOptions) -> Self {
        let runtime = Runtime::new(HttpCluster::with_options(connection, options));
        let pods = runtime.reflect::<Pod>(Options::all()).await.unwrap();
        let (sender, events) = mpsc::unbounded_channel();
        let teller = runtime.start_actor(|| Teller(sender)).await.unwrap();
        pods.subscribe(teller).await.unwrap();
        let mut followed = Self { runtime, pods, events };
        assert_eq!(followed.next().await, "added default/a");
        assert_eq!(followed.next().await, "synced");
        followed
    }

    pub(crate) async fn next(&mut self) -> String {
        match tokio::time::timeout(LONG, self.events.recv()).await {
            Ok(event) => event.unwrap(),
            Err(_elapsed) => panic!("nothing came: {:?}", self.pods.status()),
        }
    }
}

/// Lists and watches over `connection`: what there is, what comes, and what comes after a break.
pub(crate) async fn follow(world: World, connection: Connection) {
    let mut followed = Followed::start(connection, HttpOptions::default()).await;
    world.server.create(pod("b")).unwrap();
    assert_eq!(followed.next().await, "added default/b");
    world.server.cut_watches();
    world.server.create(pod("c")).unwrap();
    assert_eq!(followed.next().await, "added default/c");
    world.stop(followed.runtime).await;
}

struct Teller(mpsc::UnboundedSender<String>);

impl Actor for Teller {
    type Context = Context<Self>;
}

impl Handler<ResourceEvent<Pod>> for Teller {
    type Result = ();

    fn handle(&mut self, event: ResourceEvent<Pod>, _: &mut Context<Self>) {
        self.0.send(event.to_string()).ok();
    }
}

/// Credentials a test changes. A token that was rejected gives way to the next.
#[derive(Default)]
pub(crate) struct TestCredentials {
    pub(crate) state: Mutex<CredentialState>,
}

#[derive(Default)]
pub(crate) struct CredentialState {
    pub(crate) tokens: Vec<&'static str>,
    pub(crate) identity: Option<ClientIdentity>,
    /// Takes the place of `identity` when that is rejected.
    pub(crate) successor: Option<ClientIdentity>,
    pub(crate) rejections: usize,
}

impl TestCredentials {
    pub(crate) fn tokens(tokens: &[&'static str]) -> Arc<Self> {
        let state = CredentialState { tokens: tokens.to_vec(), ..CredentialState::default() };
        Arc::new(Self { state: Mutex::new(state) })
    }

    pub(crate) fn identity(identity: ClientIdentity) -> Arc<Self> {
        let state = CredentialState { identity: Some(identity), ..CredentialState::default() };
        Arc::new(Self { state: Mutex::new(state) })
    }
}

impl std::fmt::Debug for TestCredentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("TestCredentials")
    }
}

impl Credentials for TestCredentials {
    fn token(&self) -> BoxFuture<'_, Result<Option<SecretString>, CredentialError>> {
        let token = self.state.lock().unwrap().tokens.first().copied();
        async move { Ok(token.map(SecretString::from)) }.boxed()
    }

    fn identity(&self) -> BoxFuture<'_, Result<Option<ClientIdentity>, CredentialError>> {
        let identity = self.state.lock().unwrap().identity.clone();
        async move { Ok(identity) }.boxed()
    }

    fn rejected(&self) {
        let mut state = self.state.lock().unwrap();
        state.rejections += 1;
        if let Some(successor) = state.successor.take() {
            state.identity = Some(successor);
        }
        if state.tokens.len() > 1 {
            state.tokens.remove(0);
        }
    }
}
