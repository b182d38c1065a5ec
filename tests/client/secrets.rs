//! Nothing secret is shown, whatever goes wrong.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use k8s_openapi::api::core::v1::Secret;
use kubeflect::client::{Cluster as _, HttpCluster, ProxyAddress, Request, Scheme};
use kubeflect::object::StaticKind as _;
use kubeflect::{ObjectKey, Options, Runtime, RuntimeOptions, Threads};
use tracing_subscriber::fmt::MakeWriter;

use crate::certificates::{Authority, ClientCertificates};
use crate::support::{
    CredentialState, TestCredentials, World, connection, nobody, trusting, whole,
};

/// All that was logged.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().unwrap()).into_owned()
    }
}

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Log {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

impl log::Log for Log {
    fn enabled(&self, _: &log::Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &log::Record<'_>) {
        use io::Write as _;
        writeln!(self.clone(), "{}: {}", record.target(), record.args()).unwrap();
    }

    fn flush(&self) {}
}

#[actix::test]
async fn no_token_key_or_password_is_in_logs_errors_or_debug_output() {
    let shown = Log::default();
    log::set_logger(Box::leak(Box::new(shown.clone()))).unwrap();
    log::set_max_level(log::LevelFilter::Trace);
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing_subscriber::filter::LevelFilter::TRACE)
        .with_writer(shown.clone())
        .finish();
    let _guard = tracing::subscriber::set_default(subscriber);

    let authority = Authority::new("test");
    let (identity, _) = authority.client("jane", 1);
    let key = secrecy::ExposeSecret::expose_secret(&identity.key).to_owned();
    let state = CredentialState {
        tokens: vec!["token-canary", "second-canary"],
        identity: Some(identity),
        ..CredentialState::default()
    };
    let credentials = Arc::new(TestCredentials { state: Mutex::new(state) });
    let gate = Arc::new(|head: &str| {
        head.contains("token-canary")
            .then(|| b"HTTP/1.1 401 No\r\ncontent-length: 0\r\n\r\n".to_vec())
    });
    let config = authority.server(&["127.0.0.1"], ClientCertificates::Required);
    let world = World::with("127.0.0.1", Some(config), Some(gate)).await;
    let good = trusting(world.connection(Scheme::Https, "127.0.0.1"), &authority.pem());
    let port = nobody().await.port();
    let down = trusting(connection(Scheme::Https, "127.0.0.1", port), &authority.pem());
    let stranger = trusting(good.clone(), &Authority::new("other").pem());
    let mut plain = world.connection(Scheme::Http, "192.0.2.1");
    plain.proxy = Some(ProxyAddress {
        host: "127.0.0.1".to_owned(),
        port,
        userinfo: Some("user:password-canary".to_owned()),
    });
    for mut connection in [good, down, stranger, plain] {
        connection.credentials = Arc::<TestCredentials>::clone(&credentials);
        tracing::info!(?connection, "connection");
        let cluster = HttpCluster::from_connection(connection);
        tracing::info!(?cluster, "cluster");
        match cluster.connect().unwrap().send(Request::get("/api/v1/pods")).await {
            Ok(response) => tracing::info!(?response, "answered"),
            Err(error) => tracing::info!(?error, whole = whole(&error), "refused"),
        }
    }
    reflect_secrets(&world, &authority, &credentials).await;
    let text = shown.text();
    assert!(text.contains("answered") && text.contains("refused"), "{text}");
    assert!(!text.contains("canary"), "{text}");
    let lines = key.lines().filter(|line| !line.starts_with("---"));
    assert!(lines.into_iter().all(|line| !text.contains(line)), "{text}");
    assert!(world.front.heads().iter().any(|head| head.contains("second-canary")));
}

/// A whole reflector, in the thread whose log is read: some secrets it can read, and one it can not.
async fn reflect_secrets(world: &World, authority: &Authority, credentials: &Arc<TestCredentials>) {
    let kind = Secret::static_kind();
    for name in ["good", "bad"] {
        let secret = serde_json::json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": { "namespace": "default", "name": name },
            "stringData": { "password": "data-canary" },
        });
        world.server.create(secret).unwrap();
    }
    let broken = r#"{"metadata":{"namespace":"default","name":"bad"},"data":"canary \" canary","type":["canary"]}"#;
    world.server.corrupt(&kind, &ObjectKey::new("default", "bad"), broken).unwrap();
    let mut connection = trusting(world.connection(Scheme::Https, "127.0.0.1"), &authority.pem());
    connection.credentials = Arc::<TestCredentials>::clone(credentials);
    let options = RuntimeOptions { threads: Threads::Callers, ..RuntimeOptions::default() };
    let runtime = Runtime::with_options(HttpCluster::from_connection(connection), options);
    let secrets = runtime.reflect::<Secret>(Options::all()).await.unwrap();
    secrets.synced().await.unwrap();
    assert_eq!((secrets.store().len(), secrets.status().quarantined.objects.len()), (1, 1));
    world.server.emit_raw_frame(&kind, &b"{\"type\":\"MODIFIED\",\"object\":canary}"[..]);
    tracing::info!(status = ?secrets.status(), ?runtime, ?secrets, "reflected");
    runtime.stop().await;
}
