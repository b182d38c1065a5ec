//! A control plane of a test's own: etcd and kube-apiserver on free ports of this machine, and no nodes.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;
use std::{env, fs};

use kubeflect::client::{
    Cluster as _, ConfigOptions, Connection, Environment, HttpCluster, Objects, Request, Transport,
};
use kubeflect::object::StaticKind;
use serde_json::{Value, json};
use tokio::process::Command;
use tokio::sync::{OnceCell, Semaphore, SemaphorePermit};
use tokio::time::Instant;

use crate::certificates;
use crate::process::Process;

/// A running control plane. Ends with the value; its folder stays if the test failed.
pub(crate) struct ControlPlane {
    pub(crate) etcd: Process,
    pub(crate) api_server: Process,
    folder: PathBuf,
    programs: PathBuf,
    ports: Ports,
    flags: Vec<String>,
    /// How many data folders there have been: each restored snapshot has its own.
    data_folders: usize,
    admin: Rc<dyn Transport>,
    _turn: SemaphorePermit<'static>,
}

#[derive(Clone, Copy)]
struct Ports {
    api_server: u16,
    etcd: u16,
    etcd_peers: u16,
}

/// Who asks.
#[derive(Clone, Copy)]
pub(crate) enum User<'a> {
    /// May do everything, by a client certificate.
    Admin,
    /// By one of the tokens the API server was told.
    Token(&'a str),
    /// By the token in a file of the control plane's folder.
    TokenFile(&'a str),
}

/// A copy of everything etcd has.
pub(crate) struct Backup(PathBuf);

/// The tokens of the beginning: `token,user,uid,groups`.
const TOKENS: &str = "admin-token,admin,1,system:masters\nreader-token,reader,2\n";

/// What is asked of a control plane is done within this, or never.
const LIMIT: Duration = Duration::from_secs(90);

/// Two control planes at a time: each wants a core while it starts, and 350 MB.
static TURNS: Semaphore = Semaphore::const_new(2);

/// Where the programs are. Built once, by whoever is first.
static PROGRAMS: OnceCell<PathBuf> = OnceCell::const_new();

impl ControlPlane {
    /// Starts one that is ready. `flags` are for the API server, and win over ours.
    pub(crate) async fn start(flags: &[&str]) -> Self {
        let turn = TURNS.acquire().await.expect("nobody closes it");
        let programs = PROGRAMS.get_or_init(build).await.clone();
        let folder = env::temp_dir().join(format!(
            "kubeflect-cluster-{}-{}",
            std::process::id(),
            fastrand::u32(..)
        ));
        fs::create_dir_all(&folder).unwrap();
        certificates::write(&folder);
        fs::write(folder.join("tokens"), TOKENS).unwrap();
        let [api_server, etcd, etcd_peers] = free_ports();
        let ports = Ports { api_server, etcd, etcd_peers };
        let admin = load(&write_kubeconfig(&folder, User::Admin, api_server));
        let mut plane = Self {
            etcd: Process::new(programs.join("etcd"), folder.join("etcd.log")),
            api_server: Process::new(
                programs.join("kube-apiserver"),
                folder.join("kube-apiserver.log"),
            ),
            folder,
            programs,
            ports,
            flags: flags.iter().map(|flag| (*flag).to_owned()).collect(),
            data_folders: 0,
            admin: HttpCluster::from_connection(admin).connect().unwrap(),
            _turn: turn,
        };
        plane.etcd.start(plane.etcd_arguments());
        plane.api_server.start(plane.api_server_arguments());
        plane.ready().await;
        plane
    }

    /// The way to the API server.
    pub(crate) fn connection(&self, user: User<'_>) -> Connection {
        self.connection_through(self.ports.api_server, user)
    }

    /// The way to the API server through a port that leads there.
    pub(crate) fn connection_through(&self, port: u16, user: User<'_>) -> Connection {
        load(&self.kubeconfig_through(port, user))
    }

    /// The same as a file, for programs.
    pub(crate) fn kubeconfig_through(&self, port: u16, user: User<'_>) -> PathBuf {
        write_kubeconfig(&self.folder, user, port)
    }

    pub(crate) fn address(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.ports.api_server).into()
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Objects of the default namespace, as an administrator.
    pub(crate) fn objects<K: StaticKind>(&self) -> Objects<K> {
        Objects::of(Rc::clone(&self.admin)).in_namespace("default")
    }

    /// Objects in no namespace, as an administrator.
    pub(crate) fn cluster_objects<K: StaticKind>(&self) -> Objects<K> {
        Objects::of(Rc::clone(&self.admin))
    }

    /// The transport of the administrator, for requests of any form.
    pub(crate) fn admin(&self) -> &Rc<dyn Transport> {
        &self.admin
    }

    /// Waits until the API server serves everything.
    pub(crate) async fn ready(&mut self) {
        let deadline = Instant::now() + LIMIT;
        loop {
            let answer = self.admin.send(Request::get("/readyz"));
            let problem = match tokio::time::timeout(Duration::from_secs(5), answer).await {
                Ok(Ok(response)) if response.status == 200 => return,
                Ok(Ok(response)) => format!("HTTP {}", response.status),
                Ok(Err(error)) => format!("{error:?}"),
                Err(_elapsed) => "no answer".to_owned(),
            };
            let dead = self.etcd.obituary().or_else(|| self.api_server.obituary());
            let logs = self.folder.display();
            assert!(dead.is_none(), "{} (logs in {logs})", dead.unwrap_or_default());
            assert!(Instant::now() < deadline, "not ready: {problem} (logs in {logs})");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// Starts the API server again, and waits until it serves everything.
    pub(crate) async fn start_api_server(&mut self) {
        self.api_server.start_again();
        self.ready().await;
    }

    /// Makes etcd forget all history.
    pub(crate) async fn compact(&self) {
        self.etcd_tool(&["compact", &self.etcd_url()]).await;
    }

    /// Copies everything etcd has.
    pub(crate) async fn back_up(&self) -> Backup {
        let file = self.folder.join(format!("backup-{}", fastrand::u32(..)));
        self.etcd_tool(&["save", &self.etcd_url(), &text(&file)]).await;
        Backup(file)
    }

    /// Goes back to a backup. Versions go back too: nobody raised them, as one should.
    pub(crate) async fn restore(&mut self, backup: &Backup) {
        self.api_server.stop().await;
        self.etcd.stop().await;
        self.data_folders += 1;
        let (data, peers) = (text(&self.data_folder()), self.etcd_peer_url());
        self.etcd_tool(&["restore", &text(&backup.0), &data, &peers]).await;
        self.etcd.start(self.etcd_arguments());
        self.start_api_server().await;
    }

    /// Tells the API server other tokens, as of its next start.
    pub(crate) fn write_tokens(&self, tokens: &str) {
        fs::write(self.folder.join("tokens"), tokens).unwrap();
    }

    async fn etcd_tool(&self, arguments: &[&str]) {
        let output =
            Command::new(self.programs.join("etcd-tool")).args(arguments).output().await.unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "etcd-tool {arguments:?}: {said}");
    }

    fn etcd_url(&self) -> String {
        format!("http://127.0.0.1:{}", self.ports.etcd)
    }

    fn etcd_peer_url(&self) -> String {
        format!("http://127.0.0.1:{}", self.ports.etcd_peers)
    }

    fn data_folder(&self) -> PathBuf {
        self.folder.join(format!("data-{}", self.data_folders))
    }

    fn etcd_arguments(&self) -> Vec<String> {
        let (clients, peers) = (self.etcd_url(), self.etcd_peer_url());
        let data = text(&self.data_folder());
        vec![
            format!("--data-dir={data}"),
            format!("--listen-client-urls={clients}"),
            format!("--advertise-client-urls={clients}"),
            format!("--listen-peer-urls={peers}"),
            format!("--initial-advertise-peer-urls={peers}"),
            format!("--initial-cluster=default={peers}"),
            "--log-level=warn".to_owned(),
            // As kubeadm sets it. It is what the server knows to write into bookmarks.
            "--watch-progress-notify-interval=5s".to_owned(),
            // Nothing here has to survive this machine.
            "--unsafe-no-fsync".to_owned(),
        ]
    }

    fn api_server_arguments(&self) -> Vec<String> {
        let file = |name: &str| text(&self.folder.join(name));
        let mut arguments = vec![
            format!("--etcd-servers={}", self.etcd_url()),
            // Only tests compact.
            "--etcd-compaction-interval=0".to_owned(),
            "--bind-address=127.0.0.1".to_owned(),
            "--advertise-address=127.0.0.1".to_owned(),
            // Nobody reaches it as the service `kubernetes`, for which it would need an address of the outside.
            "--endpoint-reconciler-type=none".to_owned(),
            format!("--secure-port={}", self.ports.api_server),
            "--service-cluster-ip-range=10.0.0.0/24".to_owned(),
            format!("--cert-dir={}", file("certificates")),
            format!("--tls-cert-file={}", file("server.crt")),
            format!("--tls-private-key-file={}", file("server.key")),
            format!("--client-ca-file={}", file("ca.crt")),
            format!("--token-auth-file={}", file("tokens")),
            "--authorization-mode=RBAC".to_owned(),
            "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
            format!("--service-account-key-file={}", file("service-accounts.pub")),
            format!("--service-account-signing-key-file={}", file("service-accounts.key")),
            // Nobody makes the service accounts that pods would need.
            "--disable-admission-plugins=ServiceAccount".to_owned(),
        ];
        arguments.extend(self.flags.iter().cloned());
        arguments
    }
}

impl Drop for ControlPlane {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the logs of the control plane are in {}", self.folder.display());
        } else {
            fs::remove_dir_all(&self.folder).ok();
        }
    }
}

/// The folder of the programs, which are built if they are not there.
pub(crate) async fn build() -> PathBuf {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cluster/build");
    let output = Command::new(script).output().await.unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "the control plane can not be built: {said}");
    PathBuf::from(String::from_utf8(output.stdout).unwrap().trim_end())
}

/// Ports that nobody listens on, and that no outgoing connection takes while a server is down.
fn free_ports<const N: usize>() -> [u16; N] {
    let mut taken: Vec<u16> = Vec::new();
    [(); N].map(|()| {
        let port = std::iter::repeat_with(|| fastrand::u16(20_000..30_000))
            .find(|port| {
                !taken.contains(port) && TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok()
            })
            .expect("it looks on until there is one");
        taken.push(port);
        port
    })
}

fn write_kubeconfig(folder: &Path, user: User<'_>, port: u16) -> PathBuf {
    let credentials: Value = match user {
        User::Admin => json!({ "client-certificate": "admin.crt", "client-key": "admin.key" }),
        User::Token(token) => json!({ "token": token }),
        User::TokenFile(name) => json!({ "tokenFile": name }),
    };
    let config = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "test",
        "contexts": [{ "name": "test", "context": { "cluster": "test", "user": "test" } }],
        "clusters": [{ "name": "test", "cluster": {
            "server": format!("https://127.0.0.1:{port}"), "certificate-authority": "ca.crt",
        } }],
        "users": [{ "name": "test", "user": credentials }],
    });
    let file = folder.join(format!("kubeconfig-{}", fastrand::u32(..)));
    fs::write(&file, config.to_string()).unwrap();
    file
}

pub(crate) fn load(kubeconfig: &Path) -> Connection {
    let options = ConfigOptions {
        kubeconfig: Some(kubeconfig.to_owned()),
        environment: Environment::empty(),
        ..ConfigOptions::default()
    };
    Connection::from_kubeconfig(&options).unwrap()
}

fn text(path: &Path) -> String {
    path.to_str().expect("folders of tests have plain names").to_owned()
}
