// SPDX-License-Identifier: Apache-2.0
//! A card's times for a message, by the parameters and rules of the machine.
//! `crates/system/goal-cards/tests/protocol.rs` runs the card itself on the same messages and compares the times.

use machine::{DmaMessages, Injection, Machine, MatchOverlaps};
use sim::Time;

/// Initiator of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Initiator {
    /// The CPU, or a triggered operation that it described.
    Host,
    /// A handler.
    Handler,
    /// The card itself, which answers a get.
    Card,
}

/// Returns the time until a card can start to send a message of `bytes`: a DMA read of the first packet (the rest
/// overlaps with sending), or nothing without data. With `dma.messages = "latency"` it depends on the initiator.
pub fn fetch(machine: &Machine, bytes: u64, initiator: Initiator) -> Time {
    let (dma, mtu) = (&machine.dma, u64::from(machine.network.mtu));
    match (dma.messages, initiator) {
        (DmaMessages::Transfers, _) if bytes == 0 => Time::ZERO,
        (DmaMessages::Transfers, _) => dma.latency * 2 + dma.gap_per_byte.time(bytes.min(mtu)),
        (DmaMessages::Latency, Initiator::Host) => dma.latency,
        // Handlers' messages carry no host data here.
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

/// Timing of a card's reception of a message, from its first byte on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reception {
    /// Minimum occupation of the port.
    pub occupied: Time,
    /// Time until the match of the last packet.
    pub matched: Time,
}

/// Returns the timing of the reception of a message of `bytes`; `is_expected` for an answer to the card's own get.
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

/// Returns the time from the complete reception of a message of `bytes` until it is in host memory: the DMA write of
/// the last packet (the others overlap with reception), or only the notification without data.
pub fn deposit(machine: &Machine, bytes: u64) -> Time {
    let (dma, mtu) = (&machine.dma, u64::from(machine.network.mtu));
    let last_packet = bytes.checked_sub(1).map_or(0, |bytes| bytes % mtu + 1);
    match dma.messages {
        DmaMessages::Transfers => dma.latency + dma.gap_per_byte.time(last_packet),
        DmaMessages::Latency => dma.latency,
    }
}
