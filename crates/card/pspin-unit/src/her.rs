// SPDX-License-Identifier: Apache-2.0
//! Interface between unit and NIC: handler execution requests and feedback (§III-A, B), and the tasks in between.

use std::rc::Rc;

use hpu::Fault;

pub use accel::{Role, Share};

/// A range of addresses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Range {
    /// First address.
    pub address: u32,
    /// Number of bytes.
    pub size: u32,
}

impl Range {
    /// Returns true if `size` bytes at `address` lie inside. A range ends at 2^32: it does not continue at address 0.
    #[inline]
    pub fn holds(&self, address: u32, size: u32) -> bool {
        let offset = address.checked_sub(self.address);
        offset.is_some_and(|offset| u64::from(offset) + u64::from(size) <= u64::from(self.size))
    }
}

/// A range of host addresses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostRange {
    /// First address.
    pub address: u64,
    /// Number of bytes.
    pub size: u64,
}

/// Calling convention of handlers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Convention {
    /// Interface of the PsPIN artefact: the runtime is code in program memory and reads tasks from the HPU driver.
    #[default]
    Pspin,
    /// Interface of `spin.h`: arguments are in registers, and commands are environment calls.
    P4spin,
}

/// Execution context of a message or flow (§III-A): handlers, memory, limits. The NIC driver creates it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExecutionContext {
    /// Region of L2 handler memory.
    pub handler_memory: Range,
    /// Region of host memory.
    pub host: HostRange,
    /// First instruction and size of the header, payload and completion handler; address 0 if absent.
    pub handlers: [Range; 3],
    /// Address range of the scratchpad in each cluster's L1.
    pub scratchpads: Vec<Range>,
    /// Code of the handlers. The unit protects the program as a whole, because all contexts share it.
    pub code: Vec<Range>,
    /// Cycles after which the watchdog kills a handler (§III-B3); 0 turns it off.
    pub watchdog_cycles: u64,
    /// Cycles without a packet after which a message is abandoned (§III-B3).
    pub idle_cycles: u64,
    /// Address of the descriptor in host memory that receives error reports; 0 if absent.
    pub descriptor: u64,
    /// Tenant that owns the context.
    pub tenant: u32,
    /// Tenant's entitlement.
    pub share: Share,
    /// Calling convention of its handlers.
    pub convention: Convention,
    /// Cluster that runs all of its handlers, with `accelerator.dispatch.policy = "pinned"`.
    pub pin: Option<u16>,
}

impl ExecutionContext {
    /// Returns the first instruction of the handler for `role`, if present.
    #[inline]
    pub fn entry(&self, role: Role) -> Option<u32> {
        Some(self.handlers[role as usize].address).filter(|address| *address != 0)
    }
}

/// Handler execution request for a packet in L2 (§III-A).
#[derive(Clone, Debug)]
pub struct Her {
    /// Message number; selects queue and home cluster.
    pub message: u32,
    /// Number of the message or flow that handlers see.
    pub flow: u32,
    /// True for the last packet of the message.
    pub eom: bool,
    /// Packet in L2.
    pub packet: Range,
    /// Number of bytes to copy to L1.
    pub transfer: u32,
    /// Execution context of the message.
    pub context: Rc<ExecutionContext>,
    /// NIC's tag, returned in the feedback.
    pub user: u64,
}

/// Reason for back-pressure: the ready line of the interface is low.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Busy {
    /// Another request was accepted in this cycle, or the packet is still being written.
    Cycle,
    /// All cells available to this queue are occupied.
    Cells,
    /// The queue of this number still belongs to another message.
    Queue,
}

/// Outcome of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskOutcome {
    /// The handler returned.
    Done,
    /// No handler ran: none exists for it, or the header handler of its message failed.
    Skipped,
    /// The handler failed.
    Faulted(Failure),
    /// The watchdog killed the handler.
    TimedOut,
    /// The message was abandoned.
    MessageReset,
}

/// Reason for a handler's failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// An instruction faulted.
    Fault(Fault),
    /// A command or transfer names card memory that the handler may not use.
    Command {
        /// First address.
        address: u32,
        /// Number of bytes.
        size: u32,
    },
    /// A command names host memory that the host refuses.
    Host {
        /// First address.
        address: u64,
    },
    /// The handler or its runtime reported an error to the HPU driver.
    Reported {
        /// Reported code.
        code: u32,
    },
}

/// Feedback: the unit is done with a packet, and the NIC frees it (§III-B1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Feedback {
    /// Packet in L2.
    pub packet: Range,
    /// Number of bytes requested for the copy to L1.
    pub transfer: u32,
    /// Message number.
    pub message: u32,
    /// NIC's tag.
    pub user: u64,
    /// Outcome of the packet's last task.
    pub outcome: TaskOutcome,
    /// Set when the message ends with this packet: its number may be reused.
    pub last: bool,
}

/// A handler to run on a packet, or running.
#[derive(Clone, Debug)]
pub struct Task {
    /// Role of the handler.
    pub role: Role,
    /// Queue of its message.
    pub queue: u16,
    /// Set when the end of this task completes the packet.
    pub feeds_back: bool,
    /// Request with the packet.
    pub her: Her,
}

/// Identifies an HPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HpuId {
    /// Cluster index.
    pub cluster: u16,
    /// HPU index within the cluster.
    pub hpu: u16,
}

/// Event for the driver on the host (§III-B2, B3).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DriverEvent {
    /// A handler failed or was killed.
    Failed {
        /// HPU that ran it.
        hpu: HpuId,
        /// Role of the handler.
        role: Role,
        /// Message number.
        message: u32,
        /// Outcome of the task.
        outcome: TaskOutcome,
        /// Host address of the context's descriptor.
        descriptor: u64,
    },
    /// A message received no packet within the idle limit of its context and is abandoned.
    Idle {
        /// Message number.
        message: u32,
        /// Host address of the context's descriptor.
        descriptor: u64,
        /// Set when its number may be reused at once; otherwise the last feedback reports that.
        is_free: bool,
    },
    /// A command with `generate_event` is done, and its data is at its destination.
    Command {
        /// Handler's tag of the command.
        user: u32,
    },
    /// A program requests the end of the run because of an error.
    Terminated {
        /// HPU that ran it.
        hpu: HpuId,
    },
}
