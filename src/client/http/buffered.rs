use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use actix_rt::net::{ActixStream, Ready, TcpStream};
use bytes::{Buf as _, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, ReadBuf};

/// So much is read from a socket at once. awc asks for 8 KiB at a time: a list would be ten thousand system calls.
const AT_ONCE: usize = 256 << 10;
/// What is less than this came alone, and the next will too: no buffer is kept for it.
const FEW: usize = 16 << 10;

/// A connection that is read in large pieces. While nothing comes it holds no buffer.
#[derive(Debug)]
pub(super) struct Buffered {
    tcp: TcpStream,
    received: BytesMut,
    /// So much came with the last look.
    came: usize,
}

impl Buffered {
    pub(super) fn new(tcp: TcpStream) -> Self {
        Self { tcp, received: BytesMut::new(), came: 0 }
    }

    pub(super) fn tcp(&self) -> &TcpStream {
        &self.tcp
    }

    pub(super) fn poll_read_ready(&self, context: &mut Context<'_>) -> Poll<io::Result<Ready>> {
        if self.received.is_empty() {
            return ActixStream::poll_read_ready(&self.tcp, context);
        }
        Poll::Ready(Ok(Ready::READABLE))
    }

    fn poll_fill(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Self { tcp, received, came } = self;
        received.reserve(AT_ONCE);
        let mut read = std::pin::pin!(tcp.read_buf(received));
        let read = read.as_mut().poll(context);
        *came = received.len();
        if read.is_pending() {
            *received = BytesMut::new();
        }
        read.map_ok(drop)
    }
}

impl AsyncRead for Buffered {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.received.is_empty() {
            ready!(self.poll_fill(context))?;
        }
        let length = self.received.len().min(buffer.remaining());
        buffer.put_slice(&self.received[..length]);
        self.received.advance(length);
        if self.received.is_empty() && self.came < FEW {
            self.received = BytesMut::new();
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Buffered {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.tcp).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tcp).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tcp).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt as _;
    use tokio::net::TcpListener;

    use super::*;

    async fn pair() -> (Buffered, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (near, far) = tokio::join!(TcpStream::connect(address), listener.accept());
        (Buffered::new(near.unwrap()), far.unwrap().0)
    }

    #[tokio::test]
    async fn what_was_sent_is_read_in_order_however_little_is_asked_for() {
        let (mut near, mut far) = pair().await;
        let sent: Vec<u8> = (0..300_000_u32).map(|number| number.to_le_bytes()[0]).collect();
        let expected = sent.clone();
        let sender = tokio::spawn(async move { far.write_all(&sent).await.map(|()| drop(far)) });
        let (mut read, mut size) = (Vec::new(), 1);
        loop {
            let mut piece = vec![0; size];
            let length = near.read(&mut piece).await.unwrap();
            if length == 0 {
                break;
            }
            read.extend_from_slice(&piece[..length]);
            size = size % 9_000 + 37;
        }
        sender.await.unwrap().unwrap();
        assert!(read == expected);
    }

    #[tokio::test]
    async fn a_connection_on_which_nothing_comes_holds_no_buffer() {
        let (mut near, mut far) = pair().await;
        far.write_all(b"few").await.unwrap();
        let mut piece = [0; 3];
        near.read_exact(&mut piece).await.unwrap();
        assert_eq!((&piece, near.received.capacity()), (b"few", 0));
        assert!(futures::poll!(std::pin::pin!(near.read(&mut piece))).is_pending());
        assert_eq!(near.received.capacity(), 0);
    }
}
