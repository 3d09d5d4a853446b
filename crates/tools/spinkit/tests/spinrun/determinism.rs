// SPDX-License-Identifier: Apache-2.0
//! Equal inputs give equal bytes: standard output, report and timeline, also with different ways of switching between
//! processes.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use crate::harness::{ping_pong, plain, scratch, spinrun};

pub fn twice(name: &str, options: &str, program: &Path, arguments: &str) {
    often(2, name, options, program, arguments);
}

fn often(times: u32, name: &str, options: &str, program: &Path, arguments: &str) {
    let run = |number: u32| {
        let (json, trace) =
            (scratch().join(format!("{name}.{number}.json")), scratch().join(format!("{name}.{number}.trace")));
        // Deferred calls, processors chosen by the kernel, and ranks copied from one process change only the speed.
        let how =
            if number.is_multiple_of(2) { "--post-ahead 128 --bind-to none --start exec" } else { "--start fork" };
        let options = format!("{options} {how} --json {} --trace {}", json.display(), trace.display());
        let out = spinrun(&options, program, arguments).ok();
        (out, std::fs::read(json).unwrap(), std::fs::read(trace).unwrap())
    };
    let first = run(1);
    assert!(first.2.len() > 1000, "{name}: an empty trace");
    for number in 2..=times {
        let other = run(number);
        assert_eq!(first.0, other.0, "{name}");
        assert!(first.1 == other.1, "{name}: reports differ");
        assert!(first.2 == other.2, "{name}: traces differ");
    }
}

#[test]
fn ping_pong_modes() {
    for (mode, nic) in [("rdma", "rdma"), ("triggered", "portals4"), ("store", "spin"), ("stream", "spin")] {
        twice(mode, &format!("-n 2 --nic {nic}"), &ping_pong(), &format!("--mode {mode} --sizes 8,5000,65536"));
    }
}

#[test]
fn all_to_all() {
    for nic in ["rdma", "portals4", "spin"] {
        twice(&format!("all-{nic}"), &format!("-n 16 --nic {nic}"), &plain("alltoall"), "5000");
    }
}

#[test]
fn posted_calls() {
    for nic in ["rdma", "portals4", "spin"] {
        twice(&format!("posted-{nic}"), &format!("-n 2 --nic {nic} --busy-wait-quantum 1"), &plain("posting"), "mix");
    }
    let few = spinrun("-n 2 --post-ahead 3", &plain("posting"), "mix").ok();
    assert_eq!(few, spinrun("-n 2", &plain("posting"), "mix").ok());
    let measured = spinrun("-n 2 --post-ahead 16 --compute measured:1", &plain("posting"), "mix");
    measured.ended(0, "note: --post-ahead has no effect with --fail, --kill-card and --compute\n");
    spinrun("-n 2 --post-ahead 129", &plain("posting"), "mix").ended(2, "129 is not in 0..=128");
}

#[test]
fn known_answers() {
    for nic in ["rdma", "portals4", "spin"] {
        twice(&format!("known-{nic}"), &format!("-n 4 --nic {nic}"), &plain("posting"), "events");
    }
}

#[test]
fn posted_calls_that_are_not_made_are_told() {
    let words = "warning: rank 1: it has ended without exit handlers or PtlFini, so its last calls (3) were not made";
    spinrun("-n 2 --post-ahead 16", &plain("posting"), "leave").ended(0, words);
    assert!(!spinrun("-n 2", &plain("posting"), "leave").err.contains("not made"));
}

#[test]
fn threads_that_poll_beside_busy_processors() {
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !over.load(Relaxed) {
                    std::hint::spin_loop()
                }
            });
        }
        let end = Over(&over);
        often(2, "polling-threads", "-n 4", &plain("polling_threads"), "");
        drop(end);
    });
}

/// Ends the busy loops even if a test fails.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}
