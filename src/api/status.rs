use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::ApiError;

/// What an API server says instead of doing as asked.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Status {
    /// `Failure`.
    #[serde(skip_serializing_if = "String::is_empty", deserialize_with = "null_as_default")]
    pub status: String,
    /// For people.
    #[serde(skip_serializing_if = "String::is_empty", deserialize_with = "null_as_default")]
    pub message: String,
    /// For programs: `Expired`, `Forbidden`.
    #[serde(skip_serializing_if = "String::is_empty", deserialize_with = "null_as_default")]
    pub reason: String,
    /// More for programs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details: Option<StatusDetails>,
    /// The HTTP status it stands for.
    #[serde(deserialize_with = "null_as_default")]
    pub code: u16,
}

/// What a [`Status`] is about.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct StatusDetails {
    /// The object.
    #[serde(skip_serializing_if = "String::is_empty", deserialize_with = "null_as_default")]
    pub name: String,
    /// The group of its kind.
    #[serde(skip_serializing_if = "String::is_empty", deserialize_with = "null_as_default")]
    pub group: String,
    /// Its kind or resource.
    #[serde(skip_serializing_if = "String::is_empty", deserialize_with = "null_as_default")]
    pub kind: String,
    /// Single reasons.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_as_default")]
    pub causes: Vec<StatusCause>,
    /// When to ask again.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "not_negative")]
    pub retry_after_seconds: Option<u64>,
}

/// One of the reasons for a [`Status`].
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct StatusCause {
    /// For programs.
    #[serde(skip_serializing_if = "String::is_empty", deserialize_with = "null_as_default")]
    pub reason: String,
    /// For people.
    #[serde(skip_serializing_if = "String::is_empty", deserialize_with = "null_as_default")]
    pub message: String,
    /// The field of the request.
    #[serde(skip_serializing_if = "String::is_empty", deserialize_with = "null_as_default")]
    pub field: String,
}

/// How kube-apiserver refuses to watch from what is no version to it: as an internal error.
const BAD_VERSION: &str = "resourceVersion: Invalid value";
const TOO_LARGE_VERSION: &str = "Too large resource version";

impl Status {
    /// Classifies by reason, then by code. An unknown reason counts as none. `retry_after` is what the header says; it
    /// counts more than the details.
    pub fn into_error(self, retry_after: Option<Duration>) -> ApiError {
        let stated = self.details.as_ref().and_then(|details| details.retry_after_seconds);
        let retry_after = retry_after.or(stated.map(Duration::from_secs));
        if self.is_too_large_version() {
            return ApiError::NotYetServed { retry_after };
        }
        let message = self.message;
        if self.code == 500 && message.starts_with(BAD_VERSION) {
            return ApiError::Expired { message };
        }
        match (self.reason.as_str(), self.code) {
            ("Expired" | "Gone", _) => ApiError::Expired { message },
            ("TooManyRequests", _) => ApiError::TooManyRequests { retry_after },
            ("Unauthorized", _) => ApiError::Unauthorized { message },
            ("Forbidden", _) => ApiError::Forbidden { message },
            ("NotFound", _) => ApiError::NotFound { message },
            ("MethodNotAllowed", _) => ApiError::NotAllowed { message },
            ("AlreadyExists", _) => ApiError::AlreadyExists { message },
            ("Conflict", _) => ApiError::Conflict { message },
            (
                "Invalid"
                | "BadRequest"
                | "NotAcceptable"
                | "UnsupportedMediaType"
                | "RequestEntityTooLarge",
                _,
            ) => ApiError::Invalid { message },
            ("StorageReadError" | "StoreReadError", _) => ApiError::StorageRead { message },
            ("ServiceUnavailable" | "ServerTimeout" | "Timeout", code) => {
                let code = if code == 0 { 503 } else { code };
                ApiError::Unavailable { code, message, retry_after }
            }
            // Inside a stream there is no HTTP status to fall back to.
            ("InternalError", _) | (_, 0) => ApiError::Internal { message, retry_after },
            (_, code) => ApiError::from_code(code, message, retry_after),
        }
    }

    fn is_too_large_version(&self) -> bool {
        let causes = self.details.iter().flat_map(|details| &details.causes);
        let mut causes = causes.filter(|cause| {
            cause.reason == "ResourceVersionTooLarge" || cause.message == TOO_LARGE_VERSION
        });
        causes.next().is_some() || (self.code == 504 && self.message.contains(TOO_LARGE_VERSION))
    }
}

/// Go writes an empty list as null.
pub(crate) fn null_as_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: serde::Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// What a server got wrong here must not cost the rest of its answer.
fn not_negative<'de, D>(deserializer: D) -> Result<Option<u64>, D::Error>
where
    D: serde::Deserializer<'de>,
{
    let seconds: Option<serde_json::Number> = Option::deserialize(deserializer)?;
    Ok(seconds.and_then(|seconds| seconds.as_u64()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(json: &str) -> ApiError {
        serde_json::from_str::<Status>(json).unwrap().into_error(None)
    }

    #[test]
    fn an_expired_version_is_recognised_in_all_its_forms() {
        for json in [
            r#"{"reason":"Expired","code":410}"#,
            r#"{"reason":"Gone","code":410}"#,
            r#"{"code":410}"#,
            r#"{"reason":"Novel","code":410}"#,
            r#"{"code":500,"message":"resourceVersion: Invalid value: \"x\": strconv.ParseUint"}"#,
        ] {
            assert!(matches!(error(json), ApiError::Expired { .. }), "{json}");
        }
    }

    #[test]
    fn a_version_from_the_future_is_recognised_in_its_three_historical_forms() {
        for json in [
            r#"{"reason":"Timeout","code":504,"details":{"causes":[{"reason":"ResourceVersionTooLarge"}]}}"#,
            r#"{"reason":"Timeout","code":504,"details":{"causes":[{"message":"Too large resource version"}]}}"#,
            r#"{"reason":"Timeout","code":504,"message":"Timeout: Too large resource version: 9, current: 5"}"#,
        ] {
            assert!(matches!(error(json), ApiError::NotYetServed { .. }), "{json}");
        }
    }

    #[test]
    fn a_known_reason_counts_more_than_the_code() {
        let json = r#"{"reason":"StoreReadError","code":500}"#;
        assert!(matches!(error(json), ApiError::StorageRead { .. }));
        assert!(matches!(error(r#"{"code":500}"#), ApiError::Internal { .. }));
    }

    #[test]
    fn the_wait_a_server_asks_for_is_kept_and_clamped() {
        let json = r#"{"reason":"TooManyRequests","details":{"retryAfterSeconds":7}}"#;
        assert_eq!(error(json).retry_after(), Some(Duration::from_secs(7)));
        let json =
            r#"{"reason":"TooManyRequests","details":{"retryAfterSeconds":86400,"causes":null}}"#;
        assert_eq!(error(json).retry_after(), Some(Duration::from_secs(300)));
    }
}
