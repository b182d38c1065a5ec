use memchr::memchr2;

use super::blocks::{BLOCK, Block, parity_so_far};

/// Finds the end of one JSON value whose bytes arrive in any pieces.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ValueScan {
    /// How many brackets are open.
    depth: usize,
    inside: Inside,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Inside {
    /// Outside every text, in an object or an array, or before its first bracket.
    Structure,
    /// In a text inside an object or an array.
    Text,
    /// Right after a backslash of such a text.
    Escape,
    /// The value is a text itself, and this is where its next byte is.
    Alone(Alone),
    /// A number, `true`, `false` or `null`: it ends where something else begins.
    Word,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Alone {
    BeforeQuote,
    Text,
    Escape,
}

impl ValueScan {
    /// Stands before the first byte of a value.
    pub(crate) fn beginning_with(byte: u8) -> Self {
        let inside = match byte {
            b'{' | b'[' => Inside::Structure,
            b'"' => Inside::Alone(Alone::BeforeQuote),
            _ => Inside::Word,
        };
        Self { depth: 0, inside }
    }

    /// Looks at the next bytes. `Ok` holds how many of them still belong to the value, which is whole then; `Err` says
    /// that all do, and that more must come.
    #[inline]
    pub(crate) fn advance(&mut self, bytes: &[u8]) -> Result<usize, Unfinished> {
        match self.inside {
            Inside::Structure | Inside::Text | Inside::Escape => self.advance_in_brackets(bytes),
            Inside::Alone(inside) => self.advance_in_text(inside, bytes),
            Inside::Word => bytes.iter().position(|byte| ends_word(*byte)).ok_or(Unfinished),
        }
    }

    fn advance_in_brackets(&mut self, bytes: &[u8]) -> Result<usize, Unfinished> {
        let mut at = 0;
        while at < bytes.len() {
            let rest = &bytes[at..];
            if let Some(end) = self.advance_block(Block::at(rest), rest.len().min(BLOCK)) {
                return Ok(at + end);
            }
            at += BLOCK;
        }
        Err(Unfinished)
    }

    /// Looks at `length` bytes of a block; gives where the value ends, if it does.
    #[inline]
    fn advance_block(&mut self, block: Block, length: usize) -> Option<usize> {
        let began_in_text = if self.inside == Inside::Structure { 0 } else { u64::MAX };
        let mut ends_in_escape = false;
        let quotes = if block.backslashes == 0 && self.inside != Inside::Escape {
            block.quotes
        } else {
            let (quotes, escape) = self.quotes_among_escapes(block, length);
            ends_in_escape = escape;
            quotes
        };
        let texts = parity_so_far(quotes) ^ began_in_text;
        let (opening, closing) = (block.opening & !texts, block.closing & !texts);
        let (opened, closed) = (opening.count_ones() as usize, closing.count_ones() as usize);
        // So few brackets close that the value can not end here.
        if closed < self.depth {
            self.depth = self.depth + opened - closed;
        } else {
            let mut brackets = opening | closing;
            while brackets != 0 {
                let place = brackets.trailing_zeros();
                brackets &= brackets - 1;
                if opening >> place & 1 == 1 {
                    self.depth += 1;
                } else {
                    self.depth = self.depth.saturating_sub(1);
                    if self.depth == 0 {
                        return Some(place as usize + 1);
                    }
                }
            }
        }
        let ends_in_text = texts >> (length - 1) & 1 == 1;
        self.inside = match ends_in_text {
            _ if ends_in_escape => Inside::Escape,
            true => Inside::Text,
            false => Inside::Structure,
        };
        None
    }

    /// The quotes that begin or end a text, and whether the block ends right after a backslash of one.
    fn quotes_among_escapes(&self, block: Block, length: usize) -> (u64, bool) {
        let mut quotes = 0;
        let mut in_text = self.inside != Inside::Structure;
        let mut left = block.quotes | block.backslashes;
        if self.inside == Inside::Escape {
            left &= !1;
        }
        while left != 0 {
            let place = left.trailing_zeros() as usize;
            left &= left - 1;
            if block.quotes >> place & 1 == 1 {
                quotes |= 1 << place;
                in_text = !in_text;
            } else if in_text {
                if place + 1 >= length {
                    return (quotes, true);
                }
                left &= !(1 << (place + 1));
            }
        }
        (quotes, false)
    }

    fn advance_in_text(&mut self, mut inside: Alone, bytes: &[u8]) -> Result<usize, Unfinished> {
        let mut at = 0;
        while at < bytes.len() {
            match inside {
                Alone::BeforeQuote | Alone::Escape => {
                    inside = Alone::Text;
                    at += 1;
                }
                Alone::Text => match memchr2(b'"', b'\\', &bytes[at..]) {
                    None => break,
                    Some(found) if bytes[at + found] == b'"' => return Ok(at + found + 1),
                    Some(found) => {
                        inside = Alone::Escape;
                        at += found + 1;
                    }
                },
            }
        }
        self.inside = Inside::Alone(inside);
        Err(Unfinished)
    }
}

/// Also what may not come after a word, so that it is not taken for a part of one.
fn ends_word(byte: u8) -> bool {
    matches!(byte, b',' | b']' | b'}' | b' ' | b'\t' | b'\r' | b'\n' | b'{' | b'[' | b'"' | b':')
}

/// The value goes on beyond the bytes there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Unfinished;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::test_runner::RngSeed;

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
            (r#"x{"a":1}"#, "x"),
            (r#"1"a""#, "1"),
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

    /// As slow as it is plain.
    fn naive_end(bytes: &[u8]) -> Option<usize> {
        let (mut depth, mut in_text, mut escaped) = (0_usize, false, false);
        for (at, &byte) in bytes.iter().enumerate() {
            match byte {
                _ if escaped => escaped = false,
                b'\\' if in_text => escaped = true,
                b'"' => in_text = !in_text,
                b'{' | b'[' if !in_text => depth += 1,
                b'}' | b']' if !in_text => {
                    depth = depth.saturating_sub(1);
                    if depth == 0 {
                        return Some(at + 1);
                    }
                }
                _ => {}
            }
        }
        None
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2000, rng_seed: RngSeed::Fixed(1), failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn blocks_see_what_a_look_at_every_byte_sees(text in r#"[\[{]["\\{}\[\]a ]{0,400}"#, size in 1..200_usize) {
            let mut scan = ValueScan::beginning_with(text.as_bytes()[0]);
            let mut seen = 0;
            let mut end = None;
            for piece in text.as_bytes().chunks(size) {
                match scan.advance(piece) {
                    Ok(length) => {
                        end = Some(seen + length);
                        break;
                    }
                    Err(Unfinished) => seen += piece.len(),
                }
            }
            prop_assert_eq!(end, naive_end(text.as_bytes()));
        }
    }
}
