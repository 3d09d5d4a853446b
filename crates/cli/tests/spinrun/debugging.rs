//! What helps to find mistakes of handlers: texts that they print, assertions, and the stops of a debugger.

use crate::harness::{Run, program, source, spinrun};

fn debugging(options: &str, bytes: u32) -> Run {
    let run = spinrun(&format!("-n 2 {options}"), &program("debugging"), &bytes.to_string());
    assert_eq!(run.status, 0, "{}{}", run.out, run.err);
    run
}

/// The simulated time of the message's event in ps.
fn time(run: &Run) -> u64 {
    let time = run.out.split(" at ").nth(1).and_then(|rest| rest.split(' ').next());
    time.and_then(|time| time.parse().ok()).unwrap_or_else(|| panic!("no time in {}", run.out))
}

/// The texts that were printed, without the times in their prefix.
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
    let line = source("debugging.c").lines().position(|line| line.contains("/* check */")).unwrap() + 1;
    let run = debugging("", 6000);
    run.ended(0, "rank 1: payload handler 'pay' failed: assertion 'p->offset == 0' does not hold in check, ");
    run.ended(0, &format!("debugging.c:{line}"));
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
