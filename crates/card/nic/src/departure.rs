// SPDX-License-Identifier: Apache-2.0
//! Departures of packets from a card.

use sim::Time;

/// Departure of a packet from its card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Departure {
    /// Number by which the interconnect identifies the packet.
    pub ticket: u32,
    /// Time at which the first byte leaves.
    pub start: Time,
    /// Time at which the last byte has left.
    pub end: Time,
}
