// SPDX-License-Identifier: Apache-2.0
//! `spinkit pspin run --engine rtl`: messages when no simulator can be built, tested with fake tools; and equality of
//! hardware and model. The latter builds a simulator: `make -C rtl test-engine`.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::folders::Folder;
use crate::home;
use crate::programs::{EMPTY, REFLECT, Room, pcap, udp};

/// Program, private cache, and tools with a script as Verilator.
struct Pretended {
    room: Room,
}

impl Pretended {
    /// Creates them; the script runs in the build folder.
    fn new(script: &str) -> Pretended {
        let room = Room::new(EMPTY);
        let mut command = Command::new(env!("CARGO_BIN_EXE_spinkit-pspin"));
        command.args(["cc", "h.c", "-o", "h.elf"]).current_dir(room.path("")).env("SPINKIT_HOME", home());
        assert!(command.status().unwrap().success());
        let verilator = room.path("tools/lib/python3/site-packages/verilator/bin");
        for (folder, name, text) in
            [(verilator, "verilator", script), (room.path("tools/bin"), "python", "mkdir \"$2\"")]
        {
            fs::create_dir_all(&folder).unwrap();
            let file = folder.join(name);
            fs::write(&file, format!("#!/bin/sh\n{text}\n")).unwrap();
            fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
        }
        Pretended { room }
    }

    fn prepared(&self) -> Command {
        let mut command = self.room.prepared("h.elf --machine pspin-tiny --engine rtl");
        command.env("SPIN_CACHE", self.room.path("cache")).env("SPINKIT_RTL_TOOLS", self.room.path("tools"));
        command.stdout(Stdio::null());
        command
    }

    /// Starts it, with its messages in a file of this name.
    fn start(&self, name: &str) -> Child {
        self.prepared().stderr(fs::File::create(self.room.path(name)).unwrap()).spawn().unwrap()
    }

    fn text(&self, name: &str) -> String {
        fs::read_to_string(self.room.path(name)).unwrap_or_default()
    }

    /// Returns the messages of a started run, which must fail.
    fn told(&self, mut child: Child, name: &str) -> String {
        assert_eq!(child.wait().unwrap().code(), Some(1));
        self.text(name)
    }

    /// Returns the visible files in the cache.
    fn kept(&self) -> Vec<PathBuf> {
        let all = fs::read_dir(self.room.path("cache/rtl")).unwrap().map(|entry| entry.unwrap().path());
        let is_seen = |path: &PathBuf| path.is_dir() || !path.file_name().unwrap().to_string_lossy().starts_with('.');
        all.filter(is_seen).collect()
    }

    fn waits_for(&self, what: &str, is_there: impl Fn() -> bool) {
        let begin = Instant::now();
        while !is_there() {
            assert!(begin.elapsed() < Duration::from_secs(60), "no {what}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// Script that builds an invalid library: opening it fails, which shows that it was found.
const BROKEN: &str = "mkdir design && echo broken > design/libpspin_rtl.so && echo all: > design/Vdesign.mk";

#[test]
fn what_is_missing_is_told_with_its_remedy() {
    let pretended = Pretended::new(BROKEN);
    let told = |command: &mut Command| {
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        String::from_utf8(output.stderr).unwrap()
    };
    let text = told(pretended.prepared().env("SPINKIT_RTL_TOOLS", "/nowhere"));
    assert!(text.contains("Verilator in /nowhere, which is not there: `make -C rtl tools`"), "{text}");
    let text = told(pretended.prepared().env("PATH", "/nowhere"));
    assert_eq!(
        text,
        "spinkit pspin run: error: simulating the hardware needs c++, which is in no folder of PATH: apt-get install g++\n"
    );
    let words = "h.elf --engine rtl --machine";
    let text = pretended.room.refused(&format!("{words} sc17-int"), 2);
    assert!(text.contains("accelerator.kind is \"sc17\""), "{text}");
    let text = pretended.room.refused("h.elf --wave w.vcd", 2);
    assert!(text.contains("--wave is for --engine rtl"), "{text}");
}

#[test]
fn a_build_that_fails_is_told_with_its_log_and_leaves_nothing() {
    let pretended = Pretended::new("echo '%Error: pspin_l1.sv:7: broken'; echo half > half; exit 1");
    let text = pretended.told(pretended.start("messages"), "messages");
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].ends_with("note: building the hardware of pspin-tiny, once for this configuration"), "{text}");
    assert!(lines[1].contains("error: building the hardware has failed: see ") && lines[1].ends_with(".log"), "{text}");
    assert!(lines[2].ends_with("%Error: pspin_l1.sv:7: broken"), "{text}");
    let kept = pretended.kept();
    assert!(matches!(&*kept, [log] if log.extension().unwrap() == "log"), "{kept:?}");
}

/// Creates a build that waits midway for a file `go`.
fn waiting() -> Pretended {
    Pretended::new(&format!("touch ../../../began; while [ ! -e ../../../go ]; do sleep 0.01; done; {BROKEN}"))
}

const WAITS: &str = "note: waiting for another process, which builds the hardware of pspin-tiny";

#[test]
fn two_processes_build_once() {
    let pretended = waiting();
    let began = || pretended.room.path("began").exists();
    let first = pretended.start("first");
    pretended.waits_for("build", began);
    fs::remove_file(pretended.room.path("began")).unwrap();
    let second = pretended.start("second");
    pretended.waits_for("lock", || pretended.text("second").contains(WAITS));
    pretended.room.write("go", "");
    let (first, second) = (pretended.told(first, "first"), pretended.told(second, "second"));
    assert!(first.contains("note: building the hardware") && first.contains("libpspin_rtl.so: "), "{first}");
    assert!(!second.contains("note: building") && second.contains("libpspin_rtl.so: "), "{second}");
    assert!(!began(), "the second has built, too");
}

#[test]
fn a_build_that_was_interrupted_is_made_again() {
    let pretended = waiting();
    let mut first = pretended.start("first");
    pretended.waits_for("build", || pretended.room.path("began").exists());
    first.kill().unwrap();
    first.wait().unwrap();
    // The compiler of the first build is still running.
    let second = pretended.start("second");
    pretended.waits_for("lock", || pretended.text("second").contains(WAITS));
    assert!(!pretended.kept().iter().any(|path| path.join("libpspin_rtl.so").exists()));
    pretended.room.write("go", "");
    let second = pretended.told(second, "second");
    assert!(second.contains("note: building the hardware") && second.contains("libpspin_rtl.so: "), "{second}");
    assert_eq!(pretended.kept().len(), 2, "a library and a log: {:?}", pretended.kept());
}

/// Results of a run.
struct Shown {
    report: Value,
    output: String,
    /// Messages without cycles: instruction cache misses take other cycles in the hardware.
    messages: String,
    timeline: Vec<u8>,
}

/// Returns the simulator cache of `make -C rtl test-lockstep`.
fn cache() -> PathBuf {
    home().join("out/rtl/cache")
}

/// Runs the source of a folder on an engine.
fn run(room: &Room, engine: &str, words: &str) -> Shown {
    let files = format!("--json {engine}.json --trace {engine}.pftrace --out {engine}.pcap");
    let words = format!("h.c --machine pspin-tiny --engine {engine} {files} {words}");
    let output = room.prepared(&words).env("SPIN_CACHE", cache()).output().unwrap();
    let [out, messages] = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
    let read = |name: &str| fs::read(room.path(&format!("{engine}.{name}")));
    let report = read("json").unwrap_or_else(|error| panic!("{words}: {error}: {messages}"));
    // Notes and progress depend on the duration.
    let told = messages.lines().filter(|line| line.contains("error: "));
    let told = told.map(|line| line.split(", in cycle").next().unwrap().to_owned() + "\n").collect();
    Shown {
        report: serde_json::from_slice(&report).unwrap(),
        output: out,
        messages: told,
        timeline: read("pftrace").unwrap(),
    }
}

/// Runs a source on the model and on the hardware. Their effects must be equal, and their times within 2 %.
fn both(handlers: &str, words: &str) -> [Shown; 2] {
    let room = Room::new(handlers);
    let packets: Vec<Vec<u8>> = (0..30).map(|number| udp(number, 1 + 31 * number as usize)).collect();
    room.write("in.pcap", pcap(&packets));
    let [model, hardware] = ["model", "rtl"].map(|engine| run(&room, engine, words));
    assert_eq!(hardware.messages, model.messages, "{words}");
    for key in ["machine", "packets", "commands", "faults", "watchdog", "idle_resets"] {
        assert_eq!(hardware.report[key], model.report[key], "{words}: {key}");
    }
    for (part, key) in [("request_ns", "mean"), ("latency_ns", "p99"), ("throughput", "in_gbit_s")] {
        let [model, hardware] = [&model, &hardware].map(|shown| shown.report[part][key].as_f64().unwrap());
        assert!((hardware / model - 1.0).abs() < 0.02, "{words}: {part}.{key}: model {model}, hardware {hardware}");
    }
    let keys = |shown: &Shown| shown.report.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(keys(&hardware), keys(&model));
    let sent = |engine: &str| {
        let sent = packets::capture::read(&fs::read(room.path(&format!("{engine}.pcap"))).unwrap()).unwrap();
        let mut sent: Vec<Vec<u8>> = sent.into_iter().map(|packet| packet.bytes).collect();
        sent.sort();
        sent
    };
    assert!(sent("model") == sent("rtl"), "{words}: the packets that were sent");
    [model, hardware]
}

const WORK: &str = "
__handler__ void work_hh(handler_args_t *args) {
    *(volatile uint32_t *)args->task->handler_mem = args->task->pkt_mem_size;
}
__handler__ void work_ph(handler_args_t *args) {
    task_t *task = args->task;
    const volatile uint32_t *data = task->pkt_mem;
    uint32_t sum = 0;
    for (uint32_t i = 0; i < task->pkt_mem_size / 4; i++) sum += data[i];
    amo_add((void *)(task->scratchpad[0] + 4), sum);
    uint64_t host = (uint64_t)task->host_mem_high << 32 | task->host_mem_low;
    spin_cmd_t copy, send;
    spin_dma_to_host(host, (uint32_t)task->pkt_mem, task->pkt_mem_size, 0, &copy);
    spin_send_packet(task->pkt_mem, task->pkt_mem_size, &send);
    spin_cmd_wait(copy);
}
__handler__ void work_th(handler_args_t *args) {
    printf(\"last of %d bytes\\n\", *(volatile int *)args->task->handler_mem);
}";

#[test]
#[ignore = "builds a simulator: make -C rtl test-engine"]
fn reports_and_timelines_are_equal() {
    let alone = "--messages 4 --packets 6 --gap 2000 --flows 1";
    for words in [alone, "--messages 8 --packets 100 --size 64,1024,200"] {
        let [model, hardware] = both(EMPTY, words);
        assert_eq!(hardware.report, model.report, "{words}");
        assert_eq!(hardware.output, model.output, "{words}");
        // Under load, events of one cycle may be reported in another order.
        assert_eq!(hardware.timeline.len(), model.timeline.len(), "{words}: the timeline");
        assert!(words != alone || hardware.timeline == model.timeline, "{words}: the timeline");
    }
}

#[test]
#[ignore = "builds a simulator: make -C rtl test-engine"]
fn handlers_do_the_same_at_any_rate() {
    let slow = "--messages 8 --packets 30 --set accelerator.outbound.G_ps_per_byte=100 --set accelerator.host.G_ps_per_byte=50";
    for words in ["--messages 4 --packets 20 --gap 3000 --flows 1", "--messages 8 --packets 30", slow] {
        let [model, hardware] = both(WORK, words);
        assert!(model.report["commands"]["send"].as_u64() >= Some(80));
        let lines = |shown: &Shown| shown.output.lines().filter(|line| line.ends_with("last of 1024 bytes")).count();
        assert_eq!((lines(&model), lines(&hardware)), (lines(&model).max(4), lines(&model)), "{words}");
    }
    both(REFLECT, "--pcap in.pcap");
    let room = Room::new(REFLECT);
    room.write(
        "rules.toml",
        "[[rule]]\nmatch = { \"udp.dstport\" = 1 }\naction = \"drop\"\n[[rule]]\ncontext = \"reflect\"\n",
    );
    room.write("in.pcap", pcap(&[udp(1, 36), udp(2, 1_000)]));
    let [model, hardware] = ["model", "rtl"].map(|engine| run(&room, engine, "--pcap in.pcap --rules rules.toml"));
    assert_eq!(hardware.report["packets"], model.report["packets"]);
}

const FAULTS: &str = "
__handler__ void bad_ph(handler_args_t *args) {
    task_t *task = args->task;
    spin_cmd_t command;
    switch (task->flow_id) {
    case 0: *(volatile int *)0x1D000000 = 1; break;
    case 1: *(volatile short *)0x1C3FFFF0 = 1; break;
    case 2: __asm__ volatile(\"ebreak\"); break;
    case 3: ((void (*)(void))0)(); break;
    case 4: spin_send_packet((void *)0x1C3FFF00, 77, &command); break;
    case 5: printf(\"half a line\"); for (;;) rt_time_wait_cycles(100);
    case 6: printf(\"a line\\n\"); __asm__ volatile(\".half 0\");
    }
}";

#[test]
#[ignore = "builds a simulator: make -C rtl test-engine"]
fn failures_are_told_in_the_same_words() {
    for from in [0, 3] {
        let handlers = FAULTS.replace("task->flow_id", &format!("task->flow_id + {from}"));
        let [model, _] = both(&handlers, "--messages 4 --packets 1 --gap 20000 --watchdog 2000 --expect-failures");
        assert_eq!(model.messages.lines().count(), 4, "{}", model.messages);
    }
    let [model, _] = both(
        "__handler__ void h_th(handler_args_t *args) {}",
        "--pcap in.pcap --set accelerator.mpq.idle_cycles=20000",
    );
    assert_eq!(model.report["idle_resets"], 1);
    let room = Room::new("__handler__ void h_ph(handler_args_t *args) {}");
    room.write("h.c", "#include <handler.h>\n__handler__ void h_ph(handler_args_t *args) {}\n\
        void init_handlers(handler_fn *hh, handler_fn *ph, handler_fn *th, void **mem) { *(volatile int *)0x1D000000 = 1; }\n");
    for engine in ["model", "rtl"] {
        let output =
            room.prepared(&format!("h.c --machine pspin-tiny --engine {engine}")).env("SPIN_CACHE", cache()).output();
        let errors = String::from_utf8(output.unwrap().stderr).unwrap();
        assert!(
            errors.ends_with(
                "init_handlers() has failed: it left the program or its memory, or its instructions are illegal\n"
            ),
            "{errors}"
        );
    }
}

#[test]
#[ignore = "builds a simulator: make -C rtl test-engine"]
fn folders_run_with_their_own_drivers() {
    let machine = ("SPINKIT_PSPIN_MACHINE", "pspin-tiny");
    let (cache, home) = (cache().display().to_string(), home().display().to_string());
    let variables = [machine, ("SPINKIT_PSPIN_ENGINE", "rtl"), ("SPIN_CACHE", &cache), ("SPINKIT_HOME", &home)];
    let path = std::env::var("PATH").unwrap();
    let variables = [&variables[..], &[("PATH", &*path)]].concat();
    let shown = |folder: &Folder, words: &[&str]| {
        let [hardware, model] = [&variables[..], &[machine]].map(|variables| folder.run(words, variables));
        let errors = String::from_utf8_lossy(&hardware.stderr).into_owned();
        assert_eq!(hardware.status, model.status, "{words:?}: {errors}");
        let last = |output: &[u8]| String::from_utf8_lossy(output).lines().last().unwrap_or_default().to_owned();
        assert_eq!(last(&hardware.stdout), last(&model.stdout), "{words:?}: {errors}");
        last(&hardware.stdout)
    };
    let folder = Folder::new("reverse");
    folder.builds("-j2 deploy driver");
    assert_eq!(
        shown(&folder, &["./sim_reverse", "-m", "2", "-p", "20", "-s", "129"]),
        "40 packets came back, 0 wrong bytes"
    );
    let folder = Folder::new("host");
    folder.builds("-j2 deploy driver");
    assert!(shown(&folder, &["./sim_host", "-p", "16", "-s", "1500"]).ends_with(" 0 bad, data right"));
    // The hardware has no priorities, and the command refuses them before the run.
    let folder = Folder::new("priorities");
    folder.builds("-j2 deploy driver");
    let output = folder.run(&["./sim_priorities", "0", "3"], &variables);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{errors}");
    let refused = "pspinsim_set_fmq_prio: message queue 1 is to have priority 3; the engine rtl has no priorities";
    assert!(errors.contains(refused), "{errors}");
}

/// The hardware has the paper's scheduler only; the command refuses others before it builds a simulator.
#[test]
fn schedulers_of_tenants_are_refused() {
    let room = Room::new(EMPTY);
    for (set, told) in [
        ("accelerator.sharing.scheduler=weighted", "accelerator.sharing.scheduler=weighted: the engine rtl"),
        ("accelerator.sharing.fragment_bytes=512", "accelerator.sharing.fragment_bytes=512: the engine rtl"),
    ] {
        let words = format!("h.c --machine pspin-tiny --engine rtl --messages 1 --packets 4 --set {set}");
        let output = room.prepared(&words).output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(2) && errors.contains(told), "{errors}");
    }
}

#[test]
#[ignore = "builds a second simulator, which writes waveforms: make -C rtl test-engine"]
fn a_waveform_shows_the_cycles_that_are_wanted() {
    let room = Room::new(EMPTY);
    let words = "h.c --machine pspin-tiny --engine rtl --messages 1 --packets 4 --wave w.vcd --wave-cycles 1010..1100";
    let output = room.prepared(words).env("SPIN_CACHE", cache()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let wave = String::from_utf8(fs::read(room.path("w.vcd")).unwrap()).unwrap();
    assert!(
        wave.contains("$timescale 1ps $end") && wave.contains("u_csched") && wave.contains("her_valid"),
        "{} B",
        wave.len()
    );
    let times: Vec<u64> = wave.lines().filter_map(|line| line.strip_prefix('#')?.parse().ok()).collect();
    assert!(times.first() >= Some(&1_010_000) && times.last() <= Some(&1_100_000) && times.len() > 100, "{times:?}");
}
