// SPDX-License-Identifier: Apache-2.0
//! Order of handlers, effects of their return codes, and their commands (sPIN App. B.3–B.6). The programs check the
//! values themselves; see their comments.

use crate::harness::{program, reported, spinrun};

/// Runs a case of `handlers.c`. Returns its output.
fn handlers(options: &str, case: &str) -> String {
    spinrun(&format!("-n 2 {options}"), &program("handlers"), case).ok()
}

fn commands(case: &str) {
    for options in ["", "--machine sc17-dis", "--set hpu.timing=inorder --set accelerator.contexts=8"] {
        assert_eq!(spinrun(&format!("-n 2 {options}"), &program("commands"), case).ok(), "");
    }
}

#[test]
fn header_first_payloads_in_parallel_completion_last() {
    let four = "headers 1 payloads 8 completions 1 at once 4 hpus 0xf\n";
    assert_eq!(handlers("", "order"), four);
    let one = "headers 1 payloads 8 completions 1 at once 1 hpus 0x1\n";
    assert_eq!(handlers("--set accelerator.hpus=1 --set accelerator.contexts=1", "order"), one);
    let eight = "headers 1 payloads 8 completions 1 at once 8 hpus 0xff\n";
    assert_eq!(handlers("--set accelerator.hpus=8 --set accelerator.contexts=8", "order"), eight);
}

/// With enough HPUs the payload handlers of a message overlap, with one they follow each other.
#[test]
fn hpus_work_in_parallel() {
    let time = |options: &str| {
        let (run, report) = reported(&format!("-n 2 {options}"), &program("handlers"), "order");
        assert_eq!(run.status, 0, "{}", run.err);
        let payload = &report["handlers"]["payload"];
        assert_eq!((payload["calls"].as_u64(), payload["bytes"].as_u64()), (Some(8), Some(8 * 4096 - 64)));
        (report["end_ps"].as_u64().unwrap(), payload["occupancy_ps"].as_u64().unwrap())
    };
    let (one, occupancy) = time("--set accelerator.hpus=1 --set accelerator.contexts=1");
    let (four, _) = time("");
    let (eight, _) = time("--set accelerator.hpus=8 --set accelerator.contexts=8");
    // All eight take the same time, so four HPUs save three quarters of the time and eight save seven eighths, less the
    // time between the arrivals of packets.
    let wire = 7 * 4096 * 20;
    assert!(one - four > occupancy * 3 / 4 - wire && one - four <= occupancy * 3 / 4, "{one} {four} {occupancy}");
    assert!(one - eight > occupancy * 7 / 8 - wire && one - eight <= occupancy * 7 / 8, "{one} {eight} {occupancy}");
}

/// A handler that waits for DMA leaves its HPU to later ones, if contexts are free for them: of three handlers that
/// each wait 2 L = 500 ns for host memory, two wait while another computes.
#[test]
fn waiting_handlers_leave_their_hpu() {
    let end = |contexts: u32| {
        let options = format!("-n 2 --machine sc17-dis --set accelerator.hpus=1 --set accelerator.contexts={contexts}");
        let (run, report) = reported(&options, &program("commands"), "dma_blocking");
        assert_eq!(run.status, 0, "{}", run.err);
        report["end_ps"].as_u64().unwrap()
    };
    let (one, three) = (end(1), end(3));
    // The writes of the first two, 64 ns each, continue meanwhile.
    assert!(one - three > 1_000_000 && one - three < 1_200_000, "{one} {three}");
}

#[test]
fn header_handlers_decide() {
    for case in ["drop", "drop_unexpected", "proceed", "process_without_handler"] {
        assert_eq!(handlers("", case), "");
    }
}

#[test]
fn every_handler_can_be_omitted() {
    for case in ["payload_alone", "completion_alone"] {
        assert_eq!(handlers("", case), "");
    }
}

#[test]
fn payload_handlers_drop_packets() {
    assert_eq!(handlers("", "drop_packets"), "");
}

/// Dropped messages take no space of an entry that manages its offset, and do not use it up.
#[test]
fn dropped_messages_release_their_space() {
    for case in ["drop_managed", "drop_managed_pending"] {
        assert_eq!(handlers("", case), "");
    }
}

/// The event of a message with a failed handler comes last: the other, slower handlers are done, and their writes are
/// in host memory.
#[test]
fn errors_are_reported_when_the_memory_is_free() {
    for (options, at_once) in [("", 4), ("--set accelerator.hpus=1 --set accelerator.contexts=1", 1)] {
        let (run, report) = reported(&format!("-n 2 {options}"), &program("handlers"), "error_last");
        run.ended(0, "payload handler 'fail_first' returned FAIL");
        let told_ps: u64 = run.out.trim().parse().unwrap();
        let handler = &report["handlers"]["fail_first"];
        // Seven of eight handlers work, one on each HPU at a time.
        let busy_ps = handler["max_cycles"].as_u64().unwrap() * 400 * (7 / at_once);
        assert_eq!((&handler["calls"], &handler["errors"]), (&8.into(), &1.into()));
        assert!(busy_ps > 1_000_000 && told_ps > busy_ps, "{told_ps} {busy_ps}");
    }
}

#[test]
fn user_headers() {
    assert_eq!(handlers("", "user_header"), "");
    assert_eq!(handlers("", "no_payload"), "");
}

#[test]
fn pending_entries_wait_for_another_message() {
    for case in ["pending_process", "pending_proceed", "pending_drop", "pending_completion", "once"] {
        assert_eq!(handlers("", case), "");
    }
}

#[test]
fn hpu_memory_outlives_entries() {
    assert_eq!(handlers("", "memory_outlives_entries"), "");
}

#[test]
fn flow_control_drops_packets_and_reports_it() {
    // Buffers for two of eight packets.
    let options = "-n 2 --set accelerator.packet_buffer_bytes=8192";
    let (run, report) = reported(options, &program("handlers"), "flow_control");
    assert_eq!(run.lossy(), format!("payloads 2 dropped {} flow control 1\n", 6 * 4096));
    let drops = &report["drops"]["no_packet_buffer"];
    assert_eq!([&drops["messages"], &drops["packets"], &drops["bytes"]], [1, 6, 6 * 4096], "{drops}");
    assert_eq!(report["drops"]["portal_table_entry_disabled"]["messages"], 1);
    let card = &report["cards"][1];
    assert_eq!((card["packets_dropped"].as_u64(), card["flow_control"].as_u64()), (Some(6), Some(1)));
    assert_eq!(
        (&card["packet_buffer_peak_bytes"], &report["cards"][0]["packet_buffer_peak_bytes"]),
        (&8192.into(), &0.into())
    );
}

#[test]
fn dma() {
    for case in ["dma_blocking", "dma_nonblocking", "dma_left_running", "dma_segments"] {
        commands(case);
    }
}

#[test]
fn counters() {
    commands("counters");
}

#[test]
fn puts_with_acknowledgements() {
    commands("put_from_device");
    commands("put_from_host");
}

#[test]
fn static_data() {
    commands("static_data");
}

#[test]
fn arithmetic_is_that_of_the_host() {
    commands("arithmetic");
    // Without floating point in hardware.
    assert_eq!(spinrun("-n 2 --set hpu.kind=rv32imac", &program("commands"), "arithmetic").ok(), "");
}
