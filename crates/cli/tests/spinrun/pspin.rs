//! Programs of `spin.h` on PsPIN cards, unchanged: they check their data themselves.

use crate::harness::{accumulate, ping_pong, program, spinrun};

/// The programs expect packets of 4 KiB.
const CARD: &str = "-n 2 --machine pspin-400g --set network.mtu_bytes=4096";

fn succeed(name: &str, cases: &[&str]) {
    for case in cases {
        assert_eq!(spinrun(CARD, &program(name), case).ok(), "", "{name} {case}");
    }
}

#[test]
fn commands_have_their_effects() {
    succeed("commands", &["dma_blocking", "dma_nonblocking", "dma_left_running", "dma_segments", "counters"]);
    succeed("commands", &["put_from_device", "put_from_host", "static_data", "arithmetic"]);
    succeed("p4spin_calls", &["gets_to_host", "atomics_device", "atomics_host", "hpu_contended", "posted", "aligned"]);
    succeed("p4spin_gets", &["proceed", "process", "drop"]);
}

#[test]
fn return_codes_have_their_effects() {
    succeed("handlers", &["drop", "proceed", "payload_alone", "completion_alone", "user_header", "no_payload"]);
    succeed("handlers", &["drop_packets", "process_without_handler", "pending_process", "pending_proceed"]);
}

#[test]
fn what_pspin_lacks_is_an_error() {
    for case in ["dma_cas", "dma_fetch_add"] {
        let run = spinrun(CARD, &program("p4spin_calls"), case);
        let words = "issued an atomic operation on host memory, which PsPIN cards do not have";
        assert!(run.status != 0 && run.err.contains(words), "{}", run.err);
    }
    spinrun("-n 2 --machine pspin-400g --set accelerator.clusters=9", &program("commands"), "counters")
        .ended(2, "a cluster card has at most 64 HPUs (PTL_MAX_HPUS)");
    let run = spinrun(&format!("{CARD} --set accelerator.overload=drop"), &program("commands"), "counters");
    assert!(run.status == 0 && run.err.contains("accelerator.overload decides nothing"), "{}", run.err);
}

#[test]
fn experiments_check_their_data_and_repeat() {
    let machine = "-n 2 --machine pspin-400g";
    let run = |arguments: &str| spinrun(machine, &ping_pong(), arguments).ok();
    for mode in ["store", "stream"] {
        let arguments = format!("--mode {mode} --sizes 8,64,2048,2049,100000");
        let out = run(&arguments);
        assert_eq!(out.matches("\"data_ok\":true").count(), 5, "{out}");
        assert_eq!(run(&arguments), out);
    }
    let out = spinrun(machine, &accumulate(), "--mode handler --sizes 64,4096").ok();
    assert_eq!(out.matches("\"data_ok\":true").count(), 2, "{out}");
}
