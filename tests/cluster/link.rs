//! The line between a reflector and the API server. Cut, it leaves the server to everybody else.

use std::cell::Cell;
use std::net::SocketAddr;
use std::rc::Rc;

use actix_rt::task::JoinHandle;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// A line that can be cut and mended.
pub(crate) struct Link {
    pub(crate) port: u16,
    whole: watch::Sender<bool>,
    connections: Rc<Cell<usize>>,
    accepting: JoinHandle<()>,
}

impl Link {
    pub(crate) async fn to(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (whole, state) = watch::channel(true);
        let connections = Rc::<Cell<usize>>::default();
        let count = Rc::clone(&connections);
        let accepting = actix_rt::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                count.set(count.get() + 1);
                actix_rt::spawn(carry(client, server, state.clone()));
            }
        });
        Self { port, whole, connections, accepting }
    }

    /// How many connections there have been.
    pub(crate) fn connections(&self) -> usize {
        self.connections.get()
    }

    /// Ends every connection, and those that are tried.
    pub(crate) fn cut(&self) {
        self.whole.send_replace(false);
    }

    pub(crate) fn mend(&self) {
        self.whole.send_replace(true);
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn carry(mut client: TcpStream, server: SocketAddr, mut whole: watch::Receiver<bool>) {
    if !*whole.borrow_and_update() {
        return;
    }
    let Ok(mut server) = TcpStream::connect(server).await else { return };
    tokio::select! {
        _ended = tokio::io::copy_bidirectional(&mut client, &mut server) => {}
        _cut = whole.changed() => {}
    }
}
