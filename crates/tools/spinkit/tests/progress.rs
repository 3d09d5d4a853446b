// SPDX-License-Identifier: Apache-2.0
//! Progress messages of `spinkit goal run`.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

fn goal() -> Command {
    Command::new(env!("CARGO_BIN_EXE_spinkit-goal"))
}

fn generate(folder: &Path, pattern: &str, ranks: &str) -> String {
    let file = folder.join("schedule.bin").to_str().unwrap().to_owned();
    let made = goal().args(["gen", pattern, "--ranks", ranks, "--size", "8", "-o", &file]).status().unwrap();
    assert!(made.success());
    file
}

fn run(file: &str, model: &str, progress: &str) -> Output {
    let output = goal().args(["run", model, file, "--progress", progress, "--json", "-"]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output
}

/// Returns the results without values that vary from run to run.
fn results(output: &Output) -> Value {
    let mut report: Value = serde_json::from_slice(&output.stdout).unwrap();
    for name in ["cpu_seconds", "wall_seconds", "peak_memory_bytes"] {
        assert!(report[name].take().is_number());
    }
    if let Some(rate) = report["network"].get_mut("packet_hops_per_cpu_second") {
        rate.take();
    }
    report
}

#[test]
fn lines_show_the_progress_and_change_no_results() {
    let folder = tempfile::tempdir().unwrap();
    for (model, ranks) in [("loggops", "400"), ("packet", "200"), ("protocol", "300"), ("nic", "64")] {
        let file = generate(folder.path(), "alltoall", ranks);
        let [silent, told] = ["off", "0.002"].map(|progress| run(&file, model, progress));
        assert_eq!(String::from_utf8_lossy(&silent.stderr), "");
        assert_eq!(results(&told), results(&silent), "{model}");
        let all = results(&told)["operations"].as_u64().unwrap();
        let lines = String::from_utf8(told.stderr).unwrap();
        let mut before = 0;
        for line in lines.lines().filter(|line| line.contains(" %, ")) {
            let numbers = line.strip_prefix("spinkit goal: ").unwrap().split(" operations").next().unwrap();
            let (percent, counts) = numbers.split_once(" %, ").unwrap();
            let (done, of) = counts.split_once('/').unwrap();
            let (percent, done): (u64, u64) = (percent.parse().unwrap(), done.parse().unwrap());
            assert_eq!((percent, of.parse()), (done * 100 / all, Ok(all)), "{line}");
            assert!((before..=all).contains(&done), "{line}");
            before = done;
        }
        assert!(before > 0, "{model} tells something\n{lines}");
    }
}

#[test]
fn waiting_for_a_schedule_is_not_running_it() {
    let mut command = goal();
    command
        .args(["run", "loggops", "-", "--progress", "0.01", "--json", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let first = BufReader::new(child.stderr.take().unwrap()).lines().next().unwrap().unwrap();
    assert!(first.starts_with("spinkit goal: reading <stdin>, "), "{first}");
    // A process whose messages are no longer read must not end.
    child.stdin.take().unwrap().write_all(b"num_ranks 1\nrank 0 {\ncalc 100\n}\n").unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["max_end_ns"], 100);
}

#[test]
fn intervals_are_seconds_above_zero() {
    for wrong in ["0", "-1", "soon", "inf", "nan", ""] {
        let output = goal()
            .args(["run", "loggops", "x", &format!("--progress={wrong}")])
            .stderr(Stdio::piped())
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(2), "{wrong}");
        let message = String::from_utf8(output.stderr).unwrap();
        assert!(message.contains("is a number of seconds above 0, or `off`"), "{message}");
    }
}

#[test]
fn a_full_disk_of_messages_does_not_end_a_run() {
    let folder = tempfile::tempdir().unwrap();
    let file = generate(folder.path(), "alltoall", "200");
    let full = File::options().write(true).open("/dev/full").unwrap();
    let status = goal()
        .args(["run", "loggops", &file, "--progress", "0.001"])
        .stdout(Stdio::null())
        .stderr(full)
        .status()
        .unwrap();
    assert!(status.success());
}
