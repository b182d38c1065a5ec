//! Reflects Kubernetes resources into actix applications.
#![warn(clippy::unwrap_used, clippy::panic, clippy::print_stdout, clippy::print_stderr)]

pub mod api;
pub mod cache;
#[cfg(feature = "client")]
pub mod client;
#[cfg(feature = "embedded")]
pub mod embedded;
pub mod object;
pub mod reflector;
pub mod runtime;
pub mod supervision;

pub use k8s_openapi;
pub use kube_core;

pub use self::object::{Kind, ObjectKey, Resource, ResourceVersion};
pub use self::reflector::{
    Cause, Options, Reflector, ResourceEvent, ResourceEvents, ResourceSnapshot, SubscribeOptions,
    Subscription,
};
pub use self::runtime::{Error, Result, Runtime, RuntimeOptions, Threads};
