//! Supervision against actix itself, on a paused clock.

use std::panic;
use std::sync::Once;

/// Panics a test asks for, by their text.
const EXPECTED: [&str; 2] = ["expected", "planned fault"];

/// Prints no report for panics that are part of a test.
pub(super) fn silence_expected_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let report = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            let is_expected = info
                .payload_as_str()
                .is_some_and(|text| EXPECTED.iter().any(|e| text.starts_with(e)));
            if !is_expected {
                report(info);
            }
        }));
    });
}
