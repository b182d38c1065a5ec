use serde::Deserialize;

use crate::object::describe;
use crate::object::json::ValueScan;

/// Takes a list apart while it arrives: item by item, then what stood around them.
///
/// The bytes may come in any pieces, and the parts of the list in any order. Nothing that was taken out counts before
/// [`finish`](Self::finish) has said that the document was whole: a body cut short is an error, never a shorter list.
#[derive(Debug)]
pub(super) struct ListDecoder {
    limits: ListLimits,
    buffer: Vec<u8>,
    /// What comes before in `buffer` was taken out or is of no use.
    start: usize,
    /// How far `buffer` was looked at; `place` describes this place.
    scanned: usize,
    place: Place,
    scan: ValueScan,
    /// The key of the value being read, as it was written, quotes included.
    key: Vec<u8>,
    /// The beginning of an item that is too large to be kept.
    beginning: Vec<u8>,
    /// The document without its items.
    envelope: Vec<u8>,
    items: Items,
    /// Of the whole document, how many bytes came.
    received: u64,
}

/// How large the parts of a list may be, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ListLimits {
    pub(super) item: usize,
    /// All that is not items.
    pub(super) envelope: usize,
    pub(super) total: u64,
}

/// What was found in a list.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Found<'a> {
    /// The JSON of an item.
    Item(&'a str),
    /// The beginning of an item larger than the limit.
    Large(&'a [u8]),
}

/// So much is kept of an item that is too large: enough to say which it is.
const BEGINNING: usize = 64 << 10;

/// What stood around the items.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct ListEnvelope {
    pub(super) kind: String,
    pub(super) api_version: String,
    pub(super) metadata: ListMetadata,
}

/// `metadata` of a list.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct ListMetadata {
    pub(super) resource_version: String,
    pub(super) r#continue: String,
}

/// Why a document is not a list. Completes "the list of pods …".
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum ListProblem {
    #[error("can not be read: no JSON at byte {0}")]
    NoJson(u64),
    #[error("can not be read: {0}")]
    BadEnvelope(String),
    #[error("came as {0:?}")]
    OtherKind(String),
    #[error("has no items")]
    NoItems,
    #[error("has its items twice")]
    ItemsTwice,
    #[error("has items that are not in an array")]
    ItemsNoArray,
    #[error("was cut short after {0} bytes")]
    CutShort(u64),
    #[error("has more than {0} bytes beside its items")]
    LargeEnvelope(usize),
    #[error("is larger than {0} bytes")]
    TooLarge(u64),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Outside,
    /// After the first bracket: a key, or the end.
    FirstKey,
    NextKey,
    Key,
    Colon,
    BeforeValue,
    Value,
    AfterValue,
    /// After the bracket of the items: an item, or their end.
    FirstItem,
    NextItem,
    Item,
    /// In an item that is passed over.
    LargeItem,
    AfterItem,
    End,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Items {
    NotSeen,
    Seen,
}

impl ListDecoder {
    pub(super) fn new(limits: ListLimits) -> Self {
        Self {
            limits,
            buffer: Vec::new(),
            start: 0,
            scanned: 0,
            place: Place::Outside,
            scan: ValueScan::beginning_with(b'{'),
            key: Vec::new(),
            beginning: Vec::new(),
            envelope: Vec::new(),
            items: Items::NotSeen,
            received: 0,
        }
    }

    /// Takes more bytes.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Result<(), ListProblem> {
        self.received += bytes.len() as u64;
        if self.received > self.limits.total {
            return Err(ListProblem::TooLarge(self.limits.total));
        }
        self.buffer.drain(..self.start);
        self.scanned -= self.start;
        self.start = 0;
        self.buffer.extend_from_slice(bytes);
        Ok(())
    }

    /// The next item; none until more bytes come.
    pub(super) fn next_item(&mut self) -> Result<Option<Found<'_>>, ListProblem> {
        while let Some(&byte) = self.buffer.get(self.scanned) {
            match self.place {
                Place::Key | Place::Value | Place::Item | Place::LargeItem => {
                    let Ok(length) = self.scan.advance(&self.buffer[self.scanned..]) else {
                        self.scanned = self.buffer.len();
                        break;
                    };
                    self.scanned += length;
                    let from = std::mem::replace(&mut self.start, self.scanned);
                    match self.place {
                        Place::Item => return self.item(from).map(Some),
                        Place::LargeItem => {
                            self.place = Place::AfterItem;
                            return Ok(Some(Found::Large(&self.beginning)));
                        }
                        _ => self.keep(from)?,
                    }
                }
                _ if matches!(byte, b' ' | b'\t' | b'\r' | b'\n') => self.pass(),
                place => match (place, byte) {
                    (Place::Outside, b'{') => self.pass_to(Place::FirstKey),
                    (Place::FirstKey | Place::NextKey, b'"') => self.begin(Place::Key, byte),
                    (Place::FirstKey | Place::AfterValue, b'}') => self.pass_to(Place::End),
                    (Place::AfterValue, b',') => self.pass_to(Place::NextKey),
                    (Place::Colon, b':') => self.pass_to(Place::BeforeValue),
                    (Place::BeforeValue, _) if self.is_at_items() => self.begin_items(byte)?,
                    (Place::FirstItem | Place::AfterItem, b']') => self.pass_to(Place::AfterValue),
                    (Place::AfterItem, b',') => self.pass_to(Place::NextItem),
                    // A value begins with neither of these.
                    (
                        Place::BeforeValue | Place::FirstItem | Place::NextItem,
                        b',' | b':' | b']' | b'}',
                    ) => return Err(self.no_json()),
                    (Place::BeforeValue, _) => self.begin(Place::Value, byte),
                    (Place::FirstItem | Place::NextItem, _) => self.begin(Place::Item, byte),
                    _ => return Err(self.no_json()),
                },
            }
        }
        match self.place {
            Place::Item if self.scanned - self.start > self.limits.item => {
                self.begin_to_pass_over(self.start);
                self.place = Place::LargeItem;
                self.start = self.scanned;
            }
            Place::LargeItem => self.start = self.scanned,
            place => self.check_size(place, self.scanned - self.start)?,
        }
        Ok(None)
    }

    /// The item that began at `from` and ends here.
    fn item(&mut self, from: usize) -> Result<Found<'_>, ListProblem> {
        self.place = Place::AfterItem;
        if self.scanned - from > self.limits.item {
            self.begin_to_pass_over(from);
            return Ok(Found::Large(&self.beginning));
        }
        let item = std::str::from_utf8(&self.buffer[from..self.scanned]);
        item.map(Found::Item).map_err(|_error| self.no_json())
    }

    /// Keeps the beginning of what is too large to be kept.
    fn begin_to_pass_over(&mut self, from: usize) {
        let kept = (self.scanned - from).min(BEGINNING).min(self.limits.item);
        self.beginning = self.buffer[from..from + kept].to_vec();
    }

    /// What stood around the items, once all bytes have come and every item was taken out.
    pub(super) fn finish(self) -> Result<ListEnvelope, ListProblem> {
        if self.place != Place::End || self.scanned < self.buffer.len() {
            return Err(ListProblem::CutShort(self.received));
        }
        let mut document = self.envelope;
        document.insert(0, b'{');
        document.push(b'}');
        let envelope: ListEnvelope = serde_json::from_slice(&document)
            .map_err(|error| ListProblem::BadEnvelope(describe(&error)))?;
        check_kind(&envelope.kind)?;
        match self.items {
            Items::Seen => Ok(envelope),
            Items::NotSeen => Err(ListProblem::NoItems),
        }
    }

    fn pass(&mut self) {
        self.scanned += 1;
        self.start = self.scanned;
    }

    fn pass_to(&mut self, place: Place) {
        self.pass();
        self.place = place;
    }

    fn begin(&mut self, place: Place, byte: u8) {
        self.start = self.scanned;
        self.scan = ValueScan::beginning_with(byte);
        self.place = place;
    }

    fn is_at_items(&self) -> bool {
        self.key == br#""items""#
    }

    fn begin_items(&mut self, byte: u8) -> Result<(), ListProblem> {
        if std::mem::replace(&mut self.items, Items::Seen) == Items::Seen {
            return Err(ListProblem::ItemsTwice);
        }
        match byte {
            b'[' => self.pass_to(Place::FirstItem),
            b'n' => self.begin(Place::Value, byte),
            _ => return Err(ListProblem::ItemsNoArray),
        }
        Ok(())
    }

    /// Keeps the key or the value that began at `from` and ends here.
    fn keep(&mut self, from: usize) -> Result<(), ListProblem> {
        self.check_size(self.place, self.scanned - from)?;
        let token = &self.buffer[from..self.scanned];
        if self.place == Place::Key {
            // One way to write each key, so that `"\u0069tems"` is no way around the items.
            let key: String = serde_json::from_slice(token).map_err(|_error| self.no_json())?;
            self.key = serde_json::Value::String(key).to_string().into_bytes();
            self.place = Place::Colon;
            return Ok(());
        }
        self.place = Place::AfterValue;
        if self.is_at_items() {
            let nothing = token == b"null";
            return if nothing { Ok(()) } else { Err(ListProblem::ItemsNoArray) };
        }
        if self.key == br#""kind""#
            && let Ok(kind) = serde_json::from_slice::<String>(token)
        {
            // What is no list need not be read to its end.
            check_kind(&kind)?;
        }
        // Serde does not look at the letters of what it passes over.
        std::str::from_utf8(token).map_err(|_error| self.no_json())?;
        if !self.envelope.is_empty() {
            self.envelope.push(b',');
        }
        self.envelope.extend_from_slice(&self.key);
        self.envelope.push(b':');
        self.envelope.extend_from_slice(token);
        Ok(())
    }

    fn check_size(&self, place: Place, length: usize) -> Result<(), ListProblem> {
        match place {
            Place::Key | Place::Value
                if self.envelope.len() + self.key.len() + length > self.limits.envelope =>
            {
                Err(ListProblem::LargeEnvelope(self.limits.envelope))
            }
            _ => Ok(()),
        }
    }

    fn no_json(&self) -> ListProblem {
        ListProblem::NoJson(self.received - (self.buffer.len() - self.scanned) as u64)
    }
}

/// A `Table`, a `Status` or a single object is not an empty list.
fn check_kind(kind: &str) -> Result<(), ListProblem> {
    if kind.ends_with("List") {
        return Ok(());
    }
    let readable = kind.chars().filter(char::is_ascii_alphanumeric).take(64).collect();
    Err(ListProblem::OtherKind(readable))
}

#[cfg(test)]
#[path = "list_tests.rs"]
mod tests;
