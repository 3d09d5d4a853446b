// SPDX-License-Identifier: Apache-2.0
//! Names and rules of public programs: locks, copies in the older form, FPsPIN's card interface, priorities of message
//! queues, and the destination of a run's output.

use std::process::Command;

use packets::capture::{self, Format, Writer};
use packets::checksum::checksums;
use packets::frame::{Frame, Link};
use serde_json::Value;

use crate::folders::Folder;
use crate::programs::{Room, pcap, udp};

/// Returns an Ethernet frame around a packet.
fn frame(packet: &[u8]) -> Vec<u8> {
    [&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0][..], packet].concat()
}

fn ethernet(frames: &[Vec<u8>]) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), Format::Pcapng, Link::Ethernet).unwrap();
    frames.iter().enumerate().for_each(|(number, frame)| writer.write(1_000 * number as u64, frame, None).unwrap());
    writer.finish()
}

/// Runs `h.c` with these words and `--json -`, which must succeed. Returns the report and the standard error output.
fn report(room: &Room, words: &str) -> (Value, String) {
    let done = room.command(&format!("h.c --json - {words}"));
    let errors = String::from_utf8(done.stderr).unwrap();
    assert!(done.status.success(), "{words}: {errors}");
    (serde_json::from_slice(&done.stdout).expect("JSON alone"), errors)
}

#[test]
fn a_writer_takes_only_the_lock_and_readers_take_it_for_the_first_and_last() {
    let room = Room::new(
        "__handler__ void rw_ph(handler_args_t *args) {
            spin_rw_lock_t *lock = (spin_rw_lock_t *)args->task->handler_mem;
            // Set by the program itself: a writer does not look at it.
            lock->num_readers = 5;
            spin_rw_lock_w_lock(lock);
            printf(\"w %d %d\\n\", (int)lock->glock, (int)lock->num_readers);
            spin_rw_lock_w_unlock(lock);
            lock->num_readers = 0;
            spin_rw_lock_r_lock(lock);
            spin_rw_lock_r_lock(lock);
            printf(\"rr %d %d\\n\", (int)lock->glock, (int)lock->num_readers);
            spin_rw_lock_r_unlock(lock);
            printf(\"r %d %d\\n\", (int)lock->glock, (int)lock->num_readers);
            spin_rw_lock_r_unlock(lock);
            printf(\"free %d %d\\n\", (int)lock->glock, (int)lock->num_readers);
        }",
    );
    let done = room.command("h.c --messages 1 --packets 1");
    let text = String::from_utf8(done.stdout).unwrap();
    let lines: Vec<_> = text.lines().filter_map(|line| line.strip_prefix("[0,0] ")).collect();
    assert_eq!(lines, ["w 1 5", "rr 1 2", "r 1 1", "free 0 0"], "{}", String::from_utf8_lossy(&done.stderr));
}

#[test]
fn copies_in_the_older_form_go_in_the_direction_that_they_name() {
    let room = Room::new(
        "__handler__ void copy_ph(handler_args_t *args) {
            task_t *task = args->task;
            uint64_t host = (uint64_t)task->host_mem_high << 32 | task->host_mem_low;
            volatile uint32_t *word = task->handler_mem;
            spin_cmd_t copy;
            word[0] = 0xcafe;
            spin_host_dma(host, (uint32_t)&word[0], NIC_TO_HOST, 4, &copy);
            spin_cmd_wait(copy);
            spin_host_dma(host, (uint32_t)&word[1], HOST_TO_NIC, 4, &copy);
            spin_cmd_wait(copy);
            printf(\"back %x\\n\", (unsigned)word[1]);
        }",
    );
    let (report, errors) = report(&room, "--messages 1 --packets 1");
    assert_eq!((&report["commands"]["to_host"], &report["commands"]["from_host"]), (&1.into(), &1.into()));
    assert!(errors.contains("[0,0] back cafe\n"), "{errors}");
}

#[test]
fn handlers_of_fpspin_answer_frames() {
    let room = Room::new(
        "__handler__ void echo_ph(handler_args_t *args) {
            uint32_t start = cycles();
            pkt_hdr_t *headers = (pkt_hdr_t *)args->task->pkt_mem;
            mac_addr_t mac = headers->eth_hdr.src;
            headers->eth_hdr.src = headers->eth_hdr.dest;
            headers->eth_hdr.dest = mac;
            uint32_t address = headers->ip_hdr.source_id;
            headers->ip_hdr.source_id = headers->ip_hdr.dest_id;
            headers->ip_hdr.dest_id = address;
            headers->ip_hdr.checksum = 0;
            headers->ip_hdr.checksum = ip_checksum(&headers->ip_hdr, headers->ip_hdr.ihl * 4);
            headers->udp_hdr.dst_port = htons(ntohs(headers->udp_hdr.src_port) + 1);
            spin_cmd_t send;
            spin_send_packet(args->task->pkt_mem, args->task->pkt_mem_size, &send);
            push_counter(&__host_data.counters[3], cycles() - start);
            if (!fpspin_check_host_mem(args) || HOST_PLD_ADDR(args) - HOST_ADDR(args) != HPU_ID(args) * PAGE_SIZE + DMA_ALIGN)
                printf(\"wrong\\n\");
            printf(\"%d requests\\n\", (int)(__host_data.counters[3].count + dma_idx[args->hpu_gid]));
        }",
    );
    let frames: Vec<_> = (0..3).map(|number| frame(&udp(number, 30 + usize::from(number)))).collect();
    room.write("in.pcapng", ethernet(&frames));
    let words = "-D FPSPIN --link ethernet --pcap in.pcapng --out out.pcap --set accelerator.clusters=2";
    let (report, errors) = report(&room, words);
    assert_eq!(report["commands"]["send"], 3);
    assert!(errors.contains("3 requests") && !errors.contains("wrong") && !errors.contains("note"), "{errors}");
    let sent = capture::read(&std::fs::read(room.path("out.pcap")).unwrap()).unwrap();
    for (sent, frame) in sent.iter().zip(frames) {
        let mut expected = frame.clone();
        expected[..6].copy_from_slice(&frame[6..12]);
        expected[6..12].copy_from_slice(&frame[..6]);
        expected[26..30].copy_from_slice(&frame[30..34]);
        expected[30..34].copy_from_slice(&frame[26..30]);
        let checksum = checksums(&Frame::parse(Link::Ethernet, &sent.bytes).unwrap())[0];
        assert!(checksum.offset == 24 && checksum.is_good(), "{checksum:?}");
        expected[24..26].copy_from_slice(&sent.bytes[24..26]);
        expected[36..38].copy_from_slice(&1_001_u16.to_be_bytes());
        assert_eq!((sent.link, &sent.bytes), (Link::Ethernet, &expected));
    }
}

/// First program of the guide: it sums the lengths of UDP datagrams.
const COUNT: &str = "
__handler__ void count_ph(handler_args_t *args) {
    pkt_hdr_t *header = args->task->pkt_mem;
    amo_add(args->task->handler_mem, header->udp_hdr.length >> 8 | (header->udp_hdr.length & 255) << 8);
}
__handler__ void count_th(handler_args_t *args) { printf(\"%d bytes\\n\", *(volatile int *)args->task->handler_mem); }";

#[test]
fn frames_are_told_and_read_from_their_ip_headers_on() {
    let room = Room::new(COUNT);
    let mut frames: Vec<_> = (0..5).map(|number| frame(&udp(number, 100))).collect();
    // A tag, padding of a short frame, and a packet that is not IP.
    let tagged = [&frames[0][..12], &[0x81, 0, 0, 7], &frames[0][12..]].concat();
    let mut short = frame(&udp(9, 1));
    short.resize(60, 0xee);
    frames.extend([tagged, short]);
    let mut arp = vec![0xff; 42];
    arp[12..22].copy_from_slice(&[8, 6, 0, 1, 8, 0, 6, 4, 0, 1]);
    frames.push(arp);
    room.write("in.pcapng", ethernet(&frames));
    room.write(
        "rules.toml",
        "[[rule]]\nmatch = { \"udp.dstport\" = 2000 }\ncontext = \"count\"\nmessage = [\"udp.dstport\"]\npackets = 7\n",
    );
    let (report, errors) = report(&room, "--pcap in.pcapng --rules rules.toml --link ip");
    assert!(errors.contains(&format!("] {} bytes\n", 6 * 108 + 9)), "{errors}");
    assert!(errors.contains("note: 1 packets without an IP header went to the host (--link ip)"), "{errors}");
    assert_eq!((&report["packets"]["done"], &report["packets"]["to_host"]), (&7.into(), &1.into()));
    assert_eq!(report["packets"]["bytes"], 6 * 128 + 29);
    // Without the option, handlers get whole frames, and a note is printed.
    let done = room.command("h.c --pcap in.pcapng --rules rules.toml");
    let errors = String::from_utf8(done.stderr).unwrap();
    assert!(errors.contains("note: in.pcapng: handlers get whole frames") && errors.contains("--link ip"), "{errors}");
    room.write("ip.pcap", pcap(&[udp(1, 50)]));
    let told = room.refused("h.c --pcap ip.pcap --link ethernet", 1);
    assert_eq!(told, "ip.pcap: 1 of its 1 packets have no Ethernet header: --link ip gives all to handlers");
}

#[test]
fn no_rate_is_above_that_of_the_port() {
    /// Handlers by their effect on a packet.
    const PROGRAMS: [(&str, &str); 7] = [
        ("nothing", ""),
        ("fails", "*(volatile int *)0x1D000000 = 1;"),
        ("late", "rt_time_wait_cycles(args->task->flow_id % 2 ? 4000 : 16);"),
        ("sends", "spin_send_packet(args->task->pkt_mem, args->task->pkt_mem_size, &command); spin_cmd_wait(command);"),
        ("writes", "spin_write_to_host(host, 1, &command);"),
        ("to", "spin_dma_to_host(host, (uint32_t)args->task->pkt_mem, args->task->pkt_mem_size, 0, &command);"),
        ("from", "spin_dma_from_host(host, (uint32_t)args->task->pkt_mem, args->task->pkt_mem_size, 0, &command);"),
    ];
    const PORT: f64 = 512.0;
    let handler = |(name, body): &(&str, &str)| {
        format!(
            "__handler__ void {name}_ph(handler_args_t *args) {{
                uint64_t host = (uint64_t)args->task->host_mem_high << 32 | args->task->host_mem_low;
                spin_cmd_t command;
                (void)host; (void)command;
                {body}
            }}\n"
        )
    };
    let room = Room::new(&PROGRAMS.iter().map(handler).collect::<String>());
    let mut compile = Command::new(env!("CARGO_BIN_EXE_spinkit-pspin"));
    compile.args(["cc", "-O3", "-o"]).args([room.path("h.elf"), room.path("h.c")]).env("SPINKIT_HOME", crate::home());
    assert!(compile.status().unwrap().success());
    for (name, _) in PROGRAMS {
        for load in [
            "--messages 1 --packets 1 --size 64",
            "--messages 2 --packets 2 --size 1500,64",
            "--messages 2 --packets 3 --size 64,1500",
            "--messages 8 --packets 32 --size 1024",
            "--messages 3 --packets 40 --size 64,1024,333 --gap 40",
        ] {
            let done = room.command(&format!("h.elf --handlers {name} --json - --expect-failures {load}"));
            let report: Value = serde_json::from_slice(&done.stdout).expect("a report");
            for rates in [&report["run_throughput"], &report["throughput"]] {
                for (key, rate) in rates.as_object().unwrap().iter().filter(|(key, _)| key.ends_with("gbit_s")) {
                    assert!(rate.as_f64().unwrap() <= PORT, "{name} {load}: {key} {rate}");
                }
                if report["packets"]["done"] == 0 {
                    assert_eq!(rates["in_gbit_s"], 0.0, "{name} {load}");
                }
                for (key, commands) in [
                    ("out_gbit_s", &["send"][..]),
                    ("host_read_gbit_s", &["from_host"]),
                    ("host_write_gbit_s", &["to_host", "host_direct"]),
                ] {
                    let count: u64 = commands.iter().map(|command| report["commands"][command].as_u64().unwrap()).sum();
                    assert!(count > 0 || rates[key] == 0.0, "{name} {load}: {key}");
                }
            }
            let (run, steady) = (&report["run_throughput"]["in_gbit_s"], &report["throughput"]["in_gbit_s"]);
            assert!(report["packets"]["done"] == 0 || run.as_f64() > Some(0.0), "{name} {load}: {run} {steady}");
        }
    }
}

#[test]
fn the_watchdog_names_function_and_line() {
    let room = Room::new(
        "static volatile int word;
        static void __attribute__((noinline)) hang(void) {
            while (word == 0);
        }
        __handler__ void h_ph(handler_args_t *args) { hang(); }",
    );
    let done = room.command("h.c --messages 1 --packets 1 --watchdog 3000");
    let errors = String::from_utf8(done.stderr).unwrap();
    assert!(errors.contains("killed by the watchdog in hang (") && errors.contains("h.c:5)"), "{errors}");
}

#[test]
fn the_help_lists_the_sweep() {
    let help = Command::new(env!("CARGO_BIN_EXE_spinkit-pspin")).arg("--help").output().unwrap();
    let text = String::from_utf8(help.stdout).unwrap();
    assert!(text.lines().any(|line| line.trim_start().starts_with("sweep ")), "{text}");
}

/// Two messages of equal packets, with handlers of 400 cycles: `strict` finishes the one with the higher priority, and
/// `weighted` gives HPUs by weight. Priority 0 weighs as much as 1.
#[test]
fn schedulers_of_tenants_follow_the_priorities() {
    let folder = Folder::new("priorities");
    folder.builds("deploy driver");
    let half = |scheduler: &str, priorities: &[&str]| {
        let set = format!("accelerator.mpq.shared_cells=2048\naccelerator.sharing.scheduler={scheduler}");
        let output = folder.run(&[&["./sim_priorities"], priorities].concat(), &[("SPINKIT_PSPIN_SET", &set)]);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{priorities:?}: {text}{}", String::from_utf8_lossy(&output.stderr));
        let line = text.lines().find_map(|line| line.strip_prefix("half ")).expect(&text).to_owned();
        let counts: Vec<u32> = line.split(' ').map(|count| count.parse().unwrap()).collect();
        (counts[0], counts[1])
    };
    // 32 tasks of the other message may already be on HPUs, and as many in the clusters.
    let (first, second) = half("strict", &["0", "3"]);
    assert!(second == 256 && first <= 64, "{first} {second}");
    for priorities in [["0", "0"], ["0", "1"]] {
        let (first, second) = half("weighted", &priorities);
        assert!(first.abs_diff(second) <= 16, "{priorities:?}: {first} {second}");
    }
    // Weights 3 and 1 get 6 and 2 of each cluster's 8 HPUs.
    let (first, second) = half("weighted", &["3", "1"]);
    assert!(first == 256 && (80..=96).contains(&second), "{first} {second}");
    let (first, second) = half("fifo", &["0", "3"]);
    assert!(first.abs_diff(second) <= 4, "{first} {second}");
}

#[test]
fn queues_of_higher_priority_give_more_tasks_in_their_turns() {
    let folder = Folder::new("priorities");
    folder.builds("deploy driver");
    let half = |priorities: &[&str]| {
        // Enough room for all packets, so that no queue blocks another.
        let room = [("SPINKIT_PSPIN_SET", "accelerator.mpq.shared_cells=2048")];
        let output = folder.run(&[&["./sim_priorities"], priorities].concat(), &room);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{priorities:?}: {text}{}", String::from_utf8_lossy(&output.stderr));
        let line = text.lines().find_map(|line| line.strip_prefix("half ")).expect(&text).to_owned();
        let counts: Vec<u32> = line.split(' ').map(|count| count.parse().unwrap()).collect();
        (counts[0], counts[1])
    };
    let (first, second) = half(&[]);
    assert!(first.abs_diff(second) <= 4, "equal: {first} {second}");
    assert_eq!(half(&["0", "0"]), (first, second));
    // Weights 4 and 1, and 1 and 3, except for some 40 packets of each that find HPUs free and room in the clusters.
    let (first, second) = half(&["3", "0"]);
    assert!(first == 256 && (85..=105).contains(&second), "4 to 1: {first} {second}");
    let (first, second) = half(&["0", "2"]);
    assert!(second == 256 && (103..=123).contains(&first), "1 to 3: {first} {second}");
    // The machine has 256 queues, 0 to 255; the driver maps one to each argument.
    let many: Vec<&str> = ["./sim_priorities"].into_iter().chain(std::iter::repeat_n("1", 257)).collect();
    let output = folder.run(&many, &[]);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{errors}");
    let expected =
        "libpspin: pspinsim_run: pspinsim_set_fmq_prio: there is no message queue 256; the card has 256, from 0";
    assert!(errors.contains(expected), "{errors}");
}
