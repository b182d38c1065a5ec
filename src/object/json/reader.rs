use serde::de::value::{BorrowedStrDeserializer, MapAccessDeserializer, StrDeserializer};
use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, forward_to_deserialize_any};

pub(crate) use super::cursor::Unread;
use super::cursor::{Cursor, Text};

/// Reads what `serde_json` would read, and gives up on the rest.
///
/// Unlike `serde_json` it passes over in blocks what nobody asks for, without a look at whether that is JSON, and says
/// beforehand how long an array is, so that a `Vec` is as large as it has to be and no larger.
pub(crate) fn read<'de, T: Deserialize<'de>>(json: &'de str) -> Result<T, Unread> {
    let mut reader = Reader { cursor: Cursor::new(json), depth: 0 };
    let value = T::deserialize(&mut reader)?;
    if reader.cursor.is_at_end() { Ok(value) } else { Err(Unread) }
}

struct Reader<'de> {
    cursor: Cursor<'de>,
    /// How many objects and arrays are open.
    depth: usize,
}

/// What is nested deeper is left to `serde_json`, which has its own limit.
const DEPTH: usize = 100;

impl<'de> Reader<'de> {
    fn object<V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value, Unread> {
        self.inside(b'{', b'}', |reader| visitor.visit_map(Members { reader, is_first: true }))
    }

    fn array<V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value, Unread> {
        self.inside(b'[', b']', |reader| {
            let left = reader.cursor.values_left()?;
            visitor.visit_seq(Values { reader, left, is_first: true })
        })
    }

    fn inside<T>(
        &mut self,
        opening: u8,
        closing: u8,
        read: impl FnOnce(&mut Self) -> Result<T, Unread>,
    ) -> Result<T, Unread> {
        self.cursor.pass(opening)?;
        self.depth += 1;
        if self.depth > DEPTH {
            return Err(Unread);
        }
        let value = read(self)?;
        self.depth -= 1;
        self.cursor.pass(closing)?;
        Ok(value)
    }

    #[inline]
    fn text<V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value, Unread> {
        Key(self.cursor.text()?).deserialize_any(visitor)
    }

    fn number<V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value, Unread> {
        let number = self.cursor.number();
        let digits = number.strip_prefix('-').unwrap_or(number);
        let is_small =
            matches!(digits.len(), 1..=18) && digits.bytes().all(|it| it.is_ascii_digit());
        match is_small && (!digits.starts_with('0') || number == "0") {
            true if digits.len() < number.len() => {
                visitor.visit_i64(number.parse().map_err(|_error| Unread)?)
            }
            true => visitor.visit_u64(number.parse().map_err(|_error| Unread)?),
            false => {
                let mut reader = serde_json::Deserializer::from_str(number);
                let value = reader.deserialize_any(visitor).map_err(|_error| Unread)?;
                reader.end().map_err(|_error| Unread)?;
                Ok(value)
            }
        }
    }
}

impl<'de> Deserializer<'de> for &mut Reader<'de> {
    type Error = Unread;

    #[inline]
    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Unread> {
        match self.cursor.peek()? {
            b'"' => self.text(visitor),
            b'{' => self.object(visitor),
            b'[' => self.array(visitor),
            b'n' => self.cursor.pass_word("null").and_then(|()| visitor.visit_unit()),
            b't' => self.cursor.pass_word("true").and_then(|()| visitor.visit_bool(true)),
            b'f' => self.cursor.pass_word("false").and_then(|()| visitor.visit_bool(false)),
            b'-' | b'0'..=b'9' => self.number(visitor),
            _ => Err(Unread),
        }
    }

    #[inline]
    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Unread> {
        if self.cursor.peek()? == b'n' {
            self.cursor.pass_word("null")?;
            return visitor.visit_none();
        }
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Unread> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Unread> {
        match self.cursor.peek()? {
            b'"' => Key(self.cursor.text()?).deserialize_enum(name, variants, visitor),
            b'{' => self.inside(b'{', b'}', |reader| {
                let members = Members { reader, is_first: true };
                visitor.visit_enum(MapAccessDeserializer::new(members))
            }),
            _ => Err(Unread),
        }
    }

    #[inline]
    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Unread> {
        self.cursor.pass_value()?;
        visitor.visit_unit()
    }

    #[inline]
    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Unread> {
        self.text(visitor)
    }

    #[inline]
    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Unread> {
        self.text(visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Unread> {
        self.object(visitor)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Unread> {
        self.array(visitor)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char bytes byte_buf unit unit_struct
        tuple tuple_struct struct identifier
    }
}

struct Members<'a, 'de> {
    reader: &'a mut Reader<'de>,
    is_first: bool,
}

impl<'de> MapAccess<'de> for Members<'_, 'de> {
    type Error = Unread;

    #[inline]
    fn next_key_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Unread> {
        let cursor = &mut self.reader.cursor;
        if cursor.peek()? == b'}' {
            return Ok(None);
        }
        if !std::mem::take(&mut self.is_first) {
            cursor.pass(b',')?;
        }
        seed.deserialize(Key(cursor.text()?)).map(Some)
    }

    #[inline]
    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, Unread> {
        self.reader.cursor.pass(b':')?;
        seed.deserialize(&mut *self.reader)
    }
}

struct Values<'a, 'de> {
    reader: &'a mut Reader<'de>,
    left: usize,
    is_first: bool,
}

impl<'de> SeqAccess<'de> for Values<'_, 'de> {
    type Error = Unread;

    #[inline]
    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Unread> {
        if self.left == 0 {
            return Ok(None);
        }
        self.left -= 1;
        if !std::mem::take(&mut self.is_first) {
            self.reader.cursor.pass(b',')?;
        }
        seed.deserialize(&mut *self.reader).map(Some)
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.left)
    }
}

/// A text, also as the name of a member or of a variant.
struct Key<'de, 'a>(Text<'de, 'a>);

impl<'de> Deserializer<'de> for Key<'de, '_> {
    type Error = Unread;

    #[inline]
    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Unread> {
        match self.0 {
            Text::Plain(text) => visitor.visit_borrowed_str(text),
            Text::Unescaped(text) => visitor.visit_str(text),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Unread> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Unread> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Unread> {
        match self.0 {
            Text::Plain(text) => visitor.visit_enum(BorrowedStrDeserializer::new(text)),
            Text::Unescaped(text) => visitor.visit_enum(StrDeserializer::new(text)),
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit
        unit_struct seq tuple tuple_struct map struct identifier ignored_any
    }
}

#[cfg(test)]
#[path = "reader_tests.rs"]
mod tests;
