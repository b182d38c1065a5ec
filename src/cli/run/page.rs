use std::io;
use std::net::SocketAddr;

use kubeflect::Runtime;
use kubeflect::dashboard::{Dashboard, DashboardOptions, ServingDashboard};
use kubeflect::object::Resource;
use kubeflect::{Reflector, Subscription};

use crate::cli::failure::Failure;

/// Where the page is.
#[derive(Debug, Clone, Copy)]
pub(super) enum Place {
    /// Nowhere.
    Off,
    /// Here, and nowhere else.
    At(SocketAddr),
    /// Here, or on any free port: nobody has asked for this one.
    Preferably(SocketAddr),
}

/// What is pending until the configuration has been read.
pub(super) const STARTING: &str = "kubeflect";

/// The page, once it is served.
pub(super) struct Page {
    dashboard: Dashboard,
    serving: Option<ServingDashboard>,
}

impl Page {
    pub(super) async fn serve(
        runtime: Runtime,
        place: Place,
        hosts: Vec<String>,
    ) -> Result<Self, Failure> {
        let options = DashboardOptions { hosts, ..DashboardOptions::default() };
        let dashboard = Dashboard::with_options(runtime, options);
        // Whoever asks at once is not told that all is there.
        dashboard.set_pending(STARTING, "starting");
        let served = match place {
            Place::Off => return Ok(Self { dashboard, serving: None }),
            Place::At(listen) => dashboard.serve(listen).await.map_err(|error| (listen, error)),
            Place::Preferably(listen) => match dashboard.serve(listen).await {
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                    let any = SocketAddr::new(listen.ip(), 0);
                    dashboard.serve(any).await.map_err(|error| (any, error))
                }
                served => served.map_err(|error| (listen, error)),
            },
        };
        let serving = served.map_err(|(listen, error)| {
            Failure::new(format!(
                "the page can not be at {listen}: {error}; choose another address with --listen"
            ))
        })?;
        Ok(Self { dashboard, serving: Some(serving) })
    }

    pub(super) fn url(&self) -> Option<String> {
        self.serving.as_ref().map(ServingDashboard::url)
    }

    pub(super) fn shower(&self) -> Shower {
        Shower(self.dashboard.clone())
    }

    pub(super) async fn stop(self) {
        if let Some(serving) = self.serving {
            serving.stop().await;
        }
    }
}

/// Puts reflectors on the page.
#[derive(Clone)]
pub(super) struct Shower(Dashboard);

impl Shower {
    /// Says that something is not reflected yet, and why.
    pub(super) fn set_pending(&self, name: &str, reason: &str) {
        self.0.set_pending(name, reason);
    }

    pub(super) fn clear_pending(&self, name: &str) {
        self.0.clear_pending(name);
    }

    /// What is not reflected yet, and why.
    pub(super) fn pending(&self) -> Vec<(String, String)> {
        self.0.pending()
    }

    /// Shows the changes of a reflector too, beside how it is doing.
    pub(super) async fn show<K: Resource>(&self, reflector: &Reflector<K>) {
        let observed: kubeflect::Result<Subscription<K>> = self.0.observe(reflector).await;
        if let Err(error) = observed {
            tracing::warn!(%error, kind = %reflector.kind(), "its changes are not on the page");
        }
    }
}
