use cluster::Access;

use ranks::{Call, Caller, Reply};

/// The cluster whose ranks are processes.
pub type Cluster = cluster::Cluster<Event>;

/// What ranks schedule.
pub enum Event {
    /// A call answers its thread.
    Resume(Caller, Box<Reply>),
    /// The time of a memory access is over, unless others have used the memory as well.
    Accessed(Caller, Box<Access>),
    /// A call is made, after the CPU time that the rank has used since its last one.
    Call(Box<Call>),
    /// A rank's CPU has completed what an rdma card had left to it.
    Completed(u32),
    /// A rank that polls its memory sees what was written to it.
    Notice(u32),
    /// The time limit of the wait with this number ends.
    Timeout(Caller, u64),
}

impl Event {
    /// The rank that it belongs to.
    pub fn rank(&self) -> usize {
        let rank = match self {
            Event::Resume(caller, _) | Event::Accessed(caller, _) | Event::Timeout(caller, _) => caller.rank,
            Event::Call(call) => call.caller.rank,
            Event::Completed(rank) | Event::Notice(rank) => *rank,
        };
        rank as usize
    }
}
