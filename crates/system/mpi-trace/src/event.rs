// SPDX-License-Identifier: Apache-2.0
//! Events of a trace, independent of the file format.

use std::sync::Arc;

/// Events of a rank, as recorded in a trace file.
#[derive(Debug, Default)]
pub struct RankTrace {
    /// Events in call order.
    pub events: Vec<Event>,
    /// Communicators; events refer to their indices.
    pub comms: Vec<Arc<Group>>,
    /// Names of calls without a counterpart in schedules.
    pub others: Vec<String>,
    /// True if the trace has window calls.
    pub has_windows: bool,
    /// True if the file ends before the program did.
    pub truncated: bool,
    /// Number of recorded calls.
    pub calls: u64,
    /// Time from MPI_Init to MPI_Finalize in nanoseconds.
    pub total_ns: u64,
    /// Computation time after the last call in nanoseconds.
    pub tail_ns: u64,
}

/// A communicator: its processes, by their ranks in MPI_COMM_WORLD, and its number among communicators of the same
/// processes.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Group {
    /// Processes; in an intercommunicator, those of this side.
    pub local: Vec<u32>,
    /// Processes of the other side of an intercommunicator.
    pub remote: Option<Vec<u32>>,
    /// Number among communicators of the same processes, which all of them create in the same order.
    pub ordinal: u32,
}

impl Group {
    /// Returns the processes to which ranks in calls refer.
    pub fn peers(&self) -> &[u32] {
        self.remote.as_ref().unwrap_or(&self.local)
    }
}

/// A call, or a part of one.
#[derive(Debug)]
pub struct Event {
    /// Computation time before the call in nanoseconds.
    pub gap_ns: u64,
    /// Time in the call in nanoseconds.
    pub wall_ns: u64,
    pub what: What,
}

impl Event {
    pub fn new(gap_ns: u64, wall_ns: u64, what: What) -> Event {
        Event { gap_ns, wall_ns, what }
    }

    /// Returns an event without computation before it.
    pub fn at_once(what: What) -> Event {
        Event::new(0, 0, what)
    }
}

/// Action of an event. Ranks are those in MPI_COMM_WORLD; communicators are indices in [`RankTrace::comms`].
#[derive(Debug)]
pub enum What {
    /// No communication.
    Nothing,
    Send {
        comm: u32,
        to: u32,
        tag: u32,
        bytes: u64,
        blocking: bool,
    },
    Recv {
        comm: u32,
        from: Option<u32>,
        tag: Option<u32>,
        bytes: u64,
        blocking: bool,
    },
    /// Completion of the event with this index.
    Wait(u32),
    Collective(Box<Collective>),
    /// Access to a window, which has an index among the communicators.
    Access(Box<Access>),
    /// Another call on a window.
    Window(u32, Box<WindowCall>),
}

/// A one-sided access to the memory of another rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    pub window: u32,
    pub target: u32,
    /// Number of bytes sent to the target.
    pub bytes: u64,
    /// Number of bytes that the target sends back, if it answers.
    pub back: Option<u64>,
}

/// A call that concerns a window or its epochs. Ranks are those in MPI_COMM_WORLD. A target of `None` stands for all
/// targets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WindowCall {
    Create,
    Free,
    Fence,
    Post(Vec<u32>),
    Start(Vec<u32>),
    Complete,
    Wait,
    Lock(Option<u32>),
    Unlock(Option<u32>),
    Flush(Option<u32>),
    FlushLocal(Option<u32>),
}

/// A collective call.
#[derive(Clone, Debug)]
pub struct Collective {
    pub comm: u32,
    pub operation: Operation,
    pub root: Root,
    pub amount: Amount,
    pub blocking: bool,
}

/// Root of a collective.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Root {
    /// The collective has no root.
    Nowhere,
    /// This rank of an intercommunicator.
    Here,
    /// Another rank on this side of an intercommunicator. This rank does not take part.
    Beside,
    /// A rank of the communicator, or of the other side of an intercommunicator.
    At(u32),
}

/// Sizes of a collective.
#[derive(Clone, Debug)]
pub enum Amount {
    /// Number of bytes of the vector, or for each rank.
    Same(u64),
    /// Number of bytes to and from each rank.
    Each { own: u64, send: Vec<u64>, recv: Vec<u64> },
    /// Neighbours in MPI_COMM_WORLD, with the number of bytes for each.
    Neighbors { send: Vec<(u32, u64)>, recv: Vec<(u32, u64)> },
}

/// Operation of a collective.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operation {
    Barrier,
    Bcast,
    Reduce,
    Allreduce,
    Scan,
    Exscan,
    Allgather,
    Alltoall,
    Gather,
    Scatter,
    ReduceScatterBlock,
    Allgatherv,
    Gatherv,
    Scatterv,
    Alltoallv,
    ReduceScatter,
    Neighbor,
}

impl Operation {
    /// All operations, in the order of their numbers in trace files (`sdk/tracer/format.h`).
    pub const ALL: [Operation; 17] = [
        Operation::Barrier,
        Operation::Bcast,
        Operation::Reduce,
        Operation::Allreduce,
        Operation::Scan,
        Operation::Exscan,
        Operation::Allgather,
        Operation::Alltoall,
        Operation::Gather,
        Operation::Scatter,
        Operation::ReduceScatterBlock,
        Operation::Allgatherv,
        Operation::Gatherv,
        Operation::Scatterv,
        Operation::Alltoallv,
        Operation::ReduceScatter,
        Operation::Neighbor,
    ];

    /// Returns the name as in MPI, in lower case.
    pub fn name(self) -> &'static str {
        match self {
            Operation::Barrier => "barrier",
            Operation::Bcast => "bcast",
            Operation::Reduce => "reduce",
            Operation::Allreduce => "allreduce",
            Operation::Scan => "scan",
            Operation::Exscan => "exscan",
            Operation::Allgather => "allgather",
            Operation::Alltoall => "alltoall",
            Operation::Gather => "gather",
            Operation::Scatter => "scatter",
            Operation::ReduceScatterBlock => "reduce_scatter_block",
            Operation::Allgatherv => "allgatherv",
            Operation::Gatherv => "gatherv",
            Operation::Scatterv => "scatterv",
            Operation::Alltoallv => "alltoallv",
            Operation::ReduceScatter => "reduce_scatter",
            Operation::Neighbor => "neighbor",
        }
    }
}

/// Returns the index of an event, a communicator or a rank as it is stored.
///
/// # Panics
/// Panics from 2^32 on, which no memory holds.
pub(crate) fn index_of(place: usize) -> u32 {
    u32::try_from(place).expect("a trace in memory has fewer than 2^32 events and communicators")
}
