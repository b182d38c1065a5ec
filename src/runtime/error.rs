use crate::api::ApiError;
use crate::cache::UnknownIndex;
use crate::reflector::{AddIndexError, InvalidOptions, NotSynced, Stopped};

/// What can go wrong between an application and its reflectors.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The options can not be meant.
    #[error(transparent)]
    Options(#[from] InvalidOptions),
    /// A cache is not there.
    #[error(transparent)]
    NotSynced(#[from] NotSynced),
    /// It is not known where the API server is, or how to be let in.
    #[cfg(feature = "client")]
    #[error(transparent)]
    Config(#[from] crate::client::ConfigError),
    /// The API server can not be used at all.
    #[error("can not use the API server")]
    Api(#[from] ApiError),
    /// The reflector has been stopped.
    #[error(transparent)]
    ReflectorStopped(#[from] Stopped),
    /// The runtime has been stopped.
    #[error("the runtime has been stopped")]
    Stopped,
    /// The arbiters of the runtime were ended by somebody else: nothing is reflected any more.
    #[error("the threads of the runtime have ended: who stopped the actix system?")]
    ThreadsEnded,
    /// The runtime was made without a cluster.
    #[error(
        "this runtime has no cluster: use Runtime::new, or Runtime::reflect_from with a source of your own"
    )]
    NoCluster,
    /// There is no index of this name.
    #[error(transparent)]
    UnknownIndex(#[from] UnknownIndex),
    /// An index could not be added.
    #[error(transparent)]
    AddIndex(#[from] AddIndexError),
    /// The operating system refused something.
    #[error("{doing}")]
    Io {
        /// What was tried.
        doing: &'static str,
        /// Its answer.
        #[source]
        error: std::io::Error,
    },
}

/// A result with kubeflect's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;
