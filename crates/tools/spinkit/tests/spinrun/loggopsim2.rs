// SPDX-License-Identifier: Apache-2.0
//! Broadcast and accumulate by the rules of LogGOPSim2 (docs/validation.md, "Two sets of rules"), as sums of the parameters of
//! the integrated card in picoseconds. `times` has the sums of ping-pong.

use serde_json::Value;

use crate::harness::{accumulate, broadcast, reported};

const O: u64 = 65_000;
/// L, the latency between host memory and the card.
const L: u64 = 50_000;
const CYCLE: u64 = 400;
/// Time from the start of a port until the last packet is matched at the other: a full packet's time before the
/// network, wires and switch, and the packets, each with its match.
const HOP_8: u64 = 81_900 + 116_800 + 7 * 20 + 30_000;
const HOP_16: u64 = 81_900 + 116_800 + 15 * 20 + 30_000;
const HOP_4K: u64 = 81_900 + 116_800 + 4095 * 20 + 30_000;
const HOP_64K: u64 = HOP_4K + 15 * (4095 * 20 + 2_000);

/// Returns the times in the lines printed by a program.
fn times(options: &str, program: &std::path::Path, arguments: &str) -> (Vec<u64>, Value) {
    let (run, report) = reported(&format!("--machine loggopsim2-int {options}"), program, arguments);
    let line = |line: &str| {
        let line: Value = serde_json::from_str(line).unwrap();
        assert_eq!(line["data_ok"], true, "{line}");
        line["time_ps"].as_u64().unwrap()
    };
    (run.ok().lines().map(line).collect(), report)
}

/// Among four ranks the last one is two hops from the root: 0, 2, 3.
#[test]
fn a_broadcast_is_a_sum_of_hops() {
    let of = |nic: &str, mode: &str| {
        let arguments = format!("--ranks 2,4 --mode {mode} --bytes 8 --mode {mode} --bytes 65536");
        times(&format!("-n 4 --nic {nic}"), &broadcast(), &arguments).0
    };
    let rdma = |hop: u64| O + L + hop + L;
    assert_eq!(of("rdma", "rdma"), [rdma(HOP_8), 2 * rdma(HOP_8), rdma(HOP_64K), 2 * rdma(HOP_64K)]);
    // Only the root's CPU posts.
    let triggered = |hop: u64| [rdma(hop), 2 * rdma(hop) - O];
    assert_eq!(of("portals4", "triggered"), [triggered(HOP_8), triggered(HOP_64K)].concat());
    // Rank 2 forwards from the card, 30 cycles after the match. A leaf's handlers take 36 cycles before the notice to
    // the host.
    let leaf = rdma(HOP_8) + 36 * CYCLE;
    assert_eq!(of("spin", "stream")[..2], [leaf, leaf + HOP_8 + 30 * CYCLE]);
}

/// One core: 51 ns, and 2 N bytes read through ten lines of 64, 51 ns per line. Handlers read and write by DMA: two
/// latencies and (s − 1) G for the read, and nothing for the non-blocking write. The host is notified a latency after
/// the handler's end, or after the (s − 1) G of the write if longer.
#[test]
fn an_accumulate_is_a_sum_of_message_and_memory() {
    let arguments = "--mode cpu --sizes 16,4096,65536";
    let message = |hop: u64, bytes: u64| O + L + hop + L + 51_000 + (2 * bytes * 51_000).div_ceil(640);
    let expected = [message(HOP_16, 16), message(HOP_4K, 4096), message(HOP_64K, 65_536)];
    assert_eq!(times("-n 2 --nic rdma", &accumulate(), arguments).0, expected);
    for (bytes, hop) in [(16, HOP_16), (4096, HOP_4K)] {
        let (found, report) = times("-n 2", &accumulate(), &format!("--mode handler --sizes {bytes}"));
        // Five cycles pass from the start of the read to the wait for it, 14 from the start of the write to the end.
        let cycles = report["handlers"]["accumulate_payload"]["min_cycles"].as_u64().unwrap() - 5;
        let transfer = ((bytes - 1) * 6_700_u64).div_ceil(1000);
        let write = transfer.saturating_sub(14 * CYCLE);
        assert_eq!(found, [O + L + hop + cycles * CYCLE + 2 * L + transfer + write + L], "{bytes} B");
    }
}
