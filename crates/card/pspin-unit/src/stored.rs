//! Packets that the NIC writes to the packet buffer, until their requests may be submitted.

use std::collections::VecDeque;

use machine::Pspin;

use crate::cycle::Cycle;

/// The packets that are being written, in order, and those that were written a short time ago.
#[derive(Debug, Default)]
pub struct Stored {
    /// The addresses of packets that have not been written completely.
    pending: VecDeque<u32>,
    /// The addresses of packets that have, and the cycles from which on requests for them may be submitted.
    ready: VecDeque<(Cycle, u32)>,
    write_cycles: u32,
}

impl Stored {
    /// No packets.
    pub fn new(unit: &Pspin) -> Stored {
        Stored { write_cycles: unit.inbound.write_cycles, ..Stored::default() }
    }

    /// The packet at an address is written next, behind those before it.
    pub fn begin(&mut self, address: u32) {
        self.pending.push_back(address);
    }

    /// The first packet that is being written has its last beat in the cycle before `behind`.
    pub fn end(&mut self, behind: Cycle) {
        if let Some(address) = self.pending.pop_front() {
            self.ready.push_back((behind + self.write_cycles, address));
        }
    }

    /// Whether a request for the packet at an address may be submitted in cycle `now`.
    pub fn is_there(&mut self, now: Cycle, address: u32) -> bool {
        while self.ready.front().is_some_and(|(from, _)| *from <= now) {
            self.ready.pop_front();
        }
        !self.pending.contains(&address) && !self.ready.iter().any(|(_, ready)| *ready == address)
    }
}
