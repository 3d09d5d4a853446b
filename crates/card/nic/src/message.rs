// SPDX-License-Identifier: Apache-2.0
//! Messages on the wire: requests, responses, headers and packets.

use std::rc::Rc;

use abi::portals::{AckReq, List, NiFail, Process};
use sim::Time;

use crate::atomic::{AtomicSpec, MAX_OPERAND};

/// Number of a message, unique in a run: the sending node in the upper 24 bits, its count in the lower 40.
pub type MessageId = u64;

/// Bits of a message's number that count the messages of a node.
pub(crate) const COUNT_BITS: u32 = 40;

/// Returns the node that sent a message.
pub(crate) fn sender(id: MessageId) -> u32 {
    (id >> COUNT_BITS) as u32
}

/// Token of an initiator's pending operation, carried by the answers to it.
pub type OpToken = u32;

/// Operation of a request at the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestKind {
    /// Write the following data.
    Put,
    /// Return data.
    Get,
    /// Combine the following data with the target's memory.
    Atomic(AtomicSpec),
    /// Combine the following data with the target's memory, and return the previous data.
    FetchAtomic(AtomicSpec),
}

impl RequestKind {
    /// Returns true if the initiator gets data instead of an acknowledgement.
    pub fn replies(self) -> bool {
        matches!(self, RequestKind::Get | RequestKind::FetchAtomic(_))
    }
}

/// A request to a portal table entry.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    /// Requested operation.
    pub kind: RequestKind,
    /// Portal table index.
    pub pt_index: u32,
    /// `match_bits`
    pub match_bits: u64,
    /// Offset requested by the initiator.
    pub remote_offset: u64,
    /// Requested length in bytes.
    pub length: u64,
    /// `hdr_data`
    pub hdr_data: u64,
    /// Requested acknowledgement.
    pub ack: AckReq,
    /// Initiator, as named by the target's interface.
    pub initiator: Process,
    /// Target, as named by the initiator.
    pub target: Process,
    /// User id of the initiator.
    pub uid: u32,
    /// The initiator's operation, if it expects an answer.
    pub op: Option<OpToken>,
    /// Operand of a conditional swap.
    pub operand: [u8; MAX_OPERAND],
    /// Read status of the packet's data at the initiator, in each packet.
    pub fail: NiFail,
    /// True if the initiator permits its loss (`PTL_MD_UNRELIABLE`).
    pub may_be_lost: bool,
}

/// An answer to a request: an acknowledgement, or the data of a get.
#[derive(Clone, Copy, Debug)]
pub struct Response {
    /// Operation at the initiator.
    pub op: OpToken,
    /// Message of the request.
    pub to: MessageId,
    /// Bytes moved at the target.
    pub mlength: u64,
    /// Offset used at the target.
    pub remote_offset: u64,
    /// Result status.
    pub fail: NiFail,
    /// List of the matching entry.
    pub list: List,
    /// Bytes of data that follow.
    pub length: u64,
}

/// Contents of a message's first packet.
#[derive(Clone, Copy, Debug)]
pub enum Body {
    /// Request to a portal table entry.
    Request(Request),
    /// Response to a pending operation.
    Response(Response),
}

impl Body {
    /// Returns the failure before this packet was sent, if any.
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
    /// Number of the message.
    pub id: MessageId,
    /// Sending node.
    pub source: u32,
    /// Receiving node.
    pub target: u32,
    /// Index of the interface, equal at both nodes.
    pub interface: u8,
    /// Request or response.
    pub body: Body,
}

impl Header {
    /// Returns the length of the message's data in bytes.
    pub fn data_length(&self) -> u64 {
        match self.body {
            Body::Request(Request { kind: RequestKind::Get, .. }) => 0,
            Body::Request(Request { length, .. }) => length,
            Body::Response(response) => response.length,
        }
    }

    /// Returns a word for timelines.
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

/// Identity of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketId {
    /// Message.
    pub message: MessageId,
    /// Offset of the packet's data in the message.
    pub offset: u64,
}

/// A packet: at most an MTU of a message's data.
#[derive(Clone, Debug)]
pub struct Packet {
    /// Header of the message.
    pub header: Rc<Header>,
    /// Offset of the data in the message; the packet at offset 0 is the header packet.
    pub offset: u64,
    /// The data.
    pub data: Vec<u8>,
    /// Time at which its first byte left its card.
    pub left: Time,
    /// Number of times it was lost.
    pub losses: u32,
    /// Sequence number among the request packets from its card to its target, from 1; 0 if unsequenced.
    pub place: u64,
}

impl Packet {
    /// Creates a packet for its first transmission.
    pub fn new(header: Rc<Header>, offset: u64, data: Vec<u8>) -> Packet {
        Packet { header, offset, data, left: Time::ZERO, losses: 0, place: 0 }
    }

    /// Returns the packet's identity, for timelines.
    pub fn id(&self) -> PacketId {
        PacketId { message: self.header.id, offset: self.offset }
    }

    /// Returns true if it is the first packet of its message.
    pub fn is_header(&self) -> bool {
        self.offset == 0
    }

    /// Returns true if it is the last packet of its message.
    pub fn is_last(&self) -> bool {
        self.offset + self.data.len() as u64 >= self.header.data_length()
    }
}
