use std::sync::Arc;

/// What one rank did, as a trace file tells it.
#[derive(Debug, Default)]
pub struct RankTrace {
    /// In the order of the calls
    pub events: Vec<Event>,
    /// Of the communicators that the events name, what they are
    pub comms: Vec<Arc<Group>>,
    /// Calls that a schedule has no counterpart of
    pub others: Vec<String>,
    /// Whether there are calls on windows
    pub has_windows: bool,
    /// Whether the file ends before the program did
    pub truncated: bool,
    /// Number of recorded calls
    pub calls: u64,
    /// Nanoseconds from MPI_Init to MPI_Finalize
    pub total_ns: u64,
    /// Computation after the last call
    pub tail_ns: u64,
}

/// The processes of a communicator, by their ranks in MPI_COMM_WORLD, and which of several communicators with the same
/// processes it is.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Group {
    /// Of an intercommunicator: this side
    pub local: Vec<u32>,
    /// Of an intercommunicator: the other side
    pub remote: Option<Vec<u32>>,
    /// Counted on each of its processes, which all make them in the same order
    pub ordinal: u32,
}

impl Group {
    /// The ranks that calls name.
    pub fn peers(&self) -> &[u32] {
        self.remote.as_ref().unwrap_or(&self.local)
    }
}

/// A call, or a part of one.
#[derive(Debug)]
pub struct Event {
    /// Nanoseconds of computation before
    pub gap_ns: u64,
    /// Nanoseconds in the call
    pub wall_ns: u64,
    pub what: What,
}

impl Event {
    pub fn new(gap_ns: u64, wall_ns: u64, what: What) -> Event {
        Event { gap_ns, wall_ns, what }
    }

    /// Follows another without time between.
    pub fn at_once(what: What) -> Event {
        Event::new(0, 0, what)
    }
}

/// Ranks are those in MPI_COMM_WORLD; communicators are places in [`RankTrace::comms`].
#[derive(Debug)]
pub enum What {
    /// Nothing but time
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
    /// Completion of what another event, by its place, has started
    Wait(u32),
    Collective(Box<Collective>),
    /// Access to a window, which has a place among the communicators
    Access(Box<Access>),
    /// Another call on a window
    Window(u32, Box<WindowCall>),
}

/// A one-sided access to the memory of another rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    pub window: u32,
    pub target: u32,
    /// To the target
    pub bytes: u64,
    /// From the target, if something comes back
    pub back: Option<u64>,
}

/// What a call makes of a window or its epochs. Ranks are those in MPI_COMM_WORLD; a target that is none stands for all.
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

/// Where a collective starts or ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Root {
    /// There is none
    Nowhere,
    /// This rank, of an intercommunicator
    Here,
    /// Another rank on this side of an intercommunicator: this one has no part
    Beside,
    /// A rank of the communicator; of an intercommunicator, of the other side
    At(u32),
}

/// How much a collective moves.
#[derive(Clone, Debug)]
pub enum Amount {
    /// Bytes: of the vector, or for each rank
    Same(u64),
    /// For and from each rank
    Each { own: u64, send: Vec<u64>, recv: Vec<u64> },
    /// Ranks in MPI_COMM_WORLD and bytes
    Neighbors { send: Vec<(u32, u64)>, recv: Vec<(u32, u64)> },
}

/// What a collective does.
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
    /// All, in the order of their numbers in a trace file (`sdk/tracer/format.h`).
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

    /// As in the names of MPI, in lower case.
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
