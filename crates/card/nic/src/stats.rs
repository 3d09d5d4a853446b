// SPDX-License-Identifier: Apache-2.0
//! Statistics of cards and handlers, for reports.

use std::collections::BTreeMap;

use accel::Profile;
use sim::Time;

use crate::drops::DropsByReason;

/// Statistics of one card.
#[derive(Clone, Debug, Default)]
pub struct Stats {
    /// Counters of messages and packets.
    pub counts: Counts,
    /// Bytes moved between card and host memory.
    pub dma_bytes: u64,
    /// Stops of portal table entries by flow control.
    pub flow_control: u64,
    /// Peak number of packet bytes in the packet buffer.
    pub packet_buffer_peak: u64,
    /// Peak number of allocated bytes of HPU memory.
    pub hpu_memory_peak: u64,
    /// Peak number of waiting triggered operations.
    pub triggered_peak: u64,
    /// Time for which the incoming port was occupied.
    pub rx_busy: Time,
    /// Time for which the DMA engine was occupied.
    pub dma_busy: Time,
    /// Time for which handlers occupied the HPUs, summed over HPUs.
    pub hpu_busy: Time,
    /// Statistics of each handler by name.
    pub handlers: BTreeMap<String, HandlerStats>,
    /// Executed instructions by handler name and source location; empty unless the card profiles.
    pub profile: Profile,
}

/// Counters of a running card, those of each message first.
#[derive(Clone, Debug, Default)]
#[repr(C)] // see `Nic`
pub struct Counts {
    /// Sent messages, acknowledgements included.
    pub messages_sent: u64,
    /// Sent packets.
    pub packets_sent: u64,
    /// Sent payload bytes.
    pub bytes_sent: u64,
    /// Messages whose header packet arrived.
    pub messages_received: u64,
    /// Arrived packets.
    pub packets_received: u64,
    /// Arrived payload bytes.
    pub bytes_received: u64,
    /// Messages to nonexistent nodes, and messages abandoned without an acknowledgement.
    pub undeliverable: u64,
    /// Packets of this card that the network lost.
    pub packets_lost: u64,
    /// Retransmitted packets.
    pub packets_resent: u64,
    /// Packets dropped because no HPU context and no packet buffer was free, or because they arrived before their
    /// header packet and the card could hold no more of these.
    pub packets_dropped: u64,
    /// Packets held because they arrived before their header packet, or behind a lost one.
    pub packets_held: u64,
    /// Undelivered data by reason, counted at the sender for nonexistent nodes and otherwise at the target.
    pub drops: DropsByReason,
}

/// Statistics of one handler.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HandlerStats {
    /// Number of completed invocations.
    pub calls: u64,
    /// Instructions of all calls.
    pub instructions: u64,
    /// Cycles of all calls, without waiting.
    pub cycles: u64,
    /// Minimum cycles of a call.
    pub min_cycles: u64,
    /// Maximum cycles of a call.
    pub max_cycles: u64,
    /// Minimum instructions of a call.
    pub min_instructions: u64,
    /// Maximum instructions of a call.
    pub max_instructions: u64,
    /// Time from the start to the end of all calls, waiting included.
    pub occupancy: Time,
    /// Payload bytes of its packets.
    pub bytes: u64,
    /// Number of calls with a full packet (the card's MTU).
    pub full_packets: u64,
    /// Cycles of those calls, without waiting.
    pub full_packet_cycles: u64,
    /// Time from the start to the end of those calls, waiting included.
    pub full_packet_occupancy: Time,
    /// Number of issued puts.
    pub puts: u64,
    /// Number of issued DMA transfers.
    pub dmas: u64,
    /// Number of calls that ended in an error.
    pub errors: u64,
}

impl HandlerStats {
    /// Adds one call; `full` is true for a full packet.
    pub fn add_call(&mut self, instructions: u64, cycles: u64, occupancy: Time, bytes: u64, full: bool) {
        let first = self.calls == 0;
        self.calls += 1;
        self.instructions += instructions;
        self.cycles += cycles;
        self.occupancy += occupancy;
        self.bytes += bytes;
        if full {
            self.full_packets += 1;
            self.full_packet_cycles += cycles;
            self.full_packet_occupancy += occupancy;
        }
        self.min_cycles = if first { cycles } else { self.min_cycles.min(cycles) };
        self.max_cycles = self.max_cycles.max(cycles);
        self.min_instructions = if first { instructions } else { self.min_instructions.min(instructions) };
        self.max_instructions = self.max_instructions.max(instructions);
    }

    /// Adds another card's calls of the same handler.
    pub fn merge(&mut self, other: &HandlerStats) {
        if other.calls == 0 && other.errors == 0 {
            return;
        }
        let first = self.calls == 0;
        self.min_cycles = if first { other.min_cycles } else { self.min_cycles.min(other.min_cycles) };
        self.max_cycles = self.max_cycles.max(other.max_cycles);
        self.min_instructions =
            if first { other.min_instructions } else { self.min_instructions.min(other.min_instructions) };
        self.max_instructions = self.max_instructions.max(other.max_instructions);
        self.calls += other.calls;
        self.instructions += other.instructions;
        self.cycles += other.cycles;
        self.occupancy += other.occupancy;
        self.bytes += other.bytes;
        self.full_packets += other.full_packets;
        self.full_packet_cycles += other.full_packet_cycles;
        self.full_packet_occupancy += other.full_packet_occupancy;
        self.puts += other.puts;
        self.dmas += other.dmas;
        self.errors += other.errors;
    }
}
