//! A list is read as serde reads it at once, however its bytes arrive, or not at all.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    // The first byte says how large the pieces are.
    if let Some((size, document)) = input.split_first() {
        kubeflect::client::fuzzing::list(document, usize::from(*size));
    }
});
