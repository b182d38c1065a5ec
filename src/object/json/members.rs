use std::borrow::Cow;
use std::ops::Range;

use super::cursor::plain_length;
use super::{Unfinished, ValueScan};

/// Walks over the members of a JSON object, and passes over their values.
#[derive(Debug)]
pub(crate) struct Members<'a> {
    json: &'a [u8],
    at: usize,
    next: Next,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    /// A member, or the end.
    First,
    /// A comma and a member, or the end.
    Other,
    Nothing,
}

/// The name of a member; its value comes next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Member<'a> {
    pub(crate) key: Cow<'a, str>,
    /// From here on it can be cut out: the comma before it, or its own first byte.
    from: usize,
    follows_another: bool,
}

/// It is not a JSON object, or not all of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NoObject;

impl<'a> Members<'a> {
    /// The members of the object that begins at `start`.
    pub(crate) fn of(json: &'a [u8], start: usize) -> Result<Self, NoObject> {
        let mut members = Self { json, at: start, next: Next::First };
        members.pass(b'{')?;
        Ok(members)
    }

    /// How far it has come.
    pub(crate) fn at(&self) -> usize {
        self.at
    }

    /// Goes on after a value that somebody else passed over.
    #[cfg(feature = "client")]
    pub(crate) fn pass_value(&mut self, length: usize) {
        self.at += length;
    }

    /// What stands there.
    pub(crate) fn json(&self, place: Range<usize>) -> &'a [u8] {
        &self.json[place]
    }

    /// The next member; none after the last. Its value has to be [passed over](Self::value) or [entered](Self::enter)
    /// then.
    #[inline]
    pub(crate) fn next(&mut self) -> Result<Option<Member<'a>>, NoObject> {
        let mut from = self.at;
        let follows_another = match (self.next, self.peek()?) {
            (Next::Nothing, _) => return Ok(None),
            (_, b'}') => {
                self.at += 1;
                self.next = Next::Nothing;
                return Ok(None);
            }
            (Next::First, _) => {
                from = self.at;
                false
            }
            (Next::Other, _) => {
                self.pass(b',')?;
                true
            }
        };
        if self.peek()? != b'"' {
            return Err(NoObject);
        }
        let key = text(&self.json[self.value()?]).ok_or(NoObject)?;
        self.pass(b':')?;
        self.peek()?;
        self.next = Next::Other;
        Ok(Some(Member { key, from, follows_another }))
    }

    /// The members of the object that is the value. When they were all passed, [`leave`](Self::leave) goes on after it.
    pub(crate) fn enter(&self) -> Result<Self, NoObject> {
        Self::of(self.json, self.at)
    }

    /// Goes on after a value that was entered and passed to its end. Tells where it stands.
    pub(crate) fn leave(&mut self, inner: &Self) -> Range<usize> {
        debug_assert_eq!(inner.next, Next::Nothing, "all its members were passed");
        std::mem::replace(&mut self.at, inner.at)..inner.at
    }

    /// What to take out so that the object is the same without a member, whose value was just passed.
    pub(crate) fn whole(&mut self, member: &Member<'_>) -> Result<Range<usize>, NoObject> {
        let end = self.at;
        // Without a comma before it, the one after it has to go.
        let end = if !member.follows_another && self.peek()? == b',' { self.at + 1 } else { end };
        Ok(member.from..end)
    }

    /// Passes over the value of a member, and tells where it stands.
    #[inline]
    pub(crate) fn value(&mut self) -> Result<Range<usize>, NoObject> {
        let from = self.at;
        let rest = &self.json[from..];
        let length = ValueScan::beginning_with(*rest.first().ok_or(NoObject)?).advance(rest);
        let length = length.map_err(|Unfinished| NoObject)?;
        if length == 0 {
            return Err(NoObject);
        }
        self.at += length;
        Ok(from..self.at)
    }

    #[inline]
    fn peek(&mut self) -> Result<u8, NoObject> {
        while let Some(&byte) = self.json.get(self.at) {
            if !matches!(byte, b' ' | b'\t' | b'\r' | b'\n') {
                return Ok(byte);
            }
            self.at += 1;
        }
        Err(NoObject)
    }

    #[inline]
    fn pass(&mut self, byte: u8) -> Result<(), NoObject> {
        if self.peek()? != byte {
            return Err(NoObject);
        }
        self.at += 1;
        Ok(())
    }
}

/// What a JSON text says; none for what is no text.
#[inline]
pub(crate) fn text(json: &[u8]) -> Option<Cow<'_, str>> {
    let inner = json.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
    if plain_length(inner) == inner.len() {
        return std::str::from_utf8(inner).ok().map(Cow::Borrowed);
    }
    serde_json::from_slice(json).ok().map(Cow::Owned)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::test_runner::RngSeed;

    use super::*;

    fn without(json: &str, unwanted: &str) -> String {
        let mut members = Members::of(json.as_bytes(), 0).unwrap();
        let mut left = json.to_owned();
        while let Some(member) = members.next().unwrap() {
            members.value().unwrap();
            if member.key == unwanted {
                left.replace_range(members.whole(&member).unwrap(), "");
            }
        }
        left
    }

    #[test]
    fn members_are_found_with_their_values() {
        let json = r#" { "a" : 1, "b\u0063":[{"d":"}"}],"e":"x" } rest"#;
        let mut members = Members::of(json.as_bytes(), 0).unwrap();
        let mut found = Vec::new();
        while let Some(member) = members.next().unwrap() {
            found.push(format!("{}={}", member.key, &json[members.value().unwrap()]));
        }
        assert_eq!(found, ["a=1", r#"bc=[{"d":"}"}]"#, r#"e="x""#]);
        assert_eq!(&json[members.at..], " rest");
    }

    #[test]
    fn an_object_is_whole_without_any_of_its_members() {
        for json in [r#"{"a":1,"b":{},"c":"x"}"#, "{ \"a\" : 1 ,\n \"b\" : {} , \"c\":\"x\" }"] {
            for key in ["a", "b", "c"] {
                let left: serde_json::Value = serde_json::from_str(&without(json, key)).unwrap();
                let mut expected: serde_json::Value = serde_json::from_str(json).unwrap();
                expected.as_object_mut().unwrap().remove(key);
                assert_eq!(left, expected);
            }
        }
        assert_eq!(without(r#"{"a":1}"#, "a"), "{}");
    }

    #[test]
    fn an_object_inside_is_walked_through_once() {
        let json = r#"{"a":{"b":{"c":"}"}},"d":2}"#;
        let mut outer = Members::of(json.as_bytes(), 0).unwrap();
        assert_eq!(outer.next().unwrap().unwrap().key, "a");
        let mut inner = outer.enter().unwrap();
        assert_eq!(inner.next().unwrap().unwrap().key, "b");
        assert_eq!(&json[inner.value().unwrap()], r#"{"c":"}"}"#);
        assert_eq!(inner.next().unwrap(), None);
        assert_eq!(&json[outer.leave(&inner)], r#"{"b":{"c":"}"}}"#);
        assert_eq!(outer.next().unwrap().unwrap().key, "d");
    }

    #[test]
    fn what_is_no_object_is_said_to_be_none() {
        for json in
            ["", "[]", "1", "{", r#"{"a""#, r#"{"a":}"#, r#"{"a":1"#, r#"{"a":1 "b":2}"#, "{,}"]
        {
            let all = Members::of(json.as_bytes(), 0).and_then(|mut members| {
                while members.next()?.is_some() {
                    members.value()?;
                }
                Ok(())
            });
            assert_eq!(all, Err(NoObject), "{json}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 500, rng_seed: RngSeed::Fixed(1), failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn members_are_those_that_serde_finds(
            values in prop::collection::btree_map("[a-z\"\\\\é]{0,6}", "[a-z\"\\\\{}\\[\\]\n ]{0,90}", 0..6),
            pretty: bool,
        ) {
            let json = if pretty { serde_json::to_string_pretty(&values) } else { serde_json::to_string(&values) }.unwrap();
            let mut members = Members::of(json.as_bytes(), 0).unwrap();
            let mut found = std::collections::BTreeMap::new();
            while let Some(member) = members.next().unwrap() {
                let value = text(&json.as_bytes()[members.value().unwrap()]).unwrap().into_owned();
                found.insert(member.key.into_owned(), value);
            }
            prop_assert_eq!(found, values);
            prop_assert_eq!(members.at, json.len());
        }
    }
}
