// SPDX-License-Identifier: Apache-2.0
//! Events scheduled by ranks.

use cluster::Access;

use ranks::{Call, Caller, Reply};

/// Cluster whose ranks are processes.
pub type Cluster = cluster::Cluster<Event>;

/// Event scheduled by a rank.
pub enum Event {
    /// A thread receives the reply to its call.
    Resume(Caller, Box<Reply>),
    /// A memory access ends, unless others also use the memory.
    Accessed(Caller, Box<Access>),
    /// A call is made, after the CPU time used since the rank's last call.
    Call(Box<Call>),
    /// A rank starts, later than others.
    Start(u32),
    /// A rank's CPU completed a message of an rdma card.
    Completed(u32),
    /// A rank that polls its memory notices a write.
    Notice(u32),
    /// The time limit of the wait with this number expires.
    Timeout(Caller, u64),
}

impl Event {
    /// Returns the rank of the event.
    pub fn rank(&self) -> usize {
        let rank = match self {
            Event::Resume(caller, _) | Event::Accessed(caller, _) | Event::Timeout(caller, _) => caller.rank,
            Event::Call(call) => call.caller.rank,
            Event::Start(rank) | Event::Completed(rank) | Event::Notice(rank) => *rank,
        };
        rank as usize
    }
}
