//! Components together: reflectors against the embedded API server, on a paused clock unless a test says otherwise.

mod bootstrap;
mod kill;
mod objects;
mod program;
mod recovery;
mod runtime;
mod subscribers;
mod support;
mod tidy;
