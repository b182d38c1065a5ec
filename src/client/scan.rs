use memchr::memchr2;

/// Finds the end of one JSON value whose bytes arrive in any pieces.
///
/// Only strings and brackets are understood: whether the value is JSON at all is for its reader to say.
#[derive(Debug, Clone, Copy)]
pub(super) struct ValueScan {
    depth: usize,
    inside: Inside,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Inside {
    Structure,
    Text,
    /// Right after a backslash.
    Escape,
    /// A number, `true`, `false` or `null`: it ends where something else begins.
    Word,
}

impl ValueScan {
    /// Stands before the first byte of a value.
    pub(super) fn beginning_with(byte: u8) -> Self {
        let inside = match byte {
            b'{' | b'[' | b'"' => Inside::Structure,
            _ => Inside::Word,
        };
        Self { depth: 0, inside }
    }

    /// Looks at the next bytes. `Ok` holds how many of them still belong to the value, which is whole then; `Err` says
    /// that all do, and that more must come.
    pub(super) fn advance(&mut self, bytes: &[u8]) -> Result<usize, Unfinished> {
        let mut at = 0;
        while let Some(&byte) = bytes.get(at) {
            match (self.inside, byte) {
                (Inside::Text, _) => {
                    let Some(found) = memchr2(b'"', b'\\', &bytes[at..]) else {
                        return Err(Unfinished);
                    };
                    at += found;
                    if bytes[at] == b'\\' {
                        self.inside = Inside::Escape;
                    } else {
                        self.inside = Inside::Structure;
                        if self.depth == 0 {
                            return Ok(at + 1);
                        }
                    }
                }
                (Inside::Escape, _) => self.inside = Inside::Text,
                (Inside::Word, b',' | b']' | b'}' | b' ' | b'\t' | b'\r' | b'\n') => return Ok(at),
                (Inside::Word, _) => {}
                (Inside::Structure, b'"') => self.inside = Inside::Text,
                (Inside::Structure, b'{' | b'[') => self.depth += 1,
                (Inside::Structure, b'}' | b']') => {
                    self.depth = self.depth.saturating_sub(1);
                    if self.depth == 0 {
                        return Ok(at + 1);
                    }
                }
                (Inside::Structure, _) => {}
            }
            at += 1;
        }
        Err(Unfinished)
    }
}

/// The value goes on beyond the bytes there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Unfinished;

#[cfg(test)]
mod tests {
    use super::*;

    /// The value that `text` begins with, found `size` bytes at a time.
    fn first_value(text: &str, size: usize) -> Option<&str> {
        let mut scan = ValueScan::beginning_with(text.as_bytes()[0]);
        let mut seen = 0;
        for piece in text.as_bytes().chunks(size) {
            match scan.advance(piece) {
                Ok(length) => return Some(&text[..seen + length]),
                Err(Unfinished) => seen += piece.len(),
            }
        }
        None
    }

    #[test]
    fn a_value_ends_where_json_says() {
        for (text, value) in [
            (r#"{"a":[1,{}]},{}"#, r#"{"a":[1,{}]}"#),
            (r#"[[],"]"] "#, r#"[[],"]"]"#),
            (r#""a\"\\",1"#, r#""a\"\\""#),
            ("-1.5e3]", "-1.5e3"),
            ("null\n", "null"),
        ] {
            for size in 1..=text.len() {
                assert_eq!(first_value(text, size), Some(value), "{size}");
            }
        }
    }

    #[test]
    fn half_a_value_has_no_end() {
        for text in [r#"{"a":"}"#, r#"["#, r#""a\""#, "12"] {
            assert_eq!(first_value(text, 2), None, "{text}");
        }
    }
}
