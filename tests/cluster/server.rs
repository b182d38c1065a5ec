//! The ground all scenarios stand on: either server, and what can be done to it.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Namespace;
use kubeflect::Options;
use kubeflect::client::{
    BudgetOptions, Cluster as _, Connection, HttpCluster, HttpOptions, Objects, Request, Transport,
};
use kubeflect::embedded::{ApiServer, ServingApiServer};
use kubeflect::object::StaticKind;
use serde_json::json;

use crate::control_plane::{self, free_ports, temporary_folder};
use crate::leases::Lease;
use crate::link::Link;
use crate::recorded::Recorded;
use crate::support::{Followed, LONG};
use crate::users::{User, load};

/// Makes a test of each scenario with each server. What stands behind a scenario is the server it wants.
macro_rules! on_both_servers {
    ($($scenario:ident: $setup:ident,)*) => {
        mod embedded {
            $(#[actix::test]
            async fn $scenario() {
                let server = crate::server::Server::embedded(crate::server::Setup::$setup).await;
                Box::pin(super::$scenario(server)).await;
            })*
        }

        mod real {
            $(#[actix::test]
            async fn $scenario() {
                let server = crate::server::Server::real(crate::server::Setup::$setup).await;
                Box::pin(super::$scenario(server)).await;
            })*
        }
    };
}
pub(crate) use on_both_servers;

/// A server, with a namespace that is one test's own and a line to it that can be cut.
pub(crate) struct Server {
    pub(crate) make: Make,
    pub(crate) namespace: String,
    pub(crate) link: Link,
    pub(crate) admin: Rc<dyn Transport>,
    /// For the files of its users.
    folder: PathBuf,
}

pub(crate) enum Make {
    Embedded { server: ApiServer, serving: Option<ServingApiServer>, address: SocketAddr },
    Real(Lease),
}

/// What a scenario wants.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Setup {
    /// A server to which nothing is done but over its API. Others use it too.
    Shared,
    /// One that may be ended, restored, and told other tokens.
    Alone,
    WithoutStreamingLists,
    /// One with no more history than its storage has. May be ended and compacted.
    WithoutWatchCache,
    /// One that forgets by itself, soon. The embedded server keeps a number of events. How many a watch cache keeps is no
    /// setting of Kubernetes any more, and never less than what happened in 75 s: so the real one has none, and its
    /// storage is compacted every other second.
    SmallHistory,
}

/// A state to which a server can be brought back.
pub(crate) enum Backup {
    Version(String),
    File(control_plane::Backup),
}

impl Server {
    pub(crate) async fn embedded(setup: Setup) -> Self {
        let server = ApiServer::new();
        server.allow_streaming_lists(!matches!(setup, Setup::WithoutStreamingLists));
        if matches!(setup, Setup::SmallHistory) {
            server.limit_history(20);
        }
        let [port] = free_ports();
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let serving = server.start_on(address).await.unwrap();
        Self::new(Make::Embedded { server, serving: Some(serving), address }, address).await
    }

    pub(crate) async fn real(setup: Setup) -> Self {
        let lease = match setup {
            Setup::Shared => Lease::shared().await,
            Setup::Alone => Lease::alone(&[]).await,
            Setup::WithoutStreamingLists => {
                Lease::alone(&["--feature-gates=WatchList=false"]).await
            }
            Setup::WithoutWatchCache => Lease::alone(&["--watch-cache=false"]).await,
            Setup::SmallHistory => {
                Lease::alone(&["--watch-cache=false", "--etcd-compaction-interval=2s"]).await
            }
        };
        Self::of(lease).await
    }

    /// A control plane with whatever flags.
    pub(crate) async fn of(lease: Lease) -> Self {
        let address = lease.address();
        Self::new(Make::Real(lease), address).await
    }

    async fn new(make: Make, address: SocketAddr) -> Self {
        let folder = temporary_folder();
        let url = match &make {
            Make::Embedded { .. } => format!("http://{address}"),
            Make::Real(lease) => {
                for file in ["ca.crt", "admin.crt", "admin.key"] {
                    fs::copy(lease.folder.join(file), folder.join(file)).unwrap();
                }
                format!("https://{address}")
            }
        };
        let admin = load(&User::Admin.write_kubeconfig(&folder, &url));
        let server = Self {
            make,
            namespace: format!("test-{:08x}", fastrand::u32(..)),
            link: Link::to(address).await,
            admin: unlimited(admin),
            folder,
        };
        server.create_namespace().await;
        server
    }

    // === clients ===

    /// The way to the server through its line, as a file.
    pub(crate) fn kubeconfig(&self, user: User) -> PathBuf {
        let scheme = match self.make {
            Make::Embedded { .. } => "http",
            Make::Real(_) => "https",
        };
        user.write_kubeconfig(&self.folder, &format!("{scheme}://127.0.0.1:{}", self.link.port))
    }

    pub(crate) fn connection(&self, user: User) -> Connection {
        load(&self.kubeconfig(user))
    }

    /// Reflects objects of the namespace of this test.
    pub(crate) async fn follow<K: StaticKind>(&self, options: Options<K>) -> Followed<K> {
        self.follow_as(User::Admin, options).await
    }

    pub(crate) async fn follow_as<K: StaticKind>(
        &self,
        user: User,
        options: Options<K>,
    ) -> Followed<K> {
        let (line, kind) = (Recorded::new(self.connection(user)), K::static_kind());
        Followed::over(line, &self.namespace, kind, options.namespace(&self.namespace)).await
    }

    /// Objects of the namespace of this test, as an administrator, whatever the line does.
    pub(crate) fn objects<K: StaticKind>(&self) -> Objects<K> {
        self.cluster_objects().in_namespace(&self.namespace)
    }

    /// Objects in no namespace.
    pub(crate) fn cluster_objects<K: StaticKind>(&self) -> Objects<K> {
        Objects::of(Rc::clone(&self.admin))
    }

    pub(crate) async fn create_namespace(&self) {
        let namespace = json!({ "metadata": { "name": self.namespace } });
        let namespace = serde_json::from_value(namespace).unwrap();
        self.cluster_objects::<Namespace>().create(&namespace).await.unwrap();
    }

    /// A file that users read.
    pub(crate) fn write_file(&self, name: &str, text: &str) {
        fs::write(self.folder.join(name), text).unwrap();
    }

    // === the life of a server ===

    /// As a crash ends it.
    pub(crate) async fn kill(&mut self) {
        match &mut self.make {
            Make::Embedded { server, serving, .. } => {
                server.break_watches();
                serving.take().expect("it runs").stop().await;
            }
            Make::Real(lease) => lease.mine().api_server.kill(),
        }
    }

    /// As an administrator ends it.
    pub(crate) async fn stop(&mut self) {
        match &mut self.make {
            Make::Embedded { serving, .. } => serving.take().expect("it runs").stop().await,
            Make::Real(lease) => lease.mine().api_server.stop().await,
        }
    }

    /// Starts it where it was. It knows no more than what is: history is what a server has seen itself.
    pub(crate) async fn start(&mut self) {
        match &mut self.make {
            Make::Embedded { server, serving, address } => {
                server.forget_history();
                // Who listened there may not have gone yet.
                until("the port is free", async || TcpListener::bind(*address).is_ok()).await;
                *serving = Some(server.start_on(*address).await.unwrap());
            }
            Make::Real(lease) => lease.mine().start_api_server().await,
        }
        self.answers().await;
    }

    /// An administrator may still hold connections to the server that was.
    async fn answers(&self) {
        until("an answer", async || self.admin.send(Request::get("/readyz")).await.is_ok()).await;
    }

    /// Forgets all history. A real server forgets it if it has no watch cache, or starts anew.
    pub(crate) async fn compact(&self) {
        match &self.make {
            Make::Embedded { server, .. } => server.forget_history(),
            Make::Real(lease) => lease.compact().await,
        }
    }

    pub(crate) async fn back_up(&self) -> Backup {
        match &self.make {
            Make::Embedded { server, .. } => Backup::Version(server.resource_version()),
            Make::Real(lease) => Backup::File(lease.back_up().await),
        }
    }

    /// Ends it, and starts it with what it knew then. Versions go back too.
    pub(crate) async fn restore(&mut self, backup: &Backup) {
        match (&mut self.make, backup) {
            (Make::Embedded { server, .. }, Backup::Version(version)) => {
                let server = server.clone();
                self.stop().await;
                server.restore(version).unwrap();
                self.start().await;
            }
            (Make::Real(lease), Backup::File(file)) => {
                lease.mine().restore(file).await;
                self.answers().await;
            }
            _ => panic!("that is a backup of another server"),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.folder).ok();
    }
}

/// A client that does not wait between its requests.
pub(crate) fn unlimited(connection: Connection) -> Rc<dyn Transport> {
    let options = HttpOptions {
        budget: BudgetOptions { rate: 1e6, burst: 1000, lists: 4 },
        ..HttpOptions::default()
    };
    HttpCluster::with_options(connection, options).connect().unwrap()
}

/// Asks again and again until the answer is the one that is waited for.
pub(crate) async fn until<F: Future<Output = bool>>(what: &str, holds: impl Fn() -> F) {
    let came = tokio::time::timeout(LONG, async {
        while !holds().await {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    });
    assert!(came.await.is_ok(), "never came: {what}");
}
