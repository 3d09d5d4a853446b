// SPDX-License-Identifier: Apache-2.0
//! Processes that share a node and its card: times by hand, shares of HPUs, and isolation from a hostile neighbour.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::{Value, json};

use crate::harness::{Run, libraries, plain, program, scratch};

/// Time per byte of the cards' links and DMA engines, in picoseconds (sPIN §4.2).
const GAP_PER_BYTE: u64 = 20;
/// Latency between two nodes of a switch: one switch and two wires, in picoseconds (sPIN §4.2).
const LATENCY: u64 = 50_000 + 2 * 33_400;

/// Runs spinrun with these arguments. Also returns its report, if it wrote one.
fn run(arguments: &[&str]) -> (Run, Value) {
    let report = tempfile::NamedTempFile::new_in(scratch()).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_spinrun"));
    command.arg("--json").arg(report.path()).args(arguments).env("SPIN_LIBDIR", libraries());
    let Output { status, stdout, stderr } = command.output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    let run = Run { status: status.code().unwrap(), out: text(stdout), err: text(stderr) };
    (run, serde_json::from_slice(&std::fs::read(report.path()).unwrap()).unwrap_or(Value::Null))
}

/// Writes a jobs file of these jobs.
fn jobs_file(name: &str, jobs: &[String]) -> String {
    let path = scratch().join(format!("{name}.toml"));
    std::fs::write(&path, jobs.concat()).unwrap();
    path.to_str().unwrap().to_owned()
}

fn job(name: &str, program: &Path, arguments: &[&str], rest: &str) -> String {
    let words = [program.to_str().unwrap()].into_iter().chain(arguments.iter().copied()).collect::<Vec<_>>();
    format!("[[job]]\nname = \"{name}\"\nprogram = {}\nranks = 2\n{rest}\n", json!(words))
}

/// Returns the numbers at the ends of the lines that begin with `start`.
fn numbers(run: &Run, start: &str) -> Vec<u64> {
    let lines = run.out.lines().filter(|line| line.starts_with(start));
    lines.map(|line| line.rsplit(' ').next().unwrap().parse().unwrap()).collect()
}

/// A message to a process of the same node turns around in the card. Two jobs queue at the port and DMA engine of their node.
#[test]
fn times_on_a_shared_node_are_those_worked_out_by_hand() {
    let incast = plain("incast");
    for nic in ["rdma", "portals4", "spin"] {
        for bytes in ["1", "8192"] {
            let arrival = |per_node: &str| {
                let options = ["-n", "2", "--nic", nic, "--ranks-per-node", per_node];
                numbers(&run(&[&options[..], &[incast.to_str().unwrap(), bytes]].concat()).0, "rank 0: ")[0]
            };
            assert_eq!(arrival("1") - arrival("2"), LATENCY, "{nic}, {bytes} B");
        }
    }
    let jobs = ["a", "b"].map(|name| job(name, &incast, &["8192"], "nodes = [0, 1]"));
    let (beside, report) = run(&["--tag-output", "--nic", "portals4", "--jobs", &jobs_file("queue", &jobs)]);
    let (alone, _) = run(&["-n", "2", "--nic", "portals4", incast.to_str().unwrap(), "8192"]);
    let alone = numbers(&alone, "rank 0: ")[0];
    assert_eq!(numbers(&beside, "[a 0] rank 0: "), [alone], "{}", beside.err);
    assert_eq!(numbers(&beside, "[b 0] rank 0: "), [alone + 8192 * GAP_PER_BYTE]);
    assert_eq!((&report["nodes"], &report["jobs"][1]["nodes"]), (&json!([0, 1, 0, 1]), &json!([2, 3])));
    // Each process accounts for its own bytes, and the port for those of both.
    let cards = &report["cards"];
    assert_eq!([1, 3].map(|place: usize| cards[place]["bytes_sent"].as_u64()), [Some(8192); 2]);
    assert_eq!(cards[1]["tx_busy_ps"].as_u64(), Some(2 * 8192 * GAP_PER_BYTE));
    assert_eq!(cards[0]["rx_busy_ps"].as_u64(), Some(8192 * GAP_PER_BYTE));
}

#[test]
fn programs_run_with_any_number_of_ranks_on_a_node() {
    let (alltoall, tenants) = (plain("alltoall"), program("tenants"));
    for nic in ["rdma", "portals4", "spin"] {
        for per_node in ["1", "2", "3", "4"] {
            let options = ["-n", "4", "--nic", nic, "--ranks-per-node", per_node, alltoall.to_str().unwrap(), "9000"];
            let (run, report) = run(&options);
            assert_eq!((run.status, run.err.as_str()), (0, ""), "{nic}, {per_node}");
            assert_eq!(run.out.lines().filter(|line| line.contains(": done at ")).count(), 4);
            let nodes: Vec<usize> = (0..4).map(|rank| rank / per_node.parse::<usize>().unwrap()).collect();
            assert_eq!(report["nodes"], if per_node == "1" { Value::Null } else { json!(nodes) });
        }
    }
    let (victim, _) = run(&["-n", "2", "--ranks-per-node", "2", tenants.to_str().unwrap(), "victim"]);
    assert!(victim.ok().starts_with("victim: 100 messages intact after "));
    // Both ranks of a job, and another job, on one node.
    let jobs =
        [job("both", &tenants, &["victim"], "nodes = [0, 0]"), job("other", &tenants, &["victim"], "nodes = [1, 0]")];
    let (run, _) = run(&["--jobs", &jobs_file("both", &jobs)]);
    assert_eq!(run.ok().lines().filter(|line| line.starts_with("victim: 100 messages intact")).count(), 2);
}

#[test]
fn cards_that_cannot_be_shared_are_refused() {
    for (arguments, words) in [
        (&["--machine", "pspin-400g", "--ranks-per-node", "2", "-n", "2", "true"][..], "use --machine sc17-int"),
        (&["--ranks-per-node", "0", "true"], "invalid value '0'"),
        (&["--ranks-per-node", "2", "--jobs", "x"], "cannot be used with"),
        (
            &["--ranks-per-node", "2", "-n", "2", "--gdb", "1", "true"],
            "it does not go together with --ranks-per-node 2",
        ),
        (&["--ranks-per-node", "2", "-n", "2", "--isolation", "thread", "true"], "--ranks-per-node places processes"),
    ] {
        let (run, _) = run(arguments);
        run.ended(2, words);
    }
    let (run, _) = run(&["--machine", "pspin-400g", "--nic", "portals4", "--ranks-per-node", "2", "-n", "2", "true"]);
    assert_eq!(run.status, 0, "{}", run.err);
}

/// Two jobs that keep the HPUs of node 0 busy, with these iterations, and shares of the card. Returns the busy times of the
/// HPUs, and the output.
fn contend(scheduler: &str, iterations: [&str; 2], shares: [&str; 2]) -> ([f64; 2], Run) {
    let load = program("hpu_load");
    let jobs: Vec<String> = (0..2)
        .map(|number| {
            let rest = format!("nodes = [0, {}]\n{}", number + 1, shares[number]);
            job(&format!("job{number}"), &load, &[iterations[number], "100000", "4096"], &rest)
        })
        .collect();
    let name = format!("{scheduler}{}{}", iterations.concat(), shares.concat().replace(' ', ""));
    let scheduler = format!("accelerator.sharing.scheduler={scheduler}");
    // Small packets, so that the link brings more work than the HPUs do.
    let settings = ["network.mtu_bytes=64", "accelerator.watchdog_cycles=20000", &scheduler];
    let settings = settings.into_iter().flat_map(|setting| ["--set", setting]);
    let file = jobs_file(&name, &jobs);
    let arguments = settings.chain(["--tag-output", "--jobs", &file]).collect::<Vec<_>>();
    let (run, report) = run(&arguments);
    assert_eq!(run.status, 0, "{}", run.err);
    let busy = |job: usize| report["jobs"][job]["hpu_busy_ps"].as_u64().unwrap() as f64;
    ([busy(0), busy(1)], run)
}

/// Returns Jain's index of two values.
fn jain([one, other]: [f64; 2]) -> f64 {
    (one + other).powi(2) / (2.0 * (one * one + other * other))
}

#[test]
fn jobs_share_the_hpus_of_a_card_by_weight() {
    let equal = ["weight = 1", "weight = 1"];
    let (fifo, _) = contend("fifo", ["100", "2000"], equal);
    assert!(jain(fifo) < 0.6, "{fifo:?}");
    let (weighted, _) = contend("weighted", ["100", "2000"], equal);
    assert!(jain(weighted) >= 0.98, "{weighted:?}");
    // Both together occupy the four HPUs to the end of the run, apart from the time of the first messages.
    assert!(weighted.iter().sum::<f64>() > 0.99 * 4.0 * 100e6, "{weighted:?}");
    for iterations in [["500", "500"], ["100", "2000"]] {
        let ([three, one], _) = contend("weighted", iterations, ["weight = 3", "weight = 1"]);
        assert!((2.9..3.1).contains(&(three / one)), "{iterations:?}: {three} {one}");
    }
    let ([low, high], _) = contend("strict", ["500", "500"], ["priority = 1", "priority = 2"]);
    assert!(high > 50.0 * low, "{low} {high}");
}

#[test]
fn an_endless_handler_costs_its_job_alone() {
    let ([own, endless], run) = contend("weighted", ["100", "0"], ["weight = 1", "weight = 1"]);
    assert!(jain([own, endless]) >= 0.98, "{own} {endless}");
    let lines: Vec<&str> = run.out.lines().filter(|line| line.contains(" messages, ")).collect();
    let of = |job: &str| *lines.iter().find(|line| line.starts_with(&format!("[{job} 1] "))).unwrap();
    assert!(of("job0").ends_with(" messages, 0 ended by the watchdog"), "{lines:?}");
    assert!(!of("job1").ends_with(" 0 ended by the watchdog"), "{lines:?}");
    assert!(
        run.err.contains("rank 0 of job job1: payload handler 'work' was killed after 20000 cycles"),
        "{}",
        run.err
    );
    assert!(!run.err.contains("job job0: payload handler"), "{}", run.err);
}

/// Attempts of a hostile job on the victim's nodes. The victim gets its part of the card, and its data is intact.
#[test]
fn a_hostile_job_on_the_same_cards_reaches_nothing_of_another() {
    let (tenants, errors) = (program("tenants"), program("errors"));
    let victim = job("victim", &tenants, &["victim"], "nodes = [1, 3]\nuser = 1001");
    let facts = |report: &Value| {
        let of_card = |place: usize| {
            let card = &report["cards"][place];
            let names = ["messages_sent", "bytes_received", "dma_bytes", "packets_dropped", "flow_control", "drops"];
            names.map(|name| card[name].clone())
        };
        let cycles = ["payload", "completion"].map(|name| report["programs"][0]["handlers"][name]["cycles"].clone());
        json!([of_card(0), of_card(1), cycles, report["jobs"][0]["hpu_memory_peak_bytes"]])
    };
    let beside = |program: &PathBuf, arguments: &[&str]| {
        let hostile = job("hostile", program, arguments, "nodes = [1, 3]\nuser = 1002");
        let settings = ["--set", "accelerator.sharing.scheduler=weighted", "--jobs"];
        run(&[&settings[..], &[&jobs_file(&arguments.concat(), &[victim.clone(), hostile])]].concat())
    };
    // A neighbour that only opens and closes its interface.
    let (_, quiet) = beside(&tenants, &["handles"]);
    for (program, arguments, told) in [
        (&tenants, &["ids"][..], "ids: 4 violations, 40 undeliverable"),
        (&tenants, &["map"], "map: 4 violations, 40 undeliverable"),
        (&tenants, &["handles"], "handles: 1792 refused"),
        (&tenants, &["exhaust"], "exhaust: 64 portal table entries, "),
        (&tenants, &["loop"], "loop: the message fails with HANDLER_TIMEOUT"),
        (&tenants, &["flood"], "flood: sent"),
        (&errors, &["payload", "poke"], ""),
        (&errors, &["payload", "peek"], ""),
        (&errors, &["payload", "wild-put"], ""),
        (&errors, &["payload", "wild-dma"], ""),
    ] {
        let (run, report) = beside(program, arguments);
        assert_eq!(run.status, 0, "{arguments:?}: {}", run.err);
        let intact = run.out.lines().filter(|line| line.starts_with("victim: 100 messages intact after ")).count();
        assert_eq!(intact, 1, "{arguments:?}: {}", run.out);
        assert!(run.out.lines().any(|line| line.starts_with(told)), "{arguments:?}: {}", run.out);
        assert_eq!(facts(&report), facts(&quiet), "{arguments:?}");
    }
    // Half of the HPU memory is the victim's, whatever the neighbour takes.
    let (run, _) = beside(&tenants, &["exhaust"]);
    assert!(run.out.contains(" 512 KiB of HPU memory"), "{}", run.out);
}

/// The run is the same in each detail, also with lost packets and a fabric that blocks packets.
#[test]
fn runs_on_shared_nodes_are_equal() {
    let alltoall = plain("alltoall");
    let file = jobs_file(
        "equal-shared",
        &[
            job("a", &alltoall, &["70000"], "nodes = [0, 1]"),
            job("b", &alltoall, &["70000"], "nodes = [1, 0]\nstart = \"300ns\""),
        ],
    );
    let once = || run(&["--set", "network.model=fabric", "--drop", "0-1:0.05", "--jobs", &file]);
    let ((first, report), (second, again)) = (once(), once());
    assert_eq!((first.status, first.out.lines().count()), (0, 4), "{}", first.err);
    assert_eq!((first.out, first.err, report), (second.out, second.err, again));
}
