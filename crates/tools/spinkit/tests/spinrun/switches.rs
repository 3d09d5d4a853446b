// SPDX-License-Identifier: Apache-2.0
//! Calls about switches with handlers: `spin_switches`, `spin_distance`, `spin_switch_alloc` and `spin_switch_attach`.

use crate::harness::{Run, program, spinrun};

/// Six ranks on a fat tree of 4-port switches: two ranks at each of three leaves.
const TREE: &str = "-n 6 --set network.model=fabric --set network.radix=4";
/// The leaves run handlers: `switch 0 of level 1` and so on. Options are separated by blanks, so `*` replaces those in
/// the names.
const LEAVES: &str = "--set network.switch.handlers=\"*of*level*1\"";

fn switches(options: &str, arguments: &str) -> Run {
    spinrun(options, &program("switches"), arguments)
}

/// Returns the output of a run without warnings; on a fabric spinrun prints the utilization of the links.
fn quiet(run: Run) -> String {
    assert!(run.status == 0 && !run.err.contains("warning"), "status {}: {}{}", run.status, run.out, run.err);
    run.out
}

#[test]
fn distances_count_links() {
    let run = switches(&format!("{TREE} {LEAVES}"), "distances");
    // Distance 0 to itself; 2 to the other rank of its leaf; 4 to other leaves, and the same to their accelerators as
    // to their ranks.
    let (ranks, leaves) = ("0 to 0\n2 to 1\n4 to 2\n4 to 3\n4 to 4\n4 to 5\n", "2 to 6\n4 to 7\n4 to 8\n");
    assert_eq!(quiet(run), format!("3 switches\n-1 to -1\n{ranks}{leaves}-1 to 9\n"));
    // The processes of a network without handlers are its ranks, and a network without links has no distances.
    assert_eq!(quiet(switches(TREE, "distances")), format!("0 switches\n-1 to -1\n{ranks}-1 to 6\n"));
    assert_eq!(quiet(switches("-n 1", "distances")), "0 switches\n-1 to -1\n-1 to 0\n-1 to 1\n");
}

#[test]
fn what_is_wrong_with_an_attachment_is_told() {
    let options = format!("{TREE} {LEAVES}");
    for which in 0..3 {
        assert_eq!(quiet(switches(&options, &format!("attach nothing {which}"))), "alloc 0, attach 0\n");
    }
    let host = "a switch has no host: memory of the entry and of its handlers must be NULL and of length 0, and the counter \
                PTL_CT_NONE";
    let map = "the map of the interface lacks this switch: spin_set_map makes one that has it";
    for (arguments, codes, who, why) in [
        ("memory", "alloc 0, attach 1\n", "spin_switch_attach", host),
        ("handlers_memory", "alloc 0, attach 1\n", "spin_switch_attach", host),
        ("counter", "alloc 0, attach 1\n", "spin_switch_attach", host),
        ("handler", "alloc 0, attach 1\n", "spin_switch_attach", "a handler is not of this program"),
        ("map", "alloc 1, attach 1\n", "spin_switch_alloc", map),
        (
            "nothing 3",
            "alloc 1, attach 1\n",
            "spin_switch_alloc",
            "there is no switch 3 with handlers; the last of 3 is 2",
        ),
        (
            "nothing -1",
            "alloc 1, attach 1\n",
            "spin_switch_attach",
            "there is no switch -1 with handlers; the last of 3 is 2",
        ),
    ] {
        let run = switches(&options, &format!("attach {arguments}"));
        assert_eq!((run.status, run.out.as_str()), (0, codes), "{arguments}: {}", run.err);
        assert!(run.err.contains(&format!("warning: rank 0: {who}: {why}")), "{arguments}: {}", run.err);
    }
    // PTL_ARG_INVALID and PTL_NO_SPACE, returned to the caller.
    assert_eq!(quiet(switches(&options, "attach interface")), "alloc 1, attach 1\n");
    assert_eq!(quiet(switches(&options, "attach large")), "alloc 10, attach 0\n");
}

#[test]
fn without_switches_that_run_handlers_nothing_can_be_attached() {
    for options in ["-n 2", TREE] {
        let run = switches(options, "attach nothing");
        assert_eq!((run.status, run.out.as_str()), (0, "alloc 1, attach 1\n"), "{options}: {}", run.err);
        for call in ["spin_switch_alloc", "spin_switch_attach"] {
            let why = format!("{call}: no switch of this network has handlers: see network.switch.handlers");
            assert!(run.err.contains(&why), "{options}: {}", run.err);
        }
    }
}

/// Ranks 1 to 5 send 5 messages of 10, 20, …, 50 bytes.
#[test]
fn a_handler_on_a_switch_sees_the_messages_of_all_ranks() {
    for machine in ["sc17-int", "pspin-400g"] {
        for which in [0, 2] {
            let run = switches(&format!("{TREE} {LEAVES} --machine {machine}"), &format!("count 5 {which}"));
            assert_eq!(quiet(run), "750 bytes in 25 messages\n", "{machine} {which}");
        }
    }
}
