//! A [`ListerWatcher`](crate::api::ListerWatcher) that speaks the Kubernetes protocol, over any [`Transport`].

mod transport;

pub use self::transport::{BodyStream, Cluster, Method, Request, Response, Transport};
