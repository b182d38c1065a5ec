//! Against a real API server and a real etcd, built from their Go modules: `cargo test --test cluster`.
//!
//! Each test has a control plane of its own, and two run at a time. Logs stay where a test that failed says.

mod certificates;
mod clients;
mod console;
mod control_plane;
mod link;
mod process;
mod questions;
mod recorded;
mod support;

mod access;
mod both;
mod changes;
mod differential;
mod first_sync;
mod informers;
mod kinds;
mod kubectl;
mod outages;
mod rounds;
mod wire;
