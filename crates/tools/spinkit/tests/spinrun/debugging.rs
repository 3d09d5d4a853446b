// SPDX-License-Identifier: Apache-2.0
//! Debugging aids for handlers: printed texts, assertions, and stops of a debugger.

use crate::harness::{Run, program, source, spinrun};

fn debugging(options: &str, bytes: u32) -> Run {
    let run = spinrun(&format!("-n 2 {options}"), &program("debugging"), &format!("{bytes} print"));
    assert_eq!(run.status, 0, "{}{}", run.out, run.err);
    run
}

/// Returns the line of the program with a mark, as named in messages.
fn line(mark: &str) -> String {
    let mark = format!("/* {mark} */");
    let number = source("debugging.c").lines().position(|line| line.contains(&mark)).unwrap() + 1;
    format!("debugging.c:{number} in ")
}

/// Returns the simulated time of the message's event in ps.
fn time(run: &Run) -> u64 {
    let time = run.out.split(" at ").nth(1).and_then(|rest| rest.split(' ').next());
    time.and_then(|time| time.parse().ok()).unwrap_or_else(|| panic!("no time in {}", run.out))
}

/// Returns the printed texts, without the times in their prefix.
fn printed(run: &Run) -> Vec<String> {
    let lines = run.err.lines().filter(|line| line.starts_with('['));
    lines
        .map(|line| {
            let (place, text) = line.split_once("] ").unwrap();
            let words: Vec<&str> = place.split(' ').collect();
            assert!(words.len() == 7 && words[6] == "ns" && words[5].parse::<f64>().is_ok(), "{line}");
            format!("{}] {text}", words[..5].join(" "))
        })
        .collect()
}

#[test]
fn handlers_print() {
    for machine in ["sc17-int", "pspin-400g"] {
        let run = debugging(&format!("--machine {machine}"), 1000);
        let head = "[rank 1 HPU 0 head] hello | 1000 B from 0, 0x17, x   3.14   -42%";
        assert_eq!(printed(&run), [head, "[rank 1 HPU 0 pay] two", "[rank 1 HPU 0 pay] lines"], "{machine}");
        assert!(run.out.starts_with("OK at "), "{}", run.out);
    }
}

/// A header and a payload handler print one after the other, once each: 100 cycles of 400 ps (sc17), of 1 ns (PsPIN).
#[test]
fn printing_takes_cycles_unless_it_is_free() {
    for (machine, cycle) in [("sc17-int", 400), ("pspin-400g", 1000)] {
        let [costs, free] = ["", " --print-free"].map(|free| debugging(&format!("--machine {machine}{free}"), 1000));
        assert_eq!(time(&costs) - time(&free), 2 * 100 * cycle, "{machine}");
        assert_eq!(printed(&costs), printed(&free));
    }
}

#[test]
fn assertions_say_what_fails_and_where() {
    let line = line("check");
    let run = debugging("", 6000);
    run.ended(0, "rank 1: payload handler 'pay' failed: assertion 'p->offset == 0' does not hold in check, ");
    run.ended(0, line.trim_end_matches(" in "));
    assert!(run.out.starts_with("HANDLER_FAIL at "), "{}", run.out);
}

#[test]
fn a_debugger_needs_a_rank_and_a_card_that_it_knows() {
    let fails = |options: &str, words: &str| {
        spinrun(&format!("-n 2 {options}"), &program("debugging"), "").ended(2, words);
    };
    fails("--gdb 2", "spinrun: error: --gdb: there is no rank 2; the last is 1");
    fails("--gdb pay", "is RANK or RANK:HANDLER, such as 1:payload");
    fails("--gdb 1 --machine pspin-400g", "cards with accelerator.kind = \"pspin\" cannot be debugged");
    let run = debugging("--gdb 1:nobody", 1000);
    run.ended(0, "note: --gdb has stopped at no handler: none called 'nobody' ran on the card of rank 1");
    assert_eq!(time(&run), time(&debugging("", 1000)));
}

/// Runs 6000 B: two packets, whose payload handlers run at the same time.
fn sanitized(mode: &str) -> Run {
    spinrun("-n 2 --sanitize", &program("debugging"), &format!("6000 {mode}"))
}

#[test]
fn data_races_are_found_with_both_places() {
    let run = sanitized("race");
    run.ended(1, "spinrun: sanitizer: rank 1: data race on 4 B at 0x10000004, 4 B into its HPU memory (64 B): ");
    run.ended(1, " by payload handler 'pay', ");
    run.ended(1, " by a payload handler, ");
    let place = line("race");
    assert!(run.err.matches(place.trim_end_matches(" in ")).count() >= 2, "{place} {}", run.err);
    run.ended(1, "; nothing orders them (PtlHandlerFAdd, PtlHandlerCAS and atomic operations do)");
    run.ended(1, "debugging: the run fails because of reports of the sanitizer: ");
    // The sanitizer changes no time, and reports nothing for a correct program.
    let plain = spinrun("-n 2", &program("debugging"), "6000 race");
    assert_eq!(time(&run), time(&plain));
    for mode in ["lock", "print"] {
        let run = sanitized(mode);
        assert!(run.status == 0 && !run.err.contains("sanitizer"), "{mode}: {}", run.err);
    }
}

#[test]
fn memory_that_nobody_has_written_is_found() {
    let run = sanitized("unwritten");
    let what = "rank 1: payload handler 'pay' reads 4 B at 0x1000001c, 28 B into its HPU memory (64 B) that was never written, ";
    run.ended(1, what);
    run.ended(1, line("unwritten").trim_end_matches(" in "));
    let fails = spinrun("-n 2 --sanitize --machine pspin-400g", &program("debugging"), "6000");
    fails.ended(2, "--sanitize: handlers on cards with accelerator.kind = \"pspin\" cannot be watched");
}
