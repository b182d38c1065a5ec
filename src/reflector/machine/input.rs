use std::time::Duration;

use crate::api::{ApiError, ListRequest, Verb, WatchRequest};
use crate::object::ResourceVersion;
use crate::reflector::history::Older;
use crate::reflector::vigil::{Record, Vigilance};

/// What happened.
#[derive(Debug)]
pub(in crate::reflector) enum Input {
    /// The reflector was started, or restarted after a crash. The cache has come up to `position`.
    Start { position: Option<ResourceVersion> },
    /// A list has been applied.
    Listed { resource_version: ResourceVersion },
    /// A list failed; nothing of it has been applied.
    ListFailed(ApiError),
    /// The server answers a watch.
    WatchOpened,
    /// A watch proved that the cache keeps up, for the first time or again.
    Heard,
    /// Nothing has proved for too long that the cache keeps up.
    Overdue,
    /// A streamed list has been applied; its stream goes on as a watch.
    InitialEventsEnded { resource_version: ResourceVersion },
    /// A watch, or a list being streamed, ended. The cache has come up to `position`.
    WatchEnded { end: WatchEnd, position: Option<ResourceVersion>, record: Record },
    /// The child that listed or watched panicked. The cache has come up to `position`.
    ChildPanicked { panic: String, position: Option<ResourceVersion> },
    /// The wait is over.
    WaitOver,
    /// The server was asked whether it has the kind.
    Served(Result<bool, ApiError>),
    /// The actor that applies changes was restarted: changes may be lost. The cache has come up to `position`.
    StoreRestarted { position: Option<ResourceVersion> },
    /// An audit found that the cache differs from the server.
    Drifted,
    /// The reflector is to stop.
    Stop,
}

#[derive(Debug)]
pub(in crate::reflector) enum WatchEnd {
    Closed,
    Failed(ApiError),
    /// No end of the initial events came.
    NoEndOfInitialEvents,
}

/// What to do now.
#[derive(Debug)]
pub(in crate::reflector) enum Effect {
    /// Tell everybody what went wrong, and what had been asked for.
    Report(Verb, ApiError),
    List {
        request: ListRequest,
        older: Older,
    },
    /// Watch, or stream a list: the request says which.
    Watch {
        request: WatchRequest,
        older: Older,
        vigilance: Vigilance,
    },
    /// Ask the server whether it has the kind.
    AskWhetherServed(ListRequest),
    /// Give up all objects: their kind is gone.
    Forget,
    Wait(Duration),
    /// End the child that lists or watches.
    Abort,
}
