use std::fmt;
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::answer::{json_of, require_success};
use super::path::version_path;
use super::{Request, Transport};
use crate::api::{ApiError, null_as_default};
use crate::object::{Kind, Scope};

/// Groups and their kinds in two answers, where the server can; some servers want the parameters in this order.
const AGGREGATED: &str =
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";
/// How many versions of groups are asked about at once, where each needs a request.
const AT_ONCE: usize = 4;
/// No answer may be larger.
const ANSWER_CAP: usize = 32 << 20;

/// Nor may one take longer: one dead group must not hold up the others for ever.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

/// What an API server serves.
///
/// A group that can not be asked about hides no other: it is among the [`problems`](Self::problems). So an answer never
/// proves that a kind is gone.
///
/// ```
/// use kubeflect::client::{Cluster, Discovery};
/// use kubeflect::embedded::ApiServer;
///
/// # actix_rt::System::new().block_on(async {
/// let discovery = Discovery::run(&*ApiServer::new().connect()?).await?;
/// assert_eq!(discovery.resolve("deploy").unwrap().kind.resource_name(), "deployments.apps");
/// let unknown = discovery.resolve("deploymnets").unwrap_err();
/// assert_eq!(unknown.to_string(), r#"the server has no kind "deploymnets": did you mean deployments?"#);
/// # Ok::<(), kubeflect::api::ApiError>(())
/// # }).unwrap();
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Discovery {
    kinds: Vec<ServedKind>,
    problems: Vec<GroupProblem>,
}

/// One kind, in one version, as the server serves it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServedKind {
    /// Its names, and whether it lives in namespaces.
    pub kind: Kind,
    /// `deployment`.
    pub singular: String,
    /// `deploy`.
    pub short_names: Vec<String>,
    /// `get`, `list`, `watch`.
    pub verbs: Vec<String>,
    /// Whether the server prefers this version of the group to the others.
    pub preferred: bool,
}

/// A version of a group whose kinds are not known, or not known for sure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupProblem {
    /// `metrics.k8s.io`; empty for the core group.
    pub group: String,
    /// `v1beta1`.
    pub version: String,
    /// What is wrong with it.
    pub problem: String,
}

impl Discovery {
    /// Asks for everything that is served.
    ///
    /// # Errors
    /// When the server does not say which groups it has.
    pub async fn run(transport: &dyn Transport) -> Result<Self, ApiError> {
        let mut discovery = Self::default();
        let core = match get::<Root>(transport, "/api", AGGREGATED).await {
            // A server may have custom groups only.
            Err(ApiError::NotFound { .. }) => Root::default(),
            core => core?,
        };
        discovery.add(transport, core).await;
        let groups: Root = get(transport, "/apis", AGGREGATED).await?;
        discovery.add(transport, groups).await;
        Ok(discovery)
    }

    /// All kinds: the core group first, then the groups as the server orders them, each with its preferred version
    /// first.
    pub fn kinds(&self) -> &[ServedKind] {
        &self.kinds
    }

    /// The groups that could not be asked about.
    pub fn problems(&self) -> &[GroupProblem] {
        &self.problems
    }

    /// Asks whether one kind is served, in its version.
    ///
    /// # Errors
    /// When the server does not say.
    pub async fn serves(transport: &dyn Transport, kind: &Kind) -> Result<bool, ApiError> {
        let path = version_path(&kind.group, &kind.version)?;
        match get::<LegacyResources>(transport, &path, "application/json").await {
            Ok(list) => Ok(list.resources.iter().any(|resource| resource.name == kind.plural)),
            Err(ApiError::NotFound { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    async fn add(&mut self, transport: &dyn Transport, root: Root) {
        for group in root.items {
            self.add_aggregated(group);
        }
        let core = root.versions.into_iter().enumerate().map(|(rank, version)| Asked {
            group: String::new(),
            version,
            preferred: rank == 0,
        });
        let groups = root.groups.into_iter().flat_map(LegacyGroup::versions);
        let asked: Vec<Asked> = core.chain(groups).collect();
        let mut answers = stream::iter(asked)
            .map(|asked| async move {
                let path = version_path(&asked.group, &asked.version);
                let list = match path {
                    Ok(path) => get::<LegacyResources>(transport, &path, "application/json").await,
                    Err(error) => Err(error),
                };
                (asked, list)
            })
            .buffered(AT_ONCE);
        while let Some((asked, answer)) = answers.next().await {
            match answer {
                Ok(list) => self.kinds.extend(asked.kinds(list)),
                Err(error) => self.problems.push(GroupProblem {
                    group: asked.group,
                    version: asked.version,
                    problem: error.to_string(),
                }),
            }
        }
    }

    fn add_aggregated(&mut self, group: AggregatedGroup) {
        let name = group.metadata.name;
        for (rank, version) in group.versions.into_iter().enumerate() {
            if version.freshness == "Stale" {
                self.problems.push(GroupProblem {
                    group: name.clone(),
                    version: version.version.clone(),
                    problem: "the server behind it does not answer".to_owned(),
                });
            }
            // A resource without a kind is one whose parts only are served.
            let kinds = version.resources.into_iter().filter_map(|resource| {
                let answer = resource.response_kind.filter(|answer| !answer.kind.is_empty())?;
                let scope = match resource.scope.as_str() {
                    "Cluster" => Scope::Cluster,
                    "Namespaced" => Scope::Namespaced,
                    _ => Scope::Unknown,
                };
                let kind = (name.clone(), version.version.clone(), answer.kind, resource.resource);
                Some(ServedKind {
                    kind: Kind::new(kind.0, kind.1, kind.2, kind.3, scope),
                    singular: resource.singular_resource,
                    short_names: resource.short_names,
                    verbs: resource.verbs,
                    preferred: rank == 0,
                })
            });
            self.kinds.extend(kinds);
        }
    }
}

impl ServedKind {
    /// Whether it can be reflected.
    pub fn can_be_watched(&self) -> bool {
        ["list", "watch"].iter().all(|verb| self.verbs.iter().any(|can| can == verb))
    }
}

impl fmt::Display for GroupProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.group.as_str() {
            "" => write!(f, "{}: {}", self.version, self.problem),
            group => write!(f, "{group}/{}: {}", self.version, self.problem),
        }
    }
}

async fn get<T: DeserializeOwned>(
    transport: &dyn Transport,
    path: &str,
    accept: &'static str,
) -> Result<T, ApiError> {
    let request = Request { accept, ..Request::get(path) };
    let answer = async {
        let response = require_success(transport.send(request).await?).await?;
        json_of(response.body, ANSWER_CAP, path).await
    };
    let answer = tokio::time::timeout(ANSWER_TIMEOUT, answer).await;
    answer.map_err(|_elapsed| ApiError::Timeout { waited: ANSWER_TIMEOUT })?
}

/// A version to be asked about on its own.
struct Asked {
    group: String,
    version: String,
    preferred: bool,
}

impl Asked {
    fn kinds(&self, list: LegacyResources) -> impl Iterator<Item = ServedKind> + '_ {
        // `pods/status` is a part of a pod, not a kind.
        let is_whole =
            |resource: &LegacyResource| !resource.name.contains('/') && !resource.kind.is_empty();
        let whole = list.resources.into_iter().filter(is_whole);
        whole.map(|resource| {
            let scope = if resource.namespaced { Scope::Namespaced } else { Scope::Cluster };
            let (group, version) = (self.group.clone(), self.version.clone());
            ServedKind {
                kind: Kind::new(group, version, resource.kind, resource.name, scope),
                singular: resource.singular_name,
                short_names: resource.short_names,
                verbs: resource.verbs,
                preferred: self.preferred,
            }
        })
    }
}

/// `/api` or `/apis`, in the new form or in the old.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Root {
    /// `APIGroupDiscoveryList`.
    #[serde(deserialize_with = "null_as_default")]
    items: Vec<AggregatedGroup>,
    /// `APIVersions`.
    #[serde(deserialize_with = "null_as_default")]
    versions: Vec<String>,
    /// `APIGroupList`.
    #[serde(deserialize_with = "null_as_default")]
    groups: Vec<LegacyGroup>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct AggregatedGroup {
    #[serde(deserialize_with = "null_as_default")]
    metadata: GroupName,
    #[serde(deserialize_with = "null_as_default")]
    versions: Vec<AggregatedVersion>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct GroupName {
    #[serde(deserialize_with = "null_as_default")]
    name: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct AggregatedVersion {
    #[serde(deserialize_with = "null_as_default")]
    version: String,
    #[serde(deserialize_with = "null_as_default")]
    freshness: String,
    #[serde(deserialize_with = "null_as_default")]
    resources: Vec<AggregatedResource>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct AggregatedResource {
    #[serde(deserialize_with = "null_as_default")]
    resource: String,
    response_kind: Option<ResponseKind>,
    #[serde(deserialize_with = "null_as_default")]
    scope: String,
    #[serde(deserialize_with = "null_as_default")]
    singular_resource: String,
    #[serde(deserialize_with = "null_as_default")]
    verbs: Vec<String>,
    #[serde(deserialize_with = "null_as_default")]
    short_names: Vec<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ResponseKind {
    #[serde(deserialize_with = "null_as_default")]
    kind: String,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct LegacyGroup {
    #[serde(deserialize_with = "null_as_default")]
    name: String,
    #[serde(deserialize_with = "null_as_default")]
    versions: Vec<LegacyVersion>,
    #[serde(deserialize_with = "null_as_default")]
    preferred_version: LegacyVersion,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct LegacyVersion {
    #[serde(deserialize_with = "null_as_default")]
    version: String,
}

impl LegacyGroup {
    /// Its versions, the preferred one first.
    fn versions(self) -> impl Iterator<Item = Asked> {
        let (group, first) = (self.name, self.preferred_version.version);
        let mut versions: Vec<String> =
            self.versions.into_iter().map(|version| version.version).collect();
        versions.sort_by_key(|version| *version != first);
        versions.into_iter().enumerate().map(move |(rank, version)| Asked {
            group: group.clone(),
            version,
            preferred: rank == 0,
        })
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct LegacyResources {
    #[serde(deserialize_with = "null_as_default")]
    resources: Vec<LegacyResource>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct LegacyResource {
    #[serde(deserialize_with = "null_as_default")]
    name: String,
    #[serde(deserialize_with = "null_as_default")]
    singular_name: String,
    #[serde(deserialize_with = "null_as_default")]
    namespaced: bool,
    #[serde(deserialize_with = "null_as_default")]
    kind: String,
    #[serde(deserialize_with = "null_as_default")]
    verbs: Vec<String>,
    #[serde(deserialize_with = "null_as_default")]
    short_names: Vec<String>,
}

#[cfg(test)]
#[path = "discovery_tests.rs"]
mod tests;
