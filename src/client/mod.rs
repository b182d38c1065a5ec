//! A [`ListerWatcher`](crate::api::ListerWatcher) that speaks the Kubernetes protocol, over any [`Transport`].

mod answer;
mod connection;
mod discovery;
mod frames;
#[doc(hidden)]
pub mod fuzzing;
mod http;
mod item;
mod list;
mod objects;
mod options;
mod page;
mod path;
mod resolve;
mod scan;
mod source;
mod transport;

pub use self::connection::{
    Anonymous, Authority, ClientIdentity, Connection, CredentialError, Credentials, Impersonation,
    ProxyAddress, Scheme, ServerAddress, TlsOptions, Verification,
};
pub use self::discovery::{Discovery, GroupProblem, ServedKind};
pub use self::http::{HttpCluster, InvalidAddress};
pub use self::objects::{DeleteOptions, Objects, Patch, Propagation};
pub use self::options::SourceOptions;
pub use self::resolve::UnknownKind;
pub use self::source::KubernetesSource;
pub use self::transport::{BodyStream, Cluster, Method, Request, Response, Transport};
