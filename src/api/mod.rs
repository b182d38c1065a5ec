//! The seam to an API server: what is asked, what is answered, and what an error means.

mod error;
mod event;
mod lister_watcher;
mod request;
mod status;

pub use self::error::{ApiError, Recovery};
pub use self::event::{Identity, IdentityPage, Item, ListPage, Undecodable, WatchEvent};
pub use self::lister_watcher::{
    IdentitiesFuture, Known, ListFuture, ListWatch, ListerWatcher, WatchFuture, WatchStream,
};
pub use self::request::{ListRequest, Selection, Verb, VersionMatch, WatchRequest, WatchStart};
#[cfg(feature = "client")]
pub(crate) use self::status::null_as_default;
pub use self::status::{Status, StatusCause, StatusDetails};
