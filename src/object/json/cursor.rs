use std::fmt;

use wide::u8x16;

use super::{Unfinished, ValueScan};

/// A place in a JSON document, from which it is read on.
#[derive(Debug)]
pub(super) struct Cursor<'a> {
    json: &'a str,
    at: usize,
    /// Room for a text that is not as it stands there.
    unescaped: String,
}

/// What a text says.
#[derive(Debug, Clone, Copy)]
pub(super) enum Text<'a, 'b> {
    /// As it stands there.
    Plain(&'a str),
    /// Until the next one is read.
    Unescaped(&'b str),
}

/// It is no JSON, or not what was asked for, or so unusual that it is left to `serde_json`, which also says what is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Unread;

impl<'a> Cursor<'a> {
    pub(super) fn new(json: &'a str) -> Self {
        Self { json, at: 0, unescaped: String::new() }
    }

    /// The next byte that is no white space.
    #[inline]
    pub(super) fn peek(&mut self) -> Result<u8, Unread> {
        while let Some(&byte) = self.json.as_bytes().get(self.at) {
            if !matches!(byte, b' ' | b'\n' | b'\t' | b'\r') {
                return Ok(byte);
            }
            self.at += 1;
        }
        Err(Unread)
    }

    #[inline]
    pub(super) fn pass(&mut self, byte: u8) -> Result<(), Unread> {
        if self.peek()? != byte {
            return Err(Unread);
        }
        self.at += 1;
        Ok(())
    }

    pub(super) fn pass_word(&mut self, word: &str) -> Result<(), Unread> {
        if !self.json.as_bytes()[self.at..].starts_with(word.as_bytes()) {
            return Err(Unread);
        }
        self.at += word.len();
        Ok(())
    }

    /// Nothing but white space is left.
    pub(super) fn is_at_end(&mut self) -> bool {
        self.peek().is_err()
    }

    /// Passes over a value, whatever it is.
    pub(super) fn pass_value(&mut self) -> Result<(), Unread> {
        let first = self.peek()?;
        let length = length_of_value(first, &self.json.as_bytes()[self.at..])?;
        self.at += length;
        Ok(())
    }

    /// How many values come until the array ends whose bracket was just passed.
    pub(super) fn values_left(&self) -> Result<usize, Unread> {
        let mut ahead = Self { at: self.at, ..Self::new(self.json) };
        if ahead.peek()? == b']' {
            return Ok(0);
        }
        let mut count = 1;
        loop {
            ahead.pass_value()?;
            if ahead.peek()? == b']' {
                return Ok(count);
            }
            ahead.pass(b',')?;
            count += 1;
        }
    }

    /// The text whose quote comes next.
    #[inline]
    pub(super) fn text(&mut self) -> Result<Text<'a, '_>, Unread> {
        self.pass(b'"')?;
        let start = self.at;
        let end = start + plain_length(&self.json.as_bytes()[start..]);
        match self.json.as_bytes().get(end) {
            Some(b'"') => {
                self.at = end + 1;
                Ok(Text::Plain(&self.json[start..end]))
            }
            Some(b'\\') => self.unescape(start, end).map(Text::Unescaped),
            _ => Err(Unread),
        }
    }

    /// The text that begins at `start`, whose first backslash is at `at`.
    fn unescape(&mut self, start: usize, mut at: usize) -> Result<&str, Unread> {
        let bytes = self.json.as_bytes();
        let mut from = start;
        self.unescaped.clear();
        while bytes.get(at) == Some(&b'\\') {
            self.unescaped.push_str(&self.json[from..at]);
            self.unescaped.push(match bytes.get(at + 1).ok_or(Unread)? {
                byte @ (b'"' | b'\\' | b'/') => char::from(*byte),
                b'n' => '\n',
                b't' => '\t',
                b'r' => '\r',
                b'b' => '\u{8}',
                b'f' => '\u{c}',
                b'u' => return self.unescape_letters(start - 1),
                _ => return Err(Unread),
            });
            from = at + 2;
            at = from + plain_length(&bytes[from..]);
        }
        if bytes.get(at) != Some(&b'"') {
            return Err(Unread);
        }
        self.unescaped.push_str(&self.json[from..at]);
        self.at = at + 1;
        Ok(&self.unescaped)
    }

    /// Letters may be written as one number or as two, and wrongly.
    fn unescape_letters(&mut self, quote: usize) -> Result<&str, Unread> {
        let rest = &self.json[quote..];
        let length = length_of_value(b'"', rest.as_bytes())?;
        self.unescaped = serde_json::from_str(&rest[..length]).map_err(|_error| Unread)?;
        self.at = quote + length;
        Ok(&self.unescaped)
    }

    /// All that can belong to a number.
    #[inline]
    pub(super) fn number(&mut self) -> &'a str {
        let rest = &self.json[self.at..];
        let is_part = |byte: &u8| matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E');
        let length = rest.as_bytes().iter().take_while(|byte| is_part(byte)).count();
        self.at += length;
        &rest[..length]
    }
}

#[inline]
fn length_of_value(first: u8, bytes: &[u8]) -> Result<usize, Unread> {
    match ValueScan::beginning_with(first).advance(bytes) {
        Ok(0) | Err(Unfinished) => Err(Unread),
        Ok(length) => Ok(length),
    }
}

/// How many bytes come before a quote, a backslash or what may not be in a text.
#[inline]
pub(super) fn plain_length(bytes: &[u8]) -> usize {
    const LANE: usize = 16;
    let mut at = 0;
    while let Some(lane) = bytes[at..].first_chunk::<LANE>() {
        let lane = u8x16::new(*lane);
        let special = lane.simd_eq(u8x16::splat(b'"'))
            | lane.simd_eq(u8x16::splat(b'\\'))
            | lane.simd_eq(lane.min(u8x16::splat(b' ' - 1)));
        let special = special.to_bitmask();
        if special != 0 {
            return at + special.trailing_zeros() as usize;
        }
        at += LANE;
    }
    let rest = bytes[at..].iter();
    at + rest.take_while(|byte| !matches!(byte, b'"' | b'\\' | ..b' ')).count()
}

impl fmt::Display for Unread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("it is left to serde_json")
    }
}

impl std::error::Error for Unread {}

/// What is wrong, `serde_json` says better.
impl serde::de::Error for Unread {
    fn custom<T: fmt::Display>(_: T) -> Self {
        Self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(json: &str) -> Result<String, Unread> {
        match Cursor::new(json).text()? {
            Text::Plain(text) | Text::Unescaped(text) => Ok(text.to_owned()),
        }
    }

    #[test]
    fn a_text_ends_where_it_has_to_wherever_that_is() {
        for length in 0..40 {
            let plain = "é".repeat(length / 2) + &"x".repeat(length % 2);
            assert_eq!(text(&format!("\"{plain}\",1")).as_deref(), Ok(plain.as_str()));
            assert_eq!(text(&format!("\"{plain}\n\"")), Err(Unread), "no line ends in a text");
            assert_eq!(text(&format!("\"{plain}")), Err(Unread));
        }
    }

    #[test]
    fn what_is_escaped_is_read_as_serde_json_reads_it() {
        for inner in [
            r#"\""#,
            r"\\",
            r"\/\b\f\n\r\t",
            r"a\u0041\n",
            r"\ud83d\ude00",
            r"\ud83d",
            r"\u00",
            r"\x",
            r"\",
            r#"k:{\"type\":\"Ready\"} and so on for long"#,
            "\\n\n",
        ] {
            for json in [format!("\"{inner}\""), format!("\"{inner}"), format!("\"é{inner}é\"")] {
                let expected = serde_json::from_str::<String>(&json).map_err(|_error| Unread);
                assert_eq!(text(&json), expected, "{json}");
            }
        }
    }

    #[test]
    fn every_byte_that_ends_plain_text_is_seen_and_no_other() {
        for byte in 0..=u8::MAX {
            let is_special = matches!(byte, b'"' | b'\\' | ..b' ');
            for place in [0, 3, 15, 16, 30] {
                let mut bytes = [b'x'; 31];
                bytes[place] = byte;
                let expected = if is_special { place } else { bytes.len() };
                assert_eq!(plain_length(&bytes), expected, "{byte} at {place}");
            }
        }
    }

    #[test]
    fn values_are_counted_before_they_are_read() {
        for (array, count) in [
            ("]", Ok(0)),
            (" ]", Ok(0)),
            ("1]", Ok(1)),
            (r#"{"a":[1,2]} , "]," ,[[]], null ] "#, Ok(4)),
            ("1,]", Err(Unread)),
            ("1 2]", Err(Unread)),
            ("1,2", Err(Unread)),
        ] {
            assert_eq!(Cursor::new(array).values_left(), count, "{array}");
        }
    }
}
