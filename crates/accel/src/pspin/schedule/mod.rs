//! The packet scheduler (§III-B1): message processing queues, and the dispatcher that gives their tasks to clusters.

mod arbiter;
mod cells;
mod dispatch;
mod lru;
mod mpq;

pub use arbiter::{RoundRobin, first_from};
pub use dispatch::Dispatcher;
pub use mpq::{Completion, Ended, Mpq, Selected};
