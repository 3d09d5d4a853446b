use sim::Time;

use crate::fabric::Event;

/// A packet that a card wants to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Injection {
    /// The sending node.
    pub from: u32,
    /// The receiving node.
    pub to: u32,
    /// Bytes of data, at most an MTU. A packet without data, such as an acknowledgement, takes no time on links.
    pub bytes: u64,
    /// The minimum time until the port's next packet (LogGP's g for the first packet of a message).
    pub gap: Time,
}

/// When a packet leaves its card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Departure {
    /// Number that identifies the packet in the interconnect.
    pub ticket: u32,
    /// When its first byte leaves.
    pub start: Time,
    /// When its last byte has left.
    pub end: Time,
}

/// The surroundings of an [`Interconnect`](crate::Interconnect): a queue of events, and the cards.
pub trait Outlet<P> {
    /// Schedules an event, which the interconnect [handles](crate::Interconnect::handle) at `at`.
    fn schedule(&mut self, at: Time, event: Event);
    /// Tells a card at `at` that the first of its blocked packets departs.
    fn departs(&mut self, at: Time, node: u32, departure: Departure);
    /// Delivers the first byte of a packet to the port of a card at `at`.
    fn arrives(&mut self, at: Time, node: u32, packet: P);
    /// Tells the sender at `at` that a packet is lost. It only happens when [`Interconnect::set_losses`](crate::Interconnect::set_losses)
    /// has been called.
    fn lost(&mut self, at: Time, from: u32, packet: P);
}
