//! Keeps actors running: restarts in place, temporary children, groups, and faults to test it all.
//!
//! `actix::Supervisor` loses an actor that panics, and restarts one that stops without ever pausing. Here
//!
//! - [`start`] runs a long-lived actor and restarts it in place, with growing delays: its addresses stay valid;
//! - [`spawn`] runs a temporary actor once and tells how it ended;
//! - a [`Group`] stops its members in reverse order and knows how each has fared;
//! - [`Backoff`] and [`Intensity`] decide how long to wait and when to tell the parent; they are pure;
//! - [`Faults`] make actors panic where a test wants it.

mod backoff;
mod child;
mod contained;
mod exit;
mod faults;
mod group;
mod intensity;
mod policy;
mod restarting;
mod status;
#[cfg(test)]
mod tests;

pub use backoff::{Backoff, BackoffOptions};
pub use child::{Child, spawn, spawn_in};
pub use exit::ExitReason;
pub use faults::Faults;
pub use group::Group;
pub use intensity::{Intensity, IntensityOptions, Verdict};
pub use policy::{Escalation, FirstRestart, RestartOptions, Standing};
pub use restarting::{Hooks, RestartReport, Running, start, start_in};
pub use status::{MemberState, MemberStatus, Restart, StopHandle};
