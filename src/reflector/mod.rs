//! One reflected kind: from a list-watch source to subscriber actors.

mod audit_timer;
mod auditor;
mod care;
mod condition;
mod delivery;
mod delta_fifo_store;
mod drain;
mod event;
mod events;
mod gate;
mod handle;
mod history;
mod in_flight;
mod lister;
mod machine;
mod messages;
mod options;
mod pending;
mod publisher;
mod resync;
mod resync_timer;
mod staged;
mod start;
mod status;
mod subscription;
mod supervisor;
mod vigil;
mod watcher;

pub use self::condition::Condition;
pub use self::event::{Cause, ResourceEvent, ResourceSnapshot};
pub use self::events::{IntoEvents, ResourceEvents};
pub use self::handle::{AddIndexError, NotSynced, Reflector, Stopped};
pub use self::options::{ErrorHandler, InvalidOptions, Options, ShouldResync, StreamingLists};
pub(crate) use self::start::{Control, SourceFactory, start};
pub use self::status::{
    Audits, Changes, Failure, Freshness, Oddities, Phase, Quarantined, ReflectorStatus, Requests,
    SubscriberStatus,
};
pub use self::subscription::{Delivery, SubscribeOptions, Subscription};
