//! The packet scheduler (§III-B1): message processing queues, and the dispatcher that gives their tasks to clusters.

mod dispatch;
mod lru;
mod mpq;
mod tasks;

pub use dispatch::Dispatcher;
pub use mpq::{Completion, Ended, Mpq, Selected};
pub use tasks::{TaskId, Tasks};
