use abi::portals::Handle;

use super::triggered::{RmaOp, TriggeredOp};
use crate::message::MessageId;

/// What the host may be waiting for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notice {
    /// The value of a counting event changed.
    Counter(Handle),
    /// An event queue received an event.
    Queue(Handle),
    /// No message is under way any more to a portal table entry: its interface's handle and its index.
    Portal(Handle, u32),
    /// A completion waits for the CPU (rdma cards).
    Completion,
}

/// What a change of Portals objects has the card do, in this order.
#[derive(Debug)]
pub enum Effect {
    /// Tell the host.
    Notify(Notice),
    /// Start an operation whose counter has been reached.
    Start(Box<RmaOp>),
    /// Leave an operation of an interface, whose counter has been reached, to the CPU.
    Due(u8, Box<TriggeredOp>),
    /// End the run: the simulator is in a state that cannot occur.
    Internal(InternalError),
}

/// An error of the simulator: a state that cannot occur.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InternalError {
    /// An entry is gone although something refers to it.
    #[error("entry {0:#x} is gone while it is in use")]
    NoEntry(Handle),
    /// A portal table entry is gone although something refers to it.
    #[error("portal table entry {0} is gone while it is in use")]
    NoPortal(u32),
    /// An interface is gone although a message to it is under way.
    #[error("interface {0} is gone while a message to it is under way")]
    NoInterface(u8),
    /// An operation has ended before its message left or its answer came.
    #[error("operation {0} is over before its answer")]
    NoOperation(u32),
    /// An event belongs to a message that the card does not know.
    #[error("message {0:#x} is not under way")]
    NoMessage(MessageId),
    /// The header packet of a message has arrived twice.
    #[error("message {0:#x} has two header packets")]
    TwoHeaders(MessageId),
    /// An event does not fit the kind of its message.
    #[error("message {0:#x} is not of the kind that its event is for")]
    WrongKind(MessageId),
    /// The interconnect takes a blocked packet of a card that has none.
    #[error("a blocked packet departs although none is blocked")]
    NothingBlocked,
    /// The accelerator is in a state that cannot occur.
    #[error(transparent)]
    Accelerator(#[from] accel::InternalError),
}
