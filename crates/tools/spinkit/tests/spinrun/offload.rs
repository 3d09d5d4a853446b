// SPDX-License-Identifier: Apache-2.0
//! `spinkit goal run nic`: operations take the same time as in the programs of the experiments, to the picosecond, and
//! handlers are found by name.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::harness::{broadcast, ping_pong, program, scratch, spinrun};

/// `host.o_ns` of sc17-int.
const O: u64 = 65_000;
const PACKET: u64 = 4096;

/// Returns exit status, report if any, and standard error.
fn execute(text: &str, device: Option<&Path>, options: &[&str]) -> (i32, Value, String) {
    let schedule = tempfile::NamedTempFile::new_in(scratch()).unwrap();
    fs::write(schedule.path(), text).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_spinkit-goal"));
    command.args(["run", "nic", "--json", "-"]).args(options).arg(schedule.path());
    if let Some(device) = device {
        command.arg("--device").arg(device);
    }
    let output = command.output().unwrap();
    let report = serde_json::from_slice(&output.stdout).unwrap_or(Value::Null);
    (output.status.code().unwrap(), report, String::from_utf8(output.stderr).unwrap())
}

fn report(text: &str, device: &Path) -> Value {
    let (status, report, errors) = execute(text, Some(device), &[]);
    assert_eq!((status, errors.as_str()), (0, ""));
    report
}

fn ps(ns: &Value) -> u64 {
    (ns.as_f64().unwrap() * 1e3).round() as u64
}

/// Returns ping-pong with the experiment's handlers at rank 1.
fn rounds(mode: &str, bytes: u64, count: u64) -> String {
    // struct pingpong: source, length, then max_packet and streaming.
    let state = PACKET | u64::from(mode == "stream") << 32;
    let pongs = if mode == "stream" { bytes.div_ceil(PACKET) } else { 1 };
    let mut text = format!(
        "num_ranks 2
         rank 1 {{
           append {bytes}b to priority_list hh ping_header ph ping_payload ch ping_completion arg3 {state} mem 24 allowed 0 ct 0 tag 20
         }}
         rank 0 {{
           t0: append {bytes}b to priority_list allowed 1 ct 0 tag 10\n"
    );
    for round in 1..=count {
        let before = round - 1;
        writeln!(text, "p{round}: put {bytes}b to 1 tag 20\np{round} requires t{before}").unwrap();
        writeln!(text, "t{round}: test 0 for {}\nt{round} requires p{round}", round * pongs).unwrap();
    }
    text + "}"
}

#[test]
fn ping_pong_takes_the_times_of_the_validation_report() {
    // Half round trips of docs/validation.md. After two rounds the branch predictors are warm.
    for (mode, bytes, half) in
        [("store", 8, 286_614), ("stream", 8, 285_814), ("store", 8192, 549_528), ("stream", 8192, 435_924)]
    {
        let end = |count| ps(&report(&rounds(mode, bytes, count), &ping_pong())["end_ns"][0]);
        assert_eq!(end(3) - end(2), 2 * half, "{mode} {bytes}");
    }
}

/// Returns the distances of a rank's children in the tree of `sdk/handlers/broadcast`; the number of ranks is a power
/// of two.
fn distances(rank: u64, ranks: u64) -> impl Iterator<Item = u64> {
    let lowest = if rank == 0 { ranks } else { rank & rank.wrapping_neg() };
    std::iter::successors(Some(lowest / 2), |distance| Some(distance / 2)).take_while(|distance| *distance > 0)
}

/// Returns consecutive broadcasts, and the time at which the root starts the last one.
fn broadcasts(mode: &str, bytes: u64, ranks: u64, count: u64) -> (String, u64) {
    const TAG: u64 = 1 << 24;
    const PAUSE_NS: u64 = 100_000;
    let mut text = format!("num_ranks {ranks}\nrank 0 {{\n");
    let mut last = String::new();
    let mut add = |text: &mut String, name: String, operation: &str| {
        writeln!(text, "{name}: {operation}").unwrap();
        if !last.is_empty() {
            writeln!(text, "{name} requires {last}").unwrap();
        }
        last = name;
    };
    for round in 0..count {
        add(&mut text, format!("c{round}"), &format!("calc {PAUSE_NS}"));
        for distance in distances(0, ranks) {
            add(&mut text, format!("p{round}x{distance}"), &format!("put {bytes}b to {distance} tag {TAG}"));
        }
    }
    let start = count * PAUSE_NS * 1000 + (count - 1) * distances(0, ranks).count() as u64 * O;
    for rank in 1..ranks {
        writeln!(text, "}}\nrank {rank} {{").unwrap();
        let handlers = "hh broadcast_header ph broadcast_payload ch broadcast_completion";
        let reach = distances(rank, ranks).next().unwrap_or(0);
        let step = if mode == "stream" { PACKET } else { bytes };
        for offset in (0..bytes).step_by(step as usize) {
            let room = bytes - offset;
            let tag = TAG + offset;
            write!(text, "append {room}b to priority_list ").unwrap();
            if mode != "triggered" {
                // struct broadcast, word by word.
                let (shape, place) = (rank | ranks << 32, reach);
                let packets = PACKET | u64::from(mode == "stream") << 32;
                write!(text, "{handlers} arg1 {tag} arg2 {shape} arg3 {place} arg4 {packets} mem 40 ").unwrap();
            }
            writeln!(text, "allowed any ct 0 tag {tag}").unwrap();
        }
        // The root's own messages are not split.
        let from_root = rank & (rank - 1) == 0;
        let events = if mode == "stream" && !from_root { bytes.div_ceil(step) } else { 1 };
        for round in 1..=count {
            if mode == "triggered" {
                for distance in distances(rank, ranks) {
                    writeln!(text, "tput {bytes}b to {} when 0 reaches {round} tag {TAG}", rank + distance).unwrap();
                }
            }
            writeln!(text, "t{round}: test 0 for {}", round * events).unwrap();
            if round > 1 {
                writeln!(text, "t{round} requires t{}", round - 1).unwrap();
            }
        }
    }
    (text + "}\n", start)
}

#[test]
fn broadcasts_take_as_long_as_in_the_experiment() {
    for (mode, bytes, count) in [
        ("triggered", 8, 1),
        ("triggered", 8192, 1),
        ("store", 8, 3),
        ("store", 8192, 3),
        ("stream", 8, 3),
        ("stream", 8192, 3),
    ] {
        let (text, start) = broadcasts(mode, bytes, 16, count);
        let here = report(&text, &broadcast());
        let last = here["end_ns"].as_array().unwrap().iter().skip(1).map(ps).max().unwrap();
        let nic = if mode == "triggered" { "portals4" } else { "spin" };
        let arguments = format!("--ranks 16 --mode {mode} --bytes {bytes}");
        let line = spinrun(&format!("-n 16 --nic {nic}"), &broadcast(), &arguments).ok();
        let line: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(last - start, line["time_ps"].as_u64().unwrap(), "{mode} {bytes}");
    }
}

#[test]
fn generated_broadcasts_are_those_of_the_experiment() {
    let goal = |arguments: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_spinkit-goal")).args(arguments).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    for (pattern, mode) in [("bcast-triggered", "triggered"), ("bcast-spin", "store")] {
        let (text, start) = broadcasts(mode, 8, 16, 1);
        let by_hand = report(&text, &broadcast());
        let generated = report(&goal(&["gen", pattern, "--ranks", "16", "--size", "8"]), &broadcast());
        assert_eq!(ps(&generated["max_end_ns"]), ps(&by_hand["max_end_ns"]) - start, "{pattern}");
        // An odd number of ranks, another root, several packets.
        let odd = goal(&["gen", pattern, "--ranks", "11", "--size", "10000", "--root", "7", "--tag", "3"]);
        let odd = report(&odd, &broadcast());
        assert_eq!((&odd["messages"], &odd["dropped_messages"]), (&10.into(), &0.into()), "{pattern}");
    }
}

#[test]
fn the_report_has_the_handlers() {
    let report = report(&rounds("stream", 8, 3), &ping_pong());
    assert_eq!(
        (&report["model"], &report["messages"], &report["dropped_messages"]),
        (&"nic".into(), &6.into(), &0.into())
    );
    assert_eq!(
        (&report["handlers"]["ping_payload"]["calls"], &report["handlers"]["ping_payload"]["puts"]),
        (&3.into(), &3.into())
    );
    // 1 + 2 * 3 operations at rank 0, one at rank 1, and six messages.
    assert_eq!((&report["operations"], &report["events"]), (&8.into(), &14.into()));
}

#[test]
fn unknown_handlers_are_named_with_their_place() {
    let text =
        "num_ranks 2 rank 0 { calc 1 } rank 1 { calc 1 append 8b to priority_list ph nobody allowed any ct 0 tag 1 }";
    let (status, _, errors) = execute(text, Some(&ping_pong()), &[]);
    assert_eq!(status, 1);
    let words = "rank 1, operation 2 (append 8b to priority_list ph nobody allowed any ct 0 tag 1): the device program has \
                 no handler 'nobody'; it has ping_completion, ping_header, ping_payload";
    assert!(errors.contains(words), "{errors}");
}

#[test]
fn a_handler_that_fails_ends_the_run() {
    // struct state of errors.c: role and act 0 (the header handler stores a value), address 8.
    let text = "num_ranks 2 rank 0 { put 8b to 1 tag 1 }
        rank 1 { append 8b to priority_list hh header arg2 8 mem 64 allowed any ct 0 tag 1 test 0 for 1 }";
    let (status, _, errors) = execute(text, Some(&program("errors")), &[]);
    assert_eq!(status, 1);
    let words = "rank 1: header handler 'header' failed: store of 4 B at 0x00000008 is not allowed";
    assert!(errors.contains(words) && errors.contains("errors.c:"), "{errors}");
}

#[test]
fn wrong_usage() {
    let text = "num_ranks 1 rank 0 { calc 1 }";
    for (options, words) in [
        (&["-o", "5"][..], "'-o' is an option of 'spinkit goal run loggops', 'spinkit goal run packet'"),
        (&["--topology", "torus"], "'--topology' is an option of 'spinkit goal run packet'"),
    ] {
        let (status, _, errors) = execute(text, None, options);
        assert!(status == 2 && errors.contains(words), "{status} {errors}");
    }
    let (status, _, errors) = execute(text, Some(Path::new(env!("CARGO_BIN_EXE_spinkit-goal"))), &[]);
    assert!(status == 1 && errors.contains("it has no handlers; link it with spincc"), "{errors}");
    let (status, _, errors) = execute(text, Some(&ping_pong()), &["--machine", "sc17-int", "--set", "nic.kind=rdma"]);
    assert!(status == 2 && errors.contains("the cards of this machine have no HPUs"), "{errors}");
}
