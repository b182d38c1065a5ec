//! A [`ListerWatcher`](crate::api::ListerWatcher) that speaks the Kubernetes protocol, over any [`Transport`].

mod access;
mod answer;
mod beginning;
mod budget;
mod budgeted;
mod config;
mod connection;
mod credentials;
mod discovery;
mod events;
mod frames;
#[doc(hidden)]
pub mod fuzzing;
mod http;
mod item;
mod list;
mod objects;
mod page;
mod path;
mod purpose;
mod resolve;
mod slice;
mod source;
mod source_options;
mod transport;

pub use self::access::Access;
pub use self::budget::BudgetOptions;
pub use self::budgeted::Budgeted;
pub use self::config::{AddressError, ConfigError, ConfigOptions, Environment, PluginPolicy};
pub use self::connection::{
    Anonymous, Authority, ClientIdentity, Connection, CredentialError, Credentials, Impersonation,
    ProxyAddress, Scheme, ServerAddress, TlsOptions, Verification,
};
pub use self::credentials::{
    BearerToken, ClientCertificate, CredentialPlugin, OidcOptions, OidcToken, PluginOptions,
    PluginVersion, TokenFile,
};
pub use self::discovery::{Discovery, GroupProblem, ServedKind};
pub use self::http::{HttpCluster, HttpOptions, Keepalive};
pub use self::objects::{DeleteOptions, Objects, Patch, Propagation};
pub use self::resolve::UnknownKind;
pub use self::source::KubernetesSource;
pub use self::source_options::SourceOptions;
pub use self::transport::{BodyStream, Cluster, Fairness, Method, Request, Response, Transport};
