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
        question: r#"POST /api/v1/namespaces/default/configmaps {"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"Not A Name"}}"#,
        difference: Difference::Words,
        reason: "other words",
    },
    Known {
        group: Group::Writes,
        question: r#"PUT /api/v1/namespaces/default/configmaps/a {"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","resourceVersion":"abc"}}"#,
        difference: Difference::Words,
        reason: "other words",
    },
    Known {
        group: Group::Writes,
        question: r#"POST /api/v1/namespaces/none/configmaps {"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}"#,
        difference: Difference::Meaning,
        reason: "a namespace has to exist before something is put there: 404, of `namespaces`",
    },
    Known {
        group: Group::Writes,
        question: r#"POST /api/v1/namespaces/default/configmaps {"apiVersion":"v1","kind":"ConfigMap","metadata":{"labels":{},"name":"e"}}"#,
        difference: Difference::Meaning,
        reason: "what is empty is not kept",
    },
    Known {
        group: Group::Writes,
        question: "PATCH /api/v1/namespaces/default/configmaps/a {}",
        difference: Difference::Words,
        reason: "other words",
    },
    Known {
        group: Group::Writes,
        question: r#"DELETE /api/v1/namespaces/default/configmaps/a {"preconditions":{"uid":"other"}}"#,
        difference: Difference::Words,
        reason: "other words",
    },
    Known {
        group: Group::Lists,
        question: "GET /api/v1/namespaces/default/configmaps?labelSelector=a in (b",
        difference: Difference::Words,
        reason: "its parser says what it found",
    },
    Known {
        group: Group::Lists,
        question: "GET /api/v1/namespaces/default/configmaps?resourceVersion=abc",
        difference: Difference::Words,
        reason: "speaks of its parser of numbers",
    },
    Known {
        group: Group::Lists,
        question: "GET /api/v1/namespaces/default/configmaps?continue=nonsense",
        difference: Difference::Words,
        reason: "speaks of its parser of JSON",
    },
    Known {
        group: Group::Lists,
        question: "GET /api/v1/namespaces/default/configmaps?continue=nonsense&resourceVersion=7",
        difference: Difference::Words,
        reason: "reads the token before it minds the version",
    },
    Known {
        group: Group::Writes,
        question: "POST /api/v1/namespaces/default/configmaps []",
        difference: Difference::Words,
        reason: "speaks of its parser of JSON",
    },
    Known {
        group: Group::Forgotten,
        question: "GET /api/v1/namespaces/default/configmaps?watch=true&timeoutSeconds=1&resourceVersion={version}",
        difference: Difference::Words,
        reason: "without a watch cache it does not say which version is too old; with one it does, as the embedded server",
    },
    Known {
        group: Group::Forgotten,
        question: "GET /api/v1/namespaces/default/configmaps?watch=true&timeoutSeconds=1&resourceVersion=1",
        difference: Difference::Words,
        reason: "without a watch cache it does not say which version is too old; with one it does, as the embedded server",
    },
];
