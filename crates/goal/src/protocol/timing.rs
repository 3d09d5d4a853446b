//! What a card takes for a message, from the parameters of the machine. `crates/offload/tests/protocol.rs` runs the card
//! itself on the same messages and compares the times.

use machine::Machine;
use sim::Time;

/// Returns how long a card takes to fetch what it needs of a message of `bytes` from host memory before it can start to
/// send: a DMA read of the first packet, the rest of which overlaps sending; nothing without data.
pub fn fetch(machine: &Machine, bytes: u64) -> Time {
    let (dma, mtu) = (&machine.dma, u64::from(machine.network.mtu));
    if bytes == 0 { Time::ZERO } else { dma.latency * 2 + dma.gap_per_byte.time(bytes.min(mtu)) }
}

/// Returns how long a card takes to match the last packet of a message of `bytes`. It is found like all later packets if
/// the message has several, or if the card expects it (`is_expected`) as the answer to its own get.
pub fn matching(machine: &Machine, bytes: u64, is_expected: bool) -> Time {
    let is_header = !is_expected && bytes <= u64::from(machine.network.mtu);
    if is_header { machine.nic.match_header } else { machine.nic.match_cam }
}

/// Returns how long a card takes to write a message of `bytes` to host memory after it has all of it: the DMA write of the
/// last packet, as the others overlap receiving. Without data it is the notification alone.
pub fn deposit(machine: &Machine, bytes: u64) -> Time {
    let (dma, mtu) = (&machine.dma, u64::from(machine.network.mtu));
    let last_packet = bytes.checked_sub(1).map_or(0, |bytes| bytes % mtu + 1);
    dma.latency + dma.gap_per_byte.time(last_packet)
}
