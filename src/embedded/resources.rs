use std::fmt;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::object::{Kind, Scope};

/// A kind as this server offers it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Served {
    pub(super) kind: Kind,
    pub(super) singular: String,
    pub(super) short_names: Vec<String>,
    pub(super) origin: Origin,
}

/// Where a kind comes from. Lists of built-in kinds leave the type of their items out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    BuiltIn,
    Custom,
}

/// Which resource: group, version and plural, as in its path.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ResourceId(Arc<str>);

impl ResourceId {
    pub(super) fn new(group: &str, version: &str, plural: &str) -> Self {
        Self(format!("{group}/{version}/{plural}").into())
    }

    pub(super) fn of(kind: &Kind) -> Self {
        Self::new(&kind.group, &kind.version, &kind.plural)
    }

    pub(super) fn group(&self) -> &str {
        self.0.split('/').next().unwrap_or_default()
    }

    pub(super) fn plural(&self) -> &str {
        self.0.rsplit('/').next().unwrap_or_default()
    }

    pub(super) fn definitions() -> Self {
        Self::new("apiextensions.k8s.io", "v1", "customresourcedefinitions")
    }

    pub(super) fn namespaces() -> Self {
        Self::new("", "v1", "namespaces")
    }
}

impl fmt::Display for ResourceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Served {
    /// A kind that was registered by a test, or by a definition that gives no other names.
    pub(super) fn custom(kind: Kind) -> Self {
        let singular = kind.kind.to_lowercase();
        Self { kind, singular, short_names: Vec::new(), origin: Origin::Custom }
    }

    pub(super) fn is_namespaced(&self) -> bool {
        self.kind.scope != Scope::Cluster
    }

    /// What it is found by beside its own names: `kubectl get all`.
    pub(super) fn categories(&self) -> &'static [&'static str] {
        let plural = self.kind.plural.as_ref();
        match (self.origin, self.kind.group.as_ref()) {
            (Origin::BuiltIn, "") if matches!(plural, "pods" | "services") => &["all"],
            (Origin::BuiltIn, "apps" | "batch") => &["all"],
            (Origin::BuiltIn, "apiextensions.k8s.io") => &["api-extensions"],
            _ => &[],
        }
    }

    /// Whether its objects have a status that is written apart.
    pub(super) fn has_status(&self) -> bool {
        const WITHOUT: [&str; 11] = [
            "clusterrolebindings",
            "clusterroles",
            "configmaps",
            "endpoints",
            "events",
            "leases",
            "networkpolicies",
            "rolebindings",
            "roles",
            "secrets",
            "serviceaccounts",
        ];
        self.origin == Origin::Custom || !WITHOUT.contains(&self.kind.plural.as_ref())
    }

    /// What can be done with it.
    pub(super) fn verbs(&self) -> Vec<&'static str> {
        const VERBS: [&str; 8] =
            ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];
        let verbs = VERBS.into_iter();
        verbs.filter(|verb| *verb != "deletecollection" || self.is_deleted_together()).collect()
    }

    /// Whether all objects at a place can be deleted by one request. Namespaces go one by one.
    pub(super) fn is_deleted_together(&self) -> bool {
        self.origin == Origin::Custom || self.kind.plural != "namespaces"
    }

    /// The field labels it can be selected by, beside name and namespace.
    pub(super) fn field_labels(&self) -> &'static [&'static str] {
        if self.origin == Origin::Custom {
            return &[];
        }
        match (self.kind.group.as_ref(), self.kind.plural.as_ref()) {
            ("", "pods") => &[
                "spec.nodeName",
                "spec.restartPolicy",
                "spec.schedulerName",
                "spec.serviceAccountName",
                "spec.hostNetwork",
                "status.phase",
                "status.podIP",
                "status.nominatedNodeName",
            ],
            ("", "events") => &[
                "involvedObject.kind",
                "involvedObject.namespace",
                "involvedObject.name",
                "involvedObject.uid",
                "involvedObject.apiVersion",
                "involvedObject.resourceVersion",
                "involvedObject.fieldPath",
                "reason",
                "reportingComponent",
                "source",
                "type",
            ],
            ("", "secrets") => &["type"],
            ("", "nodes") => &["spec.unschedulable"],
            ("", "namespaces") => &["status.phase"],
            ("", "services") => &["spec.clusterIP", "spec.type"],
            ("apps", "replicasets") => &["status.replicas"],
            ("batch", "jobs") => &["status.successful"],
            _ => &[],
        }
    }

    /// Whether it has so many replicas, which can be asked for and set apart from the rest: `kubectl scale`.
    pub(super) fn is_scalable(&self) -> bool {
        let plural = self.kind.plural.as_ref();
        self.origin == Origin::BuiltIn
            && self.kind.group == "apps"
            && matches!(plural, "deployments" | "replicasets" | "statefulsets")
    }

    /// Whether a deletion is answered with the object rather than with a `Status`.
    pub(super) fn returns_deleted_object(&self) -> bool {
        const RETURNED: [&str; 6] = [
            "namespaces",
            "persistentvolumeclaims",
            "persistentvolumes",
            "pods",
            "serviceaccounts",
            "services",
        ];
        self.kind.group.is_empty() && RETURNED.contains(&self.kind.plural.as_ref())
    }
}

/// The kinds every server has.
pub(super) fn built_in() -> impl Iterator<Item = Served> {
    use Scope::{Cluster, Namespaced};

    const KINDS: [(&str, &str, &str, &[&str], Scope); 25] = [
        ("", "ConfigMap", "configmaps", &["cm"], Namespaced),
        ("", "Endpoints", "endpoints", &["ep"], Namespaced),
        ("", "Event", "events", &["ev"], Namespaced),
        ("", "Namespace", "namespaces", &["ns"], Cluster),
        ("", "Node", "nodes", &["no"], Cluster),
        ("", "PersistentVolume", "persistentvolumes", &["pv"], Cluster),
        ("", "PersistentVolumeClaim", "persistentvolumeclaims", &["pvc"], Namespaced),
        ("", "Pod", "pods", &["po"], Namespaced),
        ("", "Secret", "secrets", &[], Namespaced),
        ("", "Service", "services", &["svc"], Namespaced),
        ("", "ServiceAccount", "serviceaccounts", &["sa"], Namespaced),
        ("apps", "DaemonSet", "daemonsets", &["ds"], Namespaced),
        ("apps", "Deployment", "deployments", &["deploy"], Namespaced),
        ("apps", "ReplicaSet", "replicasets", &["rs"], Namespaced),
        ("apps", "StatefulSet", "statefulsets", &["sts"], Namespaced),
        ("batch", "CronJob", "cronjobs", &["cj"], Namespaced),
        ("batch", "Job", "jobs", &[], Namespaced),
        ("coordination.k8s.io", "Lease", "leases", &[], Namespaced),
        ("networking.k8s.io", "Ingress", "ingresses", &["ing"], Namespaced),
        ("networking.k8s.io", "NetworkPolicy", "networkpolicies", &["netpol"], Namespaced),
        ("rbac.authorization.k8s.io", "ClusterRole", "clusterroles", &[], Cluster),
        ("rbac.authorization.k8s.io", "ClusterRoleBinding", "clusterrolebindings", &[], Cluster),
        ("rbac.authorization.k8s.io", "Role", "roles", &[], Namespaced),
        ("rbac.authorization.k8s.io", "RoleBinding", "rolebindings", &[], Namespaced),
        (
            "apiextensions.k8s.io",
            "CustomResourceDefinition",
            "customresourcedefinitions",
            &["crd", "crds"],
            Cluster,
        ),
    ];
    KINDS.into_iter().map(|(group, kind, plural, short_names, scope)| Served {
        kind: Kind::new(group, "v1", kind, plural, scope),
        singular: kind.to_lowercase(),
        short_names: short_names.iter().map(|&name| name.to_owned()).collect(),
        origin: Origin::BuiltIn,
    })
}

/// The kinds that a `CustomResourceDefinition` asks to serve, one for each version.
pub(super) fn defined_by(definition: &Map<String, Value>) -> Vec<Served> {
    let spec = &definition.get("spec").unwrap_or(&Value::Null);
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let names = &spec["names"];
    let scope = match spec["scope"].as_str() {
        Some("Cluster") => Scope::Cluster,
        _ => Scope::Namespaced,
    };
    let versions = spec["versions"].as_array().map(Vec::as_slice).unwrap_or_default();
    let served = versions.iter().filter(|version| version["served"] != json!(false));
    served
        .map(|version| {
            let kind = Kind::new(
                text(&spec["group"]),
                text(&version["name"]),
                text(&names["kind"]),
                text(&names["plural"]),
                scope,
            );
            let mut served = Served::custom(kind);
            if let Some(singular) = names["singular"].as_str() {
                singular.clone_into(&mut served.singular);
            }
            let short_names = names["shortNames"].as_array().map(Vec::as_slice).unwrap_or_default();
            served.short_names = short_names.iter().map(text).collect();
            served
        })
        .collect()
}

/// What the server adds to a definition it has accepted.
pub(super) fn established(definition: &Map<String, Value>, now: &str) -> Value {
    let spec = definition.get("spec").unwrap_or(&Value::Null);
    let versions = spec["versions"].as_array().map(Vec::as_slice).unwrap_or_default();
    let stored: Vec<&Value> = versions
        .iter()
        .filter(|version| version["storage"] == json!(true))
        .map(|version| &version["name"])
        .collect();
    let condition = |kind: &str, reason: &str, message: &str| json!({ "type": kind, "status": "True", "reason": reason, "message": message, "lastTransitionTime": now });
    json!({
        "acceptedNames": spec["names"],
        "storedVersions": stored,
        "conditions": [
            condition("NamesAccepted", "NoConflicts", "no conflicts found"),
            condition("Established", "InitialNamesAccepted", "the initial names have been accepted"),
        ],
    })
}
