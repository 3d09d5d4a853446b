// SPDX-License-Identifier: Apache-2.0
//! Events of a card, and their data.

use std::rc::Rc;

use sim::{Time, Train};

use crate::departure::Departure;
use crate::message::{Header, MessageId, OpToken, Packet};
use crate::pipeline::ReplyRight;
use crate::region::Region;
use crate::spin::HostTransfer;

/// An event of a card. Many events are pending at once, so each is small.
#[derive(Debug)]
pub enum NicEvent {
    /// A message from host memory enters the send queue.
    Send(Rc<Sending>),
    /// The data of the packet at this offset of a message has arrived from host memory; it is read when the packet
    /// leaves.
    Fetched(Rc<Sending>, u64),
    /// A packet with its data may leave.
    Ready(Rc<Sending>, Box<Packet>),
    /// The port will soon be free for packets whose data is still in host memory.
    Refill,
    /// The first blocked packet departs.
    Departs(Box<Departure>),
    /// The network lost a packet of this card.
    Lost(Box<Packet>),
    /// A lost packet is due for retransmission.
    Resend(Box<Packet>),
    /// The sender of a message to this card abandoned it at the packet with this sequence number.
    GivenUp(Rc<Header>, u64),
    /// A card did not answer for so long that it counts as dead.
    PeerIsDead(u32),
    /// The last byte of a message has left.
    Sent(Sent),
    /// The first byte of a packet is at the port.
    Arrive(Box<Packet>),
    /// A packet is received and matched.
    Received(Box<Packet>),
    /// The wanted data of a packet of this message has reached host memory.
    Written(MessageId, Box<Packet>),
    /// The target's operands of an atomic are read, or have arrived from host memory.
    Atomic(Box<AtomicWork>),
    /// The result of an atomic is in host memory.
    ResponseDone(MessageId),
    /// A message is complete, and so is the (empty) DMA write that reports it.
    Complete(MessageId),
    /// An event of the accelerator is due.
    Accelerator(accel::Event),
    /// The message of a blocked handler has left.
    CommandDone(accel::CommandId),
    /// A handler's DMA transfer is complete.
    HostTransferDone(Box<HostTransfer>),
}

/// Initiator of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Initiator {
    /// The host's program, or a triggered operation that it posted.
    Host,
    /// A handler's command.
    Handler,
    /// The card, which answers a get.
    Card,
}

/// The bytes of a message, read back to back.
#[derive(Clone, Copy, Debug)]
pub struct Fetching {
    /// Times at which they pass the engine.
    pub train: Train,
    /// Time at which their request reaches host memory, if reads have a separate engine: a later write may overtake
    /// data that waits for that engine.
    pub requested: Option<Time>,
}

/// Source of a message's data.
#[derive(Clone, Debug)]
pub enum Source {
    /// In host memory.
    Host(Region, u64),
    /// In the descriptor that the host handed over; sent in queue order.
    Descriptor(Vec<u8>),
    /// On the card; sent immediately.
    Card(Vec<u8>),
}

/// Completion by the departure of a message's last byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// No completion.
    Nothing,
    /// SEND of an initiator's operation.
    Operation(OpToken),
    /// SEND of an initiator's operation, after the notification has reached host memory.
    Told(OpToken),
    /// Answer to a get or a fetching atomic.
    Reply(MessageId),
}

/// A message that is being sent.
#[derive(Clone, Debug)]
pub struct Sending {
    /// Header.
    pub header: Rc<Header>,
    /// Data. Data outside host memory is taken when the message is cut into packets.
    pub source: Source,
    /// Completion by its last byte.
    pub sent: Sent,
    /// Permission to read the data of a reply from host memory.
    pub right: Option<Rc<ReplyRight>>,
    /// Initiator of the message.
    pub initiator: Initiator,
    /// Bytes in the DMA engine, if they pass it.
    pub fetching: Option<Fetching>,
    /// Earliest departure of its packets.
    pub not_before: Time,
}

/// A packet that is about to leave.
#[derive(Debug)]
pub struct Leaving {
    /// Packet or its location.
    pub content: Content,
    /// Completion by its last byte.
    pub sent: Sent,
    /// Event due when its last byte has left.
    pub then: Option<NicEvent>,
}

/// Location of a leaving packet's data.
#[derive(Debug)]
pub enum Content {
    /// On the card.
    Packet(Box<Packet>),
    /// In host memory: the packet at this offset of the message.
    Host(Rc<Sending>, u64),
}

/// A packet with a fixed departure, far enough ahead that its data can stay in host memory.
#[derive(Debug)]
pub struct Unread {
    /// Message.
    pub message: Rc<Sending>,
    /// Offset of the packet's data in the message.
    pub offset: u64,
    /// Departure of the packet.
    pub departure: Departure,
    /// Sequence number ([`Packet::place`]).
    pub place: u64,
}

impl Sending {
    /// Creates a message for the send queue.
    pub fn new(header: Rc<Header>, source: Source, sent: Sent, initiator: Initiator) -> Sending {
        Sending { header, source, sent, right: None, initiator, fetching: None, not_before: Time::ZERO }
    }
}

/// An atomic operation in progress at its target.
#[derive(Debug)]
pub struct AtomicWork {
    /// Message.
    pub message: MessageId,
    /// Data of the initiator; after the combination, the previous data at the target.
    pub data: Vec<u8>,
    /// Time at which the operands of the target are on the card.
    pub there: Time,
    /// True if the operands of the target are combined with the data.
    pub combined: bool,
}
