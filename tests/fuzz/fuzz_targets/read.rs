//! What serde reads of JSON is what we read of it.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| kubeflect::client::fuzzing::read(input));
