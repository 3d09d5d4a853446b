// SPDX-License-Identifier: Apache-2.0
//! Packet scheduler (§III-B1): message processing queues, and the dispatcher of their tasks to clusters.

mod dispatch;
mod lru;
mod mpq;
mod tasks;

pub use dispatch::{Dispatcher, choose_apart};
pub use mpq::{Completion, Ended, Mpq, Selected};
pub use tasks::{TaskId, Tasks};
