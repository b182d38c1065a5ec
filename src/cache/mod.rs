//! The queue and the cache, without actors: nothing here waits, fails or reads a clock.

mod delta;
mod delta_fifo;
mod in_order;
mod indexer;
mod per_object;
mod snapshot;
mod store;
mod tree;

pub use self::delta::{Change, Delta, Deltas, Refusal, Transform, TransformError};
pub use self::delta_fifo::{DeltaFifo, Discipline, Popped, Position};
pub use self::indexer::{Indexer, Sameness, Transition};
pub use self::snapshot::{Difference, IndexConflict, IndexFn, Snapshot, UnknownIndex};
pub use self::store::{Store, StoreWriter};
