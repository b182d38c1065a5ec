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
    /// An object or an array, or before its first bracket.
    Brackets(Carried),
    /// The value is a text itself, and this is where its next byte is.
    Alone(Alone),
    /// A number, `true`, `false` or `null`: it ends where something else begins.
    Word,
}

/// What one block leaves to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Carried {
    /// All bits in a text, none outside.
    text: u64,
    /// The lowest bit right after a backslash that is not escaped itself.
    escape: u64,
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
            b'{' | b'[' => Inside::Brackets(Carried { text: 0, escape: 0 }),
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
            Inside::Brackets(carried) => self.advance_in_brackets(carried, bytes),
            Inside::Alone(inside) => self.advance_in_text(inside, bytes),
            Inside::Word => bytes.iter().position(|byte| ends_word(*byte)).ok_or(Unfinished),
        }
    }

    fn advance_in_brackets(
        &mut self,
        mut carried: Carried,
        bytes: &[u8],
    ) -> Result<usize, Unfinished> {
        let mut depth = self.depth;
        let (blocks, rest) = bytes.as_chunks::<BLOCK>();
        for (number, block) in blocks.iter().enumerate() {
            let (opening, closing) = carried.brackets(Block::of(block), BLOCK);
            if let Some(end) = end_among(opening, closing, &mut depth) {
                return Ok(number * BLOCK + end);
            }
        }
        if !rest.is_empty() {
            let (opening, closing) = carried.brackets(Block::of_fewer(rest), rest.len());
            if let Some(end) = end_among(opening, closing, &mut depth) {
                return Ok(blocks.len() * BLOCK + end);
            }
        }
        (self.depth, self.inside) = (depth, Inside::Brackets(carried));
        Err(Unfinished)
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

impl Carried {
    /// The brackets outside of texts, opening and closing, among the first `length` bytes of a block; what comes after
    /// them has to be blank.
    #[inline]
    fn brackets(&mut self, block: Block, length: usize) -> (u64, u64) {
        let quotes = if block.backslashes | self.escape == 0 {
            block.quotes
        } else {
            block.quotes & !self.escaped(block.backslashes, length)
        };
        let texts = parity_so_far(quotes) ^ self.text;
        self.text = (texts >> (length - 1) & 1).wrapping_neg();
        (block.opening & !texts, block.closing & !texts)
    }

    /// The bytes after an odd number of backslashes. Where such a run begins at an even place, its end is found by a
    /// carry that runs through it, and likewise at an odd one.
    #[inline]
    fn escaped(&mut self, backslashes: u64, length: usize) -> u64 {
        const EVEN: u64 = 0x5555_5555_5555_5555;
        let backslashes = backslashes & !self.escape;
        let after = backslashes << 1 | self.escape;
        let begin_odd = backslashes & !EVEN & !after;
        let (carried, runs_on) = begin_odd.overflowing_add(backslashes);
        let escaped = (EVEN ^ carried << 1) & after;
        self.escape = if length == BLOCK { runs_on.into() } else { escaped >> length & 1 };
        escaped
    }
}

/// Where the bracket stands that closes the last one open, or how many are open then.
#[inline]
fn end_among(opening: u64, closing: u64, depth: &mut usize) -> Option<usize> {
    let closed = closing.count_ones() as usize;
    // So few brackets close that the value can not end here.
    if closed < *depth {
        *depth += opening.count_ones() as usize;
        *depth -= closed;
        return None;
    }
    let mut brackets = opening | closing;
    while brackets != 0 {
        let place = brackets.trailing_zeros();
        brackets &= brackets - 1;
        if opening >> place & 1 == 1 {
            *depth += 1;
        } else {
            *depth = depth.saturating_sub(1);
            if *depth == 0 {
                return Some(place as usize + 1);
            }
        }
    }
    None
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
            let is_escaped = std::mem::take(&mut escaped);
            match byte {
                b'\\' => escaped = !is_escaped,
                b'"' if !is_escaped => in_text = !in_text,
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
