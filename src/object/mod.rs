//! What is reflected: objects, their keys, versions and kinds.

mod field_selector;
mod key;
mod kind;
mod resource;
mod selector;
mod version;

pub use kube_core::DynamicObject;

pub use self::field_selector::{FieldSelector, ParseFieldSelectorError};
pub use self::key::{ObjectKey, ParseObjectKeyError};
pub use self::kind::{Kind, Scope};
#[cfg(feature = "client")]
pub(crate) use self::resource::describe;
pub(crate) use self::resource::is_same_object;
pub use self::resource::{DecodeError, Head, HeadMetadata, Resource, StaticKind};
pub use self::selector::{LabelSelector, ParseSelectorError};
pub use self::version::ResourceVersion;
