// SPDX-License-Identifier: Apache-2.0
//! Use cases of `sdk/handlers/pspin`: their drivers accept correct results of the card, and detect wrong ones.

use std::process::{Command, Output};

use tempfile::TempDir;

use crate::home;

/// A copy of all folders.
struct Folders(TempDir);

impl Folders {
    fn new() -> Folders {
        let room = tempfile::tempdir().unwrap();
        let source = home().join("sdk/handlers/pspin/.");
        assert!(Command::new("cp").arg("-r").arg(source).arg(room.path()).status().unwrap().success());
        Folders(room)
    }

    /// Builds a use case with the variables of `spinkit pspin env` and these words for `make`.
    fn build(&self, name: &str, words: &[&str]) {
        let script = format!("eval \"$('{}' env)\" && exec make \"$@\"", env!("CARGO_BIN_EXE_spinkit-pspin"));
        let mut shell = Command::new("sh");
        shell
            .args(["-c", &script, "make"])
            .args(words)
            .current_dir(self.0.path().join(name))
            .env("SPINKIT_HOME", home());
        for variable in ["MAKEFLAGS", "PSPIN_RT", "PSPIN_HW", "SPIN_HPU", "DEFINITIONS"] {
            shell.env_remove(variable);
        }
        let output = shell.output().unwrap();
        let messages = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{name} {words:?}: {messages}");
        assert_eq!(messages, "", "{name} {words:?}");
    }

    fn run(&self, name: &str, program: &str, options: &str) -> Output {
        self.run_on("pspin-400g", name, program, options)
    }

    fn run_on(&self, machine: &str, name: &str, program: &str, options: &str) -> Output {
        let folder = self.0.path().join(name);
        let mut command = Command::new(folder.join(format!("{program}_{name}")));
        command.args(options.split_whitespace()).current_dir(folder).env_clear();
        command.env("SPINKIT_PSPIN_MACHINE", machine).output().unwrap()
    }

    /// Runs a driver that must accept all results of `packets` packets.
    fn accepts(&self, name: &str, program: &str, options: &str, packets: u32) {
        let output = self.run(name, program, options);
        let (out, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{name} {options}: {errors}{out}");
        assert_eq!(errors, "", "{name} {options}");
        assert!(
            out.ends_with(&format!("{name}: {packets} packets, all results are right\n")),
            "{name} {options}: {out}"
        );
    }

    /// Runs a driver that must refuse a result. Returns its message.
    fn refuses(&self, name: &str, program: &str, options: &str) -> String {
        let output = self.run(name, program, options);
        assert_eq!(output.status.code(), Some(1), "{name} {options}");
        String::from_utf8(output.stderr).unwrap()
    }
}

/// Each use case with small inputs: options, and the number of packets, including odd sizes.
const SMALL: [(&str, &str, u32); 12] = [
    ("reduce", "-m 3 -p 5 -s 101", 15),
    ("aggregate", "-m 3 -p 7 -s 129", 21),
    ("filtering", "-m 20 -s 77", 20),
    ("kvstore", "-m 200 -s 64", 200),
    ("strided_ddt", "-m 2 -p 9 -s 300", 18),
    ("histogram", "-m 9 -s 515", 45),
    ("udp_ping_pong", "-m 3 -p 5 -s 65", 15),
    ("copy_to_host", "-m 3 -p 5 -s 1499", 15),
    ("copy_from_host", "-m 3 -p 5 -s 1025", 15),
    ("host_direct", "-m 3 -p 5 -s 64", 15),
    ("empty", "-m 3 -p 5 -s 64", 15),
    ("instructions", "-m 3 -p 5 -s 64", 15),
];

/// Use cases with different code for cores with CORE-V.
const COREV: [&str; 3] = ["reduce", "aggregate", "histogram"];

#[test]
fn results_are_right_and_a_wrong_one_is_told() {
    let folders = Folders::new();
    for (name, options, packets) in SMALL {
        folders.build(name, &["deploy", "driver"]);
        folders.accepts(name, "sim", options, packets);
        if ["empty", "instructions"].contains(&name) {
            continue;
        }
        // Filtering does not drop the first packets.
        let message = folders.refuses(name, "sim", &format!("{options} --flip 1"));
        assert!(message.starts_with(&format!("{name}: ")) && message.contains(" instead of "), "{message}");
    }
    let output = folders.run("reduce", "sim", "-s 31");
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "reduce: packets have 32 to 8220 B, not 31\n");
    for (name, options) in [("filtering", "-m 65537"), ("strided_ddt", "-p 1059"), ("strided_ddt", "-m 1000")] {
        assert_eq!(folders.run(name, "sim", options).status.code(), Some(2), "{name} {options}");
    }
}

#[test]
fn packets_of_a_trace_are_checked_too() {
    let folders = Folders::new();
    folders.build("copy_to_host", &["deploy", "driver"]);
    let trace = "2 5 100\n1 2 64 0 0 0\n1 2 100 0 1 1\n0 0 0 25 0 0\n1 2 64 0 0 1\n1 2 80 0 2 1\n";
    std::fs::write(folders.0.path().join("copy_to_host/packets"), trace).unwrap();
    folders.accepts("copy_to_host", "sim", "-m 3 -p 2 -t packets", 4);
    let output = folders.run("copy_to_host", "sim", "-m 2 -p 2 -t packets");
    assert_eq!(output.status.code(), Some(2));
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(message.contains("packet 3, of message 2, of a trace, but -m 2 and -p 2"), "{message}");
}

#[test]
fn inputs_of_the_paper_are_computed_right() {
    let folders = Folders::new();
    for name in COREV {
        folders.build(name, &["deploy", "driver", "SPIN_HPU=rv32imac-corev"]);
    }
    for name in ["filtering", "kvstore", "strided_ddt"] {
        folders.build(name, &["deploy", "driver"]);
    }
    let packets = [512, 1_053, 1_536, 512, 1_000, 1_058];
    let names = COREV.into_iter().chain(["filtering", "kvstore", "strided_ddt"]);
    for (name, packets) in names.zip(packets) {
        folders.accepts(name, "sim", "", packets);
    }
    for (name, options, packets) in SMALL.into_iter().filter(|(name, ..)| COREV.contains(name)) {
        folders.accepts(name, "sim", options, packets);
        folders.refuses(name, "sim", &format!("{options} --flip 1"));
        // Two clusters, and eight; programs know four.
        for machine in ["pspin-200g", "pspin-800g"] {
            let output = folders.run_on(machine, name, "sim", options);
            assert!(output.status.success(), "{name} on {machine}: {}", String::from_utf8_lossy(&output.stderr));
        }
    }
}

#[test]
fn variants_of_handlers_are_right() {
    let folders = Folders::new();
    for (name, definitions) in [
        ("udp_ping_pong", "-DFROM_L2"),
        ("udp_ping_pong", "-DFROM_L2 -DUNCHANGED"),
        ("copy_to_host", "-DFROM_L2"),
        ("copy_from_host", "-DTO_L2"),
        ("instructions", "-DX=17"),
    ] {
        // Other definitions rebuild the same folder.
        folders.build(name, &["deploy", "driver", &format!("DEFINITIONS={definitions}")]);
        folders.accepts(name, "sim", "-m 3 -p 5 -s 129", 15);
    }
}

#[test]
fn handlers_run_on_this_computer() {
    let folders = Folders::new();
    for (name, options, packets) in SMALL.into_iter().filter(|(name, ..)| *name != "instructions") {
        folders.build(name, &["host"]);
        let output = folders.run(name, "host", &format!("{options} --threads 3"));
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
        assert!(text.starts_with(&format!("{{\"threads\": 3, \"packets\": {packets}, ")), "{text}");
        if name != "empty" {
            folders.refuses(name, "host", &format!("{options} --threads 3 --flip 1"));
        }
    }
}
