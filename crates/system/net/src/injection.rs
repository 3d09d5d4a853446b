// SPDX-License-Identifier: Apache-2.0
//! Injection and departure of card packets.

use sim::Time;

use crate::fabric::Event;

/// A packet that a card requests to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Injection {
    /// Sending node.
    pub from: u32,
    /// Receiving node.
    pub to: u32,
    /// Bytes of data, at most an MTU. A packet without data, such as an acknowledgement, takes no time on links.
    pub bytes: u64,
    /// Minimum time until the port's next packet (LogGP's g for the first packet of a message).
    pub gap: Time,
}

/// Departure of a packet from its card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Departure {
    /// Ticket that identifies the packet in the interconnect.
    pub ticket: u32,
    /// Departure of the first byte.
    pub start: Time,
    /// Departure of the last byte.
    pub end: Time,
}

/// Interface of an [`Interconnect`](crate::Interconnect) to an event queue and the cards.
pub trait Outlet<P> {
    /// Schedules an event, which the interconnect [handles](crate::Interconnect::handle) at `at`.
    fn schedule(&mut self, at: Time, event: Event);
    /// Notifies a card at `at` of the departure of its first blocked packet.
    fn departs(&mut self, at: Time, node: u32, departure: Departure);
    /// Delivers the first byte of a packet to the port of a card at `at`.
    fn arrives(&mut self, at: Time, node: u32, packet: P);
    /// Notifies the sender at `at` that a packet is lost. Called only after
    /// [`Interconnect::set_losses`](crate::Interconnect::set_losses).
    fn lost(&mut self, at: Time, from: u32, packet: P);
}
