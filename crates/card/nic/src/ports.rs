// SPDX-License-Identifier: Apache-2.0
//! A card's interface to its environment.

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
    /// Arriving packets.
    NicIn,
    /// Departing packets.
    NicOut,
    /// Transfers between card and host memory.
    Dma,
    /// A handler processing unit, for the handlers of the process with this index on the card.
    Hpu {
        /// Index of the process.
        process: u32,
        /// Number of the HPU.
        hpu: u32,
    },
}

/// A slice of a node's timeline.
#[derive(Clone, Copy, Debug)]
pub struct Slice<'a> {
    /// Row.
    pub track: Track,
    /// Start.
    pub start: Time,
    /// End.
    pub end: Time,
    /// Activity.
    pub name: &'a str,
    /// Packet of the slice: arrows connect the slices of a packet.
    pub packet: Option<PacketId>,
    /// Bytes moved.
    pub bytes: Option<u64>,
}

/// Interface of a card to its environment: clock, network and host. The simulator implements it for hosts that are
/// processes; tests and schedules have other implementations.
pub trait Ports {
    /// Returns the current time.
    fn now(&self) -> Time;
    /// Returns the time before which no event of the run can occur: that of the next event, [`Time::MAX`] if none is
    /// pending, or the current time if the host may act at any time.
    fn horizon(&self) -> Time;
    /// Schedules `event` of the card at `at`.
    fn schedule(&mut self, at: Time, event: NicEvent);
    /// Requests a departure from the interconnect for the card's next packet: `bytes` of data to node `target`, and at
    /// least `gap` until the following packet. Returns the departure, or `None` if back-pressure *blocks* the packet: a
    /// [`NicEvent::Departs`] then follows. Blocked packets depart in the order of their requests.
    fn inject(&mut self, target: u32, bytes: u64, gap: Time) -> Option<Departure>;
    /// Transmits a departing packet; called no later than `departure.start`.
    fn transmit(&mut self, departure: Departure, packet: Box<Packet>);
    /// Notifies the target that the sender abandoned a message at the packet `place`. The target detects this by a
    /// timeout of the same length.
    fn give_up(&mut self, header: Rc<Header>, place: u64);
    /// Returns true if packets to other cards may be lost (`spinrun --drop`).
    fn is_lossy(&self) -> bool;
    /// Reads host memory.
    ///
    /// # Errors
    /// Returns an error if some of the bytes are unreadable.
    fn read_host(&mut self, addr: u64, out: &mut [u8]) -> Result<(), MemoryFault>;
    /// Writes host memory.
    ///
    /// # Errors
    /// Returns an error if some of the bytes are not writable.
    fn write_host(&mut self, addr: u64, bytes: &[u8]) -> Result<(), MemoryFault>;
    /// Returns the time per byte of a transfer of `bytes` bytes between card and host memory that starts at `start`:
    /// `rate`, or longer if the host uses its memory at the same time.
    fn memory_rate(&mut self, rate: TimePerByte, bytes: u64, start: impl FnOnce() -> Time) -> TimePerByte;
    /// Notifies the host.
    fn notify(&mut self, notice: Notice);
    /// Returns the name of a node for messages: "rank 3", or that of a switch.
    fn name_of(&self, node: u32) -> String;
    /// Reports an error in a handler to the user.
    fn warn(&mut self, message: String);
    /// Reports a dropped message, or a dropped part of one, to an interested user.
    fn dropped(&mut self, reason: DropReason, drops: Drops);
    /// Reports a finding of the sanitizer about the process with this index on the card to the user.
    fn found(&mut self, process: u32, mistake: String);
    /// Shows a handler's text to the user.
    fn print(&mut self, printed: Printed);
    /// Ends the run: the card reached an impossible state, which is a defect of the simulator.
    fn internal_error(&mut self, error: InternalError);
    /// Returns true if slices are recorded.
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
