//! What stands between a client and the embedded server: it ends TLS, sees each request, and answers some itself.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use rustls::ServerConfig;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

/// Answers a request itself, by its head; none leaves it to the server.
pub(crate) type Gate = Arc<dyn Fn(&str) -> Option<Vec<u8>> + Send + Sync>;

#[derive(Clone)]
pub(crate) struct Front {
    pub(crate) address: SocketAddr,
    seen: Arc<Seen>,
}

#[derive(Default)]
struct Seen {
    heads: Mutex<Vec<String>>,
    clients: Mutex<Vec<Vec<u8>>>,
}

impl Front {
    /// Listens on a free port, in front of `server`. Without a gate it only passes bytes on.
    pub(crate) async fn start(
        host: &str,
        server: SocketAddr,
        tls: Option<Arc<ServerConfig>>,
        gate: Option<Gate>,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind((host, 0)).await?;
        let front = Self { address: listener.local_addr()?, seen: Arc::default() };
        let seen = Arc::clone(&front.seen);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (tls, gate, seen) = (tls.clone(), gate.clone(), Arc::clone(&seen));
                tokio::spawn(async move {
                    let served = match tls {
                        None => seen.serve(stream, server, gate).await,
                        Some(tls) => seen.serve_tls(stream, server, tls, gate).await,
                    };
                    // A client that hangs up is none of the front's business.
                    served.ok();
                });
            }
        });
        Ok(front)
    }

    /// The heads of all requests, in lower case but for their values.
    pub(crate) fn heads(&self) -> Vec<String> {
        self.seen.heads.lock().unwrap().clone()
    }

    /// The certificates clients showed, as DER.
    pub(crate) fn clients(&self) -> Vec<Vec<u8>> {
        self.seen.clients.lock().unwrap().clone()
    }
}

impl Seen {
    async fn serve_tls(
        &self,
        stream: TcpStream,
        server: SocketAddr,
        tls: Arc<ServerConfig>,
        gate: Option<Gate>,
    ) -> io::Result<()> {
        let stream = TlsAcceptor::from(tls).accept(stream).await?;
        let shown = stream.get_ref().1.peer_certificates();
        if let Some(certificate) = shown.and_then(|certificates| certificates.first()) {
            self.clients.lock().unwrap().push(certificate.to_vec());
        }
        self.serve(stream, server, gate).await
    }

    /// With a gate, one request per connection, so that none goes unseen.
    async fn serve(
        &self,
        mut stream: impl AsyncRead + AsyncWrite + Unpin,
        server: SocketAddr,
        gate: Option<Gate>,
    ) -> io::Result<()> {
        let Some(gate) = gate else {
            let mut upstream = TcpStream::connect(server).await?;
            return copy_bidirectional(&mut stream, &mut upstream).await.map(|_lengths| ());
        };
        let head = read_head(&mut stream).await?;
        self.heads.lock().unwrap().push(head.clone());
        if let Some(answer) = gate(&head) {
            stream.write_all(&answer).await?;
            return stream.shutdown().await;
        }
        let mut upstream = TcpStream::connect(server).await?;
        let closing = head.replacen("\r\n", "\r\nconnection: close\r\n", 1);
        upstream.write_all(closing.as_bytes()).await?;
        copy_bidirectional(&mut stream, &mut upstream).await.map(|_lengths| ())
    }
}

pub(crate) async fn read_head(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await?);
    }
    Ok(String::from_utf8_lossy(&head).into_owned())
}

/// The value of a header in a head.
pub(crate) fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    let field = |line: &'a str| line.split_once(": ");
    let (_, value) =
        head.lines().filter_map(field).find(|(found, _)| found.eq_ignore_ascii_case(name))?;
    Some(value)
}
