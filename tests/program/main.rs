//! The program as a user runs it: real processes on the real clock, which are waited for with a generous limit.

mod arguments;
mod check;
mod examples;
mod logging;
mod manifests;
mod reload;
mod run;
mod sinks;
mod support;
mod watch;
