//! Other people's informers, as programs of their own that say what they see: one JSON value on each line.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use k8s_openapi::api::core::v1::ConfigMap;
use kubeflect::Reflector;
use kubeflect::object::Resource as _;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::Instant;

use crate::control_plane::build;
use crate::support::LONG;

/// Uid and version of each object, by `namespace/name`.
pub(crate) type Contents = BTreeMap<String, (String, String)>;

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
    pub(crate) failures: Vec<String>,
    _child: Child,
}

impl Informer {
    /// client-go's.
    pub(crate) async fn client_go(kubeconfig: &Path) -> Self {
        Self::start("client-go", build().await.join("informer"), kubeconfig)
    }

    /// kube-rs's.
    pub(crate) async fn kube_rs(kubeconfig: &Path) -> Self {
        Self::start("kube-rs", build_kube_rs().await, kubeconfig)
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
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
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

/// What our own reflector believes to be there.
pub(crate) fn contents_of(reflector: &Reflector<ConfigMap>) -> Contents {
    let text = |value: Option<&str>| value.unwrap_or_default().to_owned();
    let snapshot = reflector.store().snapshot();
    snapshot
        .iter()
        .map(|(key, map)| {
            (key.to_string(), (text(map.metadata.uid.as_deref()), text(map.resource_version())))
        })
        .collect()
}

/// What one has and the other has not.
pub(crate) fn difference(believed: &Contents, truth: &Contents) -> String {
    let missing: Vec<_> =
        truth.iter().filter(|(key, value)| believed.get(*key) != Some(value)).collect();
    let wrong: Vec<_> =
        believed.iter().filter(|(key, value)| truth.get(*key) != Some(value)).collect();
    format!("missing {missing:?}, wrong {wrong:?}")
}

/// Builds the program with kube-rs in it, if it is not there, and says where it is.
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
