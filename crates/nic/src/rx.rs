//! Messages that a card receives.

use std::rc::Rc;

use abi::portals::NiFail;
use sim::Time;

use crate::atomic::{AtomicSpec, MAX_OPERAND};
use crate::message::{Body, Header, OpToken, Packet, Request, RequestKind, Response};
use crate::portals::{Delivery as Taken, Placement};
use crate::spin::SpinMessage;

/// A message that is being received.
#[derive(Debug)]
pub struct RxMessage {
    /// Its header.
    pub header: Rc<Header>,
    /// Bytes that have not arrived.
    pub remaining: u64,
    /// DMA writes and replies under way.
    pub moving: u32,
    /// Whether any data went to host memory.
    pub deposited: bool,
    /// First thing that went wrong.
    pub fail: NiFail,
    /// Whether an answer with the data that was asked for, or without it, is on its way.
    pub answered: bool,
    /// Where its data goes.
    pub sink: Sink,
}

/// Where the data of a message goes.
#[derive(Debug)]
pub enum Sink {
    /// The data is thrown away.
    Nowhere,
    /// To the entry that has taken it.
    Entry(Box<Delivery>),
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

impl Delivery {
    /// Where the message went, and how much of it.
    pub fn outcome(&self) -> Placement {
        let placement = self.taken.placement;
        let mlength = self.spin.as_ref().map_or(placement.mlength, |spin| spin.moved(placement));
        Placement { mlength, ..placement }
    }
}

/// What a card knows of a message of which packets arrive.
#[derive(Debug)]
pub enum Channel {
    /// The header packet has not arrived.
    Early(EarlyPackets),
    /// The header packet is being matched until then.
    Matching(Time, EarlyPackets),
    /// The header packet has been matched.
    Open(Box<RxMessage>),
}

/// Packets that have overtaken their header packet. The card holds as many, of all messages together, as its packet buffer
/// has slots.
#[derive(Debug, Default)]
pub struct EarlyPackets {
    /// In the order of their arrival.
    pub held: Vec<Packet>,
    /// Offset and bytes of the packets for which there was no room.
    pub lost: Vec<(u64, u64)>,
}

impl RxMessage {
    /// The atomic operation that the message asks for, and its operand.
    pub fn atomic(&self) -> Option<(AtomicSpec, [u8; MAX_OPERAND])> {
        match self.header.body {
            Body::Request(Request {
                kind: RequestKind::Atomic(spec) | RequestKind::FetchAtomic(spec),
                operand,
                ..
            }) => Some((spec, operand)),
            _ => None,
        }
    }
}
