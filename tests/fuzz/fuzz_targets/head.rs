//! The head of an object is what serde reads of it, and what is pruned is all that goes.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| kubeflect::client::fuzzing::head(input));
