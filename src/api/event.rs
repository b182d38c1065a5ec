use std::fmt;
use std::sync::Arc;

use crate::object::{Kind, ObjectKey, Resource, ResourceVersion};

/// One object of an answer, or why it could not be read.
#[derive(Debug)]
pub enum Item<K> {
    /// The object.
    Object(Arc<K>),
    /// The server sent something else. It must not cost the objects beside it.
    Undecodable(Undecodable),
}

/// An object that was sent but could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Undecodable {
    /// Which object, if that much could be read.
    pub key: Option<ObjectKey>,
    /// The version of the state that could not be read.
    pub resource_version: Option<ResourceVersion>,
    /// What is wrong with it.
    pub reason: String,
}

/// One page of a list.
#[derive(Debug)]
pub struct ListPage<K> {
    /// The objects of this page.
    pub items: Vec<Item<K>>,
    /// The version of the whole list, the same on every page of it.
    pub resource_version: Option<ResourceVersion>,
    /// Asks for the next page; none on the last.
    pub continue_token: Option<String>,
}

/// Which state of which object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// Which object.
    pub key: ObjectKey,
    /// What tells it from an earlier object of the same name.
    pub uid: Option<String>,
    /// The version of the state.
    pub resource_version: Option<ResourceVersion>,
}

/// One page of a list, of which only names and versions are wanted.
#[derive(Debug)]
pub struct IdentityPage {
    /// What this page holds. Objects without a name are left out.
    pub items: Vec<Identity>,
    /// The version of the whole list, the same on every page of it.
    pub resource_version: Option<ResourceVersion>,
    /// Asks for the next page; none on the last.
    pub continue_token: Option<String>,
}

/// One event of a watch.
#[derive(Debug)]
pub enum WatchEvent<K> {
    /// The object is new, or new to the selection.
    Added(Item<K>),
    /// The object changed.
    Modified(Item<K>),
    /// The object is gone, or left the selection. Holds its last state, at the version of the deletion.
    Deleted(Item<K>),
    /// Nothing changed up to this version.
    Bookmark {
        /// The version.
        resource_version: ResourceVersion,
        /// Whether it ends the initial events of a streaming list.
        ends_initial_events: bool,
    },
    /// An event of a type we do not know; it moves nothing.
    Unknown {
        /// Its type.
        event_type: String,
    },
}

impl<K: Resource> Item<K> {
    /// Passes on an object of this kind that has a name, and makes a report of any other: a source may be anybody's.
    #[must_use]
    pub fn checked(self, kind: &Kind) -> Self {
        let Self::Object(object) = &self else { return self };
        let key = object.key();
        let is_named = !key.name().is_empty();
        let reason = match object.stated_type() {
            _ if !is_named => "the object has no name".to_owned(),
            Some((api_version, stated)) if !kind.is_of(api_version, stated) => {
                kind.mismatch(api_version, stated)
            }
            _ => return self,
        };
        let resource_version = self.resource_version();
        Self::Undecodable(Undecodable { key: is_named.then_some(key), resource_version, reason })
    }

    /// Which state of which object it is, if that is known.
    pub fn identity(&self) -> Option<Identity> {
        let uid = self.uid().map(str::to_owned);
        Some(Identity { key: self.key()?, uid, resource_version: self.resource_version() })
    }

    /// What tells the object from an earlier one of the same name, if that is known.
    pub fn uid(&self) -> Option<&str> {
        match self {
            Self::Object(object) => object.uid(),
            Self::Undecodable(_) => None,
        }
    }

    /// Which object it is, if that is known.
    pub fn key(&self) -> Option<ObjectKey> {
        match self {
            Self::Object(object) => Some(object.key()),
            Self::Undecodable(undecodable) => undecodable.key.clone(),
        }
    }

    /// The version of this state.
    pub fn resource_version(&self) -> Option<ResourceVersion> {
        match self {
            Self::Object(object) => object.resource_version().and_then(ResourceVersion::new),
            Self::Undecodable(undecodable) => undecodable.resource_version.clone(),
        }
    }
}

impl<K: Resource> ListPage<K> {
    /// The same page without the objects.
    #[must_use]
    pub fn identities(&self) -> IdentityPage {
        IdentityPage {
            items: self.items.iter().filter_map(Item::identity).collect(),
            resource_version: self.resource_version.clone(),
            continue_token: self.continue_token.clone(),
        }
    }
}

impl<K: Resource> WatchEvent<K> {
    /// The same event, its object [checked](Item::checked).
    #[must_use]
    pub fn checked(self, kind: &Kind) -> Self {
        match self {
            Self::Added(item) => Self::Added(item.checked(kind)),
            Self::Modified(item) => Self::Modified(item.checked(kind)),
            Self::Deleted(item) => Self::Deleted(item.checked(kind)),
            Self::Bookmark { .. } | Self::Unknown { .. } => self,
        }
    }

    /// What it is about, unless about no object.
    pub fn item(&self) -> Option<&Item<K>> {
        match self {
            Self::Added(item) | Self::Modified(item) | Self::Deleted(item) => Some(item),
            Self::Bookmark { .. } | Self::Unknown { .. } => None,
        }
    }

    /// The version after this event, from which a watch may resume.
    pub fn resource_version(&self) -> Option<ResourceVersion> {
        match self {
            Self::Added(item) | Self::Modified(item) | Self::Deleted(item) => {
                item.resource_version()
            }
            Self::Bookmark { resource_version, .. } => Some(resource_version.clone()),
            Self::Unknown { .. } => None,
        }
    }
}

impl fmt::Display for Undecodable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.key {
            Some(key) => write!(f, "{key}: {}", self.reason),
            None => write!(f, "an object without a name: {}", self.reason),
        }
    }
}
