//! A [`ListerWatcher`](crate::api::ListerWatcher) that speaks the Kubernetes protocol, over any [`Transport`].

mod answer;
mod body;
mod budget;
mod config;
mod connection;
mod credentials;
mod dialer;
mod exchange;
mod frames;
mod gzip;
mod headers;
mod http;
mod item;
mod options;
mod proxy;
mod purpose;
mod source;
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
pub use self::http::{HttpCluster, InvalidAddress};
pub use self::options::{BudgetOptions, HttpOptions, Keepalive};
pub use self::source::KubernetesSource;
pub use self::transport::{BodyStream, Cluster, Fairness, Method, Request, Response, Transport};
