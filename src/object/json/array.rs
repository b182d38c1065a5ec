use super::Unfinished;
use super::blocks::{BLOCK, Block};
use super::scan::Carried;

/// How many values an array has, of which the first begins here. Only the commas between them are counted: whether these
/// are values is for their reader to say.
pub(super) fn values_in_array(bytes: &[u8]) -> Result<usize, Unfinished> {
    let mut array = Array { depth: 1, values: 1, carried: Carried::default() };
    let (blocks, rest) = bytes.as_chunks::<BLOCK>();
    for block in blocks {
        if array.ends_in(Block::of(block), BLOCK) {
            return Ok(array.values);
        }
    }
    if !rest.is_empty() && array.ends_in(Block::of_fewer(rest), rest.len()) {
        return Ok(array.values);
    }
    Err(Unfinished)
}

/// What is known of an array of which some blocks were looked at.
struct Array {
    /// How many brackets are open, its own among them.
    depth: usize,
    values: usize,
    carried: Carried,
}

impl Array {
    #[inline]
    fn ends_in(&mut self, block: Block, length: usize) -> bool {
        let outside = !self.carried.texts(block, length);
        let (opening, closing) = (block.opening & outside, block.closing & outside);
        let closed = closing.count_ones() as usize;
        // So few brackets close that all of the block is within its values.
        if closed + 1 < self.depth {
            self.depth += opening.count_ones() as usize;
            self.depth -= closed;
            return false;
        }
        let commas = block.commas & outside;
        if opening | closing == 0 {
            self.values += commas.count_ones() as usize;
            return false;
        }
        let mut marks = opening | closing | commas;
        while marks != 0 {
            let mark = marks & marks.wrapping_neg();
            marks ^= mark;
            if opening & mark != 0 {
                self.depth += 1;
            } else if closing & mark == 0 {
                self.values += usize::from(self.depth == 1);
            } else {
                self.depth -= 1;
                if self.depth == 0 {
                    return true;
                }
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::test_runner::RngSeed;
    use serde_json::Value;

    use super::*;

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            any::<u32>().prop_map(Value::from),
            r#"[\]\[{}",\\a]{0,70}"#.prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 60, 5, |inner| {
            let array = prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from);
            let object = prop::collection::btree_map("[,a]{0,3}", inner, 0..5);
            prop_oneof![array, object.prop_map(|it| it.into_iter().collect::<Value>())]
        })
    }

    #[test]
    fn what_does_not_end_is_not_counted() {
        for array in ["", "1,2", "[1]", r#""]"#, &"[],".repeat(50)] {
            assert_eq!(values_in_array(array.as_bytes()), Err(Unfinished), "{array}");
        }
        assert_eq!(values_in_array(b"1}]"), Ok(1), "any bracket ends it: its reader knows better");
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 500, rng_seed: RngSeed::Fixed(1), failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn an_array_has_as_many_values_as_serde_finds(
            values in prop::collection::vec(value(), 1..8),
            pretty: bool,
        ) {
            let json = if pretty { serde_json::to_string_pretty(&values) } else { serde_json::to_string(&values) };
            let json = json.unwrap() + ",[1,2]]";
            prop_assert_eq!(values_in_array(&json.as_bytes()[1..]), Ok(values.len()));
        }
    }
}
