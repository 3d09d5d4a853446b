//! What cards and handlers did, for reports.

use std::collections::BTreeMap;

use accel::Profile;
use sim::Time;

use crate::drops::DropsByReason;

/// Counts of one card.
#[derive(Clone, Debug, Default)]
pub struct Stats {
    /// Messages put on the wire, acknowledgements included.
    pub messages_sent: u64,
    /// Packets put on the wire.
    pub packets_sent: u64,
    /// Payload bytes put on the wire.
    pub bytes_sent: u64,
    /// Messages whose header packet has arrived.
    pub messages_received: u64,
    /// Packets that have arrived.
    pub packets_received: u64,
    /// Payload bytes that have arrived.
    pub bytes_received: u64,
    /// Bytes moved between card and host memory.
    pub dma_bytes: u64,
    /// Messages to nodes that do not exist, and those that the card has given up because it got no acknowledgement.
    pub undeliverable: u64,
    /// Packets of this card that the network has lost.
    pub packets_lost: u64,
    /// Packets that the card has sent again.
    pub packets_resent: u64,
    /// Times that flow control disabled a portal table entry.
    pub flow_control: u64,
    /// Packets dropped because no HPU context and no packet buffer was free, or because they had overtaken their header
    /// packet and the card could hold no more of these.
    pub packets_dropped: u64,
    /// Packets that had overtaken their header packet, or one that was lost, and were held until it came.
    pub packets_held: u64,
    /// Most bytes of packets that were in the packet buffer at once.
    pub packet_buffer_peak: u64,
    /// Most triggered operations that waited for their counters at once.
    pub triggered_peak: u64,
    /// What was not delivered, by reason; to nodes that do not exist at the sender, else at the target.
    pub drops: DropsByReason,
    /// How long the incoming port was occupied.
    pub rx_busy: Time,
    /// How long the DMA engine was occupied.
    pub dma_busy: Time,
    /// How long all HPUs together were occupied by handlers.
    pub hpu_busy: Time,
    /// Counts of each handler, by its name.
    pub handlers: BTreeMap<String, HandlerStats>,
    /// Instructions by handler name and place in the source; empty unless the card profiles.
    pub profile: Profile,
}

/// The counts that a card keeps while it runs, those of each message first. [`Stats`] has what else is to be told.
#[derive(Clone, Debug, Default)]
#[repr(C)] // see `Nic`
pub(crate) struct Counts {
    pub messages_sent: u64,
    pub packets_sent: u64,
    pub bytes_sent: u64,
    pub messages_received: u64,
    pub packets_received: u64,
    pub bytes_received: u64,
    pub undeliverable: u64,
    pub packets_lost: u64,
    pub packets_resent: u64,
    pub packets_dropped: u64,
    pub packets_held: u64,
    pub drops: DropsByReason,
}

impl Counts {
    /// The statistics of a card with these counts; those that others count are zero.
    pub fn stats(&self) -> Stats {
        // Each field is named, so that the compiler finds one that is not told.
        let Counts {
            messages_sent,
            packets_sent,
            bytes_sent,
            messages_received,
            packets_received,
            bytes_received,
            undeliverable,
            packets_lost,
            packets_resent,
            packets_dropped,
            packets_held,
            drops,
        } = self.clone();
        Stats {
            messages_sent,
            packets_sent,
            bytes_sent,
            messages_received,
            packets_received,
            bytes_received,
            undeliverable,
            packets_lost,
            packets_resent,
            packets_dropped,
            packets_held,
            drops,
            ..Stats::default()
        }
    }
}

/// Counts of one handler.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HandlerStats {
    /// Invocations that ended.
    pub calls: u64,
    /// Instructions of all calls.
    pub instructions: u64,
    /// Cycles of all calls, without waiting.
    pub cycles: u64,
    /// Least cycles of a call.
    pub min_cycles: u64,
    /// Most cycles of a call.
    pub max_cycles: u64,
    /// Least instructions of a call.
    pub min_instructions: u64,
    /// Most instructions of a call.
    pub max_instructions: u64,
    /// Time from the start to the end of all calls, waiting included.
    pub occupancy: Time,
    /// Payload bytes handed to it.
    pub bytes: u64,
    /// Calls with a full packet (the card's MTU).
    pub full_packets: u64,
    /// Cycles of those calls, without waiting.
    pub full_packet_cycles: u64,
    /// Time from the start to the end of those calls, waiting included.
    pub full_packet_occupancy: Time,
    /// Puts that it issued.
    pub puts: u64,
    /// DMA transfers that it issued.
    pub dmas: u64,
    /// Calls that ended in an error.
    pub errors: u64,
}

impl HandlerStats {
    /// Adds one call; `full`: with a full packet.
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
