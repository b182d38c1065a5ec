use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

/// So many texts are remembered; those after them are not shown.
const REMEMBERED: usize = 256;
/// A text is cut to this length.
const LONGEST: usize = 512;

/// The warnings a server gave in its headers. Each text is shown once.
#[derive(Debug, Default)]
pub(super) struct Warnings {
    seen: Mutex<BTreeSet<String>>,
}

impl Warnings {
    /// Logs what is new in a `Warning` header.
    pub(super) fn log(&self, header: &str) {
        for text in self.new_in(header) {
            tracing::warn!(warning = %text, "the API server warns");
        }
    }

    fn new_in(&self, header: &str) -> Vec<String> {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let mut new = Vec::new();
        for text in texts(header) {
            if seen.len() < REMEMBERED && seen.insert(text.clone()) {
                new.push(text);
            }
        }
        new
    }
}

/// The texts in `299 - "text", 299 agent "another \"text\""`; other codes are between proxies.
fn texts(header: &str) -> Vec<String> {
    let mut texts = Vec::new();
    let mut rest = header;
    while let Some((before, quoted)) = rest.split_once('"') {
        let is_warning = before.trim_start_matches([',', ' ', '\t']).starts_with("299 ");
        let mut text = String::new();
        let mut end = quoted.len();
        let mut escaped = false;
        for (at, letter) in quoted.char_indices() {
            match letter {
                _ if escaped => {
                    text.push(letter);
                    escaped = false;
                }
                '\\' => escaped = true,
                '"' => {
                    end = at + 1;
                    break;
                }
                _ => text.push(letter),
            }
        }
        if is_warning {
            texts.push(text.chars().filter(|letter| !letter.is_control()).take(LONGEST).collect());
        }
        rest = &quoted[end..];
    }
    texts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_holds_any_number_of_texts() {
        assert_eq!(
            texts(
                r#"299 - "a \"b\", c", 299 kube "d" "Mon, 01 Jan 2026 00:00:00 GMT", 110 - "stale""#
            ),
            ["a \"b\", c", "d"]
        );
        for broken in ["", "299", "299 - \"open \\", "\"", "299 - "] {
            assert!(texts(broken).len() <= 1, "{broken}");
        }
    }

    #[test]
    fn each_text_is_new_once_and_not_for_ever_many_are() {
        let warnings = Warnings::default();
        assert_eq!(warnings.new_in(r#"299 - "old version""#), ["old version"]);
        assert!(warnings.new_in(r#"299 - "old version""#).is_empty());
        let new: usize = (0..1000).map(|n| warnings.new_in(&format!("299 - \"{n}\"")).len()).sum();
        assert_eq!(new, REMEMBERED - 1);
    }
}
