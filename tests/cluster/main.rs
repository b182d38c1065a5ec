//! Against a real API server and a real etcd, built from their Go modules: `cargo test --test cluster`.
//!
//! The scenarios are the same code for both servers: `cargo test --test cluster embedded::` runs them without Go. Control
//! planes are shared, or lent to one test after the other. Logs stay where a test that failed says.

mod certificates;
mod clients;
mod console;
mod contents;
mod control_plane;
mod folds;
mod leases;
mod link;
mod process;
mod questions;
mod recorded;
mod server;
mod support;
mod users;

mod access;
mod changes;
mod crowds;
mod differential;
mod first_sync;
mod forgotten;
mod informers;
mod kinds;
mod kubectl;
mod namespaces;
mod one_server;
mod outages;
mod rounds;
mod wire;
