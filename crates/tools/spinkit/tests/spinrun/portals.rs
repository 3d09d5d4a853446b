// SPDX-License-Identifier: Apache-2.0
//! Portals 4 programs on every kind of card, compiled like any C program. The programs check the values themselves; see
//! their comments.

use std::process::Command;

use crate::harness::{Run, home, libraries, plain, reported, scratch, spinrun, without_portals};

const NICS: [&str; 3] = ["rdma", "portals4", "spin"];

fn portals(case: &str, output: impl Fn(Run) -> String) {
    for nic in NICS {
        let run = spinrun(&format!("-n 2 --nic {nic} --timeout 60"), &plain("portals"), case);
        assert_eq!(output(run), "", "{case} on {nic}");
    }
}

macro_rules! cases {
    ($output:expr; $($case:ident),+ $(,)?) => { $(
        #[test]
        fn $case() {
            portals(stringify!($case), $output);
        }
    )+ };
}
cases!(
    Run::ok;
    puts,
    gets,
    triggered_chain,
    event_queues,
    unexpected_messages,
    unlinking,
    physical_addresses,
    segments,
    truncation,
    limits_of_the_queue,
);
// Some of their messages match no entry.
cases!(Run::lossy; counting_events, failures, managed_offsets);

#[test]
fn all_to_all() {
    for nic in NICS {
        for bytes in [1, 4096, 10_000] {
            let run = spinrun(&format!("-n 4 --nic {nic}"), &plain("alltoall"), &bytes.to_string());
            let out = run.ok();
            let mut ranks: Vec<_> = out.lines().map(|line| line.split_once(": done at ").unwrap().0).collect();
            ranks.sort_unstable();
            assert_eq!(ranks, ["rank 0", "rank 1", "rank 2", "rank 3"], "{nic} {bytes}");
        }
    }
}

#[test]
fn computing_takes_exactly_its_time() {
    for nic in NICS {
        let (run, report) = reported(&format!("--nic {nic}"), &plain("clocks"), "compute");
        assert_eq!(run.ok(), "");
        // 7 ns; then 51 ns and 1000 bytes read through ten lines of 64 at once, 51 ns * 1000 / 640; then 51 ns and
        // 1010 bytes, mostly written, at 6.7 ps each.
        assert_eq!(report["end_ps"], 7_000 + (51_000 + 79_688) + (51_000 + 6_767), "{nic}");
        let card = &report["cards"][0];
        let traffic =
            ["host_read_bytes", "host_written_bytes", "dma_bytes", "memory_bytes"].map(|key| card[key].as_u64());
        assert_eq!(traffic, [Some(1010), Some(1024), Some(0), Some(2034)], "{nic}");
    }
}

#[test]
fn computing_can_be_measured() {
    let end = |options: &str| reported(options, &plain("clocks"), "spin").1["end_ps"].as_u64().unwrap();
    assert_eq!(end("--compute zero"), 0);
    // The program computes for 5 ms of its CPU time; all other work is negligible at this scale.
    let measured = end("--compute measured:100");
    assert!(measured >= 500_000_000_000, "{measured}");
}

#[test]
fn clocks_of_a_program_without_portals_are_simulated_too() {
    let program = without_portals("dates");
    let year = Command::new("date").arg("+%Y").output().unwrap().stdout;
    let year = String::from_utf8(year).unwrap();
    // 2017-11-12 0:00 UTC; the child is not a rank, and has the real date.
    let run = spinrun("--clock simulated", &program, "").ok();
    assert_eq!(run, format!("1510444800 0 0 1510444800 1510444800\n1510444801 1 1 1510444801 1510444801\n{year}"));
    let run = spinrun("--clock simulated --clock-start 1600000000", &program, "").ok();
    assert_eq!(run, format!("1600000000 0 0 1600000000 1600000000\n1600000001 1 1 1600000001 1600000001\n{year}"));
    let run = spinrun("--clock simulated --clock-start now", &program, "").ok();
    let begun: u64 = run.split(' ').next().unwrap().parse().unwrap();
    assert!(begun > 1_700_000_000, "{run}");
    assert!(run.contains(&format!("\n{} 1 1 ", begun + 1)), "{run}");
    let run = spinrun("--clock-start now", &program, "");
    assert_eq!(run.err, "spinrun: note: --clock-start has no effect without --clock simulated\n");
    spinrun("--clock-start today", &program, "").ended(2, "is `now`, or a number of seconds since 1970");
}

#[test]
fn a_free_computation_is_told_once() {
    let program = without_portals("dates");
    let run = spinrun("--clock simulated", &program, "compute");
    let line = run.err.lines().next().unwrap_or_default();
    assert!(line.starts_with("spinrun: note: the ranks' own computation, "), "{}", run.err);
    assert!(
        line.contains(" s of CPU time, has taken no simulated time (--compute zero), so rates that "),
        "{}",
        run.err
    );
    assert_eq!((run.status, run.err.lines().count()), (0, 1), "{}", run.err);
    assert_eq!(spinrun("--clock simulated", &program, "").err, "");
}

#[test]
fn clocks_can_tell_simulated_time() {
    assert_eq!(spinrun("--clock simulated", &plain("clocks"), "simulated").ok(), "");
}

#[test]
fn the_simulation_continues_while_a_rank_sleeps() {
    for clock in ["real", "simulated"] {
        for nic in NICS {
            let run = spinrun(&format!("-n 2 --clock {clock} --nic {nic}"), &plain("clocks"), "sleeps");
            assert_eq!(run.ok(), "", "{clock} {nic}");
        }
    }
}

#[test]
fn repeated_sleeping_causes_a_warning() {
    let run = spinrun("", &plain("clocks"), "sleepy");
    run.ended(0, "warning: rank 0: nothing but sleeps, looks at the clock and polls that found nothing has happened since 0.000 ns");
}

#[test]
fn the_address_sanitizer_of_gcc_may_come_second() {
    let (source, program) = (home().join("tests/programs/clocks.c"), scratch().join("clocks-sanitized"));
    let library = libraries();
    let compiled = Command::new("cc")
        .args(["-std=c11", "-g", "-fsanitize=address", "-I"])
        .arg(home().join("sdk/include"))
        .arg(&source)
        .arg("-o")
        .arg(&program)
        .arg("-L")
        .arg(&library)
        .arg(format!("-Wl,-rpath,{}", library.display()))
        .arg("-lportals")
        .output()
        .unwrap();
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    assert_eq!(spinrun("-n 2 -x ASAN_OPTIONS=detect_leaks=0", &program, "sleeps").ok(), "");
}

#[test]
#[cfg(target_arch = "x86_64")]
fn the_time_stamp_counter_can_tell_simulated_time() {
    let counter = |options: &str, hz: &str| {
        assert_eq!(
            spinrun(&format!("--clock simulated {options}"), &plain("clocks"), &format!("counter {hz}")).ok(),
            ""
        );
    };
    counter("-x SPIN_TSC_HZ=2500000000", "2500000000");
    // The default is the frequency reported by the kernel for this computer.
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap();
    let speed = text.lines().find_map(|line| line.strip_prefix("cpu MHz")?.split_once(':'));
    if let Some((_, mhz)) = speed.filter(|(_, mhz)| mhz.trim().ends_with(".000")) {
        counter("", &format!("{}000000", mhz.trim().split_once('.').unwrap().0));
    }
}
