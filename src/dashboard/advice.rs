use crate::api::ApiError;
use crate::reflector::Condition;

/// What somebody who reads of a condition can do about it.
pub(super) fn advice(condition: &Condition) -> String {
    let Condition { verb, kind, .. } = condition;
    match &condition.error {
        ApiError::Forbidden { .. } => {
            format!("grant the verb {verb} on {kind} to this identity, in a Role or ClusterRole")
        }
        ApiError::Unauthorized { .. } => {
            "check the credentials: the token or certificate is not accepted, it may have expired".to_owned()
        }
        ApiError::NotFound { .. } => {
            format!("install the CustomResourceDefinition of {kind}, or correct its group and version")
        }
        ApiError::NotAllowed { .. } | ApiError::Invalid { .. } => {
            "correct what is reflected: the server refuses this kind, scope or selector".to_owned()
        }
        ApiError::TooManyRequests { .. } => {
            "nothing: the server asked for a pause. If it lasts, look at its priority and fairness settings".to_owned()
        }
        ApiError::Connection(_) | ApiError::Timeout { .. } => {
            "check that the API server is up and can be reached from here".to_owned()
        }
        ApiError::Unavailable { .. } | ApiError::Internal { .. } | ApiError::StorageRead { .. } => {
            "look at the API server and its etcd; this goes on by itself once they answer".to_owned()
        }
        ApiError::Broken { .. } => {
            "report the panic with its text; the request is tried again meanwhile".to_owned()
        }
        ApiError::Older { .. } => {
            "if the storage was restored from a backup: nothing. If not, one API server lags behind".to_owned()
        }
        ApiError::Malformed { .. } | ApiError::Unexpected { .. } => {
            "check what is between here and the API server: the answer is not one of Kubernetes".to_owned()
        }
        ApiError::Expired { .. }
        | ApiError::NotYetServed { .. }
        | ApiError::AlreadyExists { .. }
        | ApiError::Conflict { .. } => "nothing: everything is listed again".to_owned(),
    }
}
