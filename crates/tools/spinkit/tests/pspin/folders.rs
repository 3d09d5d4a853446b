// SPDX-License-Identifier: Apache-2.0
//! `spinkit pspin`: folders in the layout of the published artefact (`tests/pspin`) build with their own Makefiles, and their
//! drivers run on `libpspin.so`.

use std::path::PathBuf;
use std::process::{Command, Output};

use object::{Object, ObjectSection, ObjectSymbol};
use tempfile::TempDir;

use crate::home;

/// Copy of a folder of `tests/pspin`, in a folder whose name has a blank.
pub struct Folder {
    _room: TempDir,
    pub path: PathBuf,
}

impl Folder {
    pub fn new(name: &str) -> Folder {
        let room = tempfile::tempdir().unwrap();
        let path = room.path().join("my programs").join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let source = home().join("tests/pspin").join(name);
        let driver = home().join("sdk/handlers/pspin/generic_driver");
        for (from, to) in [(&source, &path), (&driver, &path.with_file_name("generic_driver"))] {
            assert!(Command::new("cp").arg("-r").arg(from).arg(to).status().unwrap().success());
        }
        Folder { _room: room, path }
    }

    /// Runs a program of the folder in an environment with only these variables.
    pub fn run(&self, words: &[&str], variables: &[(&str, &str)]) -> Output {
        let mut command = Command::new(self.path.join(words[0]));
        command.args(&words[1..]).current_dir(&self.path).env_clear().envs(variables.iter().copied());
        command.output().unwrap()
    }

    /// Runs a program that must succeed. Returns its output.
    fn succeeds(&self, words: &[&str]) -> String {
        let output = self.run(words, &[]);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{words:?}: {errors}{}", String::from_utf8_lossy(&output.stdout));
        assert_eq!(errors, "", "{words:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Runs `make` with the variables of `spinkit pspin env` and no others of the toolkit.
    fn make(&self, words: &str) -> Output {
        let script = format!("eval \"$('{}' env)\" && exec make {words}", env!("CARGO_BIN_EXE_spinkit-pspin"));
        let mut shell = Command::new("sh");
        shell.args(["-c", &script]).current_dir(&self.path).env("SPINKIT_HOME", home());
        shell.env_remove("MAKEFLAGS").env_remove("PSPIN_RT").env_remove("PSPIN_HW").output().unwrap()
    }

    pub fn builds(&self, words: &str) -> String {
        let output = self.make(words);
        let messages = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{words}: {messages}");
        messages
    }

    fn fails(&self, words: &str) -> String {
        let output = self.make(words);
        assert!(!output.status.success(), "{words}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    }

    pub fn read(&self, path: &str) -> Vec<u8> {
        std::fs::read(self.path.join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    fn write(&self, path: &str, text: &str) {
        std::fs::write(self.path.join(path), text).unwrap();
    }
}

#[test]
fn a_program_with_every_name_of_the_interface_builds() {
    let folder = Folder::new("names");
    assert_eq!(folder.builds("-j2 deploy"), "");
    let elf = folder.read("build/names");
    assert_eq!(folder.read("build/slm_files/program.elf"), elf);
    let file = object::File::parse(&*elf).unwrap();
    let address = |name| file.symbol_by_name(name).unwrap_or_else(|| panic!("{name}")).address();
    assert_eq!(address("_start"), 0x1D00_0000);
    for handler in ["names_hh", "names_ph", "names_th"] {
        assert!((0x1D00_0000..0x1D00_8000).contains(&address(handler)), "{handler}");
    }
    let data = file.section_by_name(".l2_handler_data").unwrap();
    assert_eq!((data.address(), data.data().unwrap()), (0x1C30_0000, &[0xDE, 0xAD, 0xBE, 0xEF][..]));
    folder.builds("deploy");
    folder.builds("clean");
    assert!(!folder.path.join("build").exists());
}

#[test]
fn the_loop_of_the_runtime_is_in_one_line_of_the_instruction_cache() {
    let folder = Folder::new("initial");
    folder.builds("deploy");
    let elf = folder.read("build/initial");
    let file = object::File::parse(&*elf).unwrap();
    let text = file.section_by_name(".text").unwrap();
    let words: Vec<u32> =
        text.data().unwrap().chunks_exact(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect();
    // lw t0, 0(s0); nop; mv a0, s1; jalr t0; nop; sw zero, 0x50(s0); j to the first
    let expected = [0x0004_2283, 0x13, 0x0004_8513, 0x0002_80e7, 0x13, 0x0404_2823, 0xfe9f_f06f];
    let place = words.windows(7).position(|window| window == expected).expect("the loop");
    assert_eq!((text.address() + 4 * place as u64) % 32, 0);
}

#[test]
fn static_data_has_its_initial_values_and_old_mistakes_are_warnings() {
    let folder = Folder::new("initial");
    let messages = folder.builds("deploy");
    assert!(messages.contains("incompatible integer to pointer conversion"), "{messages}");
    assert!(messages.contains("call to undeclared function 'undeclared'"), "{messages}");
    assert!(!messages.contains("error:"), "{messages}");
    let elf = folder.read("build/initial");
    let file = object::File::parse(&*elf).unwrap();
    let counter = file.symbol_by_name("counter").unwrap();
    let data = file.section_by_name(".data").unwrap();
    let offset = (counter.address() - data.address()) as usize;
    assert_eq!(data.data().unwrap()[offset..offset + 4], 0x1122_3344_u32.to_le_bytes());
    let zeroes = file.symbol_by_name("zeroes").unwrap();
    assert_eq!((zeroes.size(), zeroes.address() % 4, zeroes.address() >> 20), (64, 0, 0x1C0));
}

#[test]
fn programs_that_cannot_be_built_are_told_why() {
    let folder = Folder::new("initial");
    folder.write(
        "handlers/initial.c",
        "#include <handler.h>\n__handler__ void only_ph(handler_args_t *args) { (void)args; }\n",
    );
    let messages = folder.fails("deploy");
    assert!(messages.contains("undefined symbol: init_handlers"), "{messages}");
    folder.write(
        "handlers/initial.c",
        "#include <handler.h>\n\
         void init_handlers(handler_fn *hh, handler_fn *ph, handler_fn *th, void **mem) {}\n\
         __handler__ void large_ph(handler_args_t *args) { __asm__ volatile(\".space 40000\"); }\n",
    );
    let messages = folder.fails("deploy");
    assert!(
        messages.contains("bytes of program memory for rv32imac, the card has 32,768; largest: large_ph 40,0"),
        "{messages}"
    );
    let messages = folder.fails("deploy SPIN_HPU=pdp11");
    assert!(messages.contains("no HPU kind 'pdp11'"), "{messages}");
    let output = Command::new(env!("CARGO_BIN_EXE_spinkit-pspin")).args(["cc", "-o", "x"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn packets_are_processed_and_come_back() {
    let folder = Folder::new("reverse");
    folder.builds("-j2 all");
    let text = folder.succeeds(&["./sim_reverse", "-m", "2", "-p", "20", "-s", "129"]);
    assert!(
        text.contains("NIC inbound engine:\n\tPackets: 40; Bytes: 5160\n\tAvg packet length: 129.000 B\n"),
        "{text}"
    );
    assert!(text.contains("\tCommands: 40; Packets: 40; Bytes: 5160\n"), "{text}");
    assert!(text.ends_with("40 packets came back, 0 wrong bytes\n"), "{text}");
    assert_eq!(folder.succeeds(&["./sim_reverse", "-m", "2", "-p", "20", "-s", "129"]), text);
    // Machines with two and with eight clusters; the interface has scratchpads of four.
    for (machine, told) in
        [("pspin-200g", ""), ("pspin-800g", "8 clusters, but spin_ec_t and task_t have 4 scratchpads")]
    {
        let output = folder.run(&["./sim_reverse"], &[("SPINKIT_PSPIN_MACHINE", machine)]);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && errors.contains(told), "{machine}: {errors}");
        assert_eq!(errors.is_empty(), told.is_empty(), "{errors}");
    }
    folder.builds("clean");
    assert!(!folder.path.join("sim_reverse").exists());
}

#[test]
fn counters_in_all_memories_are_those_of_the_packets() {
    let folder = Folder::new("counters");
    folder.builds("deploy driver");
    let words = ["./sim_counters", "-m", "7", "-p", "9", "-s", "700", "-d", "1", "-l", "1"];
    let text = folder.succeeds(&words);
    assert!(text.contains("PCIe Slave:\n\tWrites: beats: 7; bytes: 56;"), "{text}");
    assert!(text.contains("PCIe Master:\n\tBytes written: 24; Bytes read: 24\n"), "{text}");
    assert!(text.ends_with("63 packets, 7 messages\n"), "{text}");
    assert_eq!(folder.succeeds(&words), text, "two runs");
    let output = folder.run(&words, &[("SPINKIT_PSPIN_MACHINE", "pspin-published")]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn data_goes_to_the_host_and_comes_from_it_by_the_driver() {
    let folder = Folder::new("host");
    folder.builds("deploy driver");
    let text = folder.succeeds(&["./sim_host", "-p", "64", "-s", "1500"]);
    assert!(text.ends_with(" 0 bad, data right\n"), "{text}");
}

#[test]
fn every_call_does_what_it_says_or_tells_what_is_wrong() {
    let folder = Folder::new("calls");
    folder.builds("all");
    for program in ["./sim_calls", "./sim_calls_debug"] {
        let output = folder.run(&[program], &[]);
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{program}: {text}{}", String::from_utf8_lossy(&output.stderr));
        assert!(text.ends_with("all calls are right\n"), "{text}");
    }
    assert!(folder.read("waves.pftrace").len() > 1_000);
    let output = folder.run(&["./sim_calls"], &[("SPINKIT_PSPIN_MACHINE", "none")]);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.contains("libpspin: pspinsim_init: machine none: none: no such machine; known are: "), "{errors}");
}

#[test]
fn handlers_that_fail_are_told_and_their_packets_are_fed_back() {
    let folder = Folder::new("faults");
    folder.builds("deploy driver");
    let words = ["./sim_faults", "-m", "7", "-p", "1", "-s", "64"];
    let set = "accelerator.default_watchdog_cycles=20000\naccelerator.mpq.idle_cycles=1000000";
    let json = folder.path.join("report.json").display().to_string();
    let output = folder.run(&words, &[("SPINKIT_PSPIN_SET", set), ("SPINKIT_PSPIN_JSON", &json)]);
    let (text, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(1), "{errors}");
    assert!(text.starts_with("[0,0] ready: 1 handlers\n###### Statistics ######\n"), "{text}");
    let expected = [
        "build/faults has no faults_hh: there is no such handler then",
        "handler of message 1 on HPU 0 of cluster 1 failed: store of 4 B at 0x1c400000 is not allowed",
        "message 2 on HPU 0 of cluster 2 killed by the watchdog",
        "message 3 on HPU 0 of cluster 3 failed: misaligned atomic operation at 0x1c300002",
        "message 4 on HPU 0 of cluster 0 failed: breakpoint",
        "message 5 on HPU 0 of cluster 1 failed: execution left the program (pc 0x00000000)",
        "failed: a command uses 64 bytes at 0x1c400000, which are not the handler's",
        "libpspin: pspinsim_run: failures: 6, packets dropped: 0\n",
    ];
    for line in expected {
        assert!(errors.contains(line), "no {line:?} in {errors}");
    }
    assert!(errors.contains("in faults_ph (handlers/faults.c:"), "{errors}");
    assert_eq!(errors.lines().count(), expected.len(), "{errors}");
    let report: serde_json::Value = serde_json::from_slice(&folder.read("report.json")).unwrap();
    let packets = &report["packets"];
    assert_eq!((&packets["arrived"], &packets["done"], &packets["faulted"]), (&7.into(), &1.into(), &5.into()));
    assert_eq!((&report["watchdog"], &report["machine"]), (&1.into(), &"pspin-400g".into()));
}

#[test]
fn preparations_that_fail_or_do_not_end_are_told() {
    let folder = Folder::new("faults");
    folder.builds("driver");
    for (macro_name, told) in [
        ("ENDLESS", "init_handlers has not ended after 50000 cycles (accelerator.default_watchdog_cycles)"),
        ("FAULT", "init_handlers has failed: it left the program or its memory, or its instructions are illegal"),
    ] {
        folder.builds(&format!("--always-make deploy SPIN_CFLAGS=-D{macro_name}"));
        let output =
            folder.run(&["./sim_faults"], &[("SPINKIT_PSPIN_SET", "accelerator.default_watchdog_cycles=50000")]);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), &*errors), (Some(2), &*format!("libpspin: pspinsim_init: {told}\n")));
    }
}

#[test]
fn a_program_may_end_the_run() {
    let folder = Folder::new("faults");
    folder.builds("deploy driver SPIN_CFLAGS=-DEND");
    let output = folder.run(&["./sim_faults", "-m", "1", "-p", "1"], &[]);
    let (text, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(text.starts_with("[0,0] ready: 1 handlers\n[0,0] the end\n"), "{text}");
    let told = "libpspin: pspinsim_run: the program ended the run with TERMINATE on HPU 0 of cluster 0 in cycle ";
    assert!(errors.contains(told), "{errors}");
    assert_eq!(output.status.code(), Some(3), "one packet was not done");
}
