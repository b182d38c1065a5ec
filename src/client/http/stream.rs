use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use actix_rt::net::{ActixStream, Ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_rustls::client::TlsStream;

use super::buffered::Buffered;
use super::tls::Trust;
use super::tls_error::TlsError;

/// A connection to an API server, with or without TLS.
#[derive(Debug)]
pub(super) enum Stream {
    Plain(Buffered),
    Tls { stream: Box<TlsStream<Buffered>>, trust: Arc<Trust>, heard: Heard },
}

/// Whether the server said anything since the handshake. A server that wants another certificate of us says so only
/// now, if the connection lives long enough.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Heard {
    Nothing,
    Something,
}

impl Stream {
    pub(super) fn tls(stream: TlsStream<Buffered>, trust: Arc<Trust>) -> Self {
        Self::Tls { stream: Box::new(stream), trust, heard: Heard::Nothing }
    }

    fn tcp(&self) -> &Buffered {
        match self {
            Self::Plain(stream) => stream,
            Self::Tls { stream, .. } => stream.get_ref().0,
        }
    }

    /// Says of a broken connection what it most likely means.
    fn explain(&self, error: io::Error) -> io::Error {
        match self {
            Self::Tls { trust, heard: Heard::Nothing, .. } => {
                let explained = TlsError::after_handshake(&error, trust);
                explained.map_or(error, |tls| io::Error::other(super::dialer::DialError::from(tls)))
            }
            Self::Tls { heard: Heard::Something, .. } | Self::Plain(_) => error,
        }
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = ready!(match &mut *self {
            Self::Plain(stream) => Pin::new(stream).poll_read(context, buffer),
            Self::Tls { stream, .. } => Pin::new(stream).poll_read(context, buffer),
        });
        let length = buffer.filled().len() - before;
        Poll::Ready(match read {
            Ok(()) if length > 0 => {
                if let Self::Tls { heard, trust, .. } = &mut *self
                    && std::mem::replace(heard, Heard::Something) == Heard::Nothing
                {
                    trust.answered();
                }
                Ok(())
            }
            Ok(()) if matches!(&*self, Self::Tls { trust, heard: Heard::Nothing, .. } if trust.misses_identity()) => {
                Err(self.explain(io::ErrorKind::UnexpectedEof.into()))
            }
            Ok(()) => Ok(()),
            Err(error) => Err(self.explain(error)),
        })
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = match &mut *self {
            Self::Plain(stream) => Pin::new(stream).poll_write(context, bytes),
            Self::Tls { stream, .. } => Pin::new(stream).poll_write(context, bytes),
        };
        written.map_err(|error| self.explain(error))
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = match &mut *self {
            Self::Plain(stream) => Pin::new(stream).poll_flush(context),
            Self::Tls { stream, .. } => Pin::new(stream).poll_flush(context),
        };
        flushed.map_err(|error| self.explain(error))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut *self {
            Self::Plain(stream) => Pin::new(stream).poll_shutdown(context),
            Self::Tls { stream, .. } => Pin::new(stream).poll_shutdown(context),
        }
    }
}

impl ActixStream for Stream {
    fn poll_read_ready(&self, context: &mut Context<'_>) -> Poll<io::Result<Ready>> {
        self.tcp().poll_read_ready(context)
    }

    fn poll_write_ready(&self, context: &mut Context<'_>) -> Poll<io::Result<Ready>> {
        ActixStream::poll_write_ready(self.tcp().tcp(), context)
    }
}
