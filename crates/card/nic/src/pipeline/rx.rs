// SPDX-License-Identifier: Apache-2.0
//! State of a message that is being received.

use std::cell::Cell;
use std::rc::Rc;

use abi::portals::NiFail;

use crate::atomic::{AtomicSpec, MAX_OPERAND};
use crate::message::{Body, Header, OpToken, Request, RequestKind, Response};
use crate::portals::{Delivery as Taken, InternalError, Placement, TriggeredOp};
use crate::spin::SpinMessage;

/// A message that is being received.
#[derive(Debug)]
pub struct RxMessage {
    /// Header.
    pub header: Rc<Header>,
    /// Bytes that have not arrived.
    pub remaining: u64,
    /// Number of DMA writes and replies in flight.
    pub moving: u32,
    /// Number of deposits in their latency, for which handlers do not wait (`dma.messages = "latency"`). They finish
    /// before the program is notified, which takes the same latency.
    pub landing: u32,
    /// True if any data went to host memory.
    pub deposited: bool,
    /// First failure.
    pub fail: NiFail,
    /// True if an answer is on its way, with or without the requested data.
    pub answered: bool,
    /// Destination of the data.
    pub sink: Sink,
    /// Permission shared with the reply to a get whose data is still in host memory.
    pub reply: Option<Rc<ReplyRight>>,
}

/// Destination of a message's data.
#[derive(Debug)]
pub enum Sink {
    /// The data is discarded.
    Nowhere,
    /// The entry that took the message.
    Entry(Delivery),
    /// The operation of this node to which it replies.
    Operation(OpToken, Response),
}

/// A request that an entry took.
#[derive(Debug)]
pub struct Delivery {
    /// Entry and placement.
    pub taken: Taken,
    /// State of its handlers, if the entry has any.
    pub spin: Option<Box<SpinMessage>>,
}

/// Permission of a reply to read the memory of the entry that serves it, until the interface is closed.
#[derive(Debug, Default)]
pub struct ReplyRight {
    revoked: Cell<bool>,
}

/// Work that an rdma card leaves to the CPU.
#[derive(Debug)]
pub enum Completion {
    /// A message has arrived; the CPU matches and processes it.
    Arrived(Box<ArrivedMessage>),
    /// An operation of the CPU progressed.
    Operation(OpToken, Option<Response>),
    /// A triggered operation is due; the CPU starts it.
    Triggered(u8, TriggeredOp),
}

/// A message in host memory.
#[derive(Debug)]
pub struct ArrivedMessage(pub(crate) RxMessage);

impl ReplyRight {
    /// Revokes the permission.
    pub fn revoke(&self) {
        self.revoked.set(true);
    }

    /// Returns true if the permission is revoked.
    pub fn is_revoked(&self) -> bool {
        self.revoked.get()
    }
}

impl Delivery {
    /// Returns offset and length of the message in its entry.
    pub fn outcome(&self) -> Placement {
        let placement = self.taken.placement;
        let mlength = self.spin.as_ref().map_or(placement.mlength, |spin| spin.moved(placement));
        Placement { mlength, ..placement }
    }
}

impl RxMessage {
    /// Creates a message without a receiver, from its header.
    pub fn new(header: Rc<Header>) -> RxMessage {
        RxMessage {
            remaining: header.data_length(),
            header,
            moving: 0,
            landing: 0,
            deposited: false,
            fail: NiFail::Ok,
            answered: false,
            sink: Sink::Nowhere,
            reply: None,
        }
    }

    /// Records a failure, unless one is already recorded.
    pub fn fails(&mut self, reason: NiFail) {
        if self.fail == NiFail::Ok {
            self.fail = reason;
        }
    }

    /// Returns the request, and the entry that took it.
    ///
    /// # Errors
    /// Returns an error if the message is a response, or if no entry receives it.
    pub fn request(&self) -> Result<(Request, &Delivery), InternalError> {
        match (&self.header.body, &self.sink) {
            (Body::Request(request), Sink::Entry(delivery)) => Ok((*request, delivery)),
            _ => Err(self.wrong_kind()),
        }
    }

    /// Returns the atomic operation of the message, and its operand.
    ///
    /// # Errors
    /// Returns an error if the message is not an atomic.
    pub fn atomic(&self) -> Result<(AtomicSpec, [u8; MAX_OPERAND]), InternalError> {
        match self.header.body {
            Body::Request(Request {
                kind: RequestKind::Atomic(spec) | RequestKind::FetchAtomic(spec),
                operand,
                ..
            }) => Ok((spec, operand)),
            _ => Err(self.wrong_kind()),
        }
    }

    /// Returns the state of the message's handlers; `None` if it has none, or if its interface is closed.
    pub fn handlers(&mut self) -> Option<&mut SpinMessage> {
        match &mut self.sink {
            Sink::Entry(delivery) => delivery.spin.as_deref_mut(),
            Sink::Nowhere | Sink::Operation(..) => None,
        }
    }

    /// Returns the state of the message's handlers.
    ///
    /// # Errors
    /// Returns an error if the message has none.
    pub fn spin(&mut self) -> Result<&mut SpinMessage, InternalError> {
        let error = self.wrong_kind();
        self.handlers().ok_or(error)
    }

    fn wrong_kind(&self) -> InternalError {
        InternalError::WrongKind(self.header.id)
    }
}
