use bytes::{Bytes, BytesMut};
use memchr::memchr2;

use crate::api::ApiError;

/// Cuts a stream of bytes into JSON objects.
///
/// Values, not lines: a frame may span lines, several may share one, and the bytes may arrive in any pieces.
#[derive(Debug)]
pub(super) struct Frames {
    buffer: BytesMut,
    /// How far `buffer` was looked at. The fields below describe this place.
    scanned: usize,
    depth: usize,
    inside: Inside,
    /// No frame may be larger.
    cap: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Inside {
    Structure,
    Text,
    /// Right after a backslash.
    Escape,
}

impl Frames {
    pub(super) fn new(cap: usize) -> Self {
        Self { buffer: BytesMut::new(), scanned: 0, depth: 0, inside: Inside::Structure, cap }
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// The next whole frame; none until more bytes come.
    pub(super) fn next(&mut self) -> Option<Result<Bytes, ApiError>> {
        while let Some(&byte) = self.buffer.get(self.scanned) {
            match (self.inside, byte) {
                (Inside::Text, _) => {
                    let Some(found) = memchr2(b'"', b'\\', &self.buffer[self.scanned..]) else {
                        self.scanned = self.buffer.len();
                        break;
                    };
                    self.scanned += found;
                    let quote = self.buffer[self.scanned] == b'"';
                    self.inside = if quote { Inside::Structure } else { Inside::Escape };
                }
                (Inside::Escape, _) => self.inside = Inside::Text,
                (Inside::Structure, b'"') if self.depth > 0 => self.inside = Inside::Text,
                (Inside::Structure, b'{' | b'[') if self.depth > 0 || byte == b'{' => {
                    self.depth += 1;
                }
                (Inside::Structure, b'}' | b']') if self.depth > 0 => {
                    self.depth -= 1;
                    if self.depth == 0 {
                        let frame = self.buffer.split_to(self.scanned + 1).freeze();
                        self.scanned = 0;
                        return Some(self.within_cap(frame.len()).map(|()| frame));
                    }
                }
                (Inside::Structure, _) if self.depth > 0 => {}
                // Blanks, or a byte order mark.
                (Inside::Structure, b' ' | b'\t' | b'\r' | b'\n' | 0xef | 0xbb | 0xbf) => {
                    // Between frames: nothing to keep.
                    let _blank = self.buffer.split_to(self.scanned + 1);
                    self.scanned = 0;
                    continue;
                }
                (Inside::Structure, _) => {
                    let problem = "the watch stream holds something that is not a JSON object";
                    return Some(Err(ApiError::malformed(problem)));
                }
            }
            self.scanned += 1;
        }
        self.within_cap(self.buffer.len()).err().map(Err)
    }

    fn within_cap(&self, length: usize) -> Result<(), ApiError> {
        if length <= self.cap {
            return Ok(());
        }
        Err(ApiError::malformed(format!("a watch event is larger than {} bytes", self.cap)))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::test_runner::RngSeed;

    use super::*;

    /// Feeds `text` in pieces of `size` bytes.
    fn frames(text: &str, size: usize) -> Vec<String> {
        let mut frames = Frames::new(1024);
        let mut found = Vec::new();
        for piece in text.as_bytes().chunks(size) {
            frames.push(piece);
            while let Some(frame) = frames.next() {
                match frame {
                    Ok(frame) => found.push(String::from_utf8(frame.to_vec()).unwrap()),
                    Err(error) => return vec![error.to_string()],
                }
            }
        }
        found
    }

    #[test]
    fn frames_are_values_not_lines() {
        let text = "{\"a\":1}\n\r\n {\"b\":\n [2,{}]\n}{\"c\":3}\n";
        for size in 1..text.len() {
            assert_eq!(
                frames(text, size),
                ["{\"a\":1}", "{\"b\":\n [2,{}]\n}", "{\"c\":3}"],
                "{size}"
            );
        }
    }

    #[test]
    fn brackets_and_quotes_inside_texts_mean_nothing() {
        let text = r#"{"a":"}{\"]\\"}{"b":"\\\""}"#;
        for size in 1..text.len() {
            assert_eq!(frames(text, size), [r#"{"a":"}{\"]\\"}"#, r#"{"b":"\\\""}"#], "{size}");
        }
    }

    #[test]
    fn half_a_frame_is_not_a_frame() {
        assert!(frames(r#"{"a":{"b":1}"#, 3).is_empty());
    }

    #[test]
    fn what_is_no_object_is_an_error() {
        for text in ["null", "[]", "<html>", "\"text\"", "}"] {
            assert!(frames(text, 2)[0].contains("not a JSON object"), "{text}");
        }
    }

    #[test]
    fn a_frame_beyond_the_cap_is_an_error_before_it_is_whole() {
        let text = format!("{{\"a\":\"{}", "x".repeat(2000));
        assert!(frames(&text, 100)[0].contains("larger than 1024 bytes"));
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 300, rng_seed: RngSeed::Fixed(1), failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn frames_split_anywhere_decode_alike(
            values in prop::collection::vec(("[a-z\"\\\\{}\\[\\]\n ]{0,12}", 0..9_u8), 0..6),
            size in 1..40_usize,
            separator in prop::sample::select(vec!["", "\n", "\r\n", " \n\n"]),
        ) {
            let texts: Vec<String> = values
                .iter()
                .map(|(text, number)| serde_json::json!({ "text": text, "list": [number, {"n": text}] }).to_string())
                .collect();
            let stream: String = texts.iter().map(|text| format!("{text}{separator}")).collect();
            prop_assert_eq!(frames(&stream, size), texts);
        }
    }
}
