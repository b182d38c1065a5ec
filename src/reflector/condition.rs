use std::fmt;

use tokio::time::Instant;

use crate::api::{ApiError, Verb};
use crate::object::Kind;

/// What stands in the way of a reflector: which request fails, since when, and why. Match on
/// [`error`](Self::error).
///
/// ```
/// use k8s_openapi::api::core::v1::Pod;
/// use kubeflect::Options;
/// use kubeflect::api::ApiError;
///
/// let options = Options::<Pod>::all().on_error(|condition| {
///     if let ApiError::Forbidden { .. } = condition.error {
///         eprintln!("grant me the right to {} {}", condition.verb, condition.kind);
///     }
/// });
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Condition {
    /// What was asked for: the verb an RBAC rule has to name.
    pub verb: Verb,
    /// Of which kind.
    pub kind: Kind,
    /// In which namespace, unless in all.
    pub namespace: Option<String>,
    /// What came back.
    pub error: ApiError,
    /// When it began: nothing worked since.
    pub since: Instant,
    /// How often it was tried since.
    pub attempts: u32,
}

impl Condition {
    /// Whether it will not pass by itself: somebody has to grant a right, install a kind, or mend a configuration.
    pub fn needs_help(&self) -> bool {
        self.error.needs_help()
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "can not {} {}", self.verb, self.kind)?;
        if let Some(namespace) = &self.namespace {
            write!(f, " in namespace {namespace}")?;
        }
        write!(f, ": {}", self.error)
    }
}

impl std::error::Error for Condition {
    /// What is behind the error: the error itself is told already.
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.error.source()
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Pod;

    use super::*;
    use crate::object::StaticKind as _;

    #[test]
    fn a_condition_says_which_right_is_missing_where() {
        let mut condition = Condition {
            verb: Verb::Watch,
            kind: Pod::static_kind(),
            namespace: Some("web".to_owned()),
            error: ApiError::from_code(403, "RBAC says no".to_owned(), None),
            since: Instant::now(),
            attempts: 1,
        };
        assert_eq!(
            condition.to_string(),
            "can not watch pods in namespace web: not allowed: RBAC says no"
        );
        condition.namespace = None;
        condition.error = ApiError::connection(std::io::Error::other("reset"));
        assert_eq!(condition.to_string(), "can not watch pods: connection failed");
        assert!(std::error::Error::source(&condition).is_some_and(|it| it.to_string() == "reset"));
    }
}
