//! What a card takes for a message, by the parameters and rules of the machine. `crates/system/goal-cards/tests/protocol.rs` runs the
//! card itself on the same messages and compares the times.

use machine::{DmaMessages, Injection, Machine, MatchOverlaps};
use sim::Time;

/// The part that has a message sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Initiator {
    /// The CPU, or a triggered operation that it has described.
    Host,
    /// A handler.
    Handler,
    /// The card itself, which answers a get.
    Card,
}

/// Returns how long a card takes until it can start to send a message of `bytes`: a DMA read of the first packet, the rest of
/// which overlaps sending, and nothing without data. With `dma.messages = "latency"` it depends on who sends.
pub fn fetch(machine: &Machine, bytes: u64, initiator: Initiator) -> Time {
    let (dma, mtu) = (&machine.dma, u64::from(machine.network.mtu));
    match (dma.messages, initiator) {
        (DmaMessages::Transfers, _) if bytes == 0 => Time::ZERO,
        (DmaMessages::Transfers, _) => dma.latency * 2 + dma.gap_per_byte.time(bytes.min(mtu)),
        (DmaMessages::Latency, Initiator::Host) => dma.latency,
        // A handler's message has no data of the host here.
        (DmaMessages::Latency, Initiator::Handler | Initiator::Card) => Time::ZERO,
    }
}

/// Returns the minimum time between a message of `bytes` and the next one at the sending port.
pub fn injection_gap(machine: &Machine, bytes: u64) -> Time {
    let network = &machine.network;
    match network.injection {
        Injection::Max => network.gap,
        Injection::Sum => network.gap + network.gap_per_byte.time(bytes.saturating_sub(1)),
    }
}

/// How a card receives a message, from its first byte on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reception {
    /// How long the port is occupied at least.
    pub occupied: Time,
    /// When the card knows the last packet.
    pub matched: Time,
}

/// Returns how a card receives a message of `bytes`, which may be the answer to its own get (`is_expected`).
pub fn reception(machine: &Machine, bytes: u64, is_expected: bool) -> Reception {
    let (network, nic) = (&machine.network, &machine.nic);
    let (mtu, rate) = (u64::from(network.mtu), network.gap_per_byte);
    let first = if is_expected { nic.match_reply } else { nic.match_header };
    let later = bytes.div_ceil(mtu).saturating_sub(1);
    let last = if later == 0 { first } else { nic.match_cam };
    match nic.match_overlaps {
        MatchOverlaps::Reception => {
            let gap = if bytes == 0 { Time::ZERO } else { network.gap };
            Reception { occupied: gap, matched: rate.time(bytes) + last }
        }
        MatchOverlaps::Gap => {
            // Packets follow each other at the rate of the wire, or as fast as they are matched.
            let last_bytes = rate.time((bytes - later * mtu).saturating_sub(1));
            let matching = first + nic.match_cam * later;
            let one_by_one = rate.time(later * (mtu - 1)) + last_bytes + matching;
            let matched = one_by_one.max(rate.time(later * mtu) + last_bytes + last);
            Reception { occupied: matched + network.gap.saturating_sub(matching), matched }
        }
    }
}

/// Returns how long a card takes to write a message of `bytes` to host memory after it has all of it: the DMA write of the
/// last packet, as the others overlap receiving. Without data it is the notification alone.
pub fn deposit(machine: &Machine, bytes: u64) -> Time {
    let (dma, mtu) = (&machine.dma, u64::from(machine.network.mtu));
    let last_packet = bytes.checked_sub(1).map_or(0, |bytes| bytes % mtu + 1);
    match dma.messages {
        DmaMessages::Transfers => dma.latency + dma.gap_per_byte.time(last_packet),
        DmaMessages::Latency => dma.latency,
    }
}
