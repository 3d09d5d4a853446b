// SPDX-License-Identifier: Apache-2.0
//! Messages that share links. The times are sums of the parameters of machines/sc17-int.toml, in picoseconds.

use crate::harness::{plain, reported};

const O: u64 = 65_000;
const POLL: u64 = 51_000;
const CAM: u64 = 2_000;
const DMA: u64 = 50_000;
/// DMA time of a packet of 4 KiB at 6.7 ps per byte, and time on a link.
const DMA_PACKET: u64 = 27_444;
const PACKET: u64 = 4096 * 20;
const WIRE: u64 = 33_400;
const SWITCH: u64 = 50_000;

/// Ranks 1 and 2 send two packets each to rank 0, over one switch. Returns the output of each rank, and the longest
/// queue in bytes.
fn incast(options: &str) -> (Vec<u64>, Option<u64>) {
    let (run, report) = reported(&format!("-n 3 {options}"), &plain("incast"), "8192");
    assert_eq!(run.status, 0, "{}", run.err);
    let times = (0..3).map(|rank| run.rank(rank)[0].parse().unwrap()).collect();
    (times, report["network"]["longest_queue"]["longest_queue_bytes"].as_u64())
}

#[test]
fn an_incast_is_as_fast_as_its_last_link_and_its_buffers() {
    let at_card = O + 2 * DMA + DMA_PACKET;
    let seen = DMA + POLL;
    let deposit = CAM + DMA + DMA_PACKET + POLL;
    let sent = at_card + 2 * PACKET + seen;
    // The port of rank 0 takes four packets one after the other, in both models of the network.
    let received = at_card + SWITCH + 2 * WIRE + 4 * PACKET + deposit;
    assert_eq!(incast(""), (vec![received, sent, sent], None));
    // On arrival of each card's second packet, the switch has sent one packet, and three are in its queue.
    assert_eq!(incast("--set network.model=fabric"), (vec![received, sent, sent], Some(3 * 4096)));

    // With room for one packet of each card, a card sends its second once the tail of its first leaves the switch and
    // the credit crosses the wire. The first packet of rank 1 leaves the switch at once, that of rank 2 behind it.
    let credit = |packets| WIRE + SWITCH + packets * PACKET + WIRE;
    let sent = [1, 2].map(|before| at_card + credit(before) + PACKET + seen);
    // The last packet then crosses switch and wires once more.
    let received = at_card + credit(2) + SWITCH + 2 * WIRE + PACKET + deposit;
    let expected = vec![received, sent[0], sent[1]];
    let small = incast("--set network.model=fabric --set network.fabric.buffer_bytes=4096");
    assert_eq!(small, (expected, Some(2 * 4096)));
}
