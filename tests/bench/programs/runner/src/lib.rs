//! Runs the clients of the side-by-side benchmark, and tells what they cost.

pub mod client;
pub mod figures;
pub mod machine;
pub mod options;
pub mod plot;
pub mod process;
pub mod report;
pub mod round;
pub mod table;
