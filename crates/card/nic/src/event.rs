//! What happens at a card, and what travels with the events.

use std::rc::Rc;

use sim::{Time, Train};

use crate::departure::Departure;
use crate::message::{Header, MessageId, OpToken, Packet};
use crate::pipeline::ReplyRight;
use crate::region::Region;
use crate::spin::HostTransfer;

/// Something that happens at a card. Many events wait at once, so each is small.
#[derive(Debug)]
pub enum NicEvent {
    /// A message from host memory enters the send queue.
    Send(Rc<Sending>),
    /// The data of the packet that starts at this offset of a message has come from host memory; it is read when the packet leaves.
    Fetched(Rc<Sending>, u64),
    /// A packet whose data has been read may leave.
    Ready(Rc<Sending>, Box<Packet>),
    /// The port will soon be free for packets whose data is still in host memory.
    Refill,
    /// The first of the blocked packets departs.
    Departs(Box<Departure>),
    /// The network has lost a packet of this card.
    Lost(Box<Packet>),
    /// A packet that was lost is due again.
    Resend(Box<Packet>),
    /// The sender of a message to this card has given it up.
    GivenUp(Rc<Header>, u64),
    /// A card has not answered for so long that it is taken to be dead.
    PeerIsDead(u32),
    /// The last byte of a message has left.
    Sent(Sent),
    /// The first byte of a packet is at the port.
    Arrive(Box<Packet>),
    /// A packet is in the card and matched.
    Received(Box<Packet>),
    /// The data of a packet of this message, as far as it is wanted, has reached host memory.
    Written(MessageId, Box<Packet>),
    /// The target's operands of an atomic are read, or have come from host memory.
    Atomic(Box<AtomicWork>),
    /// The result of an atomic is in host memory.
    ResponseDone(MessageId),
    /// A message is done, and so is the (empty) DMA write that says so.
    Complete(MessageId),
    /// The time of an event of the accelerator has come.
    Accelerator(accel::Event),
    /// The message of a handler that was blocked has left.
    CommandDone(accel::CommandId),
    /// A handler's DMA transfer is done.
    HostTransferDone(Box<HostTransfer>),
}

/// The part that has a message sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Initiator {
    /// The host's program, or a triggered operation that it has described.
    Host,
    /// A handler.
    Handler,
    /// The card itself, which answers a get.
    Card,
}

/// The bytes of a message that are read back to back.
#[derive(Clone, Copy, Debug)]
pub struct Fetching {
    /// When each of them passes the engine.
    pub train: Train,
    /// When the request for them reaches host memory, if reads have an engine of their own: a later write may overtake
    /// what waits for that engine.
    pub requested: Option<Time>,
}

/// Where a message's data is.
#[derive(Clone, Debug)]
pub enum Source {
    /// In host memory.
    Host(Region, u64),
    /// In the descriptor that the host handed over; it keeps its place in the send queue.
    Descriptor(Vec<u8>),
    /// On the card, which sends it at once.
    Card(Vec<u8>),
}

/// What the departure of a message's last byte completes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// Nothing that anybody waits for.
    Nothing,
    /// The SEND of an initiator's operation.
    Operation(OpToken),
    /// The SEND of an initiator's operation, after the notification has reached host memory.
    Told(OpToken),
    /// The answer to a get or a fetching atomic.
    Reply(MessageId),
}

/// A message that is being sent.
#[derive(Clone, Debug)]
pub struct Sending {
    /// Its header.
    pub header: Rc<Header>,
    /// Its data. What is not in host memory is taken when the message is cut into packets.
    pub source: Source,
    /// What its last byte completes.
    pub sent: Sent,
    /// The right to read the data of a reply from host memory.
    pub right: Option<Rc<ReplyRight>>,
    /// The part that has it sent.
    pub initiator: Initiator,
    /// The bytes on their way through the DMA engine, if they need it.
    pub fetching: Option<Fetching>,
    /// The earliest time at which its packets may leave.
    pub not_before: Time,
}

/// A packet that is to leave.
#[derive(Debug)]
pub struct Leaving {
    /// The packet.
    pub content: Content,
    /// What its last byte completes.
    pub sent: Sent,
    /// What else is due when its last byte has left.
    pub then: Option<NicEvent>,
}

/// Where the data of a packet that is to leave is.
#[derive(Debug)]
pub enum Content {
    /// On the card.
    Packet(Box<Packet>),
    /// In host memory: the packet of a message that starts at this offset.
    Host(Rc<Sending>, u64),
}

/// A packet whose departure is fixed, and far enough off that its data may wait in host memory.
#[derive(Debug)]
pub struct Unread {
    /// The message.
    pub message: Rc<Sending>,
    /// Offset of the packet's data in it.
    pub offset: u64,
    /// When it departs.
    pub departure: Departure,
    /// Its place ([`Packet::place`]).
    pub place: u64,
}

impl Sending {
    /// A message that enters the send queue next.
    pub fn new(header: Rc<Header>, source: Source, sent: Sent, initiator: Initiator) -> Sending {
        Sending { header, source, sent, right: None, initiator, fetching: None, not_before: Time::ZERO }
    }
}

/// An atomic operation under way at its target.
#[derive(Debug)]
pub struct AtomicWork {
    /// The message.
    pub message: MessageId,
    /// The initiator's data; once combined, what was at the target before.
    pub data: Vec<u8>,
    /// When the operands at the target are on the card.
    pub there: Time,
    /// Whether the operands at the target have been combined with it.
    pub combined: bool,
}
