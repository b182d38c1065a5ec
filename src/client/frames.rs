use std::ops::Deref;

use bytes::Bytes;
use memchr::memchr;

use crate::api::ApiError;
use crate::object::json::{Unfinished, ValueScan};

/// Cuts a stream of bytes into JSON objects.
///
/// Values, not lines: a frame may span lines, several may share one, and the bytes may arrive in any pieces. But servers
/// end each with a line, which is found at once: only where that is not the end of a value are brackets counted.
#[derive(Debug)]
pub(super) struct Frames {
    buffer: Buffer,
    /// What comes before in `buffer` was taken out.
    start: usize,
    /// How far `buffer` was looked at.
    scanned: usize,
    search: Search,
    /// No frame may be larger.
    cap: usize,
}

/// Bytes of which frames are made.
#[derive(Debug)]
enum Buffer {
    /// A piece as it came. Servers send an event as a piece, and then it need not be copied.
    Piece(Bytes),
    /// The rest of a piece, and what came after it.
    Joined(Vec<u8>),
}

/// How the end of a frame is looked for.
#[derive(Debug, Clone, Copy)]
enum Search {
    /// Its beginning has not come yet.
    Between { follows_another: bool },
    /// As the end of a line.
    Line,
    /// As the end of a value.
    Value(ValueScan),
}

/// What was made of bytes that begin with a frame.
#[derive(Debug)]
pub(super) enum Attempt<T> {
    /// The frame is so long.
    Read { value: T, length: usize },
    /// It is not whole, or wrong.
    Failed(T),
}

impl Frames {
    pub(super) fn new(cap: usize) -> Self {
        let search = Search::Between { follows_another: false };
        Self { buffer: Buffer::Piece(Bytes::new()), start: 0, scanned: 0, search, cap }
    }

    pub(super) fn push(&mut self, piece: Bytes) {
        match &mut self.buffer {
            buffer if self.start == buffer.len() => *buffer = Buffer::Piece(piece),
            Buffer::Piece(before) => {
                self.buffer = Buffer::Joined([&before[self.start..], &piece].concat());
            }
            Buffer::Joined(buffer) => {
                buffer.drain(..self.start);
                buffer.extend_from_slice(&piece);
            }
        }
        self.scanned -= self.start;
        self.start = 0;
    }

    /// What `read` makes of the next whole frame; none until more bytes come.
    ///
    /// Asked again if what it failed at was not whole.
    pub(super) fn next<T>(
        &mut self,
        read: impl Fn(&[u8]) -> Attempt<T>,
    ) -> Option<Result<T, ApiError>> {
        loop {
            let rest = &self.buffer[self.start..];
            match &mut self.search {
                Search::Between { follows_another } => {
                    let blank = rest.iter().position(|byte| !is_blank(*byte)).unwrap_or(rest.len());
                    let ends_no_lines = *follows_another && blank == 0;
                    *follows_another = ends_no_lines;
                    self.start += blank;
                    self.scanned = self.start;
                    match rest.get(blank)? {
                        b'{' if ends_no_lines => {
                            self.search = Search::Value(ValueScan::beginning_with(b'{'));
                        }
                        b'{' => self.search = Search::Line,
                        _ => return Some(Err(ApiError::malformed(NO_OBJECT))),
                    }
                }
                Search::Line => {
                    let Some(length) = self.length_of_line() else { return self.wait() };
                    let line = &rest[..length];
                    let mut scan = ValueScan::beginning_with(b'{');
                    match read(line) {
                        Attempt::Read { value, length } => return self.take(length, value),
                        Attempt::Failed(value) => match scan.advance(line) {
                            Ok(length) => return self.take(length, value),
                            Err(Unfinished) => {
                                self.search = Search::Value(scan);
                                self.scanned = self.start + length;
                            }
                        },
                    }
                }
                Search::Value(scan) => {
                    let Ok(length) = scan.advance(&self.buffer[self.scanned..]) else {
                        return self.wait();
                    };
                    let length = self.scanned + length - self.start;
                    let (Attempt::Read { value, .. } | Attempt::Failed(value)) =
                        read(&rest[..length]);
                    return self.take(length, value);
                }
            }
        }
    }

    /// How much of what is left is a line, or may be a frame after which no line has ended yet.
    fn length_of_line(&self) -> Option<usize> {
        let end = memchr(b'\n', &self.buffer[self.scanned..]).map(|length| self.scanned + length);
        let end = end.or_else(|| self.buffer.ends_with(b"}").then_some(self.buffer.len()))?;
        Some(end - self.start)
    }

    fn take<T>(&mut self, length: usize, value: T) -> Option<Result<T, ApiError>> {
        self.start += length;
        self.scanned = self.start;
        self.search = Search::Between { follows_another: true };
        Some(self.within_cap(length).map(|()| value))
    }

    /// Nothing more can be said about what is there.
    fn wait<T>(&mut self) -> Option<Result<T, ApiError>> {
        self.scanned = self.buffer.len();
        self.within_cap(self.scanned - self.start).err().map(Err)
    }

    fn within_cap(&self, length: usize) -> Result<(), ApiError> {
        if length <= self.cap {
            return Ok(());
        }
        Err(ApiError::malformed(format!("a watch event is larger than {} bytes", self.cap)))
    }
}

impl Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Piece(bytes) => bytes,
            Self::Joined(bytes) => bytes,
        }
    }
}

const NO_OBJECT: &str = "the watch stream holds something that is not a JSON object";

/// White space, or a byte order mark.
fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n' | 0xef | 0xbb | 0xbf)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::test_runner::RngSeed;

    use serde_json::value::RawValue;

    use super::*;

    /// Reads any JSON, and gives what was read or tried.
    fn value(bytes: &[u8]) -> Attempt<String> {
        let mut values = serde_json::Deserializer::from_slice(bytes).into_iter::<&RawValue>();
        match values.next() {
            Some(Ok(value)) => {
                Attempt::Read { value: value.get().to_owned(), length: values.byte_offset() }
            }
            _ => Attempt::Failed("not read".to_owned()),
        }
    }

    /// Feeds `text` in pieces of `size` bytes.
    fn frames(text: &str, size: usize) -> Vec<String> {
        let mut frames = Frames::new(1024);
        let mut found = Vec::new();
        for piece in text.as_bytes().chunks(size) {
            frames.push(Bytes::copy_from_slice(piece));
            while let Some(frame) = frames.next(value) {
                match frame {
                    Ok(frame) => found.push(frame),
                    Err(error) => return vec![error.to_string()],
                }
            }
        }
        found
    }

    #[test]
    fn a_frame_comes_as_soon_as_it_is_whole() {
        for after in ["", "\n", "\n{\"b\""] {
            assert_eq!(frames(&format!("{{\"a\":{{}}}}{after}"), 100), ["{\"a\":{}}"], "{after:?}");
        }
    }

    #[test]
    fn a_frame_that_is_whole_and_wrong_is_told_as_it_is() {
        let text = "{\"a\":1}\n{\"b\" 1}\n{\"c\":\n[}]{\"d\":2}";
        for size in 1..=text.len() {
            let expected = ["{\"a\":1}", "not read", "not read", "{\"d\":2}"];
            assert_eq!(frames(text, size), expected, "{size}");
        }
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
    fn what_stands_between_frames_is_not_kept() {
        let mut frames = Frames::new(1024);
        for _ in 0..10_000 {
            frames.push(Bytes::from_static(b"\n"));
            assert!(frames.next(value).is_none());
            assert!(frames.buffer.len() <= 1);
        }
        frames.push(Bytes::from_static(b"{\"a\":1}{\"b\":2}"));
        assert_eq!(frames.next(value).unwrap().unwrap(), "{\"a\":1}");
        assert_eq!(frames.next(value).unwrap().unwrap(), "{\"b\":2}");
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
