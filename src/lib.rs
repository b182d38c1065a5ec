//! Reflects Kubernetes resources into actix applications.
#![warn(clippy::unwrap_used, clippy::panic, clippy::print_stdout, clippy::print_stderr)]

pub mod api;
#[cfg(feature = "client")]
pub mod client;
#[cfg(feature = "embedded")]
pub mod embedded;
pub mod object;
