// SPDX-License-Identifier: Apache-2.0
//! Interface of a live card's engine to the event loop.

use std::os::fd::BorrowedFd;

use pspin_nic::report::Report;
use spincc::Result;

/// Packet for handlers, with the verdict of the match-action table.
pub struct Packet {
    /// The whole frame.
    pub bytes: Vec<u8>,
    /// Index of its rule.
    pub rule: usize,
    /// Number of its message.
    pub message: u64,
    /// Set for the last packet of its message.
    pub is_last: bool,
    /// Number of its bytes copied to the handlers' memory.
    pub transfer: usize,
}

/// Output of a card.
pub enum Output {
    /// Frame that a handler sends.
    Frame(Vec<u8>),
    /// Line that a handler prints, with the place of its HPU.
    Line(String),
    /// Failure of a handler.
    Failed(String),
    /// A message was given up, because no packet arrived for long.
    Forgotten(u64),
}

/// Engine of a live card.
pub trait Card {
    /// Returns true while it takes another packet.
    fn has_room(&self) -> bool;

    /// Returns true while packets are inside.
    fn is_busy(&self) -> bool;

    /// Takes a packet from the network.
    fn arrive(&mut self, packet: Packet);

    /// Works until nothing is left to do, but only for a few milliseconds. Returns the outputs.
    ///
    /// # Errors
    /// When the card cannot go on.
    fn work(&mut self) -> Result<Vec<Output>>;

    /// Returns the milliseconds after which it wants to work even if no packet arrives; -1 for never.
    fn wait_ms(&self) -> i32;

    /// Returns a file that is readable when it wants to work.
    fn fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// Returns the number of packets that the port did not take from its handlers, and of RDMA puts.
    fn unsent(&self) -> (u64, u64) {
        (0, 0)
    }

    /// Ends the work, and returns the results.
    fn report(&mut self) -> Report;
}
