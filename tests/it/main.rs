//! Components together: reflectors against the embedded API server, on a paused clock unless a test says otherwise.

mod audit;
mod bootstrap;
mod catalogue;
mod citizenship;
mod faults_api;
mod faults_host;
mod faults_stream;
mod kill;
mod kinds;
mod objects;
mod proxy;
#[path = "../cluster/questions.rs"]
mod questions;
mod recovery;
mod rewind;
mod runtime;
mod silence;
mod storm;
mod subscribers;
mod support;
mod tidy;
mod transcripts;
