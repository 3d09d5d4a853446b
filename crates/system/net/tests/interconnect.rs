// SPDX-License-Identifier: Apache-2.0
//! Tests card packets in both models of the interconnect.

use std::collections::VecDeque;
use std::path::Path;

use machine::Machine;
use net::fabric::{Event, Report};
use net::{Departure, Injection, Interconnect, Outlet};
use sim::{EventQueue, Time};

/// Parameters of sPIN §4.2, in picoseconds.
const SWITCH: u64 = 50_000;
const WIRE: u64 = 33_400;
/// Time of a full packet on a link.
const FULL: u64 = 4096 * 20;

/// Returns the network of the machine `sc17-int` with these parameters changed.
fn network(settings: &[&str]) -> machine::Network {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../machines");
    let settings: Vec<String> = settings.iter().map(|setting| (*setting).to_owned()).collect();
    Machine::load("sc17-int", &[folder], &settings).unwrap().network
}

/// A packet, identified by its number.
type Packet = usize;

enum Due {
    Inject(Packet),
    Network(Event),
    Departs(u32, Departure),
    Arrives(u32, Packet),
}

struct Queue(EventQueue<Due>);

impl Outlet<Packet> for Queue {
    fn schedule(&mut self, at: Time, event: Event) {
        self.0.push(at, Due::Network(event));
    }

    fn departs(&mut self, at: Time, node: u32, departure: Departure) {
        self.0.push(at, Due::Departs(node, departure));
    }

    fn arrives(&mut self, at: Time, node: u32, packet: Packet) {
        self.0.push(at, Due::Arrives(node, packet));
    }

    fn lost(&mut self, at: Time, from: u32, packet: Packet) {
        panic!("packet {packet} of node {from} is lost at {at}");
    }
}

/// For each packet, departure of its first and of its last byte, and arrival of its first byte, in picoseconds.
type Times = Vec<(u64, u64, u64)>;

/// Injects packets, each given as (time in ps, from, to, bytes, gap in ps), and runs until all have arrived.
fn simulate(
    network: &machine::Network,
    nodes: usize,
    packets: &[(u64, u32, u32, u64, u64)],
) -> (Times, Option<Report>) {
    let mut interconnect: Interconnect<Packet> = Interconnect::new(network, nodes).unwrap();
    let mut queue = Queue(EventQueue::default());
    for (number, &(at, ..)) in packets.iter().enumerate() {
        queue.0.push(Time::from_ps(at), Due::Inject(number));
    }
    let mut blocked = vec![VecDeque::new(); interconnect.nodes()];
    let mut times = vec![None; packets.len()];
    let mut left = vec![None; packets.len()];
    let mut end = Time::ZERO;
    while let Some((now, due)) = queue.0.pop() {
        end = now;
        let (number, departure) = match due {
            Due::Network(event) => {
                interconnect.handle(now, event, &mut queue);
                continue;
            }
            Due::Arrives(node, number) => {
                assert_eq!(node, packets[number].2, "the packet is at its receiver");
                let (start, end) = left[number].expect("it has left");
                assert_eq!(times[number].replace((start, end, now.as_ps())), None, "arrived twice");
                continue;
            }
            Due::Inject(number) => {
                let (_, from, to, bytes, gap) = packets[number];
                let packet = Injection { from, to, bytes, gap: Time::from_ps(gap) };
                match interconnect.inject(now, packet, &mut queue) {
                    Some(departure) => (number, departure),
                    None => {
                        blocked[from as usize].push_back(number);
                        continue;
                    }
                }
            }
            Due::Departs(node, departure) => (blocked[node as usize].pop_front().expect("it waits"), departure),
        };
        let (_, from, to, ..) = packets[number];
        left[number] = Some((departure.start.as_ps(), departure.end.as_ps()));
        interconnect.transmit(from, to, departure, number, &mut queue);
    }
    assert!(blocked.iter().all(VecDeque::is_empty), "nothing stays blocked");
    let times = times.into_iter().map(|times| times.expect("all arrive")).collect();
    (times, interconnect.report(end, 100))
}

fn all_to_all(nodes: u32, each: u64) -> Vec<(u64, u32, u32, u64, u64)> {
    let pairs = (1..nodes).flat_map(|step| (0..nodes).map(move |from| (from, (from + step) % nodes)));
    pairs.flat_map(|(from, to)| (0..each).map(move |_| (0, from, to, 4096, 0))).collect()
}

#[test]
fn without_load_a_fabric_is_its_latencies_to_the_picosecond() {
    // One rate gives whole picoseconds per packet, the other leaves remainders.
    for rate in ["network.G_ps_per_byte=20", "network.G_ps_per_byte=6.731"] {
        let of = |model: &str| network(&["network.radix=4", rate, &format!("network.model={model}")]);
        let (latency, fabric) = (of("latency"), of("fabric"));
        for bytes in [0, 1, 335, 4096, 4097, 40 * 4096 + 5] {
            let mut packets = Vec::new();
            for (pair, (from, to)) in (0..).zip((0..16).flat_map(|from| (0..16).map(move |to| (from, to)))) {
                for offset in (0..u64::max(bytes, 1)).step_by(4096) {
                    let gap = if offset == 0 { 6_700 } else { 0 };
                    packets.push((pair * 100_000_000, from, to, (bytes - offset).min(4096), gap));
                }
            }
            let (expected, report) = simulate(&latency, 16, &packets);
            assert_eq!(report, None);
            let (times, report) = simulate(&fabric, 16, &packets);
            let first_different = (0..packets.len()).find(|&packet| times[packet] != expected[packet]);
            assert_eq!(first_different, None, "{bytes} {rate}");
            let own = 16 * bytes.div_ceil(4096).max(1);
            assert_eq!(report.unwrap().packets, packets.len() as u64 - own, "a node's own packets meet no link");
        }
    }
}

#[test]
fn an_incast_takes_as_long_as_the_last_link_needs_for_all() {
    let fabric = network(&["network.model=fabric", "network.topology=single-switch"]);
    let packets: Vec<_> = (1..4).map(|from| (0, from, 0, 4096, 6_700)).collect();
    let (times, report) = simulate(&fabric, 4, &packets);
    let path = SWITCH + 2 * WIRE;
    assert_eq!(times, [0, 1, 2].map(|before| (0, FULL, path + before * FULL)));
    let report = report.unwrap();
    assert_eq!((&*report.busiest[0].from, &*report.busiest[0].to), ("switch", "host 0"));
    assert_eq!(report.longest_queue.unwrap().longest_queue, 3 * 4096);
}

#[test]
fn a_full_buffer_blocks_the_card_until_credit_is_back() {
    // One packet fits into the buffer of the first link. Its credit returns when its last byte has left the switch and
    // the credit has crossed the wire.
    let settings = ["network.model=fabric", "network.topology=single-switch", "network.fabric.buffer_bytes=4096"];
    let packets: Vec<_> = [0, 0, 0].map(|at| (at, 1, 0, 4096, 0)).to_vec();
    let times = simulate(&network(&settings), 2, &packets).0;
    let (round, path) = (FULL + SWITCH + 2 * WIRE, SWITCH + 2 * WIRE);
    assert_eq!(times, [0, 1, 2].map(|turn| (turn * round, turn * round + FULL, turn * round + path)));
    // A packet to the same node uses no link and does not wait.
    let packets = [(0, 1, 0, 4096, 0), (0, 1, 0, 4096, 0), (0, 1, 1, 100, 0)];
    let times = simulate(&network(&settings), 2, &packets).0;
    assert_eq!(times[2], (FULL, FULL + 2_000, FULL));
}

#[test]
fn a_lost_packet_is_sent_again_after_the_time_out() {
    let fabric = network(&[
        "network.model=fabric",
        "network.topology=single-switch",
        "network.fabric.flow=drop",
        "network.fabric.buffer_bytes=4096",
    ]);
    let (times, report) = simulate(&fabric, 3, &[(0, 1, 0, 4096, 0), (0, 2, 0, 4096, 0)]);
    // The bound for each of two links is a full queue, two packets and the latencies.
    let time_out = 2 * (3 * FULL + SWITCH + WIRE);
    let path = SWITCH + 2 * WIRE;
    assert_eq!(times, [(0, FULL, path), (0, FULL, time_out + path)]);
    let report = report.unwrap();
    assert_eq!((report.packets, report.drops, report.resent), (2, 1, 1));
}

#[test]
fn all_packets_arrive_in_every_topology_and_at_the_same_times_in_every_run() {
    for topology in ["fat-tree", "torus", "dragonfly"] {
        for (flow, routing) in [("credits", "ecmp"), ("credits", "adaptive"), ("drop", "adaptive")] {
            let fabric = network(&[
                "network.model=fabric",
                "network.radix=4",
                "network.fabric.buffer_bytes=4096",
                &format!("network.topology={topology}"),
                &format!("network.fabric.flow={flow}"),
                &format!("network.fabric.routing={routing}"),
            ]);
            let once = || simulate(&fabric, 16, &all_to_all(16, 3));
            let (times, report) = once();
            assert_eq!((times.len(), report.clone().unwrap().packets), (16 * 15 * 3, 16 * 15 * 3));
            assert!(once() == (times, report), "{topology} {flow} {routing}");
        }
    }
}

#[test]
fn a_tapered_tree_has_half_the_bisection() {
    // The hosts of one leaf send to those of another.
    let end = |settings: &[&str]| {
        let mut all = vec!["network.model=fabric", "network.fabric.routing=adaptive"];
        all.extend(settings);
        let packets: Vec<_> = (0..100).flat_map(|_| (0..16).map(|from| (0, from, from + 16, 4096, 0))).collect();
        let times = simulate(&network(&all), 33, &packets).0;
        times.into_iter().map(|times| times.2).max().unwrap()
    };
    // Each leaf has 16 hosts, with 16 or 8 uplinks.
    let (full, half) = (end(&["network.radix=32"]), end(&["network.radix=24", "network.fabric.taper=2"]));
    assert!((full * 19 / 10..full * 21 / 10).contains(&half), "{full} {half}");
}

#[test]
fn acknowledgements_use_the_port_of_the_card_that_sends_them() {
    let acked = network(&["network.model=fabric", "network.topology=single-switch", "network.fabric.ack_bytes=1024"]);
    // The acknowledgement leaves at the arrival of the first packet's last byte, and a packet injected at that time
    // waits for it.
    let there = FULL + SWITCH + 2 * WIRE;
    let (times, report) = simulate(&acked, 2, &[(0, 0, 1, 4096, 0), (there + 1, 1, 0, 4096, 0)]);
    let start = there + 1024 * 20;
    assert_eq!(times[1], (start, start + FULL, start + SWITCH + 2 * WIRE));
    assert_eq!(report.unwrap().answers.acknowledgements, 2);
    // A lost acknowledgement causes a retransmission of the data, which its card does not see.
    let settings = ["network.fabric.ack_bytes=4096", "network.fabric.flow=drop", "network.fabric.buffer_bytes=4096"];
    let lossy = network(&[&["network.model=fabric", "network.topology=single-switch"], &settings[..]].concat());
    // Acknowledgements of node 0's packets meet the packets that all others send to it.
    let packets: Vec<_> =
        (0..20).flat_map(|_| 1..8).flat_map(|node| [(0, node, 0, 4096, 0), (0, 0, node, 4096, 0)]).collect();
    let (times, report) = simulate(&lossy, 8, &packets);
    let report = report.unwrap();
    assert_eq!((times.len() as u64, report.packets), (280, 280));
    assert!(report.answers.acknowledgements > 280 && report.drops == report.resent, "{:?}", report.answers);
}

#[test]
fn cards_are_paused_and_go_on() {
    let settings =
        ["network.fabric.flow=pfc", "network.fabric.pfc.pause_bytes=8192", "network.fabric.pfc.resume_bytes=4096"];
    let paused = network(&[&["network.model=fabric", "network.topology=single-switch"], &settings[..]].concat());
    let packets: Vec<_> = (0..5).flat_map(|_| [(0, 1, 0, 4096, 0), (0, 2, 0, 4096, 0)]).collect();
    let (times, report) = simulate(&paused, 3, &packets);
    // The switch has room for two packets of each card before it pauses them. Node 2's third is the first excess one;
    // it has one left when the port has sent six packets. The frame takes 64 bytes and a wire.
    let goes_on = WIRE + SWITCH + 6 * FULL + 64 * 20 + WIRE;
    assert_eq!(times[9], (goes_on, goes_on + FULL, SWITCH + 2 * WIRE + 9 * FULL));
    let arrivals: Vec<u64> = times.iter().map(|times| times.2).collect();
    let in_turn = |turn: u64| SWITCH + 2 * WIRE + turn * FULL;
    assert_eq!(arrivals[..8], [0, 1, 2, 3, 4, 5, 6, 7].map(in_turn));
    let report = report.unwrap();
    assert_eq!((report.answers.pauses, report.answers.paused, report.drops), (2, Time::from_ps(8 * FULL), 0));
}

#[test]
fn impossible_networks_are_refused() {
    let error = |settings: &[&str]| {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../machines");
        let settings: Vec<String> = settings.iter().map(|setting| (*setting).to_owned()).collect();
        match Machine::load("sc17-int", &[folder], &settings) {
            Ok(machine) => Interconnect::<Packet>::new(&machine.network, 16).unwrap_err().to_string(),
            Err(error) => error.to_string(),
        }
    };
    assert!(error(&["network.topology=torus"]).contains("needs network.model = \"fabric\""));
    assert!(error(&["network.topology=ring"]).contains("\"fat-tree\", \"single-switch\", \"dragonfly\", \"torus\""));
    let small = error(&["network.fabric.buffer_bytes=4095"]);
    assert!(small.ends_with("must hold a packet of network.mtu_bytes (4096), is 4095"), "{small}");
    let wrong = error(&["network.fabric.dims=4x4"]);
    assert!(wrong.ends_with("is for the topology \"torus\", not \"fat-tree\""), "{wrong}");
    let torus = ["network.model=fabric", "network.topology=torus", "network.fabric.dims=2x2"];
    assert_eq!(error(&torus), "torus of 2x2 switches has 4 hosts, the run needs 16");
    let file = ["network.model=fabric", "network.topology=no.dot"];
    assert!(error(&file).starts_with("cannot read no.dot: "));
    assert!(error(&["network.fabric.taper=36"]).ends_with("must be at most 35, is 36"));
    // Cards send their packets in one order.
    for (setting, key) in
        [("network.fabric.flow=trim", "flow \"trim\""), ("network.fabric.rate_control=dcqcn", "rate_control \"dcqcn\"")]
    {
        let wrong = error(&["network.model=fabric", setting]);
        assert!(wrong.starts_with(&format!("network.fabric.{key} is for `spinkit goal run packet` only")), "{wrong}");
    }
    for (setting, what) in [
        ("dcqcn.mark_percent=101", "must be at most 100, is 101"),
        ("dcqcn.mark_from_bytes=200001", "must be at most 200000, is 200001"),
        ("dcqcn.gain_inverse=0", "must be at least 1, is 0"),
        ("dcqcn.timer_ns=0", "must be at least 1, is 0"),
        ("trim.window_packets=0", "must be at least 1, is 0"),
        ("trim.header_bytes=0", "must be at least 1, is 0"),
        ("pfc.pause_bytes=0", "must be at least 1, is 0"),
        ("ack_bytes=-1", "must not be negative, is -1"),
        ("rate_control=fast", "must be one of \"none\", \"dcqcn\", is \"fast\""),
        ("pfc.pause=1", "unknown key"),
    ] {
        let wrong = error(&[&format!("network.fabric.{setting}")]);
        assert!(wrong.contains(what), "{wrong}");
    }
}

/// Returns a network with two levels of 4-port switches for 8 nodes; the named switches have handlers.
fn with_handlers(names: &str, more: &[&str]) -> machine::Network {
    let handlers = format!("network.switch.handlers=\"{names}\"");
    network(&[&["network.radix=4", "network.model=fabric", &handlers], more].concat())
}

#[test]
fn switches_with_handlers_are_nodes_behind_the_others() {
    let of = |names: &str| Interconnect::<Packet>::new(&with_handlers(names, &[]), 8).unwrap();
    let two = of("switch 1 of level 2; switch 0 of level 1");
    assert_eq!(two.switches(), ["switch 0 of level 1", "switch 1 of level 2"], "in the order of the network");
    assert_eq!(two.nodes(), 10);
    assert_eq!(of("switch * of level 1").switches().len(), 4);
    assert_eq!(of("*").switches().len(), 6);
    // From a host: its link and the accelerator's; from the other leaf, two more links; from leaf to root, one between
    // two.
    let distance = |from, to| two.distance(from, to).unwrap();
    assert_eq!([distance(0, 8), distance(8, 1), distance(2, 8), distance(8, 9), distance(0, 7)], [2, 2, 4, 3, 4]);
    let error = Interconnect::<Packet>::new(&with_handlers("switch 0 of level 3", &[]), 8).unwrap_err();
    assert_eq!(
        error.to_string(),
        "network.switch.handlers: the network has no switch \"switch 0 of level 3\"; one of its switches is \"switch 0 of level 1\""
    );
}

#[test]
fn a_packet_passes_a_switch_before_and_after_its_accelerator() {
    let network = with_handlers("switch 0 of level 1", &[]);
    let packets = [(0, 0, 8, 4096, 0), (1_000_000, 8, 1, 4096, 0), (2_000_000, 4, 8, 4096, 0)];
    let (times, report) = simulate(&network, 8, &packets);
    // The link between switch and accelerator has latency zero, and the bandwidth of the others.
    assert_eq!(times[0], (0, FULL, WIRE + SWITCH));
    assert_eq!(times[1], (1_000_000, 1_000_000 + FULL, 1_000_000 + SWITCH + WIRE));
    assert_eq!(times[2].2, 2_000_000 + 3 * (WIRE + SWITCH));
    let report = report.unwrap();
    assert_eq!((report.hosts, report.switches, report.packet_hops), (8, 6, 2 + 2 + 4));

    // With a speedup of four, a packet leaves the accelerator in a quarter of the time. Its first byte waits until the
    // slower link can continue without a pause, which is at once.
    let (times, _) = simulate(&with_handlers("switch 0 of level 1", &["network.switch.speedup=4"]), 8, &packets);
    assert_eq!(times[1], (1_000_000, 1_000_000 + FULL / 4, 1_000_000 + SWITCH + WIRE));
    // On the way in, the fast link waits for the tail that a slow one still delivers.
    assert_eq!(times[0], (0, FULL, WIRE + SWITCH + FULL - FULL / 4));
}

#[test]
fn accelerators_on_switches_do_not_change_the_ways_of_others_in_a_fat_tree() {
    let packets = all_to_all(8, 3);
    let plain = network(&["network.radix=4", "network.model=fabric"]);
    let (times, _) = simulate(&plain, 8, &packets);
    assert_eq!(simulate(&with_handlers("switch 0 of level 2", &[]), 8, &packets).0, times);
}

#[test]
fn every_node_reaches_every_switch_with_handlers_in_every_topology() {
    for (topology, nodes) in
        [("fat-tree", 16), ("single-switch", 5), ("dragonfly", 12), ("torus", 12), ("fat-tree", 40)]
    {
        let topology = format!("network.topology={topology}");
        for routing in ["ecmp", "adaptive"] {
            let routing = format!("network.fabric.routing={routing}");
            let small = ["network.fabric.buffer_bytes=4096", &topology, &routing];
            let network = with_handlers("*", &small);
            let all = Interconnect::<Packet>::new(&network, nodes).unwrap().nodes() as u32;
            let (times, report) = simulate(&network, nodes, &all_to_all(all, 2));
            assert_eq!(
                times.len() as u32,
                2 * all * (all - 1),
                "{topology}: all arrive, although buffers hold one packet"
            );
            assert!(report.unwrap().hosts as usize >= nodes);
        }
    }
}

#[test]
fn bytes_are_counted_on_each_link() {
    let network = with_handlers("switch 0 of level 1", &[]);
    let mut interconnect: Interconnect<Packet> = Interconnect::new(&network, 8).unwrap();
    let mut queue = Queue(EventQueue::default());
    for packet in 0..3 {
        let injection = Injection { from: 1, to: 8, bytes: 1000, gap: Time::ZERO };
        let departure = interconnect.inject(Time::ZERO, injection, &mut queue).unwrap();
        interconnect.transmit(1, 8, departure, packet, &mut queue);
    }
    while let Some((now, due)) = queue.0.pop() {
        if let Due::Network(event) = due {
            interconnect.handle(now, event, &mut queue);
        }
    }
    let traffic: Vec<_> = interconnect
        .traffic()
        .unwrap()
        .into_iter()
        .map(|link| (link.from, link.to, link.packets, link.bytes))
        .collect();
    let link = |from: &str, to: &str| (from.to_owned(), to.to_owned(), 3, 3000);
    let switch = "switch 0 of level 1";
    assert_eq!(traffic, [link("host 1", switch), link(switch, "accelerator of switch 0 of level 1")]);
}
