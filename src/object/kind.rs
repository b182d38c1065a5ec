use std::borrow::Cow;
use std::fmt;

use kube_core::discovery::ApiResource;

/// What kind of objects: where the API serves them and what they are called.
#[doc(alias("GroupVersionKind", "GroupVersionResource"))]
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Kind {
    /// `apps`; empty for the core group.
    pub group: Cow<'static, str>,
    /// `v1`.
    pub version: Cow<'static, str>,
    /// `Deployment`.
    pub kind: Cow<'static, str>,
    /// `deployments`, as in paths and RBAC rules.
    pub plural: Cow<'static, str>,
    /// Whether its objects live in namespaces.
    pub scope: Scope,
}

/// Where the objects of a kind live.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// In namespaces.
    Namespaced,
    /// In the cluster as a whole.
    Cluster,
    /// The type does not say; the server knows.
    Unknown,
}

impl Kind {
    /// A kind by its names, for objects whose type is not known when compiling.
    pub fn new(
        group: impl Into<Cow<'static, str>>,
        version: impl Into<Cow<'static, str>>,
        kind: impl Into<Cow<'static, str>>,
        plural: impl Into<Cow<'static, str>>,
        scope: Scope,
    ) -> Self {
        Self {
            group: group.into(),
            version: version.into(),
            kind: kind.into(),
            plural: plural.into(),
            scope,
        }
    }

    /// `v1`, or `apps/v1`.
    pub fn api_version(&self) -> Cow<'static, str> {
        if self.group.is_empty() {
            return self.version.clone();
        }
        Cow::Owned(format!("{}/{}", self.group, self.version))
    }

    /// `pods`, or `deployments.apps`: as kubectl and RBAC messages name it.
    pub fn resource_name(&self) -> Cow<'static, str> {
        if self.group.is_empty() {
            return self.plural.clone();
        }
        Cow::Owned(format!("{}.{}", self.plural, self.group))
    }

    /// What is wrong with an object that says this of itself.
    pub(crate) fn mismatch(&self, api_version: &str, stated: &str) -> String {
        format!("it is a {stated} of {api_version}, not a {} of {}", self.kind, self.api_version())
    }

    /// Whether an object that says of itself `api_version` and `kind` is of this kind.
    pub fn is_of(&self, api_version: &str, kind: &str) -> bool {
        let same_version = match api_version.split_once('/') {
            Some((group, version)) => group == self.group && version == self.version,
            None => self.group.is_empty() && api_version == self.version,
        };
        same_version && kind == self.kind
    }
}

impl From<&ApiResource> for Kind {
    fn from(resource: &ApiResource) -> Self {
        Self::new(
            resource.group.clone(),
            resource.version.clone(),
            resource.kind.clone(),
            resource.plural.clone(),
            Scope::Unknown,
        )
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.resource_name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_named_as_kubectl_names_it() {
        let deployments = Kind::new("apps", "v1", "Deployment", "deployments", Scope::Namespaced);
        assert_eq!(deployments.to_string(), "deployments.apps");
        assert_eq!(deployments.api_version(), "apps/v1");

        let nodes = Kind::new("", "v1", "Node", "nodes", Scope::Cluster);
        assert_eq!(nodes.to_string(), "nodes");
        assert_eq!(nodes.api_version(), "v1");
    }

    #[test]
    fn a_kind_knows_its_objects() {
        let deployments = Kind::new("apps", "v1", "Deployment", "deployments", Scope::Namespaced);
        assert!(deployments.is_of("apps/v1", "Deployment"));
        assert!(!deployments.is_of("apps/v1beta1", "Deployment"));
        assert!(!deployments.is_of("v1", "Deployment"));
        assert!(!deployments.is_of("apps/v1", "ReplicaSet"));
    }
}
