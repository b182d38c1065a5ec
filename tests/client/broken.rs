//! Connections that break in the middle of something.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kubeflect::client::{HttpCluster, HttpOptions, Scheme};
use kubeflect::embedded::{ApiServer, Verb};
use kubeflect::reflector::StreamingLists;
use kubeflect::supervision::BackoffOptions;
use kubeflect::{Options, Reflector, Runtime};
use socket2::SockRef;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};

use crate::front::read_head;
use crate::support::{LONG, connection, pod};

/// How a connection ends once `after` has come through; not a byte more does.
#[derive(Clone, Copy)]
struct Break {
    after: &'static str,
    how: How,
}

#[derive(Clone, Copy)]
enum How {
    /// FIN: in good order, as it seems.
    Closed,
    /// RST.
    Reset,
}

/// Passes on what a server says. The first request whose head holds `hit` is broken off.
async fn breaker(server: SocketAddr, hit: &'static str, planned: Break) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let planned = Arc::new(Mutex::new(Some(planned)));
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let planned = Arc::clone(&planned);
            // Who hangs up is none of the breaker's business.
            tokio::spawn(async move { pass_on(client, server, hit, &planned).await.ok() });
        }
    });
    address
}

async fn pass_on(
    mut client: TcpStream,
    server: SocketAddr,
    hit: &str,
    planned: &Mutex<Option<Break>>,
) -> std::io::Result<()> {
    let head = read_head(&mut client).await?;
    let mut upstream = TcpStream::connect(server).await?;
    let closing = head.replacen("\r\n", "\r\nconnection: close\r\n", 1);
    upstream.write_all(closing.as_bytes()).await?;
    let planned = if head.contains(hit) { planned.lock().unwrap().take() } else { None };
    let Some(Break { after, how }) = planned else {
        return copy_bidirectional(&mut client, &mut upstream).await.map(|_lengths| ());
    };
    let mut seen = Vec::new();
    while !seen.ends_with(after.as_bytes()) {
        let byte = upstream.read_u8().await?;
        client.write_u8(byte).await?;
        seen.push(byte);
    }
    if matches!(how, How::Reset) {
        SockRef::from(&client).set_linger(Some(Duration::ZERO))?;
    }
    Ok(())
}

/// A server with one pod behind a breaker, and its address.
async fn world(hit: &'static str, planned: Break) -> (ApiServer, SocketAddr) {
    let server = ApiServer::new();
    server.create(pod("a")).unwrap();
    let serving = server.start().await.unwrap();
    let address = serving.url().trim_start_matches("http://").parse().unwrap();
    (server, breaker(address, hit, planned).await)
}

async fn reflect(address: SocketAddr, streaming: StreamingLists) -> (Runtime, Reflector<Pod>) {
    let connection = connection(Scheme::Http, "127.0.0.1", address.port());
    let runtime = Runtime::new(HttpCluster::with_options(connection, HttpOptions::default()));
    let quick = BackoffOptions { first: Duration::from_millis(10), ..BackoffOptions::default() };
    let options = Options::all().streaming_lists(streaming).backoff(quick);
    let pods = runtime.reflect::<Pod>(options).await.unwrap();
    pods.synced_within(LONG).await.unwrap();
    (runtime, pods)
}

async fn until(what: &str, is_so: impl Fn() -> bool) {
    let so = async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    assert!(tokio::time::timeout(LONG, so).await.is_ok(), "never: {what}");
}

fn asked(server: &ApiServer, verb: Verb) -> usize {
    let requests = server.requests();
    let counted =
        requests.iter().filter(|seen| seen.verb == verb && seen.parameter("limit") != Some("1"));
    counted.count()
}

#[actix::test]
async fn a_watch_that_breaks_anywhere_goes_on_where_it_was() {
    let mut cases = Vec::new();
    for how in [How::Closed, How::Reset] {
        // Before the first event, in the middle of one, and between two.
        for after in ["chunked", "\r\n\r\n", r#""name":"b""#, "}\n\r\n"] {
            cases.push(async move {
                let (server, address) = world("watch=true", Break { after, how }).await;
                let (runtime, pods) = reflect(address, StreamingLists::Never).await;
                server.create(pod("b")).unwrap();
                until(after, || asked(&server, Verb::Watch) == 2).await;
                server.create(pod("c")).unwrap();
                until(after, || pods.store().len() == 3).await;
                assert_eq!(asked(&server, Verb::List), 1, "{after:?}: nothing was listed again");
                assert_eq!(asked(&server, Verb::Watch), 2, "{after:?}");
                runtime.stop().await;
            });
        }
    }
    futures::future::join_all(cases).await;
}

#[actix::test]
async fn a_list_that_breaks_anywhere_is_no_shorter_list() {
    let mut cases = Vec::new();
    for how in [How::Closed, How::Reset] {
        // In the head, before the body, and within it.
        for after in ["HTTP/1.1 200", "\r\n\r\n", r#""items":["#, r#""name":"a""#, "},{"] {
            cases.push(async move {
                let (server, address) = world("/api/v1/pods", Break { after, how }).await;
                server.create(pod("b")).unwrap();
                let (runtime, pods) = reflect(address, StreamingLists::Never).await;
                let got = (pods.store().len(), asked(&server, Verb::List));
                assert_eq!(got, (2, 2), "{after:?}");
                runtime.stop().await;
            });
        }
    }
    futures::future::join_all(cases).await;
}

#[actix::test]
async fn a_streaming_list_that_breaks_is_not_taken_for_all_there_is() {
    for how in [How::Closed, How::Reset] {
        let planned = Break { after: r#""name":"a""#, how };
        let (server, address) = world("sendInitialEvents", planned).await;
        server.create(pod("b")).unwrap();
        let (runtime, pods) = reflect(address, StreamingLists::WherePossible).await;
        assert_eq!(pods.store().len(), 2);
        runtime.stop().await;
    }
}
