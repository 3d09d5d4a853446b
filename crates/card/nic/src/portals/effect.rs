// SPDX-License-Identifier: Apache-2.0
//! Effects of Portals objects on the card, and internal errors.

use abi::portals::Handle;

use super::triggered::{RmaOp, TriggeredOp};
use crate::message::MessageId;

/// Notification of a host that may be waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notice {
    /// The value of a counting event changed.
    Counter(Handle),
    /// An event queue received an event.
    Queue(Handle),
    /// No message to a portal table entry is in flight any more: handle of its interface, and its index.
    Portal(Handle, u32),
    /// A work item is queued for the CPU (rdma cards).
    Completion,
}

/// Effects of changed Portals objects on the card, executed in order.
#[derive(Debug)]
pub enum Effect {
    /// Notify the host.
    Notify(Notice),
    /// Start an operation whose counter reached its threshold.
    Start(Box<RmaOp>),
    /// Queue an operation of an interface for the CPU; its counter reached its threshold.
    Due(u8, Box<TriggeredOp>),
    /// End the run: the simulator is in an impossible state.
    Internal(InternalError),
}

/// An error of the simulator: an impossible state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InternalError {
    /// A referenced entry does not exist.
    #[error("entry {0:#x} is gone while it is in use")]
    NoEntry(Handle),
    /// A referenced portal table entry does not exist.
    #[error("portal table entry {0} is gone while it is in use")]
    NoPortal(u32),
    /// The interface of a message in flight does not exist.
    #[error("interface {0} is gone while a message to it is under way")]
    NoInterface(u8),
    /// An operation ended before its message left or its answer arrived.
    #[error("operation {0} is over before its answer")]
    NoOperation(u32),
    /// An event belongs to an unknown message.
    #[error("message {0:#x} is not under way")]
    NoMessage(MessageId),
    /// The header packet of a message arrived twice.
    #[error("message {0:#x} has two header packets")]
    TwoHeaders(MessageId),
    /// An event does not fit the kind of its message.
    #[error("message {0:#x} is not of the kind that its event is for")]
    WrongKind(MessageId),
    /// A blocked packet departs from a card that has none.
    #[error("a blocked packet departs although none is blocked")]
    NothingBlocked,
    /// The accelerator is in an impossible state.
    #[error(transparent)]
    Accelerator(#[from] accel::InternalError),
}
