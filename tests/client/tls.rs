//! Whom we trust.

use std::net::Ipv6Addr;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use kubeflect::client::{
    Cluster as _, Connection, HttpCluster, HttpOptions, Request, Scheme, Verification,
};

use crate::certificates::{Authority, ClientCertificates};
use crate::front::read_head;
use crate::support::{
    Followed, TestCredentials, World, connection, follow, list, nobody, pod, read, trusting, whole,
};
use tokio::io::AsyncWriteExt as _;

const IGNORED: ClientCertificates = ClientCertificates::Ignored;
const REQUIRED: ClientCertificates = ClientCertificates::Required;

#[actix::test]
async fn a_server_is_followed_by_its_ipv4_address() {
    let authority = Authority::new("test");
    let world = World::tls(authority.server(&["127.0.0.1"], IGNORED)).await;
    let connection = trusting(world.connection(Scheme::Https, "127.0.0.1"), &authority.pem());
    follow(world, connection).await;
}

#[actix::test]
async fn a_server_is_followed_by_its_ipv6_address() {
    let authority = Authority::new("test");
    let config = authority.server(&["::1"], IGNORED);
    if let Err(error) = std::net::TcpListener::bind((Ipv6Addr::LOCALHOST, 0)) {
        println!("this machine has no IPv6 ({error}): nothing to test");
        return;
    }
    let world = World::with("::1", Some(config), None).await;
    let connection = trusting(world.connection(Scheme::Https, "::1"), &authority.pem());
    follow(world, connection).await;
}

#[actix::test]
async fn a_server_is_followed_by_its_name() {
    let authority = Authority::new("test");
    let world = World::tls(authority.server(&["localhost"], IGNORED)).await;
    let connection = trusting(world.connection(Scheme::Https, "localhost"), &authority.pem());
    follow(world, connection).await;
}

#[actix::test]
async fn a_server_may_go_by_another_name_than_its_address() {
    let authority = Authority::new("test");
    let world = World::tls(authority.server(&["kubernetes.default.svc"], IGNORED)).await;
    let mut connection = trusting(world.connection(Scheme::Https, "127.0.0.1"), &authority.pem());
    connection.tls.server_name = Some("kubernetes.default.svc".to_owned());
    follow(world, connection).await;
}

/// No streams that share a connection, hence none that stops another.
#[actix::test]
async fn a_server_that_would_rather_speak_http_2_is_spoken_to_in_http_1() {
    let authority = Authority::new("test");
    let mut config = (*authority.server(&["127.0.0.1"], IGNORED)).clone();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let serve = async {
        let (stream, _) = listener.accept().await.unwrap();
        let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
        let mut stream = acceptor.accept(stream).await.unwrap();
        let agreed = stream.get_ref().1.alpn_protocol().map(<[u8]>::to_vec);
        let head = read_head(&mut stream).await.unwrap();
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}").await.unwrap();
        (agreed, head)
    };
    let connection = connection(Scheme::Https, "127.0.0.1", port);
    let (listed, (agreed, head)) =
        futures::join!(list(trusting(connection, &authority.pem())), serve);
    assert_eq!(listed.unwrap(), (200, b"{}".to_vec()));
    assert_eq!(agreed.as_deref(), Some(b"http/1.1".as_slice()));
    assert!(head.starts_with("GET /api/v1/pods HTTP/1.1\r\n"), "{head}");
}

#[actix::test]
async fn a_server_nobody_we_trust_vouches_for_is_refused() {
    let authority = Authority::new("test");
    let world = World::tls(authority.server(&["127.0.0.1"], IGNORED)).await;
    for other in [Authority::new("other"), Authority::new("test")] {
        let connection = trusting(world.connection(Scheme::Https, "127.0.0.1"), &other.pem());
        let error = whole(&list(connection).await.unwrap_err());
        assert!(error.contains("signed by nobody we trust"), "{error}");
        assert!(error.contains("certificate-authority"), "{error}");
    }
    assert!(world.front.heads().is_empty(), "nothing was said");
}

#[actix::test]
async fn a_server_of_another_name_is_refused_and_its_names_are_shown() {
    let authority = Authority::new("test");
    let world = World::tls(authority.server(&["one.example", "10.0.0.1"], IGNORED)).await;
    let connection = trusting(world.connection(Scheme::Https, "127.0.0.1"), &authority.pem());
    let error = whole(&list(connection).await.unwrap_err());
    assert!(error.contains("is for one.example, 10.0.0.1, not for 127.0.0.1"), "{error}");
    assert!(error.contains("tls-server-name"), "{error}");
}

#[actix::test]
async fn a_server_whose_certificate_has_expired_is_refused() {
    let authority = Authority::new("test");
    let world = World::tls(authority.expired_server(&["127.0.0.1"])).await;
    let connection = trusting(world.connection(Scheme::Https, "127.0.0.1"), &authority.pem());
    let error = whole(&list(connection).await.unwrap_err());
    assert!(error.contains("has expired"), "{error}");
}

#[actix::test]
async fn a_server_is_not_checked_only_when_told_so() {
    let authority = Authority::new("test");
    let world = World::tls(authority.expired_server(&["one.example"])).await;
    let mut connection = world.connection(Scheme::Https, "127.0.0.1");
    connection.tls.verification = Verification::Skipped;
    assert_eq!(list(connection).await.unwrap().0, 200);
}

#[actix::test]
async fn a_server_without_tls_is_told_apart_from_one_that_is_not_there() {
    let world = World::with("127.0.0.1", None, None).await;
    let authority = Authority::new("test");
    let connection = trusting(world.connection(Scheme::Https, "127.0.0.1"), &authority.pem());
    let error = whole(&list(connection).await.unwrap_err());
    assert!(error.contains("does not speak TLS"), "{error}");
    let port = nobody().await.port();
    let absent = crate::support::connection(Scheme::Https, "127.0.0.1", port);
    let error = whole(&list(trusting(absent, &authority.pem())).await.unwrap_err());
    assert!(error.contains("can not be reached"), "{error}");
}

#[actix::test]
async fn a_server_that_wants_a_client_certificate_gets_one() {
    let authority = Authority::new("test");
    let world = World::tls(authority.server(&["127.0.0.1"], REQUIRED)).await;
    let (identity, shown) = authority.client("jane", 1);
    let mut connection = trusting(world.connection(Scheme::Https, "127.0.0.1"), &authority.pem());
    connection.credentials = TestCredentials::identity(identity);
    let front = world.front.clone();
    follow(world, connection).await;
    assert!(front.clients().iter().all(|client| *client == shown));
    assert!(!front.clients().is_empty());
}

#[actix::test]
async fn a_server_that_wants_a_client_certificate_and_gets_none_is_understood() {
    let authority = Authority::new("test");
    let world = World::tls(authority.server(&["127.0.0.1"], REQUIRED)).await;
    let connection = trusting(world.connection(Scheme::Https, "127.0.0.1"), &authority.pem());
    let error = whole(&list(connection.clone()).await.unwrap_err());
    assert!(error.contains("client certificate") && error.contains("client-key"), "{error}");

    let (stranger, _) = Authority::new("other").client("eve", 1);
    let connection = Connection { credentials: TestCredentials::identity(stranger), ..connection };
    let error = whole(&list(connection).await.unwrap_err());
    assert!(error.contains("does not accept our client certificate"), "{error}");
}

#[actix::test]
async fn a_client_certificate_is_replaced_while_a_watch_runs() {
    let authority = Authority::new("test");
    let world = World::tls(authority.server(&["127.0.0.1"], REQUIRED)).await;
    let (first, first_shown) = authority.client("jane", 1);
    let (second, second_shown) = authority.client("jane", 2);
    let credentials = TestCredentials::identity(first);
    let mut connection = trusting(world.connection(Scheme::Https, "127.0.0.1"), &authority.pem());
    connection.credentials = Arc::<TestCredentials>::clone(&credentials);
    let options = HttpOptions { reload_interval: Duration::ZERO, ..HttpOptions::default() };
    let mut followed = Followed::start(connection, options).await;
    credentials.state.lock().unwrap().identity = Some(second);
    world.server.create(pod("b")).unwrap();
    assert_eq!(followed.next().await, "added default/b", "the watch goes on");
    assert!(world.front.clients().iter().all(|client| *client == first_shown));
    world.server.cut_watches();
    world.server.create(pod("c")).unwrap();
    assert_eq!(followed.next().await, "added default/c");
    assert_eq!(world.front.clients().last(), Some(&second_shown));
    world.stop(followed.runtime).await;
}

#[actix::test]
async fn a_server_that_asks_for_a_certificate_and_needs_none_is_not_suspected_when_it_hangs_up() {
    use std::sync::atomic::{AtomicBool, Ordering};
    let authority = Authority::new("test");
    let is_down = Arc::new(AtomicBool::new(false));
    let hang_up = Arc::clone(&is_down);
    let gate = Arc::new(move |_head: &str| hang_up.load(Ordering::Relaxed).then(Vec::new));
    let config = authority.server(&["127.0.0.1"], ClientCertificates::Optional);
    let world = World::with("127.0.0.1", Some(config), Some(gate)).await;
    let connection = trusting(world.connection(Scheme::Https, "127.0.0.1"), &authority.pem());
    let transport = HttpCluster::from_connection(connection).connect().unwrap();
    let answer = transport.send(Request::get("/api/v1/pods")).await.unwrap();
    assert_eq!(read(answer).await.unwrap().0, 200);
    is_down.store(true, Ordering::Relaxed);
    let error = transport.send(Request::get("/api/v1/pods")).await.unwrap_err();
    assert!(!whole(&error).contains("client-certificate"), "{}", whole(&error));
}

#[actix::test]
async fn a_client_certificate_that_is_refused_is_replaced_at_once() {
    let authority = Authority::new("test");
    let refusals = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let gate = Arc::new(move |_head: &str| {
        let is_first = refusals.fetch_add(1, std::sync::atomic::Ordering::Relaxed) == 0;
        is_first
            .then(|| b"HTTP/1.1 401 No\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".to_vec())
    });
    let config = authority.server(&["127.0.0.1"], REQUIRED);
    let world = World::with("127.0.0.1", Some(config), Some(gate)).await;
    let (first, first_shown) = authority.client("jane", 1);
    let (second, second_shown) = authority.client("jane", 2);
    let credentials = TestCredentials::identity(first);
    credentials.state.lock().unwrap().successor = Some(second);
    let mut connection = trusting(world.connection(Scheme::Https, "127.0.0.1"), &authority.pem());
    connection.credentials = Arc::<TestCredentials>::clone(&credentials);
    assert_eq!(list(connection).await.unwrap().0, 200);
    assert_eq!(world.front.clients(), [first_shown, second_shown]);
}

#[actix::test]
async fn a_connection_is_used_again_until_the_certificate_is_another() {
    let authority = Authority::new("test");
    let config = authority.server(&["127.0.0.1"], REQUIRED);
    let world = World::with("127.0.0.1", Some(config), None).await;
    let (first, first_shown) = authority.client("jane", 1);
    let (second, second_shown) = authority.client("jane", 2);
    let credentials = TestCredentials::identity(first);
    let mut connection = trusting(world.connection(Scheme::Https, "127.0.0.1"), &authority.pem());
    connection.credentials = Arc::<TestCredentials>::clone(&credentials);
    let options = HttpOptions { reload_interval: Duration::ZERO, ..HttpOptions::default() };
    let transport = HttpCluster::with_options(connection, options).connect().unwrap();
    let list = async || {
        let listed = transport.send(Request::get("/api/v1/pods")).await.unwrap();
        assert_eq!(read(listed).await.unwrap().0, 200);
    };
    let query = vec![("watch", "true".to_owned()), ("resourceVersion", "0".to_owned())];
    let watch = Request { query, ..Request::get("/api/v1/pods") };
    let mut watched = transport.send(watch).await.unwrap();
    assert!(watched.body.next().await.unwrap().is_ok());
    list().await;
    list().await;
    assert_eq!(world.front.clients(), [first_shown.clone(), first_shown.clone()]);
    credentials.state.lock().unwrap().identity = Some(second);
    list().await;
    list().await;
    assert_eq!(world.front.clients(), [first_shown.clone(), first_shown, second_shown]);
    world.server.create(pod("b")).unwrap();
    assert!(watched.body.next().await.unwrap().is_ok(), "the watch goes on");
}

#[actix::test]
async fn an_authority_is_read_again_after_a_failed_handshake() {
    let (authority, other) = (Authority::new("test"), Authority::new("other"));
    let world = World::tls(authority.server(&["127.0.0.1"], IGNORED)).await;
    let path = std::env::temp_dir().join(format!("kubeflect-authority-{}.pem", std::process::id()));
    std::fs::write(&path, other.pem()).unwrap();
    let mut connection = world.connection(Scheme::Https, "127.0.0.1");
    connection.tls.authority = kubeflect::client::Authority::File(path.clone());
    let transport = HttpCluster::from_connection(connection).connect().unwrap();
    let request = || transport.send(Request::get("/api/v1/pods"));
    assert!(whole(&request().await.unwrap_err()).contains("nobody we trust"));
    std::fs::write(&path, authority.pem()).unwrap();
    assert_eq!(request().await.unwrap().status, 200);
    std::fs::remove_file(&path).unwrap();
}
