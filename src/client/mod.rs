//! A [`ListerWatcher`](crate::api::ListerWatcher) that speaks the Kubernetes protocol, over any [`Transport`].

mod answer;
mod body;
mod budget;
mod config;
mod connection;
mod credentials;
mod dialer;
mod discovery;
mod exchange;
mod frames;
#[doc(hidden)]
pub mod fuzzing;
mod gzip;
mod headers;
mod http;
mod item;
mod list;
mod objects;
mod options;
mod page;
mod path;
mod proxy;
mod purpose;
mod resolve;
mod scan;
mod source;
mod source_options;
mod stream;
mod tls;
mod tls_error;
mod transport;
mod unverified;
mod warnings;

pub use self::config::{AddressError, ConfigError, ConfigOptions, Environment, PluginPolicy};
pub use self::connection::{
    Anonymous, Authority, ClientIdentity, Connection, CredentialError, Credentials, Impersonation,
    ProxyAddress, Scheme, ServerAddress, TlsOptions, Verification,
};
pub use self::credentials::{
    BearerToken, ClientCertificate, CredentialPlugin, PluginOptions, PluginVersion, TokenFile,
};
pub use self::discovery::{Discovery, GroupProblem, ServedKind};
pub use self::http::HttpCluster;
pub use self::objects::{DeleteOptions, Objects, Patch, Propagation};
pub use self::options::{BudgetOptions, HttpOptions, Keepalive};
pub use self::resolve::UnknownKind;
pub use self::source::KubernetesSource;
pub use self::source_options::SourceOptions;
pub use self::transport::{BodyStream, Cluster, Fairness, Method, Request, Response, Transport};
