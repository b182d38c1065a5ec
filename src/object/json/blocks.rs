use wide::u8x16;

/// So many bytes are looked at together.
pub(super) const BLOCK: usize = 64;

/// Where in 64 bytes something stands that matters. The lowest bit is the first byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Block {
    pub(super) quotes: u64,
    pub(super) backslashes: u64,
    pub(super) opening: u64,
    pub(super) closing: u64,
}

impl Block {
    /// Looks at fewer bytes than a block has.
    pub(super) fn of_fewer(bytes: &[u8]) -> Self {
        let mut padded = [b' '; BLOCK];
        padded[..bytes.len()].copy_from_slice(bytes);
        Self::of(&padded)
    }

    #[inline]
    pub(super) fn of(bytes: &[u8; BLOCK]) -> Self {
        let mut lanes = [u8x16::ZERO; BLOCK / LANE];
        for (lane, bytes) in lanes.iter_mut().zip(bytes.as_chunks::<LANE>().0) {
            *lane = u8x16::new(*bytes);
        }
        // The brackets of objects and arrays differ in this bit only.
        let brackets = lanes.map(|lane| lane | u8x16::splat(0x20));
        Self {
            quotes: places(&lanes, b'"'),
            backslashes: places(&lanes, b'\\'),
            opening: places(&brackets, b'{'),
            closing: places(&brackets, b'}'),
        }
    }
}

const LANE: usize = 16;

#[inline]
fn places(lanes: &[u8x16; BLOCK / LANE], byte: u8) -> u64 {
    let [first, second, third, fourth] =
        lanes.map(|lane| u64::from(lane.simd_eq(u8x16::splat(byte)).to_bitmask()));
    first | second << 16 | third << 32 | fourth << 48
}

/// Every bit is the parity of itself and those below it.
#[inline]
pub(super) fn parity_so_far(mut bits: u64) -> u64 {
    for distance in [1, 2, 4, 8, 16, 32] {
        bits ^= bits << distance;
    }
    bits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_is_seen_where_it_stands_and_no_other_is_taken_for_it() {
        for place in 0..BLOCK {
            for byte in 0..=u8::MAX {
                let mut bytes = [b'x'; BLOCK];
                bytes[place] = byte;
                let bit = |is: bool| u64::from(is) << place;
                let expected = Block {
                    quotes: bit(byte == b'"'),
                    backslashes: bit(byte == b'\\'),
                    opening: bit(matches!(byte, b'{' | b'[')),
                    closing: bit(matches!(byte, b'}' | b']')),
                };
                assert_eq!(Block::of(&bytes), expected, "{byte} at {place}");
                assert_eq!(
                    Block::of_fewer(&bytes[..=place]),
                    expected,
                    "{byte}, the last of {place}"
                );
            }
        }
    }

    #[test]
    fn parity_is_of_all_bits_below() {
        assert_eq!(parity_so_far(0), 0);
        assert_eq!(parity_so_far(1), u64::MAX);
        assert_eq!(parity_so_far(0b1001_0100), 0b1100 | (u64::MAX << 7));
    }
}
