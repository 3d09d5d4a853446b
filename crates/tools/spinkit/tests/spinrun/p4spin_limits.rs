// SPDX-License-Identifier: Apache-2.0
//! Limits of sPIN App. B.2.1: programs can query them, and the card enforces them. The programs test both sides of each
//! limit.

use crate::harness::{Run, program, spinrun};

fn limits(options: &str, case: &str) -> Run {
    spinrun(&format!("-n 2 {options}"), &program("p4spin_limits"), case)
}

const OTHER: &str = "--set network.mtu_bytes=1024 --set accelerator.max_user_hdr_bytes=128 --set accelerator.memory_bytes=65536 \
                     --set accelerator.max_initial_state_bytes=2048 --set accelerator.watchdog_cycles=299100";

#[test]
fn are_those_of_the_machine() {
    let run = limits("", "queried");
    // The last value is the watchdog limit in cycles divided by the bytes of the largest packet.
    assert_eq!(run.rank(1), ["64 4096 1048576 4096 8 244"]);
    assert_eq!(limits(OTHER, "queried").rank(1), ["128 1024 65536 2048 8 292"]);
}

#[test]
fn are_enforced() {
    for options in ["", OTHER] {
        for (case, limit) in
            [("user_header", "me->user_hdr_size: "), ("initial_state", "me->hpu_initial_state_length: ")]
        {
            limits(options, case).ended(0, &format!("spinrun: warning: rank 1: PtlMEAppend: {limit}"));
        }
        assert_eq!(limits(options, "payload_size").ok(), "");
    }
}

/// A refusal costs a poll of 51 ns, so that time advances while programs retry.
#[test]
fn handler_memory() {
    for options in ["", OTHER] {
        assert_eq!(limits(options, "handler_memory").rank(0), ["refused for 102000"]);
    }
}

#[test]
fn cycles_per_byte_are_the_watchdog_s() {
    for options in ["", OTHER] {
        limits(options, "cycles").ended(0, "payload handler 'takes_time' was killed after");
    }
}

#[test]
fn polling_in_a_loop_takes_time() {
    let run = limits("", "loops");
    assert_eq!(run.rank(1), ["a look takes 51000"], "{}", run.err);
}
