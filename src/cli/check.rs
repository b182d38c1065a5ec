use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use futures::TryStreamExt as _;
use kubeflect::Kind;
use kubeflect::api::ApiError;
use kubeflect::client::{Access, Cluster as _, Discovery, HttpCluster, Request, Transport};
use kubeflect::config::{Config, ReflectorSettings};
use kubeflect::object::Scope;
use serde_json::Value;

use super::cluster::ClusterArguments;
use super::failure::{Failure, chain};
use super::screen::{Colour, Screen};
use super::table::Table;

const EXAMPLES: &str = "\
Examples:
  kubeflect check                                        nodes, deployments and pods
  kubeflect check --config kubeflect.toml --context production

Ends with 0 if everything is there, with 1 if something is missing.";

/// Says whether the cluster lets us reflect what is configured, and what to do if not
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CheckArguments {
    /// The configuration whose kinds are asked about
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    #[command(flatten)]
    cluster: ClusterArguments,
}

/// What was found out.
struct Finding {
    about: String,
    verdict: Verdict,
    /// What is the case, and what to do if it is bad.
    detail: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Ok,
    /// It works all the same.
    Note,
    Bad,
}

const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) async fn check(arguments: CheckArguments, screen: &Arc<Screen>) -> Result<(), Failure> {
    let config = arguments.config.as_deref().map(Config::read).transpose()?.unwrap_or_default();
    let cluster = arguments.cluster.or(&config.cluster).connect()?;
    let findings = find_out(&cluster, &config).await?;
    let titles = ["CHECK", "RESULT", "DETAIL"].map(str::to_owned);
    let rows: Vec<Vec<String>> = findings.iter().map(Finding::row).collect();
    let table = Table::new(&titles, &rows);
    let mut lines = table.line(&titles, |_, cell| cell.to_owned());
    for (finding, row) in findings.iter().zip(&rows) {
        lines.push_str(&table.line(row, |at, cell| match at {
            1 => screen.paint(finding.verdict.colour(), cell),
            _ => cell.to_owned(),
        }));
    }
    screen.print(lines.as_bytes());
    match findings.iter().filter(|finding| finding.verdict == Verdict::Bad).count() {
        0 => Ok(()),
        1 => Err(Failure::new("one check failed: see what to do about it")),
        failed => Err(Failure::new(format!("{failed} checks failed: see what to do about each"))),
    }
}

async fn find_out(cluster: &HttpCluster, config: &Config) -> Result<Vec<Finding>, Failure> {
    let transport = cluster.connect()?;
    let server = &cluster.connection().server;
    let mut findings = Vec::new();
    match version(&*transport).await {
        Ok(version) => findings.push(ok("connect", format!("{server}, Kubernetes {version}"))),
        Err(error) => {
            let detail = format!("{server}: {}; {}", chain(&error), advice(&error));
            return Ok(vec![bad("connect", detail)]);
        }
    }
    findings.push(match Access::user(&*transport).await {
        Ok(user) => ok("identity", user),
        Err(ApiError::NotFound { .. }) => {
            note("identity", "the server does not say: it is older than 1.28")
        }
        Err(error) => bad("identity", format!("{}; {}", chain(&error), advice(&error))),
    });
    let discovery = match Discovery::run(&*transport).await {
        Ok(discovery) => discovery,
        Err(error) => {
            findings.push(bad("discovery", format!("{}; {}", chain(&error), advice(&error))));
            return Ok(findings);
        }
    };
    for problem in discovery.problems() {
        findings.push(note("discovery", problem.to_string()));
    }
    let mut watchable = None;
    for (name, settings) in &config.reflectors {
        match discovery.resolve(&settings.full_kind()) {
            Ok(served) if served.kind.scope == Scope::Cluster && settings.namespace.is_some() => {
                let problem = format!(
                    "a {} is in no namespace; leave reflectors.{name}.namespace out",
                    served.kind.kind
                );
                findings.push(bad(&format!("kind of {name}"), problem));
            }
            Ok(served) => {
                let findings_of_kind = rights(&*transport, &served.kind, settings).await;
                if findings_of_kind.iter().all(|finding| finding.verdict == Verdict::Ok) {
                    watchable.get_or_insert((served.kind.clone(), settings.namespace.clone()));
                }
                findings.extend(findings_of_kind);
            }
            Err(unknown) => findings.push(bad(
                &format!("kind of {name}"),
                format!("{unknown}; install its definition, or mend reflectors.{name}.kind"),
            )),
        }
    }
    if let Some((kind, namespace)) = watchable {
        findings.push(streaming_lists(&*transport, &kind, namespace.as_deref()).await);
    }
    Ok(findings)
}

/// Whether we may list and watch a kind.
async fn rights(
    transport: &dyn Transport,
    kind: &Kind,
    settings: &ReflectorSettings,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    let place = match &settings.namespace {
        Some(namespace) => format!(" in {namespace}"),
        None => String::new(),
    };
    for verb in ["list", "watch"] {
        let about = format!("{verb} {kind}{place}");
        let access = Access::review(transport, kind, verb, settings.namespace.as_deref()).await;
        findings.push(match access {
            Ok(Access { allowed: true, .. }) => ok(&about, "allowed"),
            Ok(Access { allowed: false, reason }) => {
                let reason = reason.map(|reason| format!(" ({reason})")).unwrap_or_default();
                let role = if settings.namespace.is_some() { "Role" } else { "ClusterRole" };
                let detail = format!(
                    "not allowed{reason}; grant it with a {role} rule: apiGroups [{:?}], resources [{:?}], verbs [\"list\", \
                     \"watch\"], as config/rbac.yaml does",
                    kind.group, kind.plural
                );
                bad(&about, detail)
            }
            Err(error) => bad(&about, format!("{}; {}", chain(&error), advice(&error))),
        });
    }
    findings
}

/// Asks for objects as a watch, and looks at nothing but the head of the answer.
async fn streaming_lists(
    transport: &dyn Transport,
    kind: &Kind,
    namespace: Option<&str>,
) -> Finding {
    let about = "streaming lists";
    let prefix = match kind.group.as_ref() {
        "" => format!("/api/{}", kind.version),
        group => format!("/apis/{group}/{}", kind.version),
    };
    let namespace =
        namespace.map(|namespace| format!("/namespaces/{namespace}")).unwrap_or_default();
    let query = [
        ("watch", "true"),
        ("sendInitialEvents", "true"),
        ("resourceVersionMatch", "NotOlderThan"),
        ("allowWatchBookmarks", "true"),
        ("timeoutSeconds", "1"),
    ];
    let request = Request {
        query: query.into_iter().map(|(name, value)| (name, value.to_owned())).collect(),
        ..Request::get(format!("{prefix}{namespace}/{}", kind.plural))
    };
    match tokio::time::timeout(PATIENCE, transport.send(request)).await {
        Ok(Ok(response)) if response.status == 200 => ok(about, "the server has them"),
        Ok(Ok(response)) if matches!(response.status, 400 | 422) => {
            note(about, "the server has none: objects are listed instead, which costs it more")
        }
        Ok(Ok(response)) => note(about, format!("not known: answered {}", response.status)),
        Ok(Err(error)) => note(about, format!("not known: {}", chain(&error))),
        Err(_elapsed) => note(about, "not known: no answer in time"),
    }
}

async fn version(transport: &dyn Transport) -> Result<String, ApiError> {
    let answer = async {
        let response = transport.send(Request::get("/version")).await?;
        let status = response.status;
        let body: Vec<u8> = response.body.map_ok(|chunk| chunk.to_vec()).try_concat().await?;
        if status != 200 {
            return Err(ApiError::from_code(status, String::new(), None));
        }
        let version: Value = serde_json::from_slice(&body).unwrap_or_default();
        let version = version["gitVersion"].as_str().map(str::to_owned);
        version.ok_or_else(|| ApiError::malformed("/version does not tell a version of Kubernetes"))
    };
    let answer = tokio::time::timeout(PATIENCE, answer).await;
    answer.map_err(|_elapsed| ApiError::Timeout { waited: PATIENCE })?
}

/// What to do about an error.
fn advice(error: &ApiError) -> &'static str {
    match error {
        ApiError::Unauthorized { .. } => "log in again, or mend the user of the kubeconfig",
        ApiError::Forbidden { .. } => "ask an administrator for the right",
        ApiError::NotFound { .. } | ApiError::Malformed { .. } => {
            "is this the address of an API server?"
        }
        _ => "is the server running, and can it be reached from here?",
    }
}

fn ok(about: &str, detail: impl Into<String>) -> Finding {
    Finding { about: about.to_owned(), verdict: Verdict::Ok, detail: detail.into() }
}

fn note(about: &str, detail: impl Into<String>) -> Finding {
    Finding { about: about.to_owned(), verdict: Verdict::Note, detail: detail.into() }
}

fn bad(about: &str, detail: impl Into<String>) -> Finding {
    Finding { about: about.to_owned(), verdict: Verdict::Bad, detail: detail.into() }
}

impl Finding {
    fn row(&self) -> Vec<String> {
        vec![self.about.clone(), self.verdict.text().to_owned(), self.detail.clone()]
    }
}

impl Verdict {
    fn text(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Note => "note",
            Self::Bad => "FAILED",
        }
    }

    fn colour(self) -> Colour {
        match self {
            Self::Ok => Colour::Green,
            Self::Note => Colour::Yellow,
            Self::Bad => Colour::Red,
        }
    }
}
