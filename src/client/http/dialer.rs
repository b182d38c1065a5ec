use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use actix_rt::net::TcpStream;
use actix_service::Service;
use actix_tls::connect::{ConnectError, ConnectInfo, Connection};
use awc::http::Uri;
use futures::future::LocalBoxFuture;
use socket2::{SockRef, TcpKeepalive};
use tokio::time::Instant;

use super::buffered::Buffered;
use super::proxy;
use super::stream::Stream;
use super::tls::{Tls, Trust};
use super::tls_error::TlsError;
use super::{HttpOptions, Keepalive};
use crate::client::{ProxyAddress, ServerAddress};

/// Makes the connections of awc, which knows neither proxies nor dead peers, and no TLS with an IPv6 address.
///
/// To awc they are all plain HTTP/1.1: where they really go is decided here.
#[derive(Debug, Clone)]
pub(super) struct Dialer {
    route: Rc<Route>,
}

/// Where connections go, and how.
#[derive(Debug)]
pub(super) struct Route {
    pub(super) server: ServerAddress,
    pub(super) proxy: Option<ProxyAddress>,
    pub(super) tls: Option<(Arc<Tls>, Arc<Trust>)>,
    pub(super) options: HttpOptions,
}

/// Why there is no connection.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum DialError {
    #[error("the name {host:?} can not be resolved: {problem}")]
    Resolve { host: String, problem: String },
    #[error("{to} can not be reached: {problem}")]
    Connect { to: String, problem: String },
    #[error("{to} did not {what} within {waited:?}")]
    TimedOut { to: String, what: &'static str, waited: Duration },
    #[error("the proxy {proxy} does not let us through: {answer}{}", hint(answer))]
    Proxy { proxy: String, answer: String },
    #[error("{0}")]
    Tls(#[from] TlsError),
}

impl Dialer {
    pub(super) fn new(route: Route) -> Self {
        Self { route: Rc::new(route) }
    }
}

impl Service<ConnectInfo<Uri>> for Dialer {
    type Response = Connection<Uri, Stream>;
    type Error = ConnectError;
    type Future = LocalBoxFuture<'static, Result<Self::Response, ConnectError>>;

    actix_service::always_ready!();

    fn call(&self, info: ConnectInfo<Uri>) -> Self::Future {
        let route = Rc::clone(&self.route);
        Box::pin(async move {
            let dialed = route.dial().await;
            let stream = dialed.map_err(|error| ConnectError::Io(io::Error::other(error)))?;
            Ok(Connection::new(info.request().clone(), stream))
        })
    }
}

impl Route {
    async fn dial(&self) -> Result<Stream, DialError> {
        let limit = self.options.connect_timeout;
        let stream = match &self.proxy {
            None => connect(&self.server.host, self.server.port, limit).await?,
            Some(proxy) => connect(&proxy.host, proxy.port, limit).await?,
        };
        if let Err(error) = keep_alive(&stream, self.options.keepalive) {
            // A connection without it still works, while its peer lives.
            tracing::debug!(%error, "TCP keepalive can not be set");
        }
        let mut stream = stream;
        if let Some(proxy) = &self.proxy {
            let asked = proxy::ask(&mut stream, proxy, &self.server);
            let to = format!("the proxy {}", address(&proxy.host, proxy.port));
            within(limit, "answer", to, asked).await?;
        }
        let stream = Buffered::new(stream);
        let Some((tls, trust)) = &self.tls else {
            return Ok(Stream::Plain(stream));
        };
        let connector = tokio_rustls::TlsConnector::from(Arc::clone(&trust.config));
        let handshake = async {
            let shaken = connector.connect(trust.name.clone(), stream).await;
            shaken.map_err(|error| DialError::Tls(TlsError::in_handshake(&error, trust)))
        };
        let to = address(&self.server.host, self.server.port);
        let limit = self.options.tls_timeout;
        match within(limit, "finish the TLS handshake", to, handshake).await {
            Ok(stream) => Ok(Stream::tls(stream, Arc::clone(trust))),
            Err(error) => {
                // Perhaps the authority or our certificate was replaced meanwhile.
                tls.expire();
                Err(error)
            }
        }
    }
}

async fn connect(host: &str, port: u16, limit: Duration) -> Result<TcpStream, DialError> {
    // Asked anew each time: a server may have moved.
    let resolve = async || Ok(tokio::net::lookup_host((host, port)).await?.collect());
    connect_to(host, port, limit, resolve).await
}

/// Tries all addresses of a name. Each gets its share of the time left, so that a dead one leaves some for the next.
async fn connect_to(
    host: &str,
    port: u16,
    limit: Duration,
    resolve: impl AsyncFnOnce() -> io::Result<Vec<SocketAddr>>,
) -> Result<TcpStream, DialError> {
    let to = address(host, port);
    let timed_out =
        || DialError::TimedOut { to: to.clone(), what: "accept a connection", waited: limit };
    let deadline = Instant::now() + limit;
    let resolved = tokio::time::timeout_at(deadline, resolve()).await;
    let unresolved = |problem: String| DialError::Resolve { host: host.to_owned(), problem };
    let addresses = resolved
        .map_err(|_elapsed| unresolved(format!("no answer within {limit:?}")))?
        .map_err(|error| unresolved(error.to_string()))?;
    let mut failure = unresolved("it has no address".to_owned());
    for (tried, address) in addresses.iter().enumerate() {
        let untried = u32::try_from(addresses.len() - tried).unwrap_or(u32::MAX);
        let share = deadline.saturating_duration_since(Instant::now()) / untried;
        match tokio::time::timeout(share, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => return Ok(stream),
            Ok(Err(error)) => {
                failure = DialError::Connect { to: to.clone(), problem: error.to_string() };
            }
            Err(_elapsed) => failure = timed_out(),
        }
    }
    Err(failure)
}

fn keep_alive(stream: &TcpStream, keepalive: Keepalive) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let socket = SockRef::from(stream);
    let probes = TcpKeepalive::new()
        .with_time(keepalive.after)
        .with_interval(keepalive.every)
        .with_retries(keepalive.probes);
    socket.set_tcp_keepalive(&probes)?;
    // Else what we sent last would be tried again for a quarter of an hour.
    #[cfg(target_os = "linux")]
    socket.set_tcp_user_timeout(Some(keepalive.user_timeout))?;
    Ok(())
}

async fn within<T>(
    limit: Duration,
    what: &'static str,
    to: String,
    work: impl Future<Output = Result<T, DialError>>,
) -> Result<T, DialError> {
    let done = tokio::time::timeout(limit, work).await;
    done.unwrap_or(Err(DialError::TimedOut { to, what, waited: limit }))
}

/// `host:port`, with brackets where they are needed.
pub(super) fn address(host: &str, port: u16) -> String {
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}

fn hint(answer: &str) -> &'static str {
    if answer.contains(" 407") { ": put user and password into proxy-url" } else { "" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_connection_finds_out_when_its_peer_is_dead() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let stream = connect("127.0.0.1", port, Duration::from_secs(5)).await.unwrap();
        keep_alive(&stream, Keepalive::default()).unwrap();
        let socket = SockRef::from(&stream);
        assert!(stream.nodelay().unwrap());
        assert!(socket.keepalive().unwrap());
        #[cfg(target_os = "linux")]
        {
            assert_eq!(socket.tcp_keepalive_time().unwrap(), Duration::from_secs(15));
            assert_eq!(socket.tcp_keepalive_interval().unwrap(), Duration::from_secs(5));
            assert_eq!(socket.tcp_keepalive_retries().unwrap(), 3);
            assert_eq!(socket.tcp_user_timeout().unwrap(), Some(Duration::from_secs(30)));
        }
    }

    #[tokio::test]
    async fn a_refused_connection_and_an_unknown_name_say_so() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        drop(listener);
        let error = connect("127.0.0.1", port, Duration::from_secs(5)).await.unwrap_err();
        assert!(error.to_string().contains("can not be reached"), "{error}");
        let error = connect("name.invalid", 1, Duration::from_secs(30)).await.unwrap_err();
        assert!(error.to_string().contains("name.invalid"), "{error}");
    }

    async fn listener() -> (tokio::net::TcpListener, SocketAddr) {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        (listener, address)
    }

    #[tokio::test]
    async fn a_server_that_moved_is_found_where_its_name_leads_now() {
        let (_here, here) = listener().await;
        let (_there, there) = listener().await;
        let unknown = || io::Error::new(io::ErrorKind::NotFound, "no such name");
        for (answer, expected) in
            [(Ok(here), Some(here)), (Err(unknown()), None), (Ok(there), Some(there))]
        {
            let resolve = async || answer.map(|address| vec![address]);
            let found = connect_to("name", 443, Duration::from_secs(5), resolve).await;
            match expected {
                Some(address) => assert_eq!(found.unwrap().peer_addr().unwrap(), address),
                None => assert!(matches!(found, Err(DialError::Resolve { .. })), "{found:?}"),
            }
        }
    }

    /// On a paused clock, where waiting takes no time: who can be reached is reached before it goes on.
    #[tokio::test(start_paused = true)]
    async fn a_dead_address_leaves_time_for_the_next() {
        use socket2::{Domain, Socket, Type};
        let (refusing, refused) = listener().await;
        drop(refusing);
        // A port whose queue is full does not answer.
        let full = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        full.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).unwrap();
        full.listen(0).unwrap();
        let silent = full.local_addr().unwrap();
        let waiting = || {
            let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
            socket.set_nonblocking(true).unwrap();
            socket.connect(&silent).ok();
            socket
        };
        let _waiting: Vec<Socket> = std::iter::repeat_with(waiting).take(8).collect();
        let (_live, live) = listener().await;
        let limit = Duration::from_secs(10);
        for (dead, share) in [(refused, 0), (silent.as_socket().unwrap(), 5)] {
            let began = Instant::now();
            let found = connect_to("name", 443, limit, async || Ok(vec![dead, live])).await;
            assert_eq!(found.unwrap().peer_addr().unwrap(), live);
            assert_eq!(began.elapsed().as_secs(), share, "half of the time");
            let alone = connect_to("name", 443, limit, async || Ok(vec![dead])).await;
            assert!(alone.is_err() && began.elapsed() <= Duration::from_secs(share + 11));
        }
    }
}
