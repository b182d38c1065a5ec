//! What the fuzz targets of `tests/fuzz` call. Not for programs, and not stable.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::frames::Frames;
use super::list::{Found, ListDecoder, ListEnvelope, ListLimits};

const CAP: usize = 1 << 20;

/// Cuts `bytes` into frames, `size` at a time and all at once.
///
/// # Panics
/// When that makes a difference, or when the frames are not what serde finds in a good stream.
pub fn frames(bytes: &[u8], size: usize) {
    let whole = cut(bytes, bytes.len());
    assert_eq!(cut(bytes, size), whole, "pieces of {size}");
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let values = serde_json::Deserializer::from_str(text).into_iter::<&RawValue>();
    let Ok(values) = values.map(|value| value.map(RawValue::get)).collect::<Result<Vec<_>, _>>()
    else {
        return;
    };
    if values.iter().all(|value| value.starts_with('{')) {
        let values = values.into_iter().map(|value| value.as_bytes().to_vec()).collect();
        assert_eq!(whole, (values, true));
    }
}

/// The frames up to the first error, and whether there was none.
fn cut(bytes: &[u8], size: usize) -> (Vec<Vec<u8>>, bool) {
    let mut frames = Frames::new(CAP);
    let mut found = Vec::new();
    for piece in bytes.chunks(size.max(1)) {
        frames.push(piece);
        while let Some(frame) = frames.next() {
            match frame {
                Ok(frame) => found.push(frame.to_vec()),
                Err(_) => return (found, false),
            }
        }
    }
    (found, true)
}

/// Takes `bytes` apart as a list, `size` at a time and all at once.
///
/// # Panics
/// When that makes a difference, or when serde reads the whole of it in another way.
pub fn list(bytes: &[u8], size: usize) {
    let whole = take_apart(bytes, bytes.len());
    assert_eq!(take_apart(bytes, size), whole, "pieces of {size}");
    assert_eq!(whole, read_at_once(bytes));
}

type Parts = (Vec<String>, ListEnvelope);

fn take_apart(bytes: &[u8], size: usize) -> Option<Parts> {
    let mut decoder = ListDecoder::new(ListLimits { item: CAP, envelope: CAP, total: 4 << 20 });
    let mut items = Vec::new();
    for piece in bytes.chunks(size.max(1)) {
        decoder.push(piece).ok()?;
        while let Some(item) = decoder.next_item().ok()? {
            let Found::Item(item) = item else { return None };
            serde_json::from_str::<&RawValue>(item).ok()?;
            items.push(item.to_owned());
        }
    }
    Some((items, decoder.finish().ok()?))
}

fn read_at_once(bytes: &[u8]) -> Option<Parts> {
    #[derive(Deserialize)]
    struct Items<'a> {
        // Null is fine, absence is not.
        #[serde(borrow, deserialize_with = "Option::deserialize")]
        items: Option<Vec<&'a RawValue>>,
    }
    let text = std::str::from_utf8(bytes).ok()?;
    // A list is an object; serde takes an array for a struct, too.
    text.trim_start().starts_with('{').then_some(())?;
    let envelope: ListEnvelope = serde_json::from_str(text).ok()?;
    let items: Items<'_> = serde_json::from_str(text).ok()?;
    let items = items.items.unwrap_or_default().into_iter().map(|item| item.get().to_owned());
    envelope.kind.ends_with("List").then(|| (items.collect(), envelope))
}
