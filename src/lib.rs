//! Reflects Kubernetes resources into actix applications.
#![warn(clippy::unwrap_used, clippy::panic, clippy::print_stdout, clippy::print_stderr)]

pub mod api;
pub mod cache;
#[cfg(feature = "client")]
pub mod client;
pub mod object;
pub mod reflector;
pub mod supervision;
