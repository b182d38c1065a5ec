//! JSON that is looked at without being read: where its values begin and end. And a reader that passes over what nobody
//! asks for in the same way.
//!
//! Of what is passed over, only strings and brackets are understood. Whether that is JSON at all is for its reader to say.

mod blocks;
mod cursor;
mod members;
mod reader;
mod scan;

pub(crate) use self::members::{Member, Members, NoObject, text};
pub(crate) use self::reader::{Unread, read};
pub(crate) use self::scan::{Unfinished, ValueScan};
