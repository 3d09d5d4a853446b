//! The packet scheduler (§III-B1): message processing queues, and the dispatcher that gives their tasks to clusters.

mod cells;
mod dispatch;
mod lru;
mod mpq;

pub use dispatch::Dispatcher;
pub use mpq::{Completion, Ended, Mpq, Selected};
