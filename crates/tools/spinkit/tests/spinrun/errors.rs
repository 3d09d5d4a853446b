// SPDX-License-Identifier: Apache-2.0
//! Handlers with errors: the host is notified, no other state is affected, and the run continues (sPIN App. B.3–B.5).

use crate::harness::{Run, home, program, source, spinrun};

fn errors(options: &str, arguments: &str) -> Run {
    let run = spinrun(&format!("-n 2 {options}"), &program("errors"), arguments);
    assert_eq!(run.status, 0, "{arguments}: {}{}", run.out, run.err);
    run
}

/// Returns the number of the line of `errors.c` marked by a comment.
fn line(mark: &str) -> String {
    let mark = format!("/* {mark} */");
    let number = source("errors.c").lines().position(|line| line.contains(&mark)).unwrap() + 1;
    format!("errors.c:{number}")
}

/// Runs `arguments`, whose handler must end with an error: the event has `fail` and the address `start`, and the
/// warning contains all of `words`. The initiator is notified too; the correct message is delivered.
fn fails(options: &str, arguments: &str, fail: &str, start: u32, words: &[&str]) -> Run {
    let run = errors(options, arguments);
    let error = format!("HANDLER_ERROR {fail} of 1, start {start:#x}").replace("start 0x0", "start 0");
    let events: Vec<_> = run.rank(1).into_iter().take(2).map(str::to_owned).collect();
    assert_eq!(events, [error, "PUT OK of 2, start 0".into()], "{arguments}: {}", run.err);
    assert_eq!(run.rank(0), [format!("ACK {fail}"), "ACK OK".into()], "{arguments}");
    for word in words {
        assert!(run.err.contains(word), "{arguments}: {word:?} is not in {}", run.err);
    }
    assert_eq!(run.err.lines().count(), 1, "{arguments}: {}", run.err);
    run
}

/// Returns the counts of the handlers themselves: calls of each, dropped bytes, results.
fn account(run: &Run) -> String {
    run.rank(1).last().unwrap().to_string()
}

/// HPU memory starts at 0x1000_0000 (`abi::device::map`); the faulty entry has its first 64 bytes.
#[test]
fn stores_outside() {
    let poke = line("poke");
    for (address, missed) in [
        (0, "by a null pointer"),
        (0x1000_0040, "just past the end of its HPU memory (64 B)"), // the next entry's HPU memory
        (0x1000_0050, "16 B past the end of its HPU memory (64 B)"),
        (0x1000_003e, "across the end of its HPU memory (64 B)"),
        (0x0fff_fffc, "4 B before its HPU memory (64 B)"),
        (0x1a00_0000, "in its arguments, which cannot be written"),
        (0x1d00_0000, "in the program ("),
        (0x1c40_0000 + 2 * 4096, "4096 B past the end of its packet (4096 B)"), // another packet
        (0xffff_fffc, "where the card has no memory"),
    ] {
        let words = [
            "spinrun: warning: rank 1: payload handler 'payload' failed: store of",
            &format!(" at {address:#010x} is not allowed"),
            &format!("), {missed}"),
            &format!("{poke} in misbehave"),
        ];
        // 6000 bytes are two packets; the data of the one whose handler failed counts as dropped.
        let run = fails("", &format!("payload poke {address:#x}"), "SEGV", address, &words);
        assert_eq!(account(&run), "handlers 1 2 1, dropped 4096, results 0 0 0 0 0 0", "{missed}");
    }
}

#[test]
fn loads_outside() {
    let peek = line("peek");
    for address in [0u32, 0x1000_0040, 0x1c40_0000 + 2 * 4096, 0x8000_0000] {
        let words = [&*format!("load of 4 B at {address:#010x} is not allowed"), &peek];
        let run = fails("", &format!("payload peek {address:#x}"), "SEGV", address, &words);
        assert_eq!(account(&run), "handlers 1 2 1, dropped 4096, results 0 0 0 0 0 0");
    }
    // Constants are in program memory, which handlers may read.
    let run = errors("", "payload peek 0x1d000000");
    assert_eq!(run.rank(1)[0], "PUT OK of 1, start 0");
    assert!(run.err.is_empty(), "{}", run.err);
}

#[test]
fn header_handlers_that_fail_drop_their_message() {
    let words = ["header handler 'header' failed: store of", &line("poke")];
    let run = fails("", "header poke 0", "SEGV", 0, &words);
    assert_eq!(account(&run), "handlers 1 0 1, dropped 6000, results 0 0 0 0 0 0");
}

#[test]
fn completion_handlers_that_fail() {
    let words = ["completion handler 'completion' failed: store of", &line("poke")];
    fails("", "completion poke 4", "SEGV", 4, &words);
    fails("", "completion fail", "HANDLER_FAIL", 8, &["completion handler 'completion' returned FAIL"]);
}

#[test]
fn endless_handlers_are_killed() {
    let words = ["handler 'payload' was killed after 20000 cycles (accelerator.watchdog_cycles)", "errors.c:"];
    let run = fails("--set accelerator.watchdog_cycles=20000", "payload loop", "HANDLER_TIMEOUT", 20_000, &words);
    assert_eq!(account(&run), "handlers 1 2 1, dropped 4096, results 0 0 0 0 0 0");
    // On one HPU with one context, no other handler could run meanwhile.
    let one = "--set accelerator.watchdog_cycles=3000 --set accelerator.hpus=1 --set accelerator.contexts=1";
    let run = fails(one, "header loop", "HANDLER_TIMEOUT", 3000, &["handler 'header' was killed after 3000 cycles"]);
    assert_eq!(account(&run), "handlers 1 0 1, dropped 6000, results 0 0 0 0 0 0");
}

#[test]
fn handlers_that_abort() {
    let run = fails("", "payload fail", "HANDLER_FAIL", 8, &["payload handler 'payload' returned FAIL"]);
    assert_eq!(account(&run), "handlers 1 2 1, dropped 4096, results 0 0 0 0 0 0");
    fails("", "header fail", "HANDLER_FAIL", 8, &["header handler 'header' returned FAIL"]);
    fails("", "payload abort", "HANDLER_FAIL", 8, &["payload handler 'payload' aborted"]);
    let words = ["payload handler 'payload' returned 77, which is no return code of a payload handler"];
    fails("", "payload unknown", "HANDLER_FAIL", 77, &words);
}

#[test]
fn stacks_end() {
    let run = errors("", "payload deep");
    let event = run.rank(1)[0];
    let start = event.strip_prefix("HANDLER_ERROR SEGV of 1, start 0x").unwrap_or_else(|| panic!("{event}"));
    // The first context's window ends at 0x1a00_4000; the stack ends 8 KiB below it.
    let start = u32::from_str_radix(start, 16).unwrap();
    let window = (start - 0x1a00_0000) % 0x4000;
    assert!((0x1f00..0x2000).contains(&window), "{start:#x}");
    let limit = "; it needs more than 8192 bytes of stack (accelerator.stack_bytes), ";
    // The recursion exceeds the list of calls.
    let calls = format!("{} in dig, called by dig ({}) 23 times", line("entry"), line("deeper"));
    let path = home().join("tests/programs").display().to_string() + "/";
    assert!(run.err.contains(limit) && run.err.replace(&path, "").contains(&calls), "{}", run.err);
}

#[test]
fn frames_far_larger_than_the_stack_are_told() {
    for bytes in [12_000, 100_000, 5_000_000] {
        let run = errors("", &format!("payload wide {bytes}"));
        let told = "; it needs more than 8192 bytes of stack (accelerator.stack_bytes), ";
        assert!(run.err.contains(told) && run.err.contains(&line("wide")), "{bytes}: {}", run.err);
    }
}

#[test]
fn a_failure_after_a_refused_command_says_why() {
    let run = errors("", "payload past 16777216");
    let why =
        "returned FAIL; before, a command of it was refused: DMA to host: 16777216 + 16 B exceeds the entry's 6000 B, ";
    assert!(run.err.contains(why) && run.err.contains(&line("past")), "{}", run.err);
}

#[test]
fn execution_stays_in_the_program() {
    let words = ["payload handler 'payload' failed: execution left the program (pc 0x10000000)"];
    fails("", "payload jump 0x10000000", "SEGV", 0x1000_0000, &words);
}

/// For arguments out of range commands return SPIN_ERR_INVALID, and the handler continues.
#[test]
fn commands_with_bad_arguments() {
    let run = errors("", "payload commands");
    assert_eq!(run.rank(1)[..2], ["PUT OK of 1, start 0", "PUT OK of 2, start 0"], "{}", run.err);
    assert_eq!(account(&run), "handlers 1 2 1, dropped 0, results -1 -1 -1 -1 -1 -1");
    assert!(run.err.is_empty(), "{}", run.err);
}

/// The card accesses memory for a handler only within the handler's rights.
#[test]
fn commands_on_memory_of_others() {
    // The line is that of the call, although the SDK's code is inlined there.
    let what = "payload handler 'payload' put 16 bytes from 0x10000038, which are not its own";
    fails("", "payload wild-put 0x10000038", "SEGV", 0x1000_0038, &[what, &line("wild put")]);
    let what = "payload handler 'payload' moved 16 bytes at 0x1d000000 by DMA, which are not its own";
    let words = [what, &line("wild dma")];
    fails("", "payload wild-dma 0x1d000000", "SEGV", 0x1d00_0000, &words);
    fails("", "payload wild-dma 0x10000040", "SEGV", 0x1000_0040, &[]);
}

/// A compiler may assume that neither happens; the card's compiler must not.
#[test]
fn undefined_behaviour_ends_the_handler() {
    let words = ["payload handler 'payload' failed: store of 4 B at 0x00000000 is not allowed", &line("nowhere")];
    fails("", "payload nowhere", "SEGV", 0, &words);
    fails("", "header nowhere", "SEGV", 0, &["header handler 'header' failed"]);
    let words = ["handler 'payload' was killed after 20000 cycles", &line("onward")];
    fails("--set accelerator.watchdog_cycles=20000", "payload onward", "HANDLER_TIMEOUT", 20_000, &words);
}
