//! Other people's informers, as programs of their own that say what they see: one JSON value on each line.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::OnceCell;
use tokio::time::Instant;

use crate::contents::{self, Contents, difference};
use crate::control_plane::programs;
use crate::support::{Followed, LONG, eventually, quick};
use crate::users::load;

/// What all of them reflect: config maps of the whole cluster with this label.
pub(crate) const LABELS: &str = "tier=front";

/// A running informer. Ends with the value.
pub(crate) struct Informer {
    name: &'static str,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
    /// How often it told each kind of event.
    pub(crate) told: BTreeMap<String, usize>,
    /// What went wrong, in its words.
    failures: Vec<String>,
    _child: Child,
}

/// Where the program with kube-rs in it is. Built once, by whoever is first.
static KUBE_RS: OnceCell<PathBuf> = OnceCell::const_new();

/// Builds the programs of the informers if they are not there: before anything is waited for, and before others wait for
/// a control plane.
pub(crate) async fn build_informers() {
    programs().await;
    KUBE_RS.get_or_init(build_kube_rs).await;
}

impl Informer {
    /// client-go's.
    pub(crate) async fn client_go(kubeconfig: &Path) -> Self {
        Self::start("client-go", programs().await.join("informer"), kubeconfig)
    }

    /// kube-rs's.
    pub(crate) async fn kube_rs(kubeconfig: &Path) -> Self {
        Self::start("kube-rs", KUBE_RS.get_or_init(build_kube_rs).await.clone(), kubeconfig)
    }

    fn start(name: &'static str, program: PathBuf, kubeconfig: &Path) -> Self {
        let mut child = Command::new(program)
            .arg(kubeconfig)
            .args(["/v1/ConfigMap/configmaps", LABELS])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // client-go logs there what it also tells.
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let input = child.stdin.take().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap()).lines();
        let (told, failures) = (BTreeMap::new(), Vec::new());
        Self { name, input, output, told, failures, _child: child }
    }

    pub(crate) async fn synced(&mut self) {
        while self.next().await["event"] != "synced" {}
    }

    /// What it believes to be there.
    pub(crate) async fn contents(&mut self) -> Contents {
        self.input.write_all(b"store\n").await.unwrap();
        loop {
            let line = self.next().await;
            if line["event"] == "store" {
                return serde_json::from_value(line["objects"].clone()).unwrap();
            }
        }
    }

    /// Has client-go's ask a thousand times for something small.
    pub(crate) async fn ask(&mut self) {
        self.input.write_all(b"ask\n").await.unwrap();
        while self.next().await["event"] != "answered" {}
    }

    /// Waits until it believes in the truth.
    pub(crate) async fn until(&mut self, truth: &Contents) {
        let deadline = Instant::now() + LONG;
        loop {
            let contents = self.contents().await;
            if contents == *truth {
                return;
            }
            let report = || {
                format!(
                    "{}\ntold {:?}\nfailures {:#?}",
                    difference(&contents, truth),
                    self.told,
                    self.failures
                )
            };
            assert!(Instant::now() < deadline, "{} differs: {}", self.name, report());
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    async fn next(&mut self) -> Value {
        let line = tokio::time::timeout(LONG, self.output.next_line()).await;
        let line = line.unwrap_or_else(|_| panic!("{} says nothing", self.name)).unwrap();
        let line = line.unwrap_or_else(|| panic!("{} has ended", self.name));
        let value: Value = serde_json::from_str(&line).unwrap();
        let event = value["event"].as_str().unwrap().to_owned();
        if event == "failed" {
            self.failures.push(value["message"].to_string());
        }
        *self.told.entry(event).or_default() += 1;
        value
    }
}

/// Informers of three makes, side by side.
pub(crate) struct Informers {
    pub(crate) ours: Followed<ConfigMap>,
    pub(crate) others: [Informer; 2],
}

impl Informers {
    pub(crate) async fn start(kubeconfig: &Path) -> Self {
        let others = [Informer::client_go(kubeconfig).await, Informer::kube_rs(kubeconfig).await];
        let ours = Followed::start(load(kubeconfig), quick().labels(LABELS)).await;
        Self { ours, others }
    }

    pub(crate) async fn synced(&mut self) {
        for other in &mut self.others {
            other.synced().await;
        }
        self.ours.reflector.synced().await.unwrap();
    }

    /// Everybody knows the truth after a while.
    pub(crate) async fn assert_know(&mut self, truth: &Contents, when: &str) {
        let contents = || contents::of_reflector(&self.ours.reflector);
        let came = eventually(LONG, || contents() == *truth).await;
        assert!(came, "{when}: {}\n{}", difference(&contents(), truth), self.ours.report());
        for other in &mut self.others {
            other.until(truth).await;
        }
    }

    /// What the others had to say.
    pub(crate) fn report(&self) -> String {
        let lines = self
            .others
            .iter()
            .map(|it| format!("{}: told {:?}, failures {:#?}", it.name, it.told, it.failures));
        lines.collect::<Vec<_>>().join("\n")
    }
}

/// Builds the program with kube-rs in it, and says where it is.
async fn build_kube_rs() -> PathBuf {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cluster/kube-rs/Cargo.toml");
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("kube-rs");
    let output = Command::new(env!("CARGO"))
        .args(["build", "--locked", "--quiet", "--manifest-path"])
        .arg(manifest)
        .arg("--target-dir")
        .arg(&target)
        .output()
        .await
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "kube-rs can not be built: {said}");
    target.join("debug/kube-rs-reflector")
}
