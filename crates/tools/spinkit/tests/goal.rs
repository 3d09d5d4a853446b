// SPDX-License-Identifier: Apache-2.0
//! `spinkit goal` from the command line.

use std::fs;
use std::io::Write;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

fn goal(arguments: &[&str], input: &[u8]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_spinkit-goal"));
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // A command that ends without reading closes the pipe.
    let _ = child.stdin.take().unwrap().write_all(input);
    child.wait_with_output().unwrap()
}

fn fine(arguments: &[&str], input: &[u8]) -> Vec<u8> {
    let output = goal(arguments, input);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

fn json(arguments: &[&str], input: &[u8]) -> Value {
    serde_json::from_slice(&fine(arguments, input)).unwrap()
}

fn fails(arguments: &[&str], input: &str, status: i32) -> String {
    let output = goal(arguments, input.as_bytes());
    assert_eq!(output.status.code(), Some(status), "{arguments:?}");
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn generated_schedules_run_in_both_forms() {
    let text = fine(&["gen", "bcast", "--ranks", "8", "--size", "1024"], b"");
    let binary = fine(&["convert", "-", "-", "--format", "binary"], &text);
    assert_eq!(fine(&["show", "-"], &binary), text);
    for schedule in [&text, &binary] {
        let report = json(&["run", "loggops", "-", "--json", "-"], schedule);
        let ends: Value = serde_json::from_str("[15776,20276,20276,24776,25914,30414,30414,34914]").unwrap();
        assert_eq!(
            (&report["ranks"], &report["events"], &report["max_end_ns"]),
            (&8.into(), &21.into(), &34914.into())
        );
        assert_eq!(report["end_ns"], ends);
        assert!(report["cpu_seconds"].as_f64().unwrap() >= 0.0);
        assert!(report["wall_seconds"].as_f64().unwrap() > 0.0);
        assert!(report["peak_memory_bytes"].as_u64().unwrap() > 100_000, "more than nothing");
    }
    let parameters = ["-L", "3700", "-o", "200", "-g", "5", "-G", "1", "-O", "0", "-S", "255000"];
    let report = json(&[&["run", "loggops", "-", "--json", "-"], &parameters[..]].concat(), &text);
    assert_eq!(report["max_end_ns"], 15369);
    let report = json(&["run", "loggops", "-", "--json", "-", "-L", "2500.5"], &text);
    assert_eq!(report["max_end_ns"], 34915.5);
}

#[test]
fn files_are_converted_and_counted() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    fine(&["gen", "halo", "-n", "6", "--dims", "3x2", "--size", "100", "-o", &path("a.bin")], b"");
    fine(&["convert", &path("a.bin"), &path("a.goal")], b"");
    let stats = json(&["stats", "--json", &path("a.goal")], b"");
    assert_eq!(stats, json(&["stats", "--json", &path("a.bin")], b""));
    assert_eq!((&stats["sends"], &stats["sent_bytes"], &stats["calcs"]), (&14.into(), &1400.into(), &6.into()));
    assert!(
        String::from_utf8(fine(&["check", &path("a.bin")], b"")).unwrap().ends_with("6 ranks, 34 operations: ok\n")
    );
    let bytes = fs::read(path("a.bin")).unwrap();
    fs::write(path("b.bin"), &bytes[..bytes.len() - 9]).unwrap();
    assert!(fails(&["run", "loggops", &path("b.bin")], "", 1).contains("truncated or damaged"));
    assert!(fails(&["convert", &path("a.bin"), &path("a.what")], "", 2).contains("say --format text"));
    fine(&["convert", &path("a.bin"), &path("lgs.bin"), "--to", "lgs"], b"");
    let lgs = fs::read(path("lgs.bin")).unwrap();
    assert_eq!(lgs[..8], 4223_u64.to_le_bytes());
    assert_eq!(stats, json(&["stats", "--json", "-"], &lgs));
    let end = |file: &str| json(&["run", "loggops", file, "--json", "-"], b"")["end_ns"].clone();
    assert_eq!(end(&path("lgs.bin")), end(&path("a.bin")));
    let card = "num_ranks 1 rank 0 { test 4 for 1 }";
    let message = fails(&["convert", "-", &path("card.bin"), "--format", "lgs"], card, 1);
    assert!(message.contains("rank 0, operation 1 (test 4 for 1): LogGOPSim's binary form"), "{message}");
    assert!(!fs::exists(path("card.bin")).unwrap());
}

/// Times as in `crates/system/goal/tests/protocol.rs`.
#[test]
fn protocols_differ_in_who_matches() {
    let text = "num_ranks 2 rank 0 { send 8b to 1 tag 0 } rank 1 { recv 8b from 0 tag 0 }";
    let run = |more: &[&str]| json(&[&["run", "protocol", "-", "--json", "-"], more].concat(), text.as_bytes());
    for (card, end, copied) in [("rdma", 494.706, 8), ("portals4", 413.068, 0), ("spin", 413.068, 0)] {
        let report = run(&["--card", card]);
        assert_eq!((&report["max_end_ns"], &report["copied_bytes"]), (&end.into(), &copied.into()), "{card}");
        assert_eq!(report["parameters"]["card"], card);
    }
    // The default card of the machine is a sPIN card.
    assert_eq!(run(&[])["max_end_ns"], 413.068);
    assert_eq!(run(&["--machine", "sc17-int", "--set", "host.poll_ns=0"])["max_end_ns"], 362.068);
    // Form of earlier versions.
    let old = json(&["run", "-", "--json", "-", "--model", "protocol", "--card", "rdma"], text.as_bytes());
    assert_eq!(old["max_end_ns"], 494.706);
}

#[test]
fn failures_name_place_and_reason() {
    let message = fails(&["run", "loggops", "-"], "num_ranks 1\nrank 0 {\n  l1: send 8b to 7\n}\n", 1);
    assert!(message.starts_with("spinkit goal: error: <stdin>:3:18: rank 7 does not exist"), "{message}");
    let stuck = "num_ranks 2 rank 0 { recv 8b from 1 tag 4 } rank 1 { send 8b to 0 tag 5 }";
    let message = fails(&["run", "loggops", "-"], stuck, 1);
    assert!(message.starts_with("spinkit goal: error: <stdin>: the schedule cannot finish"), "{message}");
    assert!(message.contains("rank 0 waits for a message of operation 1 (recv 8b from 1 tag 4)"), "{message}");
    let lost = "num_ranks 1 rank 0 { send 8b to 0 tag 5 }";
    assert!(fails(&["check", "-"], lost, 1).contains("rank 0, operation 1 (send 8b to 0 tag 5)"));
    assert!(fails(&["gen", "bcast", "-n", "4", "--root", "4"], "", 2).contains("root 4 does not exist"));
    assert!(fails(&["run", "-", "--model", "telepathy"], lost, 2).contains("invalid value 'telepathy'"));
    assert!(fails(&["run", "loggops", "/nowhere.goal"], "", 1).contains("cannot read /nowhere.goal"));
}

#[test]
fn threads_share_a_run_if_the_model_permits_and_it_is_worth_it() {
    let schedule = fine(&["gen", "alltoall", "--ranks", "32", "--size", "100"], b"");
    let report = |threads, more: &[&str]| {
        let output = goal(&[&["run", "loggops", "-", "--json", "-", "--threads", threads], more].concat(), &schedule);
        assert_eq!(output.status.code(), Some(0));
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        let note = String::from_utf8(output.stderr).unwrap();
        (report["threads"].clone(), report["end_ns"].clone(), note)
    };
    // A short run prints one in any case.
    let (_, ends, _) = report("1", &[]);
    let note = "spinkit goal: note: runs in one thread: 1984 operations are too few for several (1048576)\n";
    assert_eq!(report("2", &[]), (1.into(), ends, note.into()));
    let note = "spinkit goal: note: runs in one thread: rank 0, operation 31 (send 100b to 16 tag 0) sends more than S bytes, \
                and its match acts at once in another part of the ranks\n";
    let (_, ends, _) = report("1", &["-S", "10"]);
    assert_eq!(report("2", &["-S", "10"]), (1.into(), ends, note.into()));
    assert!(fails(&["run", "loggops", "-", "--threads", "0"], "", 2).contains("0 is not in 1..=255"));
    let text = String::from_utf8(schedule).unwrap();
    let error = fails(&["run", "protocol", "-", "--threads", "2"], &text, 2);
    assert!(error.contains("--threads"), "{error}");
}

#[test]
fn keys_of_a_fabric_are_used_or_named() {
    let notes = |model: &str, set: &[&str]| {
        let set: Vec<&str> = set.iter().flat_map(|set| ["--set", set]).collect();
        let arguments = [&["run", model, "-", "--machine", "sc17-int"], &set[..]].concat();
        let output = goal(&arguments, b"num_ranks 2 rank 0 { send 8b to 1 } rank 1 { recv 8b from 0 }");
        assert_eq!(output.status.code(), Some(0));
        String::from_utf8(output.stderr).unwrap()
    };
    let (key, fabric) = ("network.fabric.seed=3", "network.model=fabric");
    let unused = "spinkit goal: note: no effect with network.model=latency: --set network.fabric.seed=3; add --set \
                  network.model=fabric\n";
    assert_eq!(notes("nic", &[key]), unused);
    let other = "has no effect on this model, which has no contention: use `goal run nic` or `goal run packet`\n";
    for model in ["loggops", "protocol"] {
        assert_eq!(notes(model, &[key]), format!("spinkit goal: note: network.fabric {other}"));
        assert_eq!(notes(model, &[fabric, key]), format!("spinkit goal: note: network.model=fabric {other}"));
        assert_eq!(notes(model, &[]), "");
    }
    assert_eq!(notes("nic", &[fabric, key]), "");
    assert_eq!(notes("packet", &[key]), "");
}

#[test]
fn schedules_have_no_handlers_on_switches() {
    let schedule = "num_ranks 2 rank 0 { send 8b to 1 } rank 1 { recv 8b from 0 }";
    let switches = "network.switch.handlers=\"*\"";
    for model in ["loggops", "packet", "nic", "protocol"] {
        let arguments = ["run", model, "-", "--machine", "sc17-int", "--set", "network.model=fabric"];
        let told = "network.switch.handlers: schedules have no handlers on switches; programs have (spinrun)";
        let error = fails(&[&arguments[..], &["--set", switches]].concat(), schedule, 2);
        assert!(error.contains(told), "{model}: {error}");
    }
}

#[test]
fn other_cpus_count_unless_disabled() {
    let schedule = b"num_ranks 1 rank 0 { a: calc 1000 b: calc 10 cpu 1 b requires a }";
    assert_eq!(json(&["run", "loggops", "-", "--json", "-"], schedule)["max_end_ns"], 1010);
    assert_eq!(json(&["run", "loggops", "-", "--json", "-", "--compat", "cross-cpu"], schedule)["max_end_ns"], 1000);
}

#[test]
fn results_name_the_critical_path() {
    let schedule = b"num_ranks 2 rank 0 { a: calc 100 b: send 1000b to 1 b requires a }
        rank 1 { a: recv 1000b from 0 b: calc 700 b requires a }";
    let report = json(&["run", "loggops", "-", "--json", "-", "--critical-path"], schedule);
    assert_eq!(report["critical_path"]["compute_ns"], 800);
    assert_eq!(report["critical_path"]["latency_ns"], 2500);
    assert_eq!(report["critical_path"]["steps"].as_array().unwrap().len(), 4);
    assert_eq!(report["queues"]["longest_posted"], 1);
    assert_eq!(report["message_sizes"], serde_json::json!([{ "up_to_bytes": 1024, "messages": 1 }]));
    let table = String::from_utf8(fine(&["run", "loggops", "-", "--critical-path"], schedule)).unwrap();
    assert!(table.contains("critical 4 steps") && table.contains("flight   rank 0"), "{table}");
}

#[test]
fn timelines_are_bounded_and_noise_is_reproducible() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let text = fine(&["gen", "bcast", "--ranks", "64", "--size", "1024"], b"");
    fine(&["run", "loggops", "-", "--trace", &path("all")], &text);
    fine(&["run", "loggops", "-", "--trace", &path("some"), "--trace-ranks", "0-3", "--trace-to", "20000"], &text);
    let [all, some] = ["all", "some"].map(|name| fs::metadata(path(name)).unwrap().len());
    assert!(some > 0 && some * 5 < all, "{some} of {all} bytes");
    let noisy = |seed: &str| {
        let noise = ["--noise", "poisson:9000:1000", "--noise-seed", seed];
        json(&[&["run", "loggops", "-", "--json", "-"], &noise[..]].concat(), &text)["end_ns"].clone()
    };
    assert_eq!(noisy("1"), noisy("1"));
    assert_ne!(noisy("1"), noisy("2"));
    assert!(fails(&["run", "loggops", "-", "--noise", "periodic:5:5"], "", 2).contains("must be shorter"));
}

#[test]
fn a_training_step_is_generated_and_runs() {
    let arguments = ["gen", "llm", "--dp", "2", "--tp", "2", "--layers", "2", "--hidden", "64", "--seq", "16"];
    let schedule = fine(&[&arguments[..], &["--format", "binary"]].concat(), b"");
    let stats = json(&["stats", "--json", "-"], &schedule);
    // Rings of two ranks: 2 messages each; 8 all-reduces among tensor-parallel ranks, 3 of gradients.
    assert_eq!((&stats["ranks"], &stats["sends"]), (&4.into(), &(4 * 2 * 11).into()));
    assert!(json(&["run", "loggops", "-", "--json", "-"], &schedule)["max_end_ns"].as_f64().unwrap() > 0.0);
    let wrong = fails(&["gen", "llm", "--layers", "3", "--pp", "2", "--hidden", "64"], "", 2);
    assert!(wrong.contains("--layers 3 is not divisible by --pp 2"), "{wrong}");
    assert!(fails(&["gen"], "", 2).contains("required arguments were not provided"));
}

#[test]
fn connections_and_topologies_of_htsim_run() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    fs::write(path("perm.cm"), "Nodes 4\nConnections 2\n0->3 start 0 size 4096\n1->2 start 1000000 size 4096\n")
        .unwrap();
    let report = json(&["import", &path("perm.cm"), "-o", &path("perm.bin"), "--json", "-"], b"");
    assert_eq!((&report["connections"], &report["bytes"]), (&2.into(), &8192.into()));
    let tier = |number: u32, down: u32, up: &str| {
        format!("Tier {number}\nDownlink_speed_Gbps 100\nRadix_Down {down}\n{up}Downlink_Latency_ns 500\n")
    };
    let topology = format!("Nodes 4\nTiers 2\nPodsize 4\n{}{}", tier(0, 2, "Radix_Up 2\n"), tier(1, 2, ""));
    fs::write(path("net.topo"), &topology).unwrap();
    let run = ["run", "packet", &path("perm.bin"), "--topology", &path("net.topo"), "--switch-latency", "0"];
    let report = json(&[&run[..], &["-o", "0", "-g", "0", "--json", "-"]].concat(), b"");
    // Three flows of 4 KiB would share no link: 4 links of 500 ns, 4,096 bytes of 0.08 ns, and the second starts 1 us late.
    assert_eq!(report["max_end_ns"], 1000.0 + 4.0 * 500.0 + 4096.0 * 0.08);
    fs::write(path("net.topo"), topology.replace("Podsize 4", "Podsize 3")).unwrap();
    let error = fails(&run, "", 2);
    assert!(error.contains("net.topo:1: Nodes 4 is not divisible by Podsize 3"), "{error}");
    fs::write(path("perm.cm"), "Nodes 4\nConnections 1\n0->9 start 0 size 4096\n").unwrap();
    let error = fails(&["import", &path("perm.cm")], "", 1);
    assert!(error.contains("perm.cm:3: 9 is none of the 4 nodes"), "{error}");
    let error = fails(&["import", &path("perm.cm"), "--dims", "2x2"], "", 2);
    assert!(error.contains("--dims has no meaning for connection matrices: leave it out"), "{error}");
}

#[test]
fn a_chakra_workload_is_imported() {
    let folder = tempfile::tempdir().unwrap();
    // Metadata with version "1", and a node of 5 us: id 1, type 4, duration 5.
    let bytes = [3, 0x0a, 1, b'1', 6, 0x08, 1, 0x18, 4, 0x38, 5];
    fs::write(folder.path().join("w.0.et"), bytes).unwrap();
    let path = folder.path().to_str().unwrap();
    let report = json(&["import", path, "--json", "-"], b"");
    assert_eq!(report["ranks"][0]["compute_ns"], 5000);
    let text = fine(&["import", path, "-o", "-"], b"");
    assert_eq!(text, b"num_ranks 1\n\nrank 0 {\nl1: calc 5000 cpu 1\n}\n");
    let error = fails(&["import", path, "--collectives", "allreduce=star"], "", 2);
    assert!(error.contains("--collectives: allreduce=star: no such choice; there are: "), "{error}");
    fs::write(folder.path().join("w.0.et"), &bytes[..9]).unwrap();
    assert!(fails(&["import", path], "", 1).contains("w.0.et: byte 4: the file ends within a message"));
}
