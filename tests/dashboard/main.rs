//! The dashboard, route by route: what it answers, to whom, and what it costs.

mod metrics;
mod mounting;
mod objects;
mod probes;
mod protections;
mod status;
mod stream;
mod support;
