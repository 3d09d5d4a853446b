// SPDX-License-Identifier: Apache-2.0
//! Latencies of whole packets and of the runtime.

use accel::testing::code::*;
use pspin_unit::her::TaskOutcome;

use crate::rig::{Rig, machine};

/// Runs the handler once to fill the instruction cache, and then measures it.
fn warm(mut rig: Rig, bytes: usize) -> (u64, Rig) {
    rig.run(&vec![0; bytes]);
    let (cycles, outcome) = rig.run(&vec![0; bytes]);
    assert_eq!(outcome, TaskOutcome::Done);
    (cycles, rig)
}

/// PsPIN §IV-B1: 26 ns at 64 B and 40 ns at 1,024 B, ten of them from the packet in L1 to the doorbell.
#[test]
fn an_empty_handler_takes_as_long_as_in_the_paper() {
    for (bytes, expected) in [(64, 26), (128, 26), (256, 28), (512, 32), (1024, 40), (1536, 48), (2048, 56), (65, 26)] {
        let (cycles, mut rig) = warm(Rig::new(&[RET]), bytes);
        assert_eq!(cycles, expected, "{bytes} B");
        let log = rig.unit.observer();
        let [landed, started, ended] = [log.landed[1], log.started[1], log.ended[1].0];
        // The task is assigned one cycle after the packet has landed; the pointer follows one later, and the doorbell
        // eight after that.
        assert_eq!((started - landed, ended - started), (2, 8));
    }
}

/// Latencies measured on the published design.
#[test]
fn the_published_design_takes_as_long_as_measured() {
    for (bytes, expected) in [(64, 27), (128, 28), (256, 30), (512, 34), (1024, 42), (1536, 50), (2048, 58)] {
        let (cycles, _) = warm(Rig::on(machine("pspin-published", &[]), &[RET]), bytes);
        assert_eq!(cycles, expected, "{bytes} B");
    }
}

#[test]
fn each_instruction_takes_its_cycles() {
    for count in [1, 2, 7, 100] {
        let handler = [vec![addi(A1, A1, 1); count], vec![RET]].concat();
        let (cycles, _) = warm(Rig::new(&handler), 64);
        assert_eq!(cycles, 26 + count as u64);
    }
}

/// The first packet waits for the handler's lines: each takes `icache.miss_cycles`.
#[test]
fn the_first_packet_waits_for_its_instructions() {
    for (instructions, lines) in [(1, 1), (8, 1), (9, 2), (24, 3)] {
        let handler = [vec![NOP; instructions - 1], vec![RET]].concat();
        let mut rig = Rig::new(&handler);
        let known = rig.unit.observer().misses.len();
        let cold = rig.run(&[0; 64]).0;
        let warm = rig.run(&[0; 64]).0;
        assert_eq!(cold - warm, 12 * lines, "{instructions}");
        // The runtime's jump back to its loop is in a separate line, for which no handler waits.
        assert_eq!(rig.unit.observer().misses.len() - known, lines as usize + 1);
    }
}

/// With more code than the cache holds, every packet misses again.
#[test]
fn code_that_is_larger_than_the_cache_misses_every_time() {
    // 5 KiB of straight-line code, 4 KiB of which fit; the oldest line is replaced.
    let handler = [vec![NOP; 1279], vec![RET]].concat();
    let mut rig = Rig::new(&handler);
    rig.context.watchdog_cycles = 100_000;
    let times: Vec<u64> = (0..3).map(|_| rig.run(&[0; 64]).0).collect();
    assert_eq!(times[1], times[2]);
    assert!(times[1] > 26 + 1279 + 100 * 12, "{times:?}");
}
