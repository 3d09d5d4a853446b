// SPDX-License-Identifier: Apache-2.0
//! Every call for handlers (sPIN App. B.6): effects and errors. The programs compare with plain computations; see their
//! comments.

use crate::harness::{Run, program, reported, spinrun};

/// Machines that differ in all parameters on which values must not depend.
const MACHINES: [&str; 4] =
    ["", "--machine sc17-dis", "--set hpu.timing=inorder", "--set accelerator.contexts=8 --set accelerator.hpus=2"];

fn calls(options: &str, arguments: &str) -> Run {
    spinrun(&format!("-n 2 {options}"), &program("p4spin_calls"), arguments)
}

fn everywhere(case: &str) {
    for machine in MACHINES {
        assert_eq!(calls(machine, case).ok(), "", "{machine}");
    }
}

#[test]
fn gets() {
    everywhere("gets_to_host");
    for machine in MACHINES {
        // The last of the gets is refused.
        assert_eq!(calls(machine, "gets_to_device").lossy(), "", "{machine}");
    }
}

#[test]
fn atomics_at_others() {
    everywhere("atomics_device");
    everywhere("atomics_host");
}

#[test]
fn atomics_on_host_memory() {
    everywhere("dma_cas");
    everywhere("dma_fetch_add");
    everywhere("dma_contended");
}

#[test]
fn atomics_on_hpu_memory() {
    everywhere("hpu_contended");
}

#[test]
fn posted_writes() {
    everywhere("posted");
}

/// A waiting handler leaves its HPU to another one if the card has contexts for more than one; none moves to another
/// HPU (sPIN §3.2.2). This hides the latency of host memory.
#[test]
fn waiting_handlers_are_descheduled() {
    let run = |contexts: u32| {
        let options = format!("-n 2 --machine sc17-dis --set accelerator.hpus=2 --set accelerator.contexts={contexts}");
        let (run, report) = reported(&options, &program("p4spin_calls"), "contexts");
        let handler = &report["handlers"]["wait_for_host"];
        assert_eq!(handler["calls"].as_u64(), Some(8), "{}", run.err);
        (run.ok(), report["end_ps"].as_u64().unwrap(), handler["occupancy_ps"].as_u64().unwrap())
    };
    let (few, blocked, occupied) = run(2);
    let (many, hidden, _) = run(8);
    assert_eq!((&*few, &*many), ("at once 2 hpus 0x3\n", "at once 8 hpus 0x3\n"));
    // First one after the other on two HPUs, four times; then all at once, from the arrival of the last packet on.
    let wire = 7 * 4096 * 20;
    let saved = occupied / 8 * 3;
    assert!(blocked - hidden <= saved && blocked - hidden > saved - wire, "{blocked} {hidden} {occupied}");
}

#[test]
fn yielding_lets_others_run() {
    let one = "--set accelerator.hpus=1 --set accelerator.contexts=2 --set accelerator.watchdog_cycles=50000";
    assert_eq!(calls(one, "yields 1").ok(), "");
    // Without yielding, no other handler runs on the HPU, and the watchdog ends the handler.
    let run = calls(one, "yields 0");
    run.ended(0, "payload handler 'wait_for_next' was killed after 50000 cycles");
    // No other handler waits, so yielding has no effect.
    assert_eq!(calls("", "yields 1").ok(), "");
}

/// Payloads are aligned to `min_fragmentation_limit` whatever the user header (App. B.2.1).
#[test]
fn payloads_are_aligned() {
    for user_header in [0, 1, 8, 12, 63, 64] {
        assert_eq!(calls("", &format!("aligned {user_header}")).ok(), "", "{user_header}");
    }
}

#[test]
fn packets_of_many_messages_mix() {
    for machine in MACHINES {
        assert_eq!(spinrun(&format!("-n 5 {machine}"), &program("p4spin_calls"), "interleave").ok(), "", "{machine}");
    }
}

#[test]
fn numbers_out_of_range_are_errors() {
    everywhere("bad_numbers");
}

#[test]
fn memory_of_others_ends_the_handler() {
    // Address 0x40 is unmapped; HPU memory starts at 0x1000_0000 (`abi::device::map`).
    for (number, address, what) in [
        (0, 0x40, "put 8 bytes from 0x40, which are not its own"),
        (1, 0x40, "got 8 bytes to 0x40, which are not its own"),
        (2, 0x40, "put 8 bytes from 0x40, which are not its own"),
        (3, 0x40, "moved 8 bytes at 0x40 by DMA, which are not its own"),
        (4, 0x40, "moved 8 bytes at 0x40 by DMA, which are not its own"),
        (5, 0x40, "gave 0x40 for a result, which is not its own"),
        (6, 0x40, "asked for an atomic operation at 0x40"),
        (7, 0x40, "asked for an atomic operation at 0x40"),
        (8, 0x1000_1158, "moved 128 bytes at 0x10001158 by DMA, which are not its own"),
        (9, 0x1000_0044, "asked for an atomic operation at 0x10000044"),
    ] {
        let run = calls("", &format!("wild_memory {number}"));
        run.ended(0, &format!("completion handler 'wild' {what}"));
        assert_eq!(run.out, format!("{address:#x}\n"));
        assert!(run.err.contains("p4spin_calls.c:"), "{}", run.err);
    }
}

#[test]
fn host_memory_that_is_not_mapped() {
    calls("", "unmapped_memory").ended(0, "DMA of a handler: host address 0x8+8 is not accessible");
}

/// Handlers on gets and atomics: the header handler decides, the completion handler follows the reply or the result.
mod other_requests {
    use super::*;

    fn gets(options: &str, case: &str) -> Run {
        spinrun(&format!("-n 2 {options}"), &program("p4spin_gets"), case)
    }

    #[test]
    fn do_what_they_ask() {
        for machine in MACHINES {
            assert_eq!(gets(machine, "proceed").ok(), "", "{machine}");
            assert_eq!(gets(machine, "process").ok(), "", "{machine}");
        }
    }

    #[test]
    fn can_be_dropped() {
        assert_eq!(gets("", "drop").ok(), "");
    }

    #[test]
    fn fail_with_their_handlers() {
        gets("", "fail").ended(0, "header handler 'header' returned FAIL");
        gets("", "completion_fails").ended(0, "completion handler 'completion' returned FAIL");
    }

    #[test]
    fn can_be_pending() {
        assert_eq!(gets("", "pending").lossy(), "");
    }

    #[test]
    fn meet_flow_control() {
        assert_eq!(gets("--set accelerator.packet_buffer_bytes=8192", "flow_control").lossy(), "");
    }

    /// The header handler delays the reply; its write of 32 bytes leaves the card within a cycle.
    #[test]
    fn wait_for_their_header_handler() {
        let (run, report) = reported("-n 2", &program("p4spin_gets"), "times");
        let out = run.ok();
        let times: Vec<u64> = out.lines().map(|line| line.parse().unwrap()).collect();
        let occupied = report["handlers"]["header"]["occupancy_ps"].as_u64().unwrap();
        assert_eq!(times[1] - times[0], occupied);
        assert_eq!(occupied, report["handlers"]["header"]["cycles"].as_u64().unwrap() * 400);
    }
}
