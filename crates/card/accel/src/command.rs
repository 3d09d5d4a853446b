use std::rc::Rc;

use abi::portals::{AckReq, AtomicOp, CtEvent, Datatype, Process};
use sim::Time;

use crate::task::MessageId;

/// Identifies a command for the accelerator that has issued it; the card returns it unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommandId {
    /// The thread that has issued the command.
    pub thread: u32,
    /// The handler, among those that have run on this thread one after the other.
    pub run: u32,
    /// The command, among those of this handler.
    pub number: u32,
    /// Index in the accelerator's table of commands that outlast their call; `None` for a command that blocks its
    /// handler.
    pub slot: Option<u32>,
}

/// A command that a handler has issued and that the card executes.
#[derive(Debug)]
pub struct Issued {
    /// Its name.
    pub id: CommandId,
    /// The message of the handler.
    pub message: MessageId,
    /// The handler's name.
    pub handler: Rc<str>,
    /// The requested operation.
    pub command: Command,
}

/// An operation that a handler requests from the card.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Sends data.
    Put(Message),
    /// Fetches data from another node.
    Get(Message),
    /// Sends data that is combined with the data at the target.
    Atomic(Message, AtomicOp, Datatype),
    /// Moves data between card and host memory.
    Dma(Dma),
    /// Executes an atomic operation on host memory.
    HostAtomic(HostAtomic),
    /// Reads or changes the counter of the handler's entry.
    Counter(Counter),
}

/// The place of a message's data at the node that sends it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A card address in the handler's memory: the message is a single packet.
    Device(u64),
    /// An offset in the host memory of the handler's entry.
    Host(u64),
}

/// A message that a handler sends; everything that is not given here comes from the handler's entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// The source of the data, or its destination.
    pub place: Place,
    /// Bytes of data.
    pub length: u64,
    /// The process to which the message goes.
    pub target: Process,
    /// Match bits.
    pub match_bits: u64,
    /// Offset at the target, in bytes.
    pub remote_offset: u64,
    /// Header data.
    pub hdr_data: u64,
    /// The program's pointer, which its events contain.
    pub user_ptr: u64,
    /// The requested acknowledgement.
    pub ack: AckReq,
    /// Whether the entry's counter counts the operation.
    pub counted: bool,
}

/// Host memory that a handler may move data to and from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostMemory {
    /// The memory of the handler's entry.
    Entry,
    /// The second range that was given with the handlers.
    Handlers,
}

/// The direction of a DMA transfer.
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
    /// Its direction.
    pub direction: Direction,
    /// The host memory.
    pub host: HostMemory,
    /// Offset in the host memory, in bytes.
    pub offset: u64,
    /// Card address.
    pub local: u32,
    /// Bytes.
    pub length: u32,
}

/// An atomic operation on host memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostAtomic {
    /// The host memory.
    pub host: HostMemory,
    /// Offset in the host memory, in bytes, naturally aligned.
    pub offset: u64,
    /// The operation.
    pub operation: HostOperation,
    /// Card address of 8 bytes for the previous value.
    pub result: u32,
}

/// An atomic operation on one word of host memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostOperation {
    /// Compares 64 bits and swaps them if they are equal; the previous value is returned only if they are not.
    CompareAndSwap {
        /// The value to compare with.
        compare: u64,
        /// The value to store.
        swap: u64,
    },
    /// Adds, and returns the previous value.
    FetchAndAdd {
        /// The type of the word.
        datatype: Datatype,
        /// The summand.
        increment: u64,
    },
}

/// An operation of a handler on the counter of its entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counter {
    /// Reads it.
    Get,
    /// Adds to it.
    Add(CtEvent),
    /// Sets it.
    Set(CtEvent),
}

/// A transfer that the card has started for a command and that outlasts the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transfer {
    /// A write to host memory: its data leaves the card at this time, which completes it for the handler (sPIN
    /// App. C.3.2: a write "blocks HPUs to initiate the write request").
    Posted(Time),
    /// A transfer that the card will complete with a second reply.
    UnderWay,
}

/// The card's reply to a command.
#[derive(Debug, PartialEq, Eq)]
pub enum Reply {
    /// The command is done, with this result: 0, or a negative number of [`abi::device::err`].
    Done(i32),
    /// The message has been sent, and its last byte leaves the card at this time.
    Leaves(Time),
    /// The message has been sent, but the network has no room for it: a second reply follows when its last byte has
    /// left.
    Queued,
    /// The handler is blocked until a second reply comes.
    Blocked,
    /// The command continues while the handler runs.
    Started(Transfer),
    /// The card does not execute the command: the handler gets [`abi::device::err::INVALID`]. The text says why; if the handler fails
    /// because of that, it is part of the message.
    Refused(String),
    /// The value of the counter.
    Counter(CtEvent),
    /// The command named memory that is not the handler's own.
    Fault {
        /// Text that describes the error: it continues a sentence that begins with the handler's name.
        what: String,
        /// The card address.
        address: u32,
    },
}
