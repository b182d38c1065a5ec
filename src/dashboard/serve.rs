use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use actix_web::dev::ServerHandle;
use actix_web::{App, HttpServer, web};

use super::{Dashboard, configure};

/// Whoever connects has this long to say what for.
const PATIENCE: Duration = Duration::from_secs(5);

/// A [`Dashboard`] with a server of its own, until stopped.
#[derive(Debug)]
pub struct ServingDashboard {
    address: SocketAddr,
    handle: ServerHandle,
}

impl Dashboard {
    /// Serves it on an address, with one thread of its own. On an address others can reach, they get metrics and probes
    /// only, unless the options say otherwise: see [`Audience`](super::Audience).
    ///
    /// # Errors
    /// When the address can not be had.
    pub async fn serve(&self, listen: SocketAddr) -> io::Result<ServingDashboard> {
        let dashboard = web::Data::new(self.clone());
        let http = HttpServer::new(move || {
            App::new().app_data(dashboard.clone()).configure(configure)
        })
        .workers(1)
        .max_connections(self.inner.options.connections)
        .client_request_timeout(PATIENCE)
        .disable_signals()
        // A browser that hangs up is gone, even if nothing is ever written to it.
        .h1_allow_half_closed(false)
        .bind(listen)?;
        let address = http.addrs().first().copied().unwrap_or(listen);
        let running = http.run();
        let handle = running.handle();
        actix_rt::spawn(running);
        Ok(ServingDashboard { address, handle })
    }
}

impl ServingDashboard {
    /// Where the page is: `http://127.0.0.1:41234/`.
    pub fn url(&self) -> String {
        format!("http://{}/", self.address)
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Ends all connections and stops listening.
    pub async fn stop(self) {
        self.handle.stop(false).await;
    }
}
