//! What the unit and the NIC exchange: handler execution requests and feedback (§III-A, B), and tasks, which the two become
//! inside.

use std::rc::Rc;

use hpu::Fault;

pub use accel::Role;

/// A range of addresses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Range {
    /// The first address.
    pub address: u32,
    /// The number of bytes.
    pub size: u32,
}

impl Range {
    /// Whether `size` bytes at `address` lie inside.
    #[inline]
    pub fn holds(&self, address: u32, size: u32) -> bool {
        u64::from(address.wrapping_sub(self.address)) + u64::from(size) <= u64::from(self.size)
    }
}

/// A range of addresses of the host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostRange {
    /// The first address.
    pub address: u64,
    /// The number of bytes.
    pub size: u64,
}

/// How handlers find their arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Convention {
    /// The interface of the PsPIN artefact: the runtime is code in program memory, and tasks are in the HPU driver.
    Pspin,
    /// The interface of `spin.h`: arguments are in registers, and commands are calls of the environment.
    P4spin,
}

/// What a message or a flow is processed with (§III-A): handlers, memory, limits. The NIC driver makes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExecutionContext {
    /// Its part of L2 handler memory.
    pub handler_memory: Range,
    /// Its part of host memory.
    pub host: HostRange,
    /// First instruction and size of the header, payload and completion handler; address 0 means that there is none.
    pub handlers: [Range; 3],
    /// Its scratchpad in each cluster's L1, as addresses.
    pub scratchpads: Vec<Range>,
    /// The code of its handlers. The unit protects code as a whole, not each context's: all share one program.
    pub code: Vec<Range>,
    /// Cycles after which one of its handlers is killed (§III-B3).
    pub watchdog_cycles: u64,
    /// Cycles without a packet after which a message is given up (§III-B3).
    pub idle_cycles: u64,
    /// Address of its descriptor in host memory, which is told about errors; 0 means that there is none.
    pub descriptor: u64,
    /// The tenant to which it belongs.
    pub tenant: u32,
    /// How its handlers find their arguments.
    pub convention: Convention,
    /// The cluster on which all of its handlers run, with `accelerator.dispatch.policy = "pinned"`.
    pub pin: Option<u16>,
}

impl ExecutionContext {
    /// First instruction of the handler for a role, if there is one.
    #[inline]
    pub fn entry(&self, role: Role) -> Option<u32> {
        Some(self.handlers[role as usize].address).filter(|address| *address != 0)
    }
}

/// A handler execution request: a packet in L2 that is to be processed (§III-A).
#[derive(Clone, Debug)]
pub struct Her {
    /// The number of the message, which names its queue and its home cluster.
    pub message: u32,
    /// The number by which handlers know the message or flow.
    pub flow: u32,
    /// Whether this is the last packet of the message.
    pub eom: bool,
    /// The packet in L2.
    pub packet: Range,
    /// The number of bytes that are copied to L1.
    pub transfer: u32,
    /// What the message is processed with.
    pub context: Rc<ExecutionContext>,
    /// The NIC's own number, which comes back in the feedback.
    pub user: u64,
}

/// Why a request is not accepted now: the ready line of the interface is low.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Busy {
    /// One request was accepted in this cycle already, or the packet is still being written.
    Cycle,
    /// All cells are occupied that this queue could have.
    Cells,
    /// The queue of this number still belongs to another message.
    Queue,
}

/// The end of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskOutcome {
    /// The handler returned.
    Done,
    /// There is no handler for it, or the header handler of its message failed.
    Skipped,
    /// The handler failed.
    Faulted(Failure),
    /// The watchdog killed the handler.
    TimedOut,
    /// Its message was given up.
    MessageReset,
}

/// Why a handler failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// An instruction failed.
    Fault(Fault),
    /// A command or a transfer names memory of the unit that is not the handler's.
    Command {
        /// The first address.
        address: u32,
        /// The number of bytes.
        size: u32,
    },
    /// A command names memory of the host that the host refuses.
    Host {
        /// The first address.
        address: u64,
    },
    /// The handler, or the runtime around it, has reported an error to the HPU driver.
    Reported {
        /// What it has reported.
        code: u32,
    },
}

/// The unit is done with a packet: the NIC frees it (§III-B1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Feedback {
    /// The packet in L2.
    pub packet: Range,
    /// The number of bytes that were to be copied to L1.
    pub transfer: u32,
    /// The number of the message.
    pub message: u32,
    /// The NIC's own number.
    pub user: u64,
    /// The end of the last task of this packet.
    pub outcome: TaskOutcome,
    /// Whether the message has ended with it: its number may be used for another message.
    pub last: bool,
}

/// A handler that is to run on a packet, or runs.
#[derive(Clone, Debug)]
pub struct Task {
    /// The part of the handler.
    pub role: Role,
    /// The queue of its message.
    pub queue: u16,
    /// Whether its end is the end of its packet.
    pub feeds_back: bool,
    /// The packet.
    pub her: Her,
}

/// A place where a handler runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HpuId {
    /// The cluster.
    pub cluster: u16,
    /// The HPU within the cluster.
    pub hpu: u16,
}

/// What the unit tells the driver on the host (§III-B2, B3).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DriverEvent {
    /// A handler failed, or was killed.
    Failed {
        /// Where it ran.
        hpu: HpuId,
        /// The part of the handler.
        role: Role,
        /// The message.
        message: u32,
        /// What happened to it.
        outcome: TaskOutcome,
        /// The descriptor of its context in host memory.
        descriptor: u64,
    },
    /// No packet came for a message in the time that its context allows, and it was given up.
    Idle {
        /// The message.
        message: u32,
        /// The descriptor of its context in host memory.
        descriptor: u64,
        /// Whether its number may be used again; otherwise the last feedback says so.
        is_free: bool,
    },
    /// A command with `generate_event` is done, and its data is in its place.
    Command {
        /// The number that the handler gave it.
        user: u32,
    },
    /// A program asks for the end of the run, because something has gone wrong in it.
    Terminated {
        /// Where it ran.
        hpu: HpuId,
    },
}
