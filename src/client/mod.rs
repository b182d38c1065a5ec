//! A [`ListerWatcher`](crate::api::ListerWatcher) that speaks the Kubernetes protocol, over any [`Transport`].

mod answer;
mod config;
mod connection;
mod credentials;
mod frames;
mod http;
mod item;
mod source;
mod transport;

pub use self::config::{AddressError, ConfigError, ConfigOptions, Environment, PluginPolicy};
pub use self::connection::{
    Anonymous, Authority, ClientIdentity, Connection, CredentialError, Credentials, Impersonation,
    ProxyAddress, Scheme, ServerAddress, TlsOptions, Verification,
};
pub use self::credentials::{
    BearerToken, ClientCertificate, CredentialPlugin, PluginOptions, PluginVersion, TokenFile,
};
pub use self::http::{HttpCluster, InvalidAddress};
pub use self::source::KubernetesSource;
pub use self::transport::{BodyStream, Cluster, Method, Request, Response, Transport};
