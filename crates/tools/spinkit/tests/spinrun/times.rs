// SPDX-License-Identifier: Apache-2.0
//! Half round trips of the ping-pong experiment (sPIN §4.4.1), as sums of the machine's parameters. docs/validation.md
//! gives the same sums in words.

use serde_json::Value;

use crate::harness::{ping_pong, reported};

/// HPU cycles from the end of a handler's put command to its return: `li`, `addi sp`, `ret` after the command in the
/// three-wide core.
const AFTER_PUT: u64 = 2;

const MTU: u64 = 4096;
const MTU_AND_MORE: u64 = MTU + 1;

/// Parameters of a machine in picoseconds and femtoseconds per byte.
pub struct Machine {
    pub o: u64,
    pub wire_g: u64,
    pub dma_g: u64,
    pub dma_latency: u64,
    pub network: u64,
    pub match_header: u64,
    pub cam: u64,
    pub poll: u64,
    pub host_match: u64,
    pub cycle: u64,
}

impl Machine {
    pub fn of(report: &Value) -> Machine {
        let parameter = |key: &str| report["parameters"][key]["value"].as_str().unwrap().parse::<f64>().unwrap();
        let ps = |key: &str| (parameter(key) * 1e3).round() as u64;
        Machine {
            o: ps("host.o_ns"),
            wire_g: ps("network.G_ps_per_byte"),
            dma_g: ps("dma.G_ps_per_byte"),
            dma_latency: ps("dma.L_ns"),
            // Both nodes are connected to one switch.
            network: 2 * ps("network.wire_ns") + ps("network.switch_ns"),
            match_header: ps("nic.match_header_ns"),
            cam: ps("nic.match_cam_ns"),
            poll: ps("host.poll_ns"),
            host_match: ps("host.match_ns"),
            cycle: (1e3 / parameter("hpu.clock_ghz")).round() as u64,
        }
    }

    /// Returns the time of these bytes on the wire.
    pub fn wire(&self, bytes: u64) -> u64 {
        (bytes * self.wire_g).div_ceil(1000)
    }

    /// Returns the time to write these bytes from the card to host memory: L + s G.
    pub fn dma_write(&self, bytes: u64) -> u64 {
        self.dma_latency + (bytes * self.dma_g).div_ceil(1000)
    }

    /// Returns the time to read these bytes from host memory: request and answer, 2 L + s G (App. C.3.2).
    pub fn dma_read(&self, bytes: u64) -> u64 {
        self.dma_latency + self.dma_write(bytes)
    }

    /// Returns the time from the card's receipt of a message's descriptor until a first packet of `bytes` bytes arrives
    /// completely. Meanwhile the card reads the next packets from host memory.
    pub fn first_packet(&self, bytes: u64) -> u64 {
        self.dma_read(bytes) + self.network + self.wire(bytes)
    }

    /// Returns the time from the same moment until the data of a message of at most two packets is in the other host's
    /// memory. The first packet is delayed by its match and then by `header`. The second follows it on the wire, is
    /// matched, and waits for the DMA engine if that is still busy with the first.
    pub fn to_host(&self, bytes: u64, header: u64) -> u64 {
        let first = bytes.min(MTU);
        let matched = self.match_header + header;
        if bytes <= MTU {
            return self.first_packet(first) + matched + self.dma_write(first);
        }
        let second = bytes - MTU;
        let arrived = self.wire(second) + self.cam;
        let engine_free = matched + self.dma_write(first) - self.dma_latency;
        self.first_packet(first) + arrived.max(engine_free) + self.dma_write(second)
    }
}

fn last_packet(bytes: u64) -> u64 {
    (bytes - 1) % MTU + 1
}

struct Handlers {
    header: u64,
    payload: u64,
    completion: u64,
}

/// Returns the round trip according to the sums.
fn round_trip(mode: &str, bytes: u64, m: &Machine, cycles: &Handlers) -> u64 {
    let header = cycles.header * m.cycle;
    let put_after = |handler: u64| handler.saturating_sub(AFTER_PUT) * m.cycle;
    match (mode, bytes) {
        // Both CPUs post, find the completion entry, and match.
        ("rdma", _) => 2 * (m.o + m.to_host(bytes, 0) + m.poll + m.host_match),
        // Rank 0's CPU posts and polls; rank 1's card answers without its CPU.
        ("triggered", _) => m.o + 2 * m.to_host(bytes, 0) + m.poll,
        // With more than one packet, the header handler lets the card deposit the data, and the completion handler
        // starts a put from host memory.
        ("store", MTU_AND_MORE..) => {
            let ping = m.to_host(bytes, header) + put_after(cycles.completion);
            m.o + ping + m.to_host(bytes, 0) + m.poll
        }
        // The payload handler of the first packet answers from the card while the rest arrives. The answers leave back
        // to back, each as a separate message.
        ("store" | "stream", _) => {
            let first = bytes.min(MTU);
            let ping = m.first_packet(first) + m.match_header + header + put_after(cycles.payload);
            let pong = m.network + m.wire(bytes) + m.match_header + m.dma_write(last_packet(bytes));
            m.o + ping + pong + m.poll
        }
        _ => unreachable!(),
    }
}

impl Machine {
    /// LogGOPSim2: returns the time from the start of the sending port until the last packet is matched. The network
    /// takes whole packets, and the receiving port handles each packet and its match in sequence.
    fn matched(&self, bytes: u64) -> u64 {
        let first = self.wire(bytes.min(MTU) - 1) + self.match_header;
        let second = if bytes > MTU { self.wire(bytes - MTU - 1) + self.cam } else { 0 };
        self.wire(MTU - 1) + self.network + first + second
    }
}

/// Returns the round trip by the rules of LogGOPSim2: data crosses to and from a host in one latency each, to a
/// handler's put from host memory in two, and CPUs neither poll nor match.
fn round_trip_of_loggopsim2(mode: &str, bytes: u64, m: &Machine, cycles: &Handlers) -> u64 {
    let handled = |handler: u64| (cycles.header + handler.saturating_sub(AFTER_PUT)) * m.cycle;
    let (latency, message) = (m.dma_latency, m.matched(bytes));
    match (mode, bytes) {
        ("rdma", _) => 2 * (m.o + latency + message + latency),
        ("triggered", _) => m.o + 2 * (latency + message + latency),
        ("store", MTU_AND_MORE..) => {
            // The header handler ends before the second packet arrives.
            let completion = cycles.completion.saturating_sub(AFTER_PUT) * m.cycle;
            m.o + latency + message + completion + 2 * latency + message + latency
        }
        ("store" | "stream", _) => {
            // Each packet comes back as a separate message.
            let first = bytes.min(MTU);
            let pongs = bytes.div_ceil(MTU) * (m.wire(first - 1) + m.match_header);
            m.o + latency + m.matched(first) + handled(cycles.payload) + m.wire(MTU - 1) + m.network + pongs + latency
        }
        _ => unreachable!(),
    }
}

fn check(machine: &str, mode: &str, nic: &str, bytes: u64, half: u64) {
    let options = format!("-n 2 --machine {machine} --nic {nic}");
    let (run, report) = reported(&options, &ping_pong(), &format!("--mode {mode} --sizes {bytes}"));
    let line: Value = serde_json::from_str(&run.ok()).unwrap();
    assert_eq!(line["data_ok"], true);
    // The first of the experiment's three rounds trains the branch predictors; the last one, which counts, is the
    // fastest.
    let cycles = |handler: &str| report["handlers"][handler]["min_cycles"].as_u64().unwrap_or(0);
    let (header, payload) = (cycles("ping_header"), cycles("ping_payload"));
    let handlers = Handlers { header, payload, completion: cycles("ping_completion") };
    let sum = if machine.starts_with("loggopsim2") { round_trip_of_loggopsim2 } else { round_trip };
    let expected = sum(mode, bytes, &Machine::of(&report), &handlers) / 2;
    let here = line["half_rtt_ps"].as_u64().unwrap();
    assert_eq!((here, expected), (half, half), "{machine} {mode} {bytes}: header {header}, payload {payload} cycles");
}

#[test]
fn integrated_card() {
    check("sc17-int", "rdma", "rdma", 8, 443_068);
    check("sc17-int", "triggered", "portals4", 8, 355_068);
    check("sc17-int", "store", "spin", 8, 286_614);
    check("sc17-int", "stream", "spin", 8, 285_814);
    check("sc17-int", "rdma", "rdma", 8192, 633_528);
    check("sc17-int", "triggered", "portals4", 8192, 545_528);
    check("sc17-int", "store", "spin", 8192, 549_528);
    check("sc17-int", "stream", "spin", 8192, 435_924);
}

#[test]
fn discrete_card() {
    check("sc17-dis", "rdma", "rdma", 8, 1_043_210);
    check("sc17-dis", "triggered", "portals4", 8, 955_210);
    check("sc17-dis", "store", "spin", 8, 586_685);
    check("sc17-dis", "stream", "spin", 8, 585_885);
    check("sc17-dis", "rdma", "rdma", 8192, 1_316_414);
    check("sc17-dis", "triggered", "portals4", 8192, 1_228_414);
    check("sc17-dis", "store", "spin", 8192, 1_235_014);
    check("sc17-dis", "stream", "spin", 8192, 772_378);
}

#[test]
fn integrated_card_by_the_rules_of_loggopsim2() {
    check("loggopsim2-int", "rdma", "rdma", 8, 393_840);
    check("loggopsim2-int", "triggered", "portals4", 8, 361_340);
    check("loggopsim2-int", "store", "spin", 8, 317_940);
    check("loggopsim2-int", "stream", "spin", 8, 317_140);
    check("loggopsim2-int", "rdma", "rdma", 8192, 559_500);
    check("loggopsim2-int", "triggered", "portals4", 8192, 527_000);
    check("loggopsim2-int", "store", "spin", 8192, 531_000);
    check("loggopsim2-int", "stream", "spin", 8192, 454_850);
}

#[test]
fn discrete_card_by_the_rules_of_loggopsim2() {
    check("loggopsim2-dis", "rdma", "rdma", 8, 793_840);
    check("loggopsim2-dis", "triggered", "portals4", 8, 761_340);
    check("loggopsim2-dis", "store", "spin", 8, 517_940);
    check("loggopsim2-dis", "stream", "spin", 8, 517_140);
    check("loggopsim2-dis", "rdma", "rdma", 8192, 959_500);
    check("loggopsim2-dis", "triggered", "portals4", 8192, 927_000);
    check("loggopsim2-dis", "store", "spin", 8192, 931_000);
    check("loggopsim2-dis", "stream", "spin", 8192, 654_850);
}
