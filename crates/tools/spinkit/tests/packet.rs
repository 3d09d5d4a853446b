// SPDX-License-Identifier: Apache-2.0
//! `spinkit goal run packet` from the command line.

use std::fs;
use std::io::Write;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

const PAIR: &str = "num_ranks 2 rank 0 { send 4096b to 1 } rank 1 { recv 4096b from 0 }";

fn run(options: &str, schedule: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_spinkit-goal"));
    command.arg("run").args(options.split_whitespace()).arg("-");
    command.env("SPINKIT_HOME", concat!(env!("CARGO_MANIFEST_DIR"), "/../../.."));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // A command that ends without reading closes the pipe.
    let _ = child.stdin.take().unwrap().write_all(schedule.as_bytes());
    child.wait_with_output().unwrap()
}

fn packet(options: &str, schedule: &str) -> Value {
    let output = run(&format!("packet --json - {options}"), schedule);
    assert!(output.status.success(), "{options}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn fails(options: &str, schedule: &str) -> String {
    let output = run(options, schedule);
    assert_eq!(output.status.code(), Some(2), "{options}");
    String::from_utf8(output.stderr).unwrap().trim_end().replace("spinkit goal: error: ", "")
}

fn generate(pattern: &str, ranks: u32, size: u64) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_spinkit-goal"));
    let output =
        command.args(["gen", pattern, "-n", &ranks.to_string(), "--size", &size.to_string()]).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_default_is_the_network_of_the_paper() {
    let report = packet("", PAIR);
    // 2 o + 4096 x 20 ps + a switch and two wires.
    let end = 2.0 * 65.0 + 81.92 + 50.0 + 2.0 * 33.4;
    assert!((report["max_end_ns"].as_f64().unwrap() - end).abs() < 1e-9, "{}", report["max_end_ns"]);
    assert_eq!((&report["model"], &report["ranks"], &report["events"]), (&"packet".into(), &2.into(), &3.into()));
    let network = &report["network"];
    assert_eq!(network["topology"], "fat tree of one 36-port switch");
    assert_eq!((&network["packets"], &network["packet_hops"], &network["drops"]), (&1.into(), &2.into(), &0.into()));
    assert!(network["packet_hops_per_cpu_second"].as_f64().unwrap() > 0.0);
    assert_eq!(network["busiest_links"].as_array().unwrap().len(), 2);
    assert_eq!(network["longest_queue"]["longest_queue_bytes"], 4096);
    assert_eq!(report["parameters"]["buffer_bytes"], 65_536);
}

#[test]
fn every_option_counts() {
    let end = |options: &str| packet(options, PAIR)["max_end_ns"].as_f64().unwrap();
    // 2 x 10 + 4096 x 0.08 + 7 + 2 x 20.
    let options = "--machine sc17-int -o 10 --link-bandwidth 100 --switch-latency 7 --link-latency 20";
    assert!((end(options) - 394.68).abs() < 1e-9);
    assert!((end("-o 10 -G 0.08 --switch-latency 7 --link-latency 20 -O 1") - 394.68 - 4095.0).abs() < 1e-9);
    assert_eq!(packet("--mtu 1000", PAIR)["network"]["packets"], 5);
    // Request, answer, and data.
    assert_eq!(packet("-S 100", PAIR)["network"]["packets"], 3);
    assert_eq!(end("--topology single-switch"), end(""));
    assert_eq!(end("--set network.switch_ns=60 --machine sc17-int"), end("") + 10.0);
    let incast = "num_ranks 3 rank 0 { recv 9999b from 1 recv 9999b from 2 } rank 1 { send 9999b to 0 } rank 2 { send 9999b to 0 }";
    let report = packet("--flow drop --buffer 4096", incast);
    let network = &report["network"];
    assert!(network["drops"].as_u64().unwrap() > 0);
    assert_eq!(network["drops"], network["resent"]);
}

#[test]
fn topologies_have_the_requested_shapes() {
    let schedule = generate("alltoall", 20, 5000);
    for (options, topology) in [
        ("--radix 8", "fat tree of 8-port switches, 2 levels"),
        ("--topology fat-tree --radix 8 --taper 3", "fat tree of 8-port switches, 2 levels tapered 3:1"),
        ("--topology torus", "torus of 3x3x3 switches"),
        ("--dims 5x2 --concentration 2 --routing adaptive", "torus of 5x2 switches"),
        ("--topology dragonfly", "dragonfly of 9 groups of 4 routers, 2 global links and 2 hosts each"),
        ("--dragonfly 1x4x1", "dragonfly of 5 groups of 4 routers, 1 global links and 1 hosts each"),
        ("--dragonfly 2x4x2x3 --flow drop", "dragonfly of 3 groups of 4 routers, 2 global links and 2 hosts each"),
    ] {
        let report = packet(options, &schedule);
        assert_eq!(report["network"]["topology"], topology, "{options}");
        assert_eq!(report["network"]["packets"], 20 * 19 * 2, "{options}");
    }
}

#[test]
fn networks_come_from_dot_files() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("net.dot");
    let file = file.to_str().unwrap();
    fs::write(file, "graph { H0 -- S1 -- H1 [capacity=100] }").unwrap();
    let report = packet(&format!("--topology {file}"), PAIR);
    // 2 x 65 + 4096 x 0.08 + 50 + 2 x 33.4
    assert!((report["max_end_ns"].as_f64().unwrap() - 574.48).abs() < 1e-9);
    assert_eq!(report["network"]["busiest_links"][0]["to"], "S1");
    let three = PAIR.replace("num_ranks 2", "num_ranks 3") + " rank 2 { calc 1 }";
    let error = fails(&format!("packet --topology {file}"), &three);
    assert_eq!(error, "network from a file has 2 hosts, the run needs 3");
    for (text, expected) in [
        ("graph {\n H0 -> S1 }", ":2:5: a graph has `--`, not `->`"),
        ("graph { H0 -- S1 -- H1 [capacity=0] }", ": the link H0 -- S1 has no capacity"),
        ("graph { H0 -- S1 H1 -- S2 }", ": host H0 cannot be reached from H1: S2 has no way to it"),
    ] {
        fs::write(file, text).unwrap();
        assert_eq!(fails(&format!("packet --topology {file}"), PAIR), format!("{file}{expected}"));
    }
}

#[test]
fn wrong_options_are_named() {
    for (options, expected) in [
        ("packet --topology torus --radix 8", "--radix is not for the topology torus"),
        ("packet --dims 3x3 --taper 2", "--taper is not for the topology torus"),
        ("packet --dragonfly 3x3", "dragonfly has three or four numbers"),
        ("packet --radix 5", "a fat tree needs switches with an even number of ports, at least 2; network.radix is 5"),
        ("packet --radix 4 --taper 9", "switches with 4 ports cannot be tapered 9:1: that takes at least 10 ports"),
        ("packet --dims 1", "torus of 1 switches has 1 hosts, the run needs 2"),
        ("packet --buffer 100", "buffer must hold a packet of 4096 bytes (mtu), is 100"),
        ("packet --link-latency 2000000000", "link-latency must be at most a second, is 2000000000.000 ns"),
        (
            "packet --topology ring",
            "--topology ring: known are fat-tree, dragonfly, torus, single-switch, or a DOT file",
        ),
        ("packet --topology no/net.dot", "cannot read no/net.dot: No such file or directory (os error 2)"),
    ] {
        assert_eq!(fails(options, PAIR), expected, "{options}");
    }
    for (options, option, models) in [
        ("loggops --mtu 9", "--mtu", "'spinkit goal run packet'"),
        ("packet -L 9", "-L", "'spinkit goal run loggops'"),
        ("packet --compat cross-cpu", "--compat", "'spinkit goal run loggops'"),
        ("packet --critical-path", "--critical-path", "'spinkit goal run loggops'"),
        (
            "protocol --trace x",
            "--trace",
            "'spinkit goal run loggops', 'spinkit goal run packet', 'spinkit goal run nic'",
        ),
        ("nic --trace x --trace-to 9", "--trace-to", "'spinkit goal run loggops', 'spinkit goal run packet'"),
        // Form of earlier versions.
        ("--model loggops --mtu 9", "--mtu", "'spinkit goal run packet'"),
        ("--seed 9", "--seed", "'spinkit goal run packet'"),
    ] {
        let error = fails(options, PAIR);
        assert!(error.contains(&format!("unexpected argument '{option}' found")), "{error}");
        assert!(error.contains(&format!("'{option}' is an option of {models}\n")), "{error}");
    }
    assert!(fails("packet --link-bandwidth 0", PAIR).contains("a link needs some bandwidth"));
    assert!(fails("packet --link-bandwidth 9 -G 1", PAIR).contains("cannot be used with"));
}

#[test]
fn two_runs_are_equal() {
    let schedule = generate("allreduce-ring", 24, 100_000);
    for options in
        ["--radix 8", "--dims 4x3x2 --routing adaptive --buffer 4096", "--radix 4 --flow drop --buffer 8192 --seed 7"]
    {
        let once = || {
            let mut report = packet(options, &schedule);
            report["cpu_seconds"].take();
            report["wall_seconds"].take();
            report["peak_memory_bytes"].take();
            report["network"]["packet_hops_per_cpu_second"].take();
            report.to_string()
        };
        assert_eq!(once(), once(), "{options}");
    }
}

#[test]
fn a_deadlock_names_what_ranks_wait_for() {
    let stuck = "num_ranks 2 rank 0 { recv 8b from 1 tag 4 } rank 1 { send 8b to 0 tag 5 }";
    let output = run("packet", stuck);
    assert_eq!(output.status.code(), Some(1));
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(
        message.starts_with("spinkit goal: error: <stdin>: the schedule cannot finish: 1 of 2 operations"),
        "{message}"
    );
    assert!(message.contains("rank 0 waits for a message of operation 1 (recv 8b from 1 tag 4)"), "{message}");
    let table = String::from_utf8(run("packet", PAIR).stdout).unwrap();
    for line in
        ["network  fat tree of one 36-port switch, 2 hosts", "packets  1, 2 hops", "queue    4096 bytes at most"]
    {
        assert!(table.contains(line), "{table}");
    }
}

#[test]
fn noise_and_timelines_work_with_packets() {
    let noise = "--noise periodic:160:40 --noise-coscheduled";
    let quiet = "num_ranks 1 rank 0 { calc 120000 }";
    for model in ["packet", "protocol", "nic"] {
        let output = run(&format!("{model} --json - {noise}"), quiet);
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        // A quarter of the time is the system's.
        assert_eq!(report["end_ns"], serde_json::json!([160_000]), "{model}");
        assert_eq!(report["parameters"]["noise"]["period_ns"], 160);
    }
    assert_eq!(packet("", PAIR)["parameters"]["noise"], Value::Null);
    let folder = tempfile::tempdir().unwrap();
    let trace = |name: &str, options: &str| {
        let file = folder.path().join(name);
        let traced = packet(&format!("--trace {} {options}", file.to_str().unwrap()), PAIR);
        assert_eq!(traced["end_ns"], packet("", PAIR)["end_ns"]);
        fs::read(file).unwrap()
    };
    let has = |bytes: &[u8], text: &str| bytes.windows(text.len()).any(|part| part == text.as_bytes());
    let (all, some) = (trace("all", ""), trace("some", "--trace-ranks 0 --trace-to 100"));
    for text in
        ["rank 0", "rank 1", "NIC 0 on the way", "message: send 4096b to 1 tag 0", "from 0, message: send 4096b"]
    {
        assert!(has(&all, text), "{text}");
    }
    assert!(has(&some, "message: send") && !has(&some, "from 0,") && !has(&some, "rank 1"));
}

/// Three senders whose packets meet at one port.
const INCAST: &str = "num_ranks 4 rank 0 { recv 60000b from 1 recv 60000b from 2 recv 60000b from 3 }
    rank 1 { send 60000b to 0 } rank 2 { send 60000b to 0 } rank 3 { send 60000b to 0 }";

#[test]
fn answers_pauses_rates_and_trimming_are_options() {
    let run = |options: &str| packet(options, INCAST);
    assert_eq!(run("")["transport"], serde_json::Value::Null);
    // 15 packets each.
    let acked = run("--ack-bytes 64");
    assert_eq!((&acked["transport"]["acknowledgements"], &acked["parameters"]["ack_bytes"]), (&45.into(), &64.into()));
    assert_eq!(acked["max_end_ns"], run("")["max_end_ns"], "nothing else is on the way back");
    let paused = run("--flow pfc --buffer 20000");
    assert!(paused["transport"]["pauses"].as_u64().unwrap() > 0);
    assert!(paused["transport"]["paused_ns"].as_f64().unwrap() > 0.0);
    assert_eq!((&paused["network"]["drops"], &paused["network"]["resent"]), (&0.into(), &0.into()));
    let trimmed = run("--flow trim --buffer 32768");
    assert!(trimmed["transport"]["trimmed"].as_u64().unwrap() > 0);
    assert_eq!(trimmed["transport"]["trimmed"], trimmed["network"]["resent"]);
    let marks = "--machine sc17-int --set network.fabric.dcqcn.mark_from_bytes=8192 --set network.fabric.dcqcn.mark_all_bytes=8192 \
        --set network.fabric.rate_control=dcqcn";
    let marked = run(marks);
    assert_eq!(
        (&marked["transport"]["notifications"], &marked["parameters"]["rate_control"]),
        (&3.into(), &"dcqcn".into())
    );
    assert_eq!(run("--rate-control dcqcn")["parameters"]["rate_control"], "dcqcn");
    for options in ["--flow pfc --buffer 20000", "--flow trim --buffer 32768", marks] {
        let times = || ["end_ns", "transport"].map(|member| run(options)[member].clone());
        assert_eq!(times(), times(), "{options}");
    }
}

#[test]
fn what_an_option_of_answers_cannot_do_is_said() {
    for (options, error) in [
        ("--ack-bytes 5000", "network.fabric.ack_bytes must be at most a packet of 4096 bytes (mtu), is 5000"),
        ("--flow pfc --buffer 9000", "buffer must be more than 14096 bytes, which come before a pause begins, is 9000"),
        (
            "--flow trim --rate-control dcqcn",
            "network.fabric.rate_control \"dcqcn\" is not for network.fabric.flow = \"trim\", in which receivers set the pace",
        ),
        (
            "--machine sc17-int --set network.fabric.trim.window_packets=4",
            "network.fabric.trim decides nothing without network.fabric.flow = \"trim\"",
        ),
    ] {
        assert_eq!(fails(&format!("packet {options}"), INCAST), error, "{options}");
    }
}

#[test]
fn threads_share_a_run_if_it_is_worth_it() {
    let schedule = generate("alltoall", 64, 8);
    let note = |options: &str| {
        let output = run(&format!("packet --json - {options}"), &schedule);
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        (report["threads"].clone(), report["end_ns"].clone(), String::from_utf8(output.stderr).unwrap())
    };
    let (_, ends, _) = note("--radix 8");
    let few = "spinkit goal: note: runs in one thread: 4032 packets are too few for several (100000)\n";
    assert_eq!(note("--radix 8 --threads 2"), (1.into(), ends, few.into()));
    let (_, _, trim) = note("--radix 8 --threads 2 --flow trim");
    assert!(trim.contains("runs in one thread: with trimming, receivers and senders share windows"), "{trim}");
    let (_, _, one) = note("--threads 2 --topology single-switch");
    assert!(one.contains("runs in one thread: the network cannot be divided: "), "{one}");
}

#[test]
fn windows_show_the_largest_gain_of_threads() {
    let schedule = generate("alltoall", 64, 8);
    let counts = |parts: u32| packet(&format!("--radix 8 --window-counts {parts}"), &schedule);
    let (two, eight, alone) = (counts(2), counts(8), packet("--radix 8", &schedule));
    assert_eq!(two["end_ns"], alone["end_ns"]);
    let [two, eight] = [two, eight].map(|report| report["window_counts"].clone());
    assert_eq!((&two["parts"], &eight["parts"]), (&2.into(), &8.into()));
    assert_eq!((&two["events"], &two["windows"]), (&eight["events"], &eight["windows"]));
    let gain = |counts: &Value| counts["largest_gain"].as_f64().unwrap();
    assert!(gain(&two) > 1.5 && gain(&two) <= 2.0 && gain(&eight) > 4.0 && gain(&eight) <= 8.0, "{two} {eight}");
    assert!(two["parcels"].as_u64().unwrap() > 0 && alone.get("window_counts").is_none());
    let error = fails("packet --radix 8 --window-counts 4 --flow trim", &schedule);
    assert!(error.contains("--window-counts 4: with trimming"), "{error}");
}
