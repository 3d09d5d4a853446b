// SPDX-License-Identifier: Apache-2.0
//! Concurrent handlers, and C11's atomic operations: causes come before effects, on every kind of HPU.

use crate::harness::{program, reported, spinrun};

const HPUS: [&str; 3] =
    ["", "--set hpu.timing=inorder", "--set hpu.kind=rv32imac --set accelerator.scratchpad_cycles=3"];
const KINDS: [&str; 6] = ["release", "full", "relaxed", "plain", "byte", "wide"];

/// Returns the two numbers of a line "name number name number".
fn numbers(line: &str) -> [u64; 2] {
    let words: Vec<&str> = line.split_whitespace().collect();
    [words[1], words[3]].map(|number| number.parse().unwrap())
}

#[test]
fn no_two_handlers_are_in_a_critical_section() {
    for options in HPUS {
        for kind in KINDS {
            let (run, report) = reported(&format!("-n 2 {options}"), &program("order"), &format!("section {kind}"));
            let [overlaps, inside] = numbers(&run.ok());
            assert_eq!(overlaps, 0, "{options} {kind}");
            assert!(inside >= 12 * 450, "{options} {kind}: {inside}");
            // All sections one after the other, between the arrival of the first packet and the end of the run.
            let handler = &report["handlers"]["section"];
            assert_eq!(handler["calls"], 12);
            let (end, cycle) = (report["end_ps"].as_u64().unwrap(), 400);
            let before = 4096 * 20;
            assert!(end - before >= inside * cycle, "{options} {kind}: {inside} cycles in {end} ps");
            assert!(handler["max_cycles"].as_u64().unwrap() * cycle <= end, "{options} {kind}");
        }
    }
}

#[test]
fn a_handler_that_waits_for_a_flag_ends_after_it_is_set() {
    for options in HPUS {
        for kind in KINDS {
            // The packet of the producer arrives 205 cycles after the consumer's, and its match takes 70 cycles less.
            let [set, seen] =
                numbers(&spinrun(&format!("-n 2 {options}"), &program("order"), &format!("flag {kind}")).ok());
            assert!((set + 135..set + 235).contains(&seen), "{options} {kind}: set {set}, seen {seen}");
        }
    }
}

#[test]
fn atomic_operations_of_all_sizes_are_those_of_c11() {
    for options in HPUS {
        assert_eq!(spinrun(&format!("-n 2 {options}"), &program("order"), "compute").ok(), "same\n", "{options}");
    }
}
