use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::object::ResourceVersion;

/// Why the API server did not do as asked.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum ApiError {
    /// 410: the server forgot the version asked for.
    #[error("resource version expired{}", detail(.message))]
    Expired {
        /// As the server put it.
        message: String,
    },

    /// 504: the server has not reached the version asked for.
    #[error("resource version not served yet")]
    NotYetServed {
        /// What the server suggests.
        retry_after: Option<Duration>,
    },

    /// 429: asked too often, or too many do.
    #[error("too many requests")]
    TooManyRequests {
        /// What the server suggests.
        retry_after: Option<Duration>,
    },

    /// 502, 503, 504, and 500 when the storage is out of reach.
    #[error("server unavailable (HTTP {code}){}", detail(.message))]
    Unavailable {
        /// The HTTP status.
        code: u16,
        /// As the server put it.
        message: String,
        /// What the server suggests.
        retry_after: Option<Duration>,
    },

    /// 500.
    #[error("internal server error{}", detail(.message))]
    Internal {
        /// As the server put it.
        message: String,
        /// What the server suggests.
        retry_after: Option<Duration>,
    },

    /// 500: an object was unreadable in storage and removed by force; no deletion will be reported.
    #[error("server can not read an object of its storage{}", detail(.message))]
    StorageRead {
        /// As the server put it.
        message: String,
    },

    /// 401: the credentials were not accepted.
    #[error("not authenticated{}", detail(.message))]
    Unauthorized {
        /// As the server put it.
        message: String,
    },

    /// 403: the credentials are good, the right is missing. It may be granted later.
    #[error("not allowed{}", detail(.message))]
    Forbidden {
        /// As the server put it: who may not do what.
        message: String,
    },

    /// 404: the server does not serve this; a custom resource may appear later.
    #[error("not served here{}", detail(.message))]
    NotFound {
        /// As the server put it.
        message: String,
    },

    /// 405: the resource can not be listed or watched.
    #[error("not possible for this resource{}", detail(.message))]
    NotAllowed {
        /// As the server put it.
        message: String,
    },

    /// 400, 406, 413, 415, 422: the server does not understand the request.
    #[error("request not valid{}", detail(.message))]
    Invalid {
        /// As the server put it.
        message: String,
    },

    /// 409: an object of this name is there already.
    #[error("exists already{}", detail(.message))]
    AlreadyExists {
        /// As the server put it.
        message: String,
    },

    /// 409: the object changed meanwhile, or is not the one that was meant.
    #[error("conflict{}", detail(.message))]
    Conflict {
        /// As the server put it.
        message: String,
    },

    /// Any other status, redirects among them: they are not followed.
    #[error("unexpected answer (HTTP {code}){}", detail(.message))]
    Unexpected {
        /// The HTTP status.
        code: u16,
        /// As the server put it.
        message: String,
    },

    /// No answer came in time.
    #[error("no answer within {waited:?}")]
    Timeout {
        /// For how long we waited.
        waited: Duration,
    },

    /// No answer, or half of one.
    #[error("connection failed")]
    Connection(#[source] Arc<dyn std::error::Error + Send + Sync>),

    /// Our own lister or watcher panicked over the answer.
    #[error("lister or watcher broke down: {panic}")]
    Broken {
        /// The text of the panic.
        panic: String,
    },

    /// The server answers with a version before one it told us: a replica that lies, or a storage that was restored.
    #[error("the server is at version {answered}, before {cached} which it told before")]
    Older {
        /// The version of the answer.
        answered: ResourceVersion,
        /// The version the cache has.
        cached: ResourceVersion,
    },

    /// An answer that is not what the protocol says.
    #[error("answer not understood: {problem}")]
    Malformed {
        /// What is wrong with it.
        problem: String,
    },
}

/// How a reflector goes on after an [`ApiError`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recovery {
    /// The position is good: back off, ask the same again.
    Retry,
    /// The position is lost: list again, not older than it.
    Relist,
    /// The server can not serve our version: list what is newest there, even if that is older.
    ReadNewest,
    /// Only a change of rights or credentials helps: ask the same again, slowly, and say so.
    Wait,
    /// Only a change of the server helps: list again, slowly, and say so. What we know may be void by then.
    WaitAndRelist,
    /// Only another configuration helps: list again, as rarely as can be, and say so.
    Mend,
}

impl ApiError {
    /// What to do next. The only place that decides.
    pub fn recovery(&self) -> Recovery {
        match self {
            Self::TooManyRequests { .. }
            | Self::Unavailable { .. }
            | Self::Internal { .. }
            | Self::Timeout { .. }
            | Self::Connection(_)
            | Self::Malformed { .. }
            | Self::Broken { .. }
            | Self::Unexpected { .. } => Recovery::Retry,
            Self::Expired { .. } | Self::StorageRead { .. } => Recovery::Relist,
            Self::NotYetServed { .. } | Self::Older { .. } => Recovery::ReadNewest,
            Self::Unauthorized { .. } | Self::Forbidden { .. } => Recovery::Wait,
            Self::NotFound { .. } | Self::NotAllowed { .. } => Recovery::WaitAndRelist,
            Self::Invalid { .. } | Self::AlreadyExists { .. } | Self::Conflict { .. } => {
                Recovery::Mend
            }
        }
    }

    /// Whether it will not pass by itself: somebody has to grant a right, install a kind, or mend a configuration.
    pub fn needs_help(&self) -> bool {
        matches!(self.recovery(), Recovery::Wait | Recovery::WaitAndRelist | Recovery::Mend)
    }

    /// How long the server asks us to wait at least; no more than five minutes.
    pub fn retry_after(&self) -> Option<Duration> {
        // A larger figure is a mistake.
        const LONGEST: Duration = Duration::from_secs(300);
        match self {
            Self::NotYetServed { retry_after }
            | Self::TooManyRequests { retry_after }
            | Self::Unavailable { retry_after, .. }
            | Self::Internal { retry_after, .. } => retry_after.map(|delay| delay.min(LONGEST)),
            _ => None,
        }
    }

    /// Classifies an answer of which only the HTTP status means something.
    pub fn from_code(code: u16, message: String, retry_after: Option<Duration>) -> Self {
        match code {
            410 => Self::Expired { message },
            429 => Self::TooManyRequests { retry_after },
            401 => Self::Unauthorized { message },
            403 => Self::Forbidden { message },
            404 => Self::NotFound { message },
            405 => Self::NotAllowed { message },
            409 => Self::Conflict { message },
            400 | 406 | 413 | 415 | 422 => Self::Invalid { message },
            500 => Self::Internal { message, retry_after },
            502..=504 => Self::Unavailable { code, message, retry_after },
            _ => Self::Unexpected { code, message },
        }
    }

    /// An answer that breaks the protocol.
    pub fn malformed(problem: impl Into<String>) -> Self {
        Self::Malformed { problem: problem.into() }
    }

    /// A connection that could not be made, or broke.
    pub fn connection(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Connection(Arc::from(error.into()))
    }
}

/// `: message`, cut to a readable length, or nothing.
fn detail(message: &str) -> impl fmt::Display + '_ {
    struct Detail<'a>(&'a str);

    impl fmt::Display for Detail<'_> {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            const LONGEST: usize = 300;
            let message = self.0.trim();
            if message.is_empty() {
                return Ok(());
            }
            match message.char_indices().nth(LONGEST) {
                Some((end, _)) => write!(f, ": {}…", &message[..end]),
                None => write!(f, ": {message}"),
            }
        }
    }
    Detail(message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recovery(code: u16) -> Recovery {
        ApiError::from_code(code, String::new(), None).recovery()
    }

    #[test]
    fn an_expired_version_relists() {
        assert_eq!(recovery(410), Recovery::Relist);
    }

    #[test]
    fn overload_keeps_the_position() {
        for code in [429, 500, 502, 503, 504, 302] {
            assert_eq!(recovery(code), Recovery::Retry, "{code}");
        }
    }

    #[test]
    fn missing_rights_and_kinds_are_waited_for() {
        for code in [401, 403] {
            assert_eq!(recovery(code), Recovery::Wait, "{code}");
        }
        for code in [404, 405] {
            assert_eq!(recovery(code), Recovery::WaitAndRelist, "{code}");
        }
        for code in [400, 406, 409, 413, 415, 422] {
            assert_eq!(recovery(code), Recovery::Mend, "{code}");
        }
    }

    #[test]
    fn an_error_says_what_happened_in_one_line() {
        let message = "pods is forbidden: User \"x\" cannot list resource \"pods\"".to_owned();
        assert_eq!(
            ApiError::from_code(403, message, None).to_string(),
            r#"not allowed: pods is forbidden: User "x" cannot list resource "pods""#
        );
        let page = "x".repeat(5000);
        assert!(ApiError::from_code(502, page, None).to_string().len() < 400);
    }
}
