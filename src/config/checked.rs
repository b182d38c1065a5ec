use std::collections::BTreeMap;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use super::file::{File, Section};
use super::{InvalidConfig, InvalidSetting, Output, ReflectorSettings, SinkKind, SinkSettings};
use crate::client::ServerAddress;

/// A configuration as it is meant: whatever the file leaves out has its default.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// Which cluster.
    pub cluster: ClusterSettings,
    /// Where the page is.
    pub page: PageSettings,
    /// Whom changes are told to, by name.
    pub sinks: BTreeMap<String, SinkSettings>,
    /// What is reflected, by name.
    pub reflectors: BTreeMap<String, ReflectorSettings>,
}

/// Which cluster. Without any: the one kubectl would take, else that of the pod.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ClusterSettings {
    /// The kubeconfig, instead of those in `KUBECONFIG` or `~/.kube/config`.
    pub kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig, instead of its current one.
    pub context: Option<String>,
    /// The address of an API server that asks nobody who they are.
    pub server: Option<String>,
}

/// Where the page, the metrics and the probes are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageSettings {
    /// The address; none for no page.
    pub listen: Option<SocketAddr>,
    /// By which names it may be addressed, beside this machine's own.
    pub hosts: Vec<String>,
}

const LISTEN: &str = "127.0.0.1:9180";
pub(super) const HOSTS: &str = "write a list of names, like [\"kubeflect.default.svc\"]";
const ADDRESS: &str = "write an address and a port, like \"127.0.0.1:9180\"";

impl Default for Config {
    /// Nodes, deployments and pods, and a line for each of their changes.
    fn default() -> Self {
        let reflectors = ["nodes", "deployments", "pods"].map(|kind| {
            let sinks = vec!["log".to_owned()];
            (kind.to_owned(), ReflectorSettings { sinks, ..ReflectorSettings::of(kind) })
        });
        Self {
            cluster: ClusterSettings::default(),
            page: PageSettings::default(),
            sinks: BTreeMap::from([("log".to_owned(), SinkSettings::log())]),
            reflectors: reflectors.into(),
        }
    }
}

impl Default for PageSettings {
    fn default() -> Self {
        Self { listen: LISTEN.parse().ok(), hosts: Vec::new() }
    }
}

impl Config {
    /// Reads a file.
    ///
    /// # Errors
    /// When it can not be read, with all that is wrong in it.
    pub fn read(file: &Path) -> Result<Self, InvalidConfig> {
        let text = fs::read_to_string(file).map_err(|error| unreadable(file, &error))?;
        Self::parse(file, &text)
    }

    /// Reads the text of a file.
    ///
    /// # Errors
    /// With all that is wrong in it.
    pub fn parse(file: &Path, text: &str) -> Result<Self, InvalidConfig> {
        File::read(file, text, |root| {
            let default = Self::default();
            let sinks = match root.sections("sinks") {
                Some(sections) => sections
                    .into_iter()
                    .map(|(name, section)| (name, SinkSettings::read(&section)))
                    .collect(),
                None => default.sinks,
            };
            let reflectors = match root.sections("reflectors") {
                Some(sections) => sections
                    .into_iter()
                    .map(|(name, section)| {
                        let settings = ReflectorSettings::read(&section, &sinks);
                        (name, settings)
                    })
                    .collect(),
                None => {
                    let mut reflectors = default.reflectors;
                    let all = || sinks.keys().cloned().collect();
                    reflectors.values_mut().for_each(|reflector| reflector.sinks = all());
                    reflectors
                }
            };
            let config = Self {
                cluster: ClusterSettings::read(&root.section("cluster")),
                page: PageSettings::read(&root.section("page")),
                sinks,
                reflectors,
            };
            config.check_as_a_whole(root);
            config
        })
    }

    /// What no setting alone is wrong about.
    fn check_as_a_whole(&self, root: &Section<'_>) {
        let is_stdout = |(_, sink): &(&String, &SinkSettings)| match &sink.kind {
            SinkKind::Log => true,
            SinkKind::Json(json) => json.output == Output::Stdout,
            SinkKind::Webhook(_) | SinkKind::Events(_) => false,
        };
        let mut on_stdout = self.sinks.iter().filter(is_stdout);
        if let Some((first, _)) = on_stdout.next() {
            for (name, _) in on_stdout {
                let problem = format!(
                    "but {first} writes to stdout too: leave one log or one json with path \"-\""
                );
                root.refuse_below(&["sinks", name, "type"], &problem);
            }
        }
        let settings: Vec<_> = self.reflectors.iter().collect();
        for (at, (name, reflector)) in settings.iter().enumerate() {
            let same = settings[..at].iter().find(|(_, other)| other.reflects_the_same(reflector));
            if let Some((other, _)) = same {
                let problem = format!(
                    "but {other} reflects the same: leave one of them, with the sinks of both"
                );
                root.refuse_below(&["reflectors", name, "kind"], &problem);
            }
        }
    }
}

impl ClusterSettings {
    fn read(section: &Section<'_>) -> Self {
        let text = |key| section.text(key, "write a text", |text| Some(text.to_owned()));
        let kubeconfig = text("kubeconfig").map(PathBuf::from);
        let context = text("context");
        let server =
            section.text("server", "write an address, like \"https://HOST:PORT\"", |text| {
                ServerAddress::parse(text).ok().map(|_| text.to_owned())
            });
        if server.is_some() && (kubeconfig.is_some() || context.is_some()) {
            section.refuse("server", "leave it out, or kubeconfig and context");
        }
        section.finish();
        Self { kubeconfig, context, server }
    }
}

impl PageSettings {
    fn read(section: &Section<'_>) -> Self {
        let allowed = format!("{ADDRESS}, or \"off\"");
        let default = Self::default();
        let listen = section.word("listen", &allowed, |text| match text {
            "off" => Some(None),
            _ => text.parse().ok().map(Some),
        });
        let hosts = section.list("hosts", HOSTS, host);
        section.finish();
        Self { listen: listen.unwrap_or(default.listen), hosts: hosts.unwrap_or(default.hosts) }
    }
}

/// A name without a port.
pub(super) fn host(text: &str) -> Option<String> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '.';
    (!text.is_empty() && text.chars().all(is_part)).then(|| text.to_owned())
}

fn unreadable(file: &Path, error: &std::io::Error) -> InvalidConfig {
    let problem = InvalidSetting {
        file: file.display().to_string(),
        line: None,
        key: String::new(),
        problem: format!("can not be read ({error}): give the path of a configuration"),
    };
    InvalidConfig { problems: vec![problem] }
}
