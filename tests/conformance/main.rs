//! client-go's rules, one test each. A test cites the rule it holds: `DF` DeltaFIFO, `RF` RealFIFO, `IX` and `TS`
//! indexer and store, `CT` delta to cache.

mod delta_fifo;
mod in_order;
mod indexer;
mod support;
