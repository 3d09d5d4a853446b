use sim::Time;

use crate::card::CardEvent;
use crate::message::{MessageId, Packet};
pub use crate::portals::Notice;

/// A host address that cannot be read or written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("host address {addr:#x}+{len} is not accessible")]
pub struct MemoryFault {
    /// First byte of the access.
    pub addr: u64,
    /// Bytes of the access.
    pub len: u64,
}

/// When a packet leaves its card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Departure {
    /// Number by which the interconnect knows the packet.
    pub ticket: u32,
    /// When its first byte leaves.
    pub start: Time,
    /// When its last byte has left.
    pub end: Time,
}

/// A row of a node's timeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Track {
    /// The host CPU.
    Cpu,
    /// Packets that arrive.
    NicIn,
    /// Packets that leave.
    NicOut,
    /// Transfers between card and host memory.
    Dma,
    /// A handler processing unit.
    Hpu(u32),
}

/// A packet of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketId {
    /// The message.
    pub message: MessageId,
    /// Offset of the packet's data in it.
    pub offset: u64,
}

/// A slice of a node's timeline.
#[derive(Clone, Copy, Debug)]
pub struct Slice<'a> {
    /// Row.
    pub track: Track,
    /// First instant.
    pub start: Time,
    /// Last instant.
    pub end: Time,
    /// What happened.
    pub name: &'a str,
    /// Packet that the slice belongs to: arrows lead from one slice of a packet to the next.
    pub packet: Option<PacketId>,
    /// Bytes moved.
    pub bytes: Option<u64>,
}

/// A card's view of everything around it: its clock, the network, its host. The simulator implements it once for
/// hosts that are processes; tests and schedules bring their own.
pub trait Ports {
    /// The current time.
    fn now(&self) -> Time;
    /// Has the card handle `event` at `at`.
    fn schedule(&mut self, at: Time, event: CardEvent);
    /// Asks the interconnect to take the card's next packet: `bytes` of data to node `target`, and at least `gap` until
    /// the card's next packet. Returns when it leaves; `None` when there is no room for it on the way: then it is
    /// *blocked*, and a [`CardEvent::Departs`] follows. Blocked packets depart in the order in which the card asked.
    fn inject(&mut self, target: u32, bytes: u64, gap: Time) -> Option<Departure>;
    /// Hands over a packet that departs, at `departure.start` at the latest.
    fn transmit(&mut self, departure: Departure, packet: Box<Packet>);
    /// Reads host memory.
    fn read_host(&mut self, addr: u64, out: &mut [u8]) -> Result<(), MemoryFault>;
    /// Writes host memory.
    fn write_host(&mut self, addr: u64, bytes: &[u8]) -> Result<(), MemoryFault>;
    /// Tells the host.
    fn notify(&mut self, notice: Notice);
    /// Tells the user about an error in a handler.
    fn warn(&mut self, message: String);
    /// Whether slices are wanted.
    fn tracing(&self) -> bool;
    /// Adds a slice to the node's timeline.
    fn slice(&mut self, slice: Slice<'_>);
}
