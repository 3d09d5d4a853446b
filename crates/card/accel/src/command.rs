// SPDX-License-Identifier: Apache-2.0
//! Commands that handlers issue to the card, and the card's replies.

use std::rc::Rc;

use abi::portals::{AckReq, AtomicOp, CtEvent, Datatype, Process};
use sim::Time;

use crate::task::MessageId;

/// Identifies a command to the accelerator that issued it; the card returns it unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommandId {
    /// Thread that issued the command.
    pub thread: u32,
    /// Sequence number of the handler among those that ran on this thread.
    pub run: u32,
    /// Sequence number of the command within its handler.
    pub number: u32,
    /// Index in the accelerator's table of commands that outlast their call; `None` for a blocking command.
    pub slot: Option<u32>,
}

/// A command issued by a handler, for the card to execute.
#[derive(Debug)]
pub struct Issued {
    /// Identity of the command.
    pub id: CommandId,
    /// Process of the handler.
    pub process: u32,
    /// Message of the handler.
    pub message: MessageId,
    /// Name of the handler.
    pub handler: Rc<str>,
    /// Requested operation.
    pub command: Command,
}

/// An operation that a handler requests from the card.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Sends data.
    Put(Message),
    /// Fetches data from another node.
    Get(Message),
    /// Sends data to combine with the data at the target.
    Atomic(Message, AtomicOp, Datatype),
    /// Like an atomic, and fetches the previous data at the target.
    FetchAtomic(Message, Fetch),
    /// Moves data between card and host memory.
    Dma(Dma),
    /// Executes an atomic operation on host memory.
    HostAtomic(HostAtomic),
    /// Reads or changes the counter of the handler's entry.
    Counter(Counter),
}

/// Location of a message's data at the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Card address in the handler's memory: the message is a single packet.
    Device(u64),
    /// Offset in the host memory of the handler's entry.
    Host(u64),
}

/// A message that a handler sends. The handler's entry supplies all other parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// Source of a put's data, or destination of a get's.
    pub place: Place,
    /// Length of the data in bytes.
    pub length: u64,
    /// Target process.
    pub target: Process,
    /// Match bits.
    pub match_bits: u64,
    /// Offset at the target, in bytes.
    pub remote_offset: u64,
    /// Header data.
    pub hdr_data: u64,
    /// User pointer that its events contain.
    pub user_ptr: u64,
    /// Requested acknowledgement.
    pub ack: AckReq,
    /// True if the entry's counter counts the operation.
    pub counted: bool,
}

/// Operation of a fetching atomic or swap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fetch {
    /// Operation.
    pub operation: AtomicOp,
    /// Type of the items.
    pub datatype: Datatype,
    /// Operand of a conditional swap.
    pub operand: [u8; 32],
    /// Card address that receives the previous data.
    pub result: u32,
}

/// Host memory that a handler may move data to and from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostMemory {
    /// The memory of the handler's entry.
    Entry,
    /// The second host range, registered with the handlers.
    Handlers,
}

/// Direction of a DMA transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the card to host memory.
    ToHost,
    /// From host memory to the card.
    FromHost,
}

/// A DMA transfer between card and host memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dma {
    /// Direction of the transfer.
    pub direction: Direction,
    /// Host memory range.
    pub host: HostMemory,
    /// Offset in the host memory, in bytes.
    pub offset: u64,
    /// Card address.
    pub local: u32,
    /// Length in bytes.
    pub length: u32,
}

/// An atomic operation on host memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostAtomic {
    /// Host memory range.
    pub host: HostMemory,
    /// Offset in the host memory in bytes; naturally aligned.
    pub offset: u64,
    /// Operation to execute.
    pub operation: HostOperation,
    /// Card address of 8 bytes that receive the previous value.
    pub result: u32,
}

/// An atomic operation on one word of host memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostOperation {
    /// Compares 64 bits and swaps them if they are equal. Returns the previous value only if they differ.
    CompareAndSwap {
        /// The value to compare with.
        compare: u64,
        /// The value to store.
        swap: u64,
    },
    /// Adds, and returns the previous value.
    FetchAndAdd {
        /// Type of the word.
        datatype: Datatype,
        /// The summand.
        increment: u64,
    },
}

/// An operation on the counter of the handler's entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counter {
    /// Reads the counter.
    Get,
    /// Adds to the counter.
    Add(CtEvent),
    /// Sets the counter.
    Set(CtEvent),
}

/// A transfer that outlasts the call of its command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transfer {
    /// A write to host memory. It completes for the handler at this time, when its data leaves the card (sPIN App.
    /// C.3.2: a write "blocks HPUs to initiate the write request").
    Posted(Time),
    /// A transfer that completes with a second reply.
    UnderWay,
}

/// The card's reply to a command.
#[derive(Debug, PartialEq, Eq)]
pub enum Reply {
    /// The command completed with this result: 0, or a negative number of [`abi::device::err`].
    Done(i32),
    /// The message is sent; its last byte leaves the card at this time.
    Leaves(Time),
    /// The message is sent but back-pressured by the network: a second reply follows when its last byte leaves.
    Queued,
    /// The handler is blocked until a second reply.
    Blocked,
    /// The command continues while the handler runs.
    Started(Transfer),
    /// The card rejects the command, and the handler gets [`abi::device::err::INVALID`]. The reason becomes part of the
    /// error message if the handler then fails.
    Refused(String),
    /// Value of the counter.
    Counter(CtEvent),
    /// The command addressed memory outside the handler's own.
    Fault {
        /// Description of the error, as the continuation of a sentence that begins with the handler's name.
        what: String,
        /// The card address.
        address: u32,
    },
}
