//! HTTP/1.1 on awc, over connections of our own making: TLS, proxies, timers and a budget.

mod body;
mod buffered;
mod dialer;
mod exchange;
mod gzip;
mod headers;
mod options;
mod proxy;
mod stream;
mod tls;
mod tls_error;
mod unverified;
mod warnings;

use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

use awc::http::Uri;

use self::dialer::address;
use self::exchange::HttpTransport;
pub use self::options::{HttpOptions, Keepalive};
use self::tls::Tls;
use self::warnings::Warnings;
use super::budget::Budget;
use super::{Cluster, ConfigError, Connection, Scheme, Transport};
use crate::api::ApiError;

/// An API server over HTTP. Clones share its budget, its certificates and its credentials.
///
/// Speaks HTTP/1.1 with a connection for each watch, checks certificates against what the [`Connection`] says, follows
/// no redirect, and sends no token without TLS except to this machine.
#[derive(Clone)]
pub struct HttpCluster {
    shared: Arc<Shared>,
}

/// What all arbiters have in common.
struct Shared {
    connection: Connection,
    options: HttpOptions,
    tls: Option<Arc<Tls>>,
    budget: Budget,
    warnings: Warnings,
}

impl HttpCluster {
    /// The API server at an address like `http://127.0.0.1:8001`, as nobody in particular. With `https`, its
    /// certificate has to be signed by somebody the operating system trusts.
    ///
    /// # Errors
    /// When the address is none.
    pub fn new(address: &str) -> Result<Self, ConfigError> {
        Connection::at(address).map(Self::from_connection)
    }

    /// The API server a kubeconfig, a service account or a program of your own speaks of.
    pub fn from_connection(connection: Connection) -> Self {
        Self::with_options(connection, HttpOptions::default())
    }

    /// As [`from_connection`](Self::from_connection), with patience and budget of your own.
    pub fn with_options(connection: Connection, options: HttpOptions) -> Self {
        let tls = match connection.server.scheme {
            Scheme::Http => None,
            Scheme::Https => Some(Arc::new(Tls::new(&connection, options.reload_interval))),
        };
        let budget = Budget::new(options.budget);
        let warnings = Warnings::default();
        Self { shared: Arc::new(Shared { connection, options, tls, budget, warnings }) }
    }

    /// Where it is and how we get in.
    pub fn connection(&self) -> &Connection {
        &self.shared.connection
    }
}

impl Cluster for HttpCluster {
    fn connect(&self) -> Result<Rc<dyn Transport>, ApiError> {
        Ok(Rc::new(HttpTransport::new(Arc::clone(&self.shared))?))
    }
}

impl Shared {
    /// What awc takes for the address. It never learns of TLS, which the dialer does.
    fn origin(&self) -> Result<String, ApiError> {
        let server = &self.connection.server;
        let origin = format!("http://{}{}", address(&server.host, server.port), server.path);
        let invalid = || ApiError::Invalid { message: format!("{server} is no address") };
        let uri: Uri = origin.parse().map_err(|_error| invalid())?;
        let authority = uri.authority().ok_or_else(invalid)?;
        if authority.as_str().contains('@') || uri.query().is_some() {
            return Err(invalid());
        }
        Ok(origin)
    }
}

impl fmt::Debug for HttpCluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpCluster")
            .field("server", &format_args!("{}", self.shared.connection.server))
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_taken_apart() {
        for (url, shown) in [
            ("http://127.0.0.1:8001/", "http://127.0.0.1:8001"),
            ("https://[::1]:6443", "https://[::1]:6443"),
            ("https://gateway.example/clusters/one/", "https://gateway.example:443/clusters/one"),
        ] {
            let cluster = HttpCluster::new(url).unwrap();
            assert_eq!(cluster.connection().server.to_string(), shown);
            assert!(cluster.connect().is_ok(), "{url}");
        }
    }
}
