//! Components together: reflectors against the embedded API server, on a paused clock unless a test says otherwise.

mod bootstrap;
mod catalogue;
mod faults_api;
mod faults_host;
mod faults_stream;
mod kill;
mod objects;
mod program;
mod proxy;
mod recovery;
mod runtime;
mod subscribers;
mod support;
mod tidy;
