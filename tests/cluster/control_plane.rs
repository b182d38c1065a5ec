//! A control plane: etcd and kube-apiserver on free ports of this machine, and no nodes.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use std::{env, fs};

use kubeflect::client::{Cluster as _, HttpCluster, Request};
use tokio::process::Command;
use tokio::sync::OnceCell;
use tokio::time::Instant;

use crate::certificates;
use crate::process::Process;
use crate::users::{User, load};

/// A running control plane. Ends with the value, or with the tests.
pub(crate) struct ControlPlane {
    pub(crate) etcd: Process,
    pub(crate) api_server: Process,
    pub(crate) folder: PathBuf,
    programs: PathBuf,
    ports: Ports,
    flags: Vec<String>,
    /// How many data folders there have been: each restored snapshot has its own.
    data_folders: usize,
    has_other_tokens: bool,
    _keeper: Child,
}

#[derive(Clone, Copy)]
struct Ports {
    api_server: u16,
    etcd: u16,
    etcd_peers: u16,
}

/// A copy of everything etcd has.
pub(crate) struct Backup(PathBuf);

/// The tokens of the beginning: `token,user,uid,groups`.
const TOKENS: &str =
    "admin-token,admin,1,system:masters\nreader-token,reader,2\ncrowd-token,crowd,3\n";

/// What is asked of a control plane is done within this, or never.
const LIMIT: Duration = Duration::from_secs(90);

/// Where the programs are. Built once, by whoever is first.
static PROGRAMS: OnceCell<PathBuf> = OnceCell::const_new();

impl ControlPlane {
    /// Starts one that is ready. `flags` are for the API server, and win over ours.
    pub(crate) async fn start(flags: &[&str]) -> Self {
        let programs = programs().await;
        let folder = temporary_folder();
        certificates::write(&folder);
        fs::write(folder.join("tokens"), TOKENS).unwrap();
        let [api_server, etcd, etcd_peers] = free_ports();
        let mut plane = Self {
            etcd: Process::new(programs.join("etcd"), folder.join("etcd.log")),
            api_server: Process::new(
                programs.join("kube-apiserver"),
                folder.join("kube-apiserver.log"),
            ),
            _keeper: keeper(&folder),
            folder,
            programs,
            ports: Ports { api_server, etcd, etcd_peers },
            flags: flags.iter().map(|flag| (*flag).to_owned()).collect(),
            data_folders: 0,
            has_other_tokens: false,
        };
        plane.etcd.start(plane.etcd_arguments());
        plane.api_server.start(plane.api_server_arguments());
        plane.ready().await;
        plane
    }

    /// Whether it is as one that was started with these flags.
    pub(crate) fn is_as_started_with(&self, flags: &[&str]) -> bool {
        self.flags == flags && !self.has_other_tokens
    }

    pub(crate) fn runs(&mut self) -> bool {
        self.etcd.runs() && self.api_server.runs()
    }

    /// Its folder stays when the tests end, for whoever wants to know why one failed.
    pub(crate) fn keep_logs(&self) {
        fs::write(self.folder.join(KEEP), "").ok();
        eprintln!("the logs of the control plane are in {}", self.folder.display());
    }

    pub(crate) fn address(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.ports.api_server).into()
    }

    /// Waits until the API server serves everything.
    pub(crate) async fn ready(&mut self) {
        let deadline = Instant::now() + LIMIT;
        let (url, folder) = (format!("https://{}", self.address()), &self.folder);
        let admin = load(&User::Admin.write_kubeconfig(folder, &url));
        let admin = HttpCluster::from_connection(admin).connect().unwrap();
        loop {
            let answer = admin.send(Request::get("/readyz"));
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

    /// Kills etcd, starts it again, and waits until the API server has found it.
    pub(crate) async fn restart_etcd(&mut self) {
        self.etcd.kill();
        self.etcd.start_again();
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
    pub(crate) fn write_tokens(&mut self, tokens: &str) {
        fs::write(self.folder.join("tokens"), tokens).unwrap();
        self.has_other_tokens = true;
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
            // Else a server that is told to end waits a minute for watches, which nobody tells to end.
            "--shutdown-watch-termination-grace-period=5s".to_owned(),
            // Nobody makes the service accounts that pods would need.
            "--disable-admission-plugins=ServiceAccount".to_owned(),
        ];
        arguments.extend(self.flags.iter().cloned());
        arguments
    }
}

/// A file in the folder of a control plane that is not to be removed.
const KEEP: &str = "keep";

/// Removes a folder when we have ended, however we ended.
fn keeper(folder: &Path) -> Child {
    // The servers end when we do too, but not at once.
    let script = format!(r#"cat; sleep 1; [ -e "$0/{KEEP}" ] || rm -rf "$0""#);
    std::process::Command::new("sh")
        .args(["-c", &script])
        .arg(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// A folder of one's own.
pub(crate) fn temporary_folder() -> PathBuf {
    let name = format!("kubeflect-cluster-{}-{:x}", std::process::id(), fastrand::u64(..));
    let folder = env::temp_dir().join(name);
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// The folder of the programs, which are built if they are not there.
pub(crate) async fn programs() -> PathBuf {
    PROGRAMS.get_or_init(build).await.clone()
}

async fn build() -> PathBuf {
    // The benchmark starts control planes too, and is a package deeper in the tree.
    let folders = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    let mut scripts = folders.map(|folder| folder.join("tests/cluster/build"));
    let script = scripts.find(|script| script.exists()).unwrap();
    let output = Command::new(script).output().await.unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "the control plane can not be built: {said}");
    PathBuf::from(String::from_utf8(output.stdout).unwrap().trim_end())
}

/// Ports that were given to a test. Its server may not listen there yet, or not just now.
static TAKEN: Mutex<BTreeSet<u16>> = Mutex::new(BTreeSet::new());

/// Ports that nobody listens on, and that no outgoing connection takes while a server is down.
pub(crate) fn free_ports<const N: usize>() -> [u16; N] {
    let mut taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
    [(); N].map(|()| {
        let port = std::iter::repeat_with(|| fastrand::u16(20_000..30_000))
            .find(|port| {
                !taken.contains(port) && TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok()
            })
            .expect("it looks on until there is one");
        taken.insert(port);
        port
    })
}

fn text(path: &Path) -> String {
    path.to_str().expect("folders of tests have plain names").to_owned()
}
