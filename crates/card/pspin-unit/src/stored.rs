// SPDX-License-Identifier: Apache-2.0
//! Packets that the NIC writes to the packet buffer, until their requests may be submitted.

use std::collections::VecDeque;

use machine::Pspin;

use crate::cycle::Cycle;

/// Packets being written, in order, and packets written recently.
#[derive(Debug, Default)]
pub struct Stored {
    /// Addresses of packets that are not completely written.
    pending: VecDeque<u32>,
    /// Addresses of written packets, each with the first cycle in which its request may be submitted.
    ready: VecDeque<(Cycle, u32)>,
    write_cycles: u32,
}

impl Stored {
    /// Creates an empty set of packets.
    pub fn new(unit: &Pspin) -> Stored {
        Stored { write_cycles: unit.inbound.write_cycles, ..Stored::default() }
    }

    /// Appends the packet at `address` to those being written.
    pub fn begin(&mut self, address: u32) {
        self.pending.push_back(address);
    }

    /// Completes the oldest packet being written; its last beat is in the cycle before `behind`.
    pub fn end(&mut self, behind: Cycle) {
        if let Some(address) = self.pending.pop_front() {
            self.ready.push_back((behind + self.write_cycles, address));
        }
    }

    /// Returns true if a request for the packet at `address` may be submitted in cycle `now`.
    pub fn is_there(&mut self, now: Cycle, address: u32) -> bool {
        while self.ready.front().is_some_and(|(from, _)| *from <= now) {
            self.ready.pop_front();
        }
        !self.pending.contains(&address) && !self.ready.iter().any(|(_, ready)| *ready == address)
    }
}
