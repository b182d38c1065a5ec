//! client-go's own tests, held against this crate. A test cites those it ports, and the rules it holds: `REF`
//! reflector, `WL` streaming lists, `PG` pages, `DF` DeltaFIFO, `RF` RealFIFO, `IX`, `ST` and `TS` indexer and store,
//! `CT` delta to cache, `SI` and `PL` subscribers. README.md says what does not apply, and why.

mod audits;
mod catalogue;
mod controller;
mod delta_fifo;
mod in_order;
mod indexer;
mod queues;
mod reflector_lists;
mod reflector_stops;
mod reflector_watches;
mod relists;
mod retry_watcher;
mod script;
mod shared_informer;
mod shared_informer_life;
mod sources;
mod store;
mod streaming_list;
mod support;
mod waiting;
#[path = "../it/support.rs"]
#[allow(dead_code, reason = "the words of the integration tests, not all of which are needed here")]
mod words;
