// SPDX-License-Identifier: Apache-2.0
//! Every program of `tests/programs` on PsPIN cards, unchanged: they check their data themselves. Calls for features
//! that PsPIN lacks are refused with a remedy.

use crate::determinism::twice;
use crate::harness::{accumulate, broadcast, ping_pong, plain, program, reported, spinrun};

/// Unmodified machine, with packets of 2 KiB, and with packets of 4 KiB, which some programs expect.
const CARD: &str = "-n 2 --machine pspin-400g";
const FULL: &str = "-n 2 --machine pspin-400g --set network.mtu_bytes=4096";

/// One HPU, so that the next handler immediately gets the packet and the stack of the previous one.
const ONE: &str = "-n 2 --machine pspin-400g --set network.mtu_bytes=4096 --set accelerator.clusters=1 \
                   --set accelerator.hpus_per_cluster=1";

/// Runs cases of a program that print nothing.
fn succeed(options: &str, name: &str, cases: &[&str]) {
    for case in cases {
        assert_eq!(spinrun(options, &program(name), case).ok(), "", "{name} {case} {options}");
    }
}

#[test]
fn commands_have_their_effects() {
    succeed(FULL, "commands", &["dma_blocking", "dma_nonblocking", "dma_left_running", "dma_segments", "counters"]);
    succeed(FULL, "commands", &["put_from_device", "put_from_host", "static_data", "arithmetic"]);
    succeed(FULL, "p4spin_calls", &["gets_to_host", "atomics_device", "atomics_host", "hpu_contended", "posted"]);
    succeed(FULL, "p4spin_calls", &["aligned 0", "aligned 1", "aligned 12", "aligned 64", "yields 1"]);
    succeed(&FULL.replace("-n 2", "-n 5"), "p4spin_calls", &["interleave"]);
    assert_eq!(spinrun(FULL, &program("p4spin_calls"), "gets_to_device").lossy(), ""); // the last get is refused
    assert_eq!(spinrun(FULL, &program("p4spin_calls"), "contexts").ok(), "at once 8 hpus 0xff\n");
}

#[test]
fn return_codes_have_their_effects() {
    let returns = ["drop", "drop_unexpected", "proceed", "payload_alone", "completion_alone", "drop_packets"];
    succeed(FULL, "handlers", &returns);
    succeed(FULL, "handlers", &["drop_managed", "drop_managed_pending", "process_without_handler", "no_payload"]);
    succeed(FULL, "handlers", &["pending_process", "pending_proceed", "pending_drop", "pending_completion", "once"]);
    succeed(FULL, "handlers", &["user_header", "memory_outlives_entries"]);
    for options in [CARD, FULL] {
        succeed(options, "p4spin_gets", &["proceed", "process", "drop"]);
        assert_eq!(spinrun(options, &program("p4spin_gets"), "pending").lossy(), "");
    }
    // The message's home cluster has 8 HPUs.
    let order = spinrun(FULL, &program("handlers"), "order").ok();
    assert_eq!(order, "headers 1 payloads 8 completions 1 at once 8 hpus 0xff\n");
}

#[test]
fn limits_are_those_of_the_machine() {
    // The last value is the watchdog limit in cycles divided by the bytes of the largest packet.
    let memory = 4 << 20;
    let queried = |options: &str| spinrun(options, &program("p4spin_limits"), "queried").rank(1)[0].to_owned();
    assert_eq!(queried(CARD), format!("64 2048 {memory} 4096 8 488"));
    assert_eq!(queried(FULL), format!("64 4096 {memory} 4096 8 244"));
    for (case, limit) in [("user_header", "me->user_hdr_size: "), ("initial_state", "me->hpu_initial_state_length: ")] {
        let words = format!("spinrun: warning: rank 1: PtlMEAppend: {limit}");
        spinrun(CARD, &program("p4spin_limits"), case).ended(0, &words);
    }
    assert_eq!(spinrun(CARD, &program("p4spin_limits"), "payload_size").ok(), "");
    let run = spinrun(CARD, &program("p4spin_limits"), "handler_memory");
    assert_eq!(run.rank(0), ["refused for 102000"], "{}", run.err);
    let run = spinrun(CARD, &program("p4spin_limits"), "cycles");
    run.ended(0, "payload handler 'takes_time' was killed after 1000000 cycles (accelerator.default_watchdog_cycles)");
}

#[test]
fn causes_come_before_effects() {
    for kind in ["release", "full", "relaxed", "plain", "byte", "wide"] {
        let numbers = |case: &str| -> [u64; 2] {
            let out = spinrun(CARD, &program("order"), &format!("{case} {kind}")).ok();
            let words: Vec<&str> = out.split_whitespace().collect();
            [words[1], words[3]].map(|number| number.parse().unwrap())
        };
        let [overlaps, inside] = numbers("section");
        assert!(overlaps == 0 && inside >= 12 * 450, "{kind}: {overlaps} {inside}");
        let [set, seen] = numbers("flag");
        assert!((set..set + 250).contains(&seen), "{kind}: set {set}, seen {seen}");
    }
    assert_eq!(spinrun(CARD, &program("order"), "compute").ok(), "same\n");
}

/// Runs `errors`, whose handler must end with an error: the event names it, the correct message is delivered, and the
/// only warning contains `words`.
fn fails(options: &str, arguments: &str, fail: &str, words: &str) {
    let run = spinrun(options, &program("errors"), arguments);
    assert_eq!(run.status, 0, "{arguments}: {}{}", run.out, run.err);
    let [error, well, ..] = run.rank(1)[..] else { panic!("{}", run.out) };
    assert!(error.starts_with(&format!("HANDLER_ERROR {fail} of 1, start ")), "{arguments}: {error}");
    assert_eq!(well, "PUT OK of 2, start 0", "{arguments}");
    assert_eq!(run.rank(0), [format!("ACK {fail}"), "ACK OK".into()], "{arguments}");
    assert!(run.err.lines().count() == 1 && run.err.contains(words), "{arguments}: {}", run.err);
}

#[test]
fn a_handler_that_fails_ends_alone() {
    for address in [0, 0x1000_a040, 0x1000_a03e, 0x100f_0000, 0x1c40_0000, 0x1d00_0000, 0xffff_fffc_u32] {
        let words = format!("payload handler 'payload' failed: store of 4 B at {address:#010x} is not allowed");
        fails(FULL, &format!("payload poke {address:#x}"), "SEGV", &words);
    }
    fails(FULL, "header poke 0", "SEGV", "header handler 'header' failed: store of");
    fails(FULL, "completion poke 4", "SEGV", "completion handler 'completion' failed: store of");
    fails(FULL, "payload fail", "HANDLER_FAIL", "payload handler 'payload' returned FAIL");
    fails(FULL, "payload abort", "HANDLER_FAIL", "payload handler 'payload' aborted");
    fails(FULL, "payload unknown", "HANDLER_FAIL", "payload handler 'payload' returned 77");
    fails(FULL, "payload deep", "SEGV", "it needs more than 8192 bytes of stack (accelerator.stack_bytes)");
    fails(FULL, "payload wide 100000", "SEGV", "it needs more than 8192 bytes of stack (accelerator.stack_bytes)");
    let refused = "before, a command of it was refused: DMA to host: 16777216 + 16 B exceeds the entry's ";
    fails(FULL, "payload past 16777216", "HANDLER_FAIL", refused);
    fails(FULL, "payload jump 0x10000000", "SEGV", "failed: execution left the program (pc 0x10000000)");
    fails(FULL, "payload wild-put 0x1000a038", "SEGV", "put 16 bytes from 0x1000a038, which are not its own");
    fails(FULL, "payload wild-dma 0x1d000000", "SEGV", "moved 16 bytes at 0x1d000000 by DMA, which are not its own");
    fails(FULL, "payload nowhere", "SEGV", "store of 4 B at 0x00000000 is not allowed");
    let run = spinrun(FULL, &program("errors"), "payload commands");
    assert_eq!((run.status, &*run.err), (0, ""));
    spinrun(FULL, &program("p4spin_gets"), "fail").ended(0, "header handler 'header' returned FAIL");
    spinrun(FULL, &program("p4spin_gets"), "completion_fails")
        .ended(0, "completion handler 'completion' returned FAIL");
}

/// The watchdog kills endless handlers anywhere, and frees their HPUs for the next ones.
#[test]
fn a_handler_that_never_ends_is_killed() {
    for options in [FULL, ONE] {
        let options = format!("{options} --set accelerator.default_watchdog_cycles=20000");
        let words = "was killed after 20000 cycles (accelerator.default_watchdog_cycles), ";
        for case in ["header loop", "payload loop", "completion loop", "payload onward"] {
            fails(&options, case, "HANDLER_TIMEOUT", words);
        }
    }
}

/// Data that arrives for an ended handler is not written to memory that may belong to another handler.
#[test]
fn memory_of_a_handler_that_has_ended_is_not_written() {
    let options = format!("{ONE} --set accelerator.default_watchdog_cycles=20000");
    for place in ["packet", "stack", "state"] {
        for end in ["return", "fail", "abort", "fault", "loop"] {
            let run = spinrun(&options, &program("outlive"), &format!("read {place} {end}"));
            assert_eq!(run.status, 0, "{place} {end}: {}{}", run.out, run.err);
            assert!(run.out.ends_with(" packets 0 stacks 0 dirty 0\n"), "{place} {end}: {}{}", run.out, run.err);
        }
    }
    let run = spinrun(&options, &program("outlive"), "free");
    assert_eq!((run.status, &*run.out), (0, "runs 1 packets 0 stacks 0 dirty 0\n"), "{}", run.err);
}

/// Packets without a free buffer disable the portal table entry, until the host enables it again.
#[test]
fn overload_is_flow_control() {
    let two = "--set accelerator.l2_packet.bytes=8320 --set accelerator.limits.max_packet_bytes=4096";
    let options = format!("{FULL} {two}");
    let (run, report) = reported(&options, &program("handlers"), "flow_control");
    assert_eq!(run.lossy(), format!("payloads 2 dropped {} flow control 1\n", 6 * 4096));
    assert_eq!(report["drops"]["no_packet_buffer"]["packets"], 6);
    assert_eq!(report["cards"][1]["packet_buffer_peak_bytes"], 8192);
    assert_eq!(spinrun(&options, &program("p4spin_gets"), "flow_control").lossy(), "");
}

/// The calls for handlers, one at a time: the program prints their results.
#[test]
fn calls_return() {
    let calls = ["PutFromDevice", "PutFromHost", "GetToHost", "GetToDevice", "AtomicFromDevice", "AtomicFromHost"];
    let more = ["DMAToHostB", "DMAToHostNB", "DMAFromHostB", "DMAFromHostNB", "CTInc", "CTSet", "DMATest", "FAdd"];
    for call in calls.iter().chain(&more).chain(&["Yield", "CTGet", "MyHpu"]) {
        let out = spinrun(CARD, &program("p4spin_times"), &format!("{call} 8")).ok();
        assert!(out.contains("result 0 0\n"), "{call}: {out}");
    }
    assert!(spinrun(CARD, &program("p4spin_times"), "CAS 8").ok().contains("result 1 0\n"));
    assert!(spinrun(CARD, &program("p4spin_times"), "NumHpus 8").ok().contains("result 32 0\n"));
}

#[test]
fn programs_without_handlers_run() {
    for case in ["puts", "gets", "triggered_chain", "event_queues", "segments", "truncation"] {
        assert_eq!(spinrun(CARD, &plain("portals"), case).ok(), "", "{case}");
    }
    for case in ["counting_events", "failures", "managed_offsets"] {
        assert_eq!(spinrun(CARD, &plain("portals"), case).lossy(), "", "{case}");
    }
    assert_eq!(spinrun("-n 4 --machine pspin-400g", &plain("alltoall"), "10000").ok().lines().count(), 4);
    assert_eq!(spinrun("-n 4 --machine pspin-400g", &program("incast"), "10000").ok().lines().count(), 4);
}

#[test]
fn channels_connect() {
    assert_eq!(spinrun("-n 3 --machine pspin-400g", &program("channels"), "").ok(), "");
}

#[test]
fn what_pspin_has_not_is_refused() {
    let refused = |name: &str, case: &str| {
        let run = spinrun(FULL, &program(name), case);
        let words = "issued an atomic operation on host memory, which PsPIN cards do not have; cards with \
                     accelerator.kind = \"sc17\" do, such as --machine sc17-int";
        assert!(run.status != 0 && run.err.contains(words) && run.err.contains(".c:"), "{case}: {}", run.err);
    };
    for case in ["dma_cas", "dma_fetch_add", "dma_contended", "bad_numbers", "unmapped_memory"] {
        refused("p4spin_calls", case);
    }
    for call in ["DMACASB", "DMACASNB", "DMAFetchAddB", "DMAFetchAddNB"] {
        refused("p4spin_times", &format!("{call} 8"));
    }
    let fails =
        |set: &str, words: &str| spinrun(&format!("{CARD} {set}"), &program("commands"), "counters").ended(2, words);
    fails("--set accelerator.clusters=9", "a cluster card has at most 64 HPUs (PTL_MAX_HPUS)");
    fails("--set accelerator.contexts=4", "unknown key: only accelerator.kind = \"sc17\" has it");
    let needs = "this program needs packets of 4096 bytes: spinrun --set network.mtu_bytes=4096\n";
    spinrun(CARD, &program("handlers"), "order").ended(1, needs);
    let run = spinrun(&format!("{FULL} --set accelerator.overload=drop"), &program("commands"), "counters");
    run.ended(0, "accelerator.overload decides nothing");
}

/// The programs of the experiments check their data; `experiments/*-pspin` have the measurements.
#[test]
fn experiments_check_their_data_and_repeat() {
    let right = |out: &str, count: usize| assert_eq!(out.matches("\"data_ok\":true").count(), count, "{out}");
    for machine in ["pspin-200g", "pspin-400g", "pspin-published"] {
        let options = format!("-n 2 --machine {machine}");
        right(&spinrun(&options, &ping_pong(), "--mode stream --sizes 8,64,2048,2049,100000").ok(), 5);
        right(&spinrun(&options, &accumulate(), "--mode handler --sizes 64,4096").ok(), 2);
    }
    right(&spinrun("-n 8 --machine pspin-400g", &broadcast(), "--ranks 2,8 --mode stream --bytes 65536").ok(), 2);
    twice("pspin-stream", CARD, &ping_pong(), "--mode stream --sizes 8,5000,65536");
    twice("pspin-store", CARD, &ping_pong(), "--mode store --sizes 8,5000,65536");
    twice("pspin-accumulate", CARD, &accumulate(), "--mode handler --sizes 64,65536");
}
