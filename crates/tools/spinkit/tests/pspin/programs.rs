// SPDX-License-Identifier: Apache-2.0
//! `spinkit pspin run` with sources and programs: effects of handlers on packets, contents of the report, and refusals.

use std::path::PathBuf;
use std::process::{Command, Output};

use packets::capture::{self, Format, Writer};
use packets::frame::Link;
use serde_json::Value;
use tempfile::TempDir;

use crate::home;

/// Working folder with a source for `spinkit pspin run`.
pub struct Room(TempDir);

const INIT: &str = "void init_handlers(handler_fn *hh, handler_fn *ph, handler_fn *th, void **mem) {}\n";

impl Room {
    pub fn new(handlers: &str) -> Room {
        let room = Room(tempfile::tempdir().unwrap());
        room.write("h.c", format!("#include <handler.h>\n#include <packets.h>\n{handlers}\n{INIT}"));
        room
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        std::fs::write(self.path(name), bytes).unwrap();
    }

    pub fn command(&self, words: &str) -> Output {
        self.prepared(words).output().unwrap()
    }

    /// Returns `spinkit pspin run` with these words.
    pub fn prepared(&self, words: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_spinkit-pspin"));
        command.arg("run").args(words.split_whitespace()).current_dir(self.0.path()).env("SPINKIT_HOME", home());
        command
    }

    /// Runs the source. Returns its report, and its standard error.
    fn report(&self, words: &str, status: i32) -> (Value, String) {
        let done = self.command(&format!("h.c --json r.json {words}"));
        let errors = String::from_utf8(done.stderr).unwrap();
        assert_eq!(done.status.code(), Some(status), "{words}: {errors}");
        (serde_json::from_slice(&std::fs::read(self.path("r.json")).unwrap()).unwrap(), errors)
    }

    /// Returns the message of a command that must fail with this status.
    pub fn refused(&self, words: &str, status: i32) -> String {
        let done = self.command(words);
        assert_eq!((done.status.code(), done.stdout.as_slice()), (Some(status), &b""[..]), "{words}");
        let errors = String::from_utf8(done.stderr).unwrap();
        errors.trim().strip_prefix("spinkit pspin run: error: ").expect(&errors).to_owned()
    }
}

pub const EMPTY: &str = "__handler__ void empty_ph(handler_args_t *args) {}";
pub const REFLECT: &str = "
__handler__ void reflect_ph(handler_args_t *args) {
    ip_hdr_t *ip = args->task->pkt_mem;
    uint32_t source = ip->source_id;
    ip->source_id = ip->dest_id;
    ip->dest_id = source;
    spin_cmd_t send;
    spin_send_packet(args->task->pkt_mem, args->task->pkt_mem_size, &send);
}";

#[test]
fn an_unloaded_packet_takes_the_cycles_of_the_paper() {
    let room = Room::new(EMPTY);
    for (size, published, paper) in [(64, 27.0, 26.0), (1024, 42.0, 40.0)] {
        for (machine, expected) in [("pspin-published", published), ("pspin-400g", paper)] {
            let words = format!("--machine {machine} --messages 1 --packets 10 --gap 1000 --size {size}");
            let (report, _) = room.report(&words, 0);
            // The first packet misses the handler in the instruction cache.
            assert_eq!(report["request_ns"]["min"], expected, "{machine} {size}");
            assert_eq!(report["packets"]["done"], 10);
            assert_eq!(report["stage_cycles"]["schedule"]["max"], 3);
        }
    }
}

#[test]
fn handlers_compute_print_and_write_to_the_host() {
    let room = Room::new(
        "__handler__ void sum_ph(handler_args_t *args) {
            const uint8_t *data = (const uint8_t *)args->task->pkt_mem + sizeof(pkt_hdr_t);
            uint32_t sum = 0;
            for (uint32_t i = 0; i < args->task->pkt_mem_size - sizeof(pkt_hdr_t); i++) sum += data[i];
            amo_add(args->task->handler_mem, sum);
        }
        __handler__ void sum_th(handler_args_t *args) {
            printf(\"sum %d\\n\", *(volatile int *)args->task->handler_mem);
            spin_cmd_t write;
            spin_write_to_host((uint64_t)args->task->host_mem_high << 32 | args->task->host_mem_low, 1, &write);
        }",
    );
    // Contents of the packets: a capture of the same bytes.
    let packets: Vec<Vec<u8>> = (0..20).map(|number| udp(number, 100 + number as usize)).collect();
    let sum: u64 = packets.iter().flat_map(|packet| &packet[28..]).map(|byte| u64::from(*byte)).sum();
    room.write("in.pcap", pcap(&packets));
    room.write("rules.toml", "[[rule]]\ncontext = \"sum\"\nmessage = [\"udp.dstport\"]\npackets = 20\n");
    let done = room.command("h.c --pcap in.pcap --rules rules.toml");
    let table = String::from_utf8(done.stdout).unwrap();
    assert!(table.starts_with(&format!("[0,0] sum {sum}\n")) || table.contains(&format!("] sum {sum}\n")), "{table}");
    for part in ["20 arrived, 20 done\n", "20 payload", "1 completion", "1 host direct"] {
        assert!(table.contains(part), "{part}: {table}");
    }
}

/// Returns an IPv4 packet of UDP containing this number.
pub fn udp(number: u8, data: usize) -> Vec<u8> {
    let length = (28 + data) as u16;
    let mut packet = vec![0x45, 0];
    packet.extend(length.to_be_bytes());
    packet.extend([0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    packet.extend(1_000_u16.to_be_bytes());
    packet.extend(2_000_u16.to_be_bytes());
    packet.extend((length - 20).to_be_bytes());
    packet.extend([0, 0]);
    packet.extend((0..data).map(|place| number.wrapping_mul(7).wrapping_add(place as u8)));
    packet
}

pub fn pcap(packets: &[Vec<u8>]) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), Format::Pcap, Link::Ip).unwrap();
    for (number, packet) in packets.iter().enumerate() {
        writer.write(1_000 * number as u64, packet, None).unwrap();
    }
    writer.finish()
}

#[test]
fn packets_of_a_capture_come_back_in_a_capture() {
    let room = Room::new(REFLECT);
    let packets: Vec<Vec<u8>> = (0..30).map(|number| udp(number, 1 + 31 * number as usize)).collect();
    room.write("in.pcap", pcap(&packets));
    for out in ["out.pcap", "out.pcapng"] {
        let (report, _) = room.report(&format!("--pcap in.pcap --out {out}"), 0);
        assert_eq!(report["commands"]["send"], 30);
        let sent = capture::read(&std::fs::read(room.path(out)).unwrap()).unwrap();
        assert_eq!(sent.len(), 30);
        for (sent, mut packet) in sent.iter().zip(packets.clone()) {
            let (source, destination) = (packet[12..16].to_vec(), packet[16..20].to_vec());
            packet[12..16].copy_from_slice(&destination);
            packet[16..20].copy_from_slice(&source);
            assert_eq!(sent.bytes, packet);
        }
        // A packet arrives each microsecond.
        let gaps = sent.windows(2).map(|pair| pair[1].time_ns - pair[0].time_ns);
        assert!(gaps.clone().skip(1).all(|gap| (900..1_100).contains(&gap)), "{:?}", gaps.collect::<Vec<_>>());
    }
}

#[test]
fn two_runs_give_the_same_bytes() {
    let room = Room::new(REFLECT);
    let mut files = Vec::new();
    for run in ["a", "b"] {
        let words = format!("h.c --size 64,300,1500 --json {run}.json --trace {run}.pftrace --out {run}.pcapng");
        let done = room.command(&words);
        assert!(done.status.success());
        let read = |kind: &str| std::fs::read(room.path(&format!("{run}.{kind}"))).unwrap();
        files.push((done.stdout, read("json"), read("pftrace"), read("pcapng")));
    }
    assert!(files[0] == files[1]);
    assert!(files[0].2.len() > 10_000, "a timeline of 1,024 packets");
}

#[test]
fn failing_and_endless_handlers_are_told_and_nothing_is_lost() {
    let room = Room::new("__handler__ void bad_ph(handler_args_t *args) {\n    *(volatile int *)0x1D000000 = 1;\n}");
    let (report, errors) = room.report("--messages 4 --packets 10", 1);
    assert_eq!((&report["packets"]["arrived"], &report["packets"]["faulted"]), (&40.into(), &40.into()));
    assert_eq!((&report["faults"], &report["packets"]["done"]), (&40.into(), &0.into()));
    let first = errors.lines().next().unwrap();
    assert!(first.contains("payload handler of message 0") && first.contains("h.c:4"), "{first}");
    assert!(errors.ends_with("35 more handlers failed\n"), "{errors}");
    assert!(room.report("--messages 4 --packets 10 --expect-failures", 0).0 == report);

    let room = Room::new("__handler__ void endless_ph(handler_args_t *args) { for (;;) rt_time_wait_cycles(100); }");
    let (report, errors) = room.report("--messages 2 --packets 50 --watchdog 2000", 1);
    assert_eq!((&report["watchdog"], &report["packets"]["timed_out"]), (&100.into(), &100.into()));
    assert!(errors.contains("killed by the watchdog"), "{errors}");
    // Killed handlers hold no HPU: 100 packets on the 16 HPUs of two clusters need 7 rounds of 2,000 cycles.
    assert!(report["cycles"].as_u64().unwrap() < 8 * 2_200, "{}", report["cycles"]);
}

#[test]
fn a_message_without_end_is_given_up() {
    let room = Room::new("__handler__ void h_th(handler_args_t *args) {}");
    let packets: Vec<Vec<u8>> = (0..5).map(|number| udp(number, 36)).collect();
    room.write("in.pcap", pcap(&packets));
    let (report, _) = room.report("--pcap in.pcap --set accelerator.mpq.idle_cycles=20000", 0);
    assert_eq!((&report["packets"]["arrived"], &report["idle_resets"]), (&5.into(), &1.into()));
}

#[test]
fn what_cannot_be_run_is_told() {
    let room = Room::new(EMPTY);
    let starts = |words: &str, status: i32, message: &str| {
        let told = room.refused(words, status);
        assert!(told.contains(message), "{words}: {told}");
    };
    starts("h.c --machine sc17-int", 2, "sc17-int: accelerator.kind is \"sc17\"; this command needs \"pspin\"");
    starts("h.c --machine nowhere", 2, "nowhere");
    starts("h.c --set accelerator.clusters=0", 2, "--set accelerator.clusters=0: must be at least 1, is 0");
    starts("h.c --size 20", 2, "packets of 20 bytes");
    starts("h.c --handlers other", 1, "h.c: it has none of the handlers other_hh, other_ph and other_th");
    starts("missing.c", 1, "cannot read missing.c");
    starts("h.c -- -m 1", 2, "what follows -- is for drivers of folders");
    room.write("rules.toml", "[[rule]]\ncontext = \"other\"\n");
    starts("h.c --rules rules.toml", 1, "it has none of the handlers other_hh");
    room.write("rules.toml", "[[rule]]\naction = \"eat\"\n");
    starts("h.c --rules rules.toml", 1, "rules.toml: rule 1: action is 'eat'");
    room.write("cut.pcap", &pcap(&[udp(1, 50)])[..50]);
    starts("h.c --pcap cut.pcap", 1, "cut.pcap: it ends within packet 1");
    room.write("h.elf", "no program");
    starts("h.elf", 1, "h.elf: ");
    room.write("two.c", format!("#include <handler.h>\n__handler__ void a_ph(handler_args_t *t) {{}}\n__handler__ void b_hh(handler_args_t *t) {{}}\n{INIT}"));
    starts("two.c", 1, "it has handlers of several names: a, b; --handlers selects one");
    room.write("none.c", format!("#include <handler.h>\n{INIT}"));
    starts("none.c", 1, "it has no handlers");
    std::fs::create_dir(room.path("folder")).unwrap();
    starts("folder", 1, "it has no Makefile");
    starts("folder --pcap in.pcap", 2, "--pcap is for programs; folder is a folder");
    room.write("folder/Makefile", "all:\n");
    starts(
        "folder -D X=1",
        2,
        "folder/Makefile: -D is for sources, and for folders whose Makefile compiles with $(DEFINITIONS)",
    );
}
