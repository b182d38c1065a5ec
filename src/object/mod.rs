//! What is reflected: objects, their keys, versions and kinds.

mod field_selector;
mod head;
pub(crate) mod json;
mod key;
mod kind;
mod lazy;
mod read;
mod resource;
mod selector;
mod version;

pub use kube_core::DynamicObject;

pub use self::field_selector::{FieldSelector, ParseFieldSelectorError};
pub use self::head::{Head, HeadMetadata, ObjectJson, Prune};
pub use self::key::{ObjectKey, ParseObjectKeyError};
pub use self::kind::{Kind, Scope};
pub use self::lazy::Lazy;
pub use self::read::read;
#[cfg(feature = "client")]
pub(crate) use self::resource::describe;
pub(crate) use self::resource::is_same_object;
pub use self::resource::{DecodeError, Resource, StaticKind};
pub use self::selector::{LabelSelector, ParseSelectorError};
pub use self::version::ResourceVersion;
