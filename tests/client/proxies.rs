//! Through a proxy.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use kubeflect::client::{ProxyAddress, Scheme};
use tokio::io::{AsyncWriteExt as _, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};

use crate::certificates::{Authority, ClientCertificates};
use crate::front::{header, read_head};
use crate::support::{TestCredentials, World, follow, list, trusting, whole};

/// A proxy that knows CONNECT and nothing else, and for which every name is this machine. With `password`, it lets
/// nobody through without.
async fn proxy(password: Option<&'static str>) -> (SocketAddr, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let asked = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&asked);
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            let log = Arc::clone(&log);
            tokio::spawn(async move {
                let head = read_head(&mut client).await.unwrap();
                log.lock().unwrap().push(head.clone());
                if header(&head, "proxy-authorization") != password {
                    let refusal = b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n";
                    client.write_all(refusal).await.unwrap();
                    return;
                }
                let target = head.split(' ').nth(1).unwrap();
                let port: u16 = target.rsplit(':').next().unwrap().parse().unwrap();
                let mut server = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
                client.write_all(b"HTTP/1.1 200 OK\r\nVia: test\r\n\r\n").await.unwrap();
                copy_bidirectional(&mut client, &mut server).await.ok();
            });
        }
    });
    (address, asked)
}

fn through(address: SocketAddr, userinfo: Option<&str>) -> Option<ProxyAddress> {
    let host = address.ip().to_string();
    Some(ProxyAddress { host, port: address.port(), userinfo: userinfo.map(str::to_owned) })
}

/// `user:pass`, as a proxy sees it.
const USER: Option<&str> = Some("Basic dXNlcjpwYXNz");

#[actix::test]
async fn a_server_is_followed_through_a_proxy_by_a_name_only_the_proxy_resolves() {
    let authority = Authority::new("test");
    let world =
        World::tls(authority.server(&["kubernetes.invalid"], ClientCertificates::Ignored)).await;
    world.server.answer_to(["kubernetes.invalid"]);
    let (address, asked) = proxy(None).await;
    let mut connection =
        trusting(world.connection(Scheme::Https, "kubernetes.invalid"), &authority.pem());
    connection.proxy = through(address, None);
    let port = connection.server.port;
    follow(world, connection).await;
    let asked = asked.lock().unwrap();
    assert!(
        asked
            .iter()
            .all(|head| head.starts_with(&format!("CONNECT kubernetes.invalid:{port} HTTP/1.1")))
    );
    assert!(!asked.is_empty());
}

#[actix::test]
async fn a_proxy_is_given_its_password_and_nobody_else_is() {
    let authority = Authority::new("test");
    let world = World::tls(authority.server(&["127.0.0.1"], ClientCertificates::Ignored)).await;
    let (address, asked) = proxy(USER).await;
    let mut connection = trusting(world.connection(Scheme::Https, "127.0.0.1"), &authority.pem());
    connection.proxy = through(address, Some("user:pass"));
    connection.credentials = TestCredentials::tokens(&["canary"]);
    assert!(!format!("{connection:?}").contains("pass"));
    assert_eq!(list(connection.clone()).await.unwrap().0, 200);
    assert!(!asked.lock().unwrap()[0].contains("canary"), "the proxy does not see the token");
    assert_eq!(header(&world.front.heads()[0], "proxy-authorization"), None);

    connection.proxy = through(address, Some("user:wrong"));
    let error = whole(&list(connection).await.unwrap_err());
    assert!(error.contains("407 Proxy Authentication Required"), "{error}");
    assert!(error.contains("proxy-url") && !error.contains("wrong"), "{error}");
}

#[actix::test]
async fn a_token_goes_through_a_proxy_only_within_tls() {
    let world = World::plain().await;
    let (address, asked) = proxy(None).await;
    let mut connection = world.connection(Scheme::Http, "127.0.0.1");
    connection.proxy = through(address, None);
    assert_eq!(list(connection.clone()).await.unwrap().0, 200, "without a token it may");
    connection.credentials = TestCredentials::tokens(&["canary"]);
    assert!(whole(&list(connection).await.unwrap_err()).contains("without TLS"));
    assert_eq!(asked.lock().unwrap().len(), 1);
}
