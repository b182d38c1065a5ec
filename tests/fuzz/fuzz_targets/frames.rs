//! A watch stream is cut into the same frames however its bytes arrive.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    // The first byte says how large the pieces are.
    if let Some((size, stream)) = input.split_first() {
        kubeflect::client::fuzzing::frames(stream, usize::from(*size));
    }
});
