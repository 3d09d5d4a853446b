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
    /// Its header.
    pub header: Rc<Header>,
    /// Bytes that have not arrived.
    pub remaining: u64,
    /// Number of DMA writes and replies under way.
    pub moving: u32,
    /// Number of deposits whose latency runs and for which handlers do not wait (`dma.messages = "latency"`): it is over when
    /// the program is told, which takes as long.
    pub landing: u32,
    /// Whether any data went to host memory.
    pub deposited: bool,
    /// The first thing that went wrong.
    pub fail: NiFail,
    /// Whether an answer with the data that was asked for, or without it, is on its way.
    pub answered: bool,
    /// Where its data goes.
    pub sink: Sink,
    /// What the reply to a get, whose data is still in host memory, shares with the message.
    pub reply: Option<Rc<ReplyRight>>,
}

/// Where the data of a message goes.
#[derive(Debug)]
pub enum Sink {
    /// The data is thrown away.
    Nowhere,
    /// To the entry that has taken it.
    Entry(Delivery),
    /// The reply to an operation of this node.
    Operation(OpToken, Response),
}

/// A request that an entry has taken.
#[derive(Debug)]
pub struct Delivery {
    /// The entry, and where in it.
    pub taken: Taken,
    /// The state of its handlers, if the entry has any.
    pub spin: Option<Box<SpinMessage>>,
}

/// Whether a reply may still read the memory of the entry that serves it. The right ends when the interface is closed.
#[derive(Debug, Default)]
pub struct ReplyRight {
    revoked: Cell<bool>,
}

/// Work that an rdma card leaves to the CPU.
#[derive(Debug)]
pub enum Completion {
    /// A message has arrived; the CPU matches it and acts.
    Arrived(Box<ArrivedMessage>),
    /// An operation of the CPU has progressed.
    Operation(OpToken, Option<Response>),
    /// A triggered operation is due; the CPU starts it.
    Triggered(u8, TriggeredOp),
}

/// A message that is in host memory.
#[derive(Debug)]
pub struct ArrivedMessage(pub(crate) RxMessage);

impl ReplyRight {
    /// Ends the right.
    pub fn revoke(&self) {
        self.revoked.set(true);
    }

    /// Whether the right has ended.
    pub fn is_revoked(&self) -> bool {
        self.revoked.get()
    }
}

impl Delivery {
    /// Where the message went, and how much of it.
    pub fn outcome(&self) -> Placement {
        let placement = self.taken.placement;
        let mlength = self.spin.as_ref().map_or(placement.mlength, |spin| spin.moved(placement));
        Placement { mlength, ..placement }
    }
}

impl RxMessage {
    /// A message of which nothing but the header is known, and which nobody takes.
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

    /// The message fails for this reason, unless it has failed before.
    pub fn fails(&mut self, reason: NiFail) {
        if self.fail == NiFail::Ok {
            self.fail = reason;
        }
    }

    /// The request, and the entry that has taken it.
    ///
    /// # Errors
    /// When the message is a response, or when no entry receives it.
    pub fn request(&self) -> Result<(Request, &Delivery), InternalError> {
        match (&self.header.body, &self.sink) {
            (Body::Request(request), Sink::Entry(delivery)) => Ok((*request, delivery)),
            _ => Err(self.wrong_kind()),
        }
    }

    /// The atomic operation that the message asks for, and its operand.
    ///
    /// # Errors
    /// When the message asks for anything else.
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

    /// The state of the message's handlers; `None` when it has none, or when its interface has been closed.
    pub fn handlers(&mut self) -> Option<&mut SpinMessage> {
        match &mut self.sink {
            Sink::Entry(delivery) => delivery.spin.as_deref_mut(),
            Sink::Nowhere | Sink::Operation(..) => None,
        }
    }

    /// The state of the message's handlers.
    ///
    /// # Errors
    /// When the message has none.
    pub fn spin(&mut self) -> Result<&mut SpinMessage, InternalError> {
        let error = self.wrong_kind();
        self.handlers().ok_or(error)
    }

    fn wrong_kind(&self) -> InternalError {
        InternalError::WrongKind(self.header.id)
    }
}
