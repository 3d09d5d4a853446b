// SPDX-License-Identifier: Apache-2.0
//! Ends of runs: each has its exit status and message, and leaves neither processes nor files behind.

use std::fs::Permissions;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Stdio;

use object::{Object, ObjectSection};
use rustix::process::{Pid, Signal, kill_process};

use crate::harness::{Run, command, home, plain, program, reported, scratch, spincc, spinrun};

fn ends(options: &str, how: &str) -> Run {
    spinrun(options, &plain("ends"), how)
}

#[test]
fn output_of_all_ranks_arrives() {
    let run = ends("-n 3 --tag-output", "hello");
    let mut lines: Vec<_> = run.out.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["[0] hello from 0 of 3", "[1] hello from 1 of 3", "[2] hello from 2 of 3"]);
    let mut lines: Vec<_> = run.err.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["[0] warned by 0", "[1] warned by 1", "[2] warned by 2"]);
    assert_eq!(run.status, 0);
}

#[test]
fn the_number_of_ranks_is_given_as_with_mpirun() {
    for options in ["-n 2", "-np 2", "--np 2", "--tag-output -np 2"] {
        let mut lines: Vec<_> =
            ends(options, "hello").out.lines().map(|line| line.replace("[0] ", "").replace("[1] ", "")).collect();
        lines.sort_unstable();
        assert_eq!(lines, ["hello from 0 of 2", "hello from 1 of 2"], "{options}");
    }
    ends("-np 0", "hello").ended(2, "0 is not in 1..=");
}

#[test]
fn a_deadlock_names_what_every_rank_waits_for() {
    let (run, report) = reported("-n 4", &plain("ends"), "deadlock");
    // Rank 3 finally reaches the barrier, where rank 2 waits.
    run.ended(1, "deadlock at ");
    run.ended(1, " of simulated time: nothing is under way that could go on\n");
    let waits: Vec<_> = run.err.lines().filter_map(|line| line.strip_prefix("spinrun:   ")).collect();
    assert!(
        waits[0].starts_with("rank 0 waits in PtlCTWait for counter 0x")
            && waits[0].ends_with(" to reach 5, which is 0")
    );
    assert!(waits[1].starts_with("rank 1 waits in PtlEQWait for an event in queue 0x"), "{}", waits[1]);
    let barrier = "waits in spin_barrier, where 2 of 4 ranks have come";
    assert_eq!(waits[2..], [format!("each of ranks 2-3 {barrier}")]);
    assert_eq!(report["end"]["how"], "deadlock");
    let each = [waits[0], waits[1], &format!("rank 2 {barrier}"), &format!("rank 3 {barrier}")];
    assert_eq!(report["end"]["waits"], serde_json::json!(each));
    assert_eq!(report["end_ps"], 1_000_000); // they computed for 1000 ns
}

#[test]
fn a_deadlock_names_calls_that_were_refused() {
    let run = ends("-n 2", "ignore");
    let why = "length: local_offset 1 + 8 B exceeds the descriptor's 8 B";
    run.ended(
        1,
        &format!("spinrun:   PtlPut has returned PTL_ARG_INVALID, 4 times, first to rank 0 at 1000.000 ns: {why}\n"),
    );
    assert!(!run.err.contains("refused: "));
    let run = ends("-v -n 2", "ignore");
    let told: Vec<_> = run.err.lines().filter(|line| line.contains("refused: ")).collect();
    assert_eq!(told, [format!("spinrun: refused: PtlPut returns PTL_ARG_INVALID to rank 0 at 1000.000 ns: {why}")]);
}

#[test]
fn crashes_name_rank_signal_and_time() {
    let (run, report) = reported("-n 3", &plain("ends"), "crash");
    run.ended(139, ": rank 1 was ended by signal 11 (SIGSEGV) at 2500.000 ns of simulated time\n");
    assert_eq!(report["end"], serde_json::json!({"how": "rank-failed", "rank": 1, "code": null, "signal": 11}));
    ends("-n 2", "abort").ended(134, ": rank 1 was ended by signal 6 (SIGABRT) at 2500.000 ns of simulated time\n");
}

#[test]
fn the_status_of_the_first_rank_that_fails_is_that_of_the_run() {
    let (run, report) = reported("-n 4", &plain("ends"), "exit");
    run.ended(3, ": rank 1 exited with status 3 at 2500.000 ns of simulated time\n");
    assert_eq!(report["end"], serde_json::json!({"how": "rank-failed", "rank": 1, "code": 3, "signal": null}));
}

#[test]
fn a_rank_may_end_while_its_threads_wait() {
    for (how, end) in [("leave", "2500.000"), ("sleep", "20002500.000")] {
        ends("-n 2", how).ended(4, &format!(": rank 1 exited with status 4 at {end} ns of simulated time\n"));
    }
}

#[test]
fn a_call_in_a_signal_handler_within_another_call_is_named() {
    let run = ends("--timeout 60", "handler");
    run.ended(1, "libportals: rank 0: a signal handler calls the library while its thread is in another call");
    run.ended(1, ": rank 0 exited with status 1 at ");
}

#[test]
fn a_call_of_a_child_forked_by_system_call_fails() {
    let run = ends("--timeout 60", "fork");
    run.ended(0, "libportals: rank 0: a forked child cannot use the library: its parent is the rank\n");
}

#[test]
fn a_call_outside_of_the_library_is_told_once() {
    let told = "libportals: PtlEQAlloc before PtlInit, or after the last PtlFini, returns PTL_NO_INIT\n";
    let run = ends("", "closed");
    assert_eq!((run.status, run.err.as_str()), (0, told));
}

#[test]
fn a_test_that_is_skipped_has_not_failed() {
    let run = ends("-n 2", "skip");
    assert_eq!((run.status, run.err.as_str()), (77, ""));
}

#[test]
fn a_rank_that_polls_its_memory_forever_is_a_deadlock() {
    let run = ends("-n 2 --busy-wait-quantum 5", "poll");
    run.ended(1, "deadlock at ");
    run.ended(1, "  rank 0 spins on its own memory at 0x");
    run.ended(1, "  rank 1 waits in spin_barrier, where 1 of 2 ranks have come\n");
    ends("--busy-wait-quantum 0", "hello").ended(2, "is a number of milliseconds from 1 on, or `off`");
    ends("--busy-wait-quantum off --timeout 0.2", "poll").ended(124, "time limit reached");
    // The option's former name.
    let old = ends("--spin-quantum off --timeout 0.2", "poll");
    old.ended(124, "time limit reached");
    old.ended(124, "note: --spin-quantum is now called --busy-wait-quantum\n");
    ends("--spin-quantum 1 --busy-wait-quantum 1", "hello").ended(2, "cannot be used with");
}

#[test]
fn wrong_use() {
    let program = plain("ends");
    let fails = |options: &str, words: &str| spinrun(options, &program, "hello").ended(2, words);
    fails("--machine nowhere", "spinrun: error: ");
    fails("--machine nowhere", "nowhere");
    fails("--set hpu.counts=4", "hpu.counts");
    fails("--set accelerator.hpus=many", "accelerator.hpus");
    fails("--set accelerator.hpus", "accelerator.hpus");
    fails("--nic ethernet", "ethernet");
    fails("-n 0", "0 is not in 1..=65536");
    fails("--compute fast", "is `zero`, `measured:SCALE`, `record:FILE` or `perf:FILE`");
    fails("--timeout soon", "not a number of seconds");

    let file = scratch().join("bad.toml");
    let wrong = |text: &str, words: &[&str]| {
        std::fs::write(&file, text).unwrap();
        let run = spinrun(&format!("--machine {}", file.display()), &program, "hello");
        for word in words {
            run.ended(2, word);
        }
    };
    wrong("base = \"sc17-int\"\n[hpu]\ncolour = \"red\"\n", &["bad.toml", "hpu.colour"]);
    wrong("base = \"sc17-int\"\n[network]\nwire_ns = \"long\"\n", &["bad.toml", "network.wire_ns"]);
    wrong("base = \"sc17-int\"\n[network\n", &["bad.toml"]);

    spinrun("", Path::new("./no-such-program"), "")
        .ended(1, "cannot start \"./no-such-program\" as rank 0: No such file");
    let run = spinrun("", &home().join("README.md"), "");
    run.ended(1, "as rank 0: Permission denied");
}

#[test]
fn an_option_or_a_source_is_no_program() {
    let program = plain("ends");
    spinrun("--machin sc17-int", &program, "hello").ended(2, "unexpected argument '--machin' found");
    spinrun("--machin sc17-int", &program, "hello").ended(2, "a similar argument exists: '--machine'");
    spinrun("-n 2 -q", &program, "hello").ended(2, "unexpected argument '-q' found");
    // Options after the program belong to it, whether spinrun knows them or not.
    let run = spinrun("-n 2", &program, "hello --machin -np 3");
    assert_eq!((run.status, run.out.lines().count()), (0, 2), "{}", run.err);
    let source = home().join("tests/programs/ends.c");
    let remedy = format!("compile it with spincc, such as `spincc -O2 -o ends {}`, and run ./ends", source.display());
    spinrun("-n 2", &source, "").ended(2, &remedy);
    let executable = scratch().join("source.c");
    std::fs::copy(&source, &executable).unwrap();
    std::fs::set_permissions(&executable, Permissions::from_mode(0o755)).unwrap();
    spinrun("", &executable, "").ended(2, "is a source, no program: compile it with spincc");
    let script = scratch().join("script.c");
    std::fs::write(&script, "#!/bin/sh\nexit 0\n").unwrap();
    std::fs::set_permissions(&script, Permissions::from_mode(0o755)).unwrap();
    assert_eq!(spinrun("", &script, "").status, 0);
}

#[test]
fn a_time_limit_ends_the_run() {
    let run = ends("-n 2 --timeout 0.2", "forever");
    run.ended(124, ": time limit reached at ");
    run.ended(124, "'s own code\n");
}

/// Counts processes whose executable is `program`.
fn processes(program: &Path) -> usize {
    let entries = std::fs::read_dir("/proc").unwrap();
    entries
        .filter(|e| std::fs::read_link(e.as_ref().unwrap().path().join("exe")).is_ok_and(|exe| exe == program))
        .count()
}

#[test]
fn an_interrupt_leaves_no_process() {
    // The test uses a private executable, so that processes of other tests do not count.
    let program = scratch().join("interrupted");
    let _ = std::fs::remove_file(&program);
    std::fs::hard_link(plain("ends"), &program).unwrap();
    let mut child = command("-n 3", &program, "forever").stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    for rank in 0..3 {
        assert_eq!(lines.next().unwrap().unwrap(), format!("rank {rank} runs"));
    }
    assert_eq!(processes(&program), 3);
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    let mut err = String::new();
    child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(143), "{err}");
    assert!(err.starts_with("spinrun: interrupted by signal 15 (SIGTERM) at "), "{err}");
    assert!(err.ends_with("'s own code\n"), "{err}");
    assert_eq!(processes(&program), 0);
}

#[test]
fn handlers_need_a_card_that_runs_them() {
    let program = program("errors");
    for nic in ["portals4", "rdma"] {
        let run = spinrun(&format!("-n 2 --nic {nic}"), &program, "payload fail");
        assert!(run.out.contains("PtlHPUAllocMem(sizeof *state, ni, &me.hpu_memory) returned PTL_FAIL"), "{}", run.out);
        run.ended(1, "spinrun: warning: rank 1: PtlHPUAllocMem: this card has no HPUs (--nic spin has)\n");
    }
}

#[test]
fn device_code_of_another_kind_is_refused() {
    let source = home().join("tests/programs/errors.c");
    let program = scratch().join("errors-imac");
    spincc(&source, &["--hpu", "rv32imac"], &program);
    let run = spinrun("-n 2", &program, "payload fail");
    run.ended(1, "rv32imafdc");
    run.ended(1, "(it has rv32imac): recompile with spincc --hpu rv32imafdc");
    let run = spinrun("-n 2 --set hpu.kind=rv32imac", &program, "payload fail");
    assert_eq!(run.status, 0, "{}", run.err);
}

/// Runs the program `errors` with its device image changed.
fn patched(name: &str, change: impl FnOnce(&mut [u8])) -> Run {
    let mut bytes = std::fs::read(program("errors")).unwrap();
    let file = object::File::parse(&*bytes).unwrap();
    let (start, length) = file.section_by_name(abi::device::image::SECTION).unwrap().file_range().unwrap();
    change(&mut bytes[start as usize..(start + length) as usize]);
    let path = scratch().join(name);
    let _ = std::fs::remove_file(&path);
    std::fs::copy(program("errors"), &path).unwrap(); // with its permissions
    std::fs::write(&path, bytes).unwrap();
    spinrun("-n 2", &path, "payload fail")
}

#[test]
fn damaged_device_code_is_refused() {
    let elves = |image: &[u8]| -> Vec<usize> {
        (0..image.len() - 4).filter(|at| image[*at..].starts_with(b"\x7fELF")).collect()
    };
    // e_machine, two bytes at 18: 40 is ARM.
    let run = patched("errors-arm", |image| elves(image).iter().for_each(|at| image[at + 18] = 40));
    run.ended(1, ": rank 0: device code for rv32imafdc: device program: machine is 40, but rv32imafdc cores execute RISC-V (243)\n");
    let run = patched("errors-no-elf", |image| elves(image).iter().for_each(|at| image[at + 1] = b'e'));
    run.ended(1, ": rank 0: device code for rv32imafdc: device program: not a valid 32-bit ELF file: ");
    let run = patched("errors-version", |image| image[0] ^= 1);
    run.ended(1, ": rank 0: ");
    let run = patched("errors-devices", |image| image[16] = 200);
    run.ended(1, ": rank 0: ");
}
