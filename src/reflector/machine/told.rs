use std::fmt;

use super::{Effect, Input, WatchEnd};
use crate::api::{ListRequest, VersionMatch, WatchStart};
use crate::object::ResourceVersion;

/// For the log: what happened. Errors by their own words, which quote nothing of an object.
impl fmt::Display for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Start { position } => write!(f, "started{}", after(position.as_ref())),
            Self::Listed { resource_version } => write!(f, "listed up to {resource_version}"),
            Self::ListFailed(error) => write!(f, "the list failed: {error}"),
            Self::WatchOpened => f.write_str("the watch is open"),
            Self::Heard => f.write_str("the cache is known to keep up"),
            Self::Overdue => f.write_str("nothing was heard for too long"),
            Self::InitialEventsEnded { resource_version } => {
                write!(f, "the streamed list came to its end at {resource_version}")
            }
            Self::WatchEnded { end, position, .. } => {
                let position = after(position.as_ref());
                match end {
                    WatchEnd::Closed => write!(f, "the watch was closed{position}"),
                    WatchEnd::Failed(error) => write!(f, "the watch failed{position}: {error}"),
                    WatchEnd::NoEndOfInitialEvents => {
                        write!(f, "the streamed list had no end{position}")
                    }
                }
            }
            Self::ChildPanicked { panic, position } => {
                write!(f, "lister or watcher panicked{}: {panic}", after(position.as_ref()))
            }
            Self::WaitOver => f.write_str("waited"),
            Self::Served(Ok(true)) => f.write_str("the kind is served"),
            Self::Served(Ok(false)) => f.write_str("the kind is not served"),
            Self::Served(Err(error)) => write!(f, "whether the kind is served is unknown: {error}"),
            Self::StoreRestarted { position } => {
                write!(f, "the store was restarted{}", after(position.as_ref()))
            }
            Self::Drifted => f.write_str("an audit found differences"),
            Self::Stop => f.write_str("to stop"),
        }
    }
}

/// For the log: what is done about it.
impl fmt::Display for Effect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Report(verb, _) => write!(f, "tell that the {verb} failed"),
            Self::List { request, .. } => write!(f, "list {}", how_new(request)),
            Self::Watch { request, .. } => match &request.start {
                WatchStart::After(version) => write!(f, "watch after {version}"),
                WatchStart::InitialEvents { not_older_than: None } => {
                    f.write_str("stream a list, the newest")
                }
                WatchStart::InitialEvents { not_older_than: Some(version) } => {
                    write!(f, "stream a list no older than {version}")
                }
            },
            Self::AskWhetherServed(_) => f.write_str("ask whether the kind is served"),
            Self::Forget => f.write_str("give up all objects"),
            Self::Wait(delay) => write!(f, "wait {delay:?}"),
            Self::Abort => f.write_str("end what is under way"),
        }
    }
}

fn after(position: Option<&ResourceVersion>) -> String {
    position.map_or_else(String::new, |position| format!(" at {position}"))
}

fn how_new(request: &ListRequest) -> String {
    match &request.version {
        None => "the newest".to_owned(),
        Some(VersionMatch::NotOlderThan(version)) => format!("no older than {version}"),
        Some(VersionMatch::Exact(version)) => format!("exactly {version}"),
    }
}
