use std::rc::Rc;

use accel::Printed;
use sim::{Time, TimePerByte};

pub use crate::departure::Departure;
use crate::drops::{DropReason, Drops};
use crate::event::NicEvent;
pub use crate::message::PacketId;
use crate::message::{Header, Packet};
use crate::portals::InternalError;
pub use crate::portals::Notice;
use crate::region::HostMemory;
pub use crate::region::MemoryFault;

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
    /// The time of the next event of the run, [`Time::MAX`] when there is none.
    fn horizon(&self) -> Time;
    /// Has the card handle `event` at `at`.
    fn schedule(&mut self, at: Time, event: NicEvent);
    /// Asks the interconnect to take the card's next packet: `bytes` of data to node `target`, and at least `gap` until
    /// the card's next packet. Returns when it leaves; `None` when there is no room for it on the way: then it is
    /// *blocked*, and a [`NicEvent::Departs`] follows. Blocked packets depart in the order in which the card asked.
    fn inject(&mut self, target: u32, bytes: u64, gap: Time) -> Option<Departure>;
    /// Hands over a packet that departs, at `departure.start` at the latest.
    fn transmit(&mut self, departure: Departure, packet: Box<Packet>);
    /// Tells the target of a message that its sender has given it up, at the packet with this place: the target has waited for it as
    /// long.
    fn give_up(&mut self, header: Rc<Header>, place: u64);
    /// Whether packets to other cards may be lost (`spinrun --drop`).
    fn is_lossy(&self) -> bool;
    /// Reads host memory.
    ///
    /// # Errors
    /// When some of the bytes cannot be read.
    fn read_host(&mut self, addr: u64, out: &mut [u8]) -> Result<(), MemoryFault>;
    /// Writes host memory.
    ///
    /// # Errors
    /// When some of the bytes cannot be written.
    fn write_host(&mut self, addr: u64, bytes: &[u8]) -> Result<(), MemoryFault>;
    /// Returns how long each byte takes in a transfer of `bytes` bytes between card and host memory that begins at `start`:
    /// `rate`, or longer if the host uses its memory at the same time.
    fn memory_rate(&mut self, rate: TimePerByte, bytes: u64, start: impl FnOnce() -> Time) -> TimePerByte;
    /// Tells the host.
    fn notify(&mut self, notice: Notice);
    /// The name of a node, for messages: "rank 3", or that of a switch.
    fn name_of(&self, node: u32) -> String;
    /// Tells the user about an error in a handler.
    fn warn(&mut self, message: String);
    /// A message, or a part of it, was dropped: what and why, for a user who wants to see it as it happens.
    fn dropped(&mut self, reason: DropReason, drops: Drops);
    /// Tells the user of a mistake that the sanitizer has found.
    fn found(&mut self, mistake: String);
    /// Shows the user a text that a handler has printed.
    fn print(&mut self, printed: Printed);
    /// Ends the run: the card is in a state that cannot occur, which is a defect of the simulator.
    fn internal_error(&mut self, error: InternalError);
    /// Whether slices are wanted.
    fn tracing(&self) -> bool;
    /// Adds a slice to the node's timeline.
    fn slice(&mut self, slice: Slice<'_>);
}

impl<P: Ports> HostMemory for P {
    fn read(&mut self, addr: u64, out: &mut [u8]) -> Result<(), MemoryFault> {
        self.read_host(addr, out)
    }

    fn write(&mut self, addr: u64, bytes: &[u8]) -> Result<(), MemoryFault> {
        self.write_host(addr, bytes)
    }
}
