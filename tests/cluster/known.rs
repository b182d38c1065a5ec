//! The differences that are left between the embedded server and the real one.

use super::Group;

/// Where the embedded server is known to differ.
pub(super) struct Known {
    pub(super) group: Group,
    /// As the name of the question has it.
    pub(super) question: &'static str,
    pub(super) difference: Difference,
    /// What the real server does, and why the embedded one does not.
    pub(super) reason: &'static str,
}

/// In what an answer differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Difference {
    /// Only in what is in English, for people.
    Words,
    Meaning,
}

/// Once one is no difference any more, its line has to go.
pub(super) const KNOWN: &[Known] = &[
    Known {
        group: Group::Writes,
        question: r#"POST /api/v1/namespaces/none/configmaps {"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}"#,
        difference: Difference::Meaning,
        reason: "it wants a namespace to exist before something is put there, and answers 404; here tests need not make one",
    },
    Known {
        group: Group::Writes,
        question: "POST /api/v1/namespaces/default/configmaps []",
        difference: Difference::Words,
        reason: "it prints the Go type that its parser of JSON could not fill",
    },
    Known {
        group: Group::Refusals,
        question: r#"POST /api/v1/namespaces/default/configmaps {"apiVersion":"v1","kind":"Pod","metadata":{"name":"x"}}"#,
        difference: Difference::Words,
        reason: "it names the Go types between which it has no conversion",
    },
    Known {
        group: Group::Refusals,
        question: r#"POST /api/v1/namespaces/default/configmaps {"apiVersion":"v2","kind":"ConfigMap","metadata":{"name":"x"}}"#,
        difference: Difference::Words,
        reason: "it names the line of its source in which kinds are registered",
    },
    Known {
        group: Group::Lists,
        question: "GET /api/v1/namespaces/default/configmaps?labelSelector=a in (b",
        difference: Difference::Words,
        reason: "it names the token its parser found and those it expected; ours names the requirement that can not be read",
    },
    Known {
        group: Group::Lists,
        question: "GET /api/v1/namespaces/default/configmaps?continue=nonsense",
        difference: Difference::Words,
        reason: "it repeats what Go's parser of JSON complains about; ours what serde's does",
    },
    Known {
        group: Group::Lists,
        question: "GET /api/v1/namespaces/default/configmaps?continue=nonsense&resourceVersion=7",
        difference: Difference::Words,
        reason: "it repeats what Go's parser of JSON complains about; ours what serde's does",
    },
    Known {
        group: Group::Forms,
        question: "GET /apis/batch/v1/namespaces/none/jobs as application/json;as=Table;g=meta.k8s.io;v=v1",
        difference: Difference::Meaning,
        reason: "it has columns for every kind; here all but pods, deployments and config maps have name and age, as \
                 custom resources have",
    },
    Known {
        group: Group::Forms,
        question: "GET /api/v1/namespaces/default/configmaps as application/json;as=Nothing;g=meta.k8s.io;v=v1",
        difference: Difference::Words,
        reason: "it also offers YAML and protobuf, which are not to be had here",
    },
    Known {
        group: Group::Forms,
        question: "GET /api/v1/namespaces/default/configmaps as text/plain",
        difference: Difference::Words,
        reason: "it also offers YAML and protobuf, which are not to be had here",
    },
    Known {
        group: Group::Forgotten,
        question: "GET /api/v1/namespaces/default/configmaps?watch=true&timeoutSeconds=3&resourceVersion={version}",
        difference: Difference::Words,
        reason: "without a watch cache it does not say which version is too old; with one it does, as the embedded server",
    },
    Known {
        group: Group::Forgotten,
        question: "GET /api/v1/namespaces/default/configmaps?watch=true&timeoutSeconds=3&resourceVersion=1",
        difference: Difference::Words,
        reason: "without a watch cache it does not say which version is too old; with one it does, as the embedded server",
    },
];
