// SPDX-License-Identifier: Apache-2.0
//! Data that arrives for an ended handler is not written to memory that may belong to another handler.

use crate::harness::{program, spinrun};

/// One HPU, so that the next handler immediately gets the packet and the stack of the previous one.
const ONE: &str = "-n 2 --set accelerator.hpus=1 --set accelerator.contexts=1 --set accelerator.watchdog_cycles=20000";

#[test]
fn memory_of_a_handler_that_has_ended_is_not_written() {
    for machine in ["sc17-int", "sc17-dis"] {
        for command in ["read", "cas", "fadd"] {
            for place in ["packet", "stack", "state"] {
                for end in ["return", "fail", "abort", "fault", "loop"] {
                    let arguments = format!("{command} {place} {end}");
                    let run = spinrun(&format!("{ONE} --machine {machine}"), &program("outlive"), &arguments);
                    assert_eq!(run.status, 0, "{arguments}: {}{}", run.out, run.err);
                    assert_eq!(run.out, "runs 120 packets 0 stacks 0 dirty 0\n", "{machine} {arguments}: {}", run.err);
                }
            }
        }
    }
}

#[test]
fn hpu_memory_is_reserved_until_transfers_have_ended() {
    for machine in ["sc17-int", "sc17-dis"] {
        let run = spinrun(&format!("{ONE} --machine {machine}"), &program("outlive"), "free");
        assert_eq!(run.status, 0, "{}{}", run.out, run.err);
        assert_eq!(run.out, "runs 1 packets 0 stacks 0 dirty 0\n", "{machine}: {}", run.err);
    }
}
