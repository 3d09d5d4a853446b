use std::rc::Rc;

use abi::portals::{AckReq, List, NiFail, Process};
use sim::Time;

use crate::atomic::{AtomicSpec, MAX_OPERAND};

/// A message's number, unique in a run: the sending node in the upper 24 bits, its count in the lower 40.
pub type MessageId = u64;

/// The bits of a message's number that count the messages of a node.
pub(crate) const COUNT_BITS: u32 = 40;

/// The node that has sent a message.
pub(crate) fn sender(id: MessageId) -> u32 {
    (id >> COUNT_BITS) as u32
}

/// A pending operation of an initiator, named by the answers to it.
pub type OpToken = u32;

/// What a request asks of the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestKind {
    /// Write the data that follows.
    Put,
    /// Send back data.
    Get,
    /// Combine the data that follows with the target's memory.
    Atomic(AtomicSpec),
    /// Combine the data that follows with the target's memory, and send back what was there before.
    FetchAtomic(AtomicSpec),
}

impl RequestKind {
    /// Whether the initiator gets data back, rather than an acknowledgement.
    pub fn replies(self) -> bool {
        matches!(self, RequestKind::Get | RequestKind::FetchAtomic(_))
    }
}

/// A request to a portal table entry.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    /// What is asked.
    pub kind: RequestKind,
    /// Portal table index.
    pub pt_index: u32,
    /// `match_bits`
    pub match_bits: u64,
    /// Offset that the initiator asked for.
    pub remote_offset: u64,
    /// Requested length in bytes.
    pub length: u64,
    /// `hdr_data`
    pub hdr_data: u64,
    /// Acknowledgement asked for.
    pub ack: AckReq,
    /// The initiator as the target's interface names it.
    pub initiator: Process,
    /// The target as the initiator named it.
    pub target: Process,
    /// User id of the initiator.
    pub uid: u32,
    /// The initiator's operation, if it wants an answer.
    pub op: Option<OpToken>,
    /// Operand of a conditional swap.
    pub operand: [u8; MAX_OPERAND],
    /// In each packet: whether its data could be read at the initiator.
    pub fail: NiFail,
    /// Whether its initiator permits its loss (`PTL_MD_UNRELIABLE`).
    pub may_be_lost: bool,
}

/// An answer to a request: an acknowledgement, or the data of a get.
#[derive(Clone, Copy, Debug)]
pub struct Response {
    /// Operation at the initiator.
    pub op: OpToken,
    /// The request.
    pub to: MessageId,
    /// Bytes moved at the target.
    pub mlength: u64,
    /// Offset used at the target.
    pub remote_offset: u64,
    /// Whether it worked.
    pub fail: NiFail,
    /// List that matched.
    pub list: List,
    /// Bytes of data that follow.
    pub length: u64,
}

/// What the first packet of a message says.
#[derive(Clone, Copy, Debug)]
pub enum Body {
    /// To a portal table entry.
    Request(Request),
    /// To a pending operation.
    Response(Response),
}

impl Body {
    /// What went wrong before this packet was sent.
    pub fn fail(&self) -> NiFail {
        match self {
            Body::Request(request) => request.fail,
            Body::Response(response) => response.fail,
        }
    }
}

/// A message on the wire.
#[derive(Clone, Debug)]
pub struct Header {
    /// Its number.
    pub id: MessageId,
    /// Sending node.
    pub source: u32,
    /// Receiving node.
    pub target: u32,
    /// Which of the four interfaces of both nodes.
    pub interface: u8,
    /// The rest.
    pub body: Body,
}

impl Header {
    /// Bytes of data in the message.
    pub fn data_length(&self) -> u64 {
        match self.body {
            Body::Request(Request { kind: RequestKind::Get, .. }) => 0,
            Body::Request(Request { length, .. }) => length,
            Body::Response(response) => response.length,
        }
    }

    /// One word for timelines.
    pub fn name(&self) -> &'static str {
        match self.body {
            Body::Request(Request { kind: RequestKind::Put, .. }) => "put",
            Body::Request(Request { kind: RequestKind::Get, .. }) => "get",
            Body::Request(Request { kind: RequestKind::Atomic(_), .. }) => "atomic",
            Body::Request(Request { kind: RequestKind::FetchAtomic(_), .. }) => "fetch-atomic",
            Body::Response(Response { length: 0, .. }) => "ack",
            Body::Response(_) => "reply",
        }
    }
}

/// A packet of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketId {
    /// The message.
    pub message: MessageId,
    /// Offset of the packet's data in it.
    pub offset: u64,
}

/// A packet: at most an MTU of a message's data.
#[derive(Clone, Debug)]
pub struct Packet {
    /// The message.
    pub header: Rc<Header>,
    /// Offset of the data in the message; the packet at offset 0 is the header packet.
    pub offset: u64,
    /// The data.
    pub data: Vec<u8>,
    /// When its first byte left its card.
    pub left: Time,
    /// How often it was lost.
    pub losses: u32,
    /// Its place among the packets of requests from its card to its target, beginning with 1; 0 where packets need none.
    pub place: u64,
}

impl Packet {
    /// A packet that is sent for the first time.
    pub fn new(header: Rc<Header>, offset: u64, data: Vec<u8>) -> Packet {
        Packet { header, offset, data, left: Time::ZERO, losses: 0, place: 0 }
    }

    /// For timelines.
    pub fn id(&self) -> PacketId {
        PacketId { message: self.header.id, offset: self.offset }
    }

    /// Whether it is the first of its message.
    pub fn is_header(&self) -> bool {
        self.offset == 0
    }

    /// Whether it is the last of its message.
    pub fn is_last(&self) -> bool {
        self.offset + self.data.len() as u64 >= self.header.data_length()
    }
}
