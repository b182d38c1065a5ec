//! A server that accepts and says nothing, and one that is asked too much.

use std::net::SocketAddr;
use std::time::Duration;

use futures::{FutureExt as _, StreamExt as _};
use kubeflect::api::ApiError;
use kubeflect::client::{
    BudgetOptions, Cluster as _, HttpCluster, HttpOptions, ProxyAddress, Request, Scheme,
};
use socket2::{Domain, Socket, Type};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpListener;

use crate::certificates::Authority;
use crate::support::{World, connection, list_with, trusting, whole};

const SHORT: Duration = Duration::from_millis(100);

/// Accepts, says `greeting` and nothing more, and never hangs up.
async fn silent(greeting: &'static [u8]) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let mut held = Vec::new();
        while let Ok((mut stream, _)) = listener.accept().await {
            stream.write_all(greeting).await.unwrap();
            held.push(stream);
        }
    });
    address
}

/// A port whose queue is full: who connects is not answered. Open as long as these are held.
fn full() -> (u16, Vec<Socket>) {
    let listener = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    listener.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).unwrap();
    listener.listen(0).unwrap();
    let address = listener.local_addr().unwrap();
    let mut held = vec![listener];
    for _ in 0..8 {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        socket.set_nonblocking(true).unwrap();
        // It is in progress, or it hangs: both fill the queue.
        socket.connect(&address).ok();
        held.push(socket);
    }
    (address.as_socket().unwrap().port(), held)
}

#[actix::test]
async fn a_connection_that_is_not_accepted_ends() {
    let (port, _held) = full();
    let options = HttpOptions { connect_timeout: SHORT, ..HttpOptions::default() };
    let error = list_with(connection(Scheme::Http, "127.0.0.1", port), options).await.unwrap_err();
    assert!(matches!(error, ApiError::Connection(_)), "{error:?}");
    let error = whole(&error);
    assert!(error.contains("did not accept a connection within 100ms"), "{error}");
}

#[actix::test]
async fn a_handshake_that_is_not_answered_ends() {
    let port = silent(b"").await.port();
    let options = HttpOptions { tls_timeout: SHORT, ..HttpOptions::default() };
    let authority = Authority::new("test");
    let connection = trusting(connection(Scheme::Https, "127.0.0.1", port), &authority.pem());
    let error = whole(&list_with(connection, options).await.unwrap_err());
    assert!(error.contains("did not finish the TLS handshake within 100ms"), "{error}");
}

#[actix::test]
async fn a_request_that_is_not_answered_ends() {
    let port = silent(b"").await.port();
    let options = HttpOptions { head_timeout: SHORT, ..HttpOptions::default() };
    let error = list_with(connection(Scheme::Http, "127.0.0.1", port), options).await.unwrap_err();
    assert!(matches!(error, ApiError::Timeout { waited } if waited == SHORT), "{error:?}");
}

#[actix::test]
async fn a_body_that_stalls_ends() {
    let port = silent(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{").await.port();
    let options = HttpOptions { idle_timeout: SHORT, ..HttpOptions::default() };
    let error = list_with(connection(Scheme::Http, "127.0.0.1", port), options).await.unwrap_err();
    assert!(matches!(error, ApiError::Timeout { waited } if waited == SHORT), "{error:?}");
}

#[actix::test]
async fn a_proxy_that_does_not_answer_is_given_up() {
    let port = silent(b"HTTP/1.1 200").await.port();
    let options = HttpOptions { connect_timeout: SHORT, ..HttpOptions::default() };
    let mut connection = connection(Scheme::Https, "192.0.2.1", 443);
    connection.proxy = Some(ProxyAddress { host: "127.0.0.1".to_owned(), port, userinfo: None });
    let authority = Authority::new("test");
    let error = list_with(trusting(connection, &authority.pem()), options).await.unwrap_err();
    assert!(whole(&error).contains("the proxy 127.0.0.1"), "{error:?}");
    assert!(whole(&error).contains("within 100ms"), "{error:?}");
}

#[actix::test]
async fn a_list_waits_until_another_was_read_and_a_watch_does_not() {
    let world = World::plain().await;
    let budget = BudgetOptions { lists: 1, ..BudgetOptions::default() };
    let cluster = HttpCluster::with_options(
        world.connection(Scheme::Http, "127.0.0.1"),
        HttpOptions { budget, ..HttpOptions::default() },
    );
    let transport = cluster.connect().unwrap();
    let elsewhere = cluster.clone().connect().unwrap();
    let list = || Request::get("/api/v1/pods");
    let mut first = transport.send(list()).await.unwrap();
    let mut second = elsewhere.send(list());
    assert!((&mut second).now_or_never().is_none());
    let watch = Request { query: vec![("watch", "true".to_owned())], ..list() };
    assert_eq!(transport.send(watch).await.unwrap().status, 200);
    assert_eq!(world.front.heads().len(), 2, "the second list has not been sent");
    while first.body.next().await.is_some() {}
    assert_eq!(second.await.unwrap().status, 200);
}
