use sim::Time;

use crate::card::CardEvent;
use crate::message::{MessageId, Packet};
use abi::portals::Handle;

/// A host address that cannot be read or written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("host address {addr:#x}+{len} is not accessible")]
pub struct MemoryFault {
    /// First byte of the access.
    pub addr: u64,
    /// Bytes of the access.
    pub len: u64,
}

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
    /// Puts a packet on the wire; its first byte leaves at `depart`.
    fn transmit(&mut self, depart: Time, packet: Box<Packet>);
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
