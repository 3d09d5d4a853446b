// SPDX-License-Identifier: Apache-2.0
//! Tests of messages over a fabric, with times computed by hand.

use sim::{DelayQueue, Time, TimePerByte};

use super::{Event, Message, MessageNetwork, Notice};
use crate::fabric::{Flow, Parameters, Report, Routing, Transport};
use crate::{Dragonfly, Topology};

/// Returns the parameters of sPIN §4.2: 20 ps per byte, 50 ns per switch, 33.4 ns per wire.
pub(super) fn sc17() -> Parameters {
    Parameters {
        gap_per_byte: TimePerByte::from_fs_per_byte(20_000),
        wire: Time::from_ps(WIRE),
        switch: Time::from_ps(SWITCH),
        mtu: MTU as u32,
        gap: Time::from_ps(6_700),
        buffer: 1 << 20,
        flow: Flow::Credits,
        routing: Routing::Ecmp,
        seed: 1,
        transport: Transport::USUAL,
    }
}

pub(super) const WIRE: u64 = 33_400;
pub(super) const SWITCH: u64 = 50_000;
pub(super) const MTU: u64 = 4096;
/// Picoseconds per byte.
pub(super) const G: u64 = 20;

/// Sends messages of (time in ps, from, to, bytes). Returns their arrivals in picoseconds, and the report.
pub(super) fn simulate(
    topology: Topology,
    parameters: &Parameters,
    messages: &[(u64, u32, u32, u64)],
) -> (Vec<u64>, Report) {
    let mut network = MessageNetwork::new(topology, parameters.clone()).unwrap();
    let mut queue: DelayQueue<Event> = DelayQueue::default();
    for (token, &(at, from, to, bytes)) in (0..).zip(messages) {
        let message = Message { from, to, bytes, token, tell_sent: false, is_urgent: false };
        network.send(Time::ZERO, Time::from_ps(at), message, &mut queue);
    }
    let mut arrivals = vec![None; messages.len()];
    while let Some((now, event)) = queue.pop() {
        if let Some(Notice::Arrived { token, .. }) = network.handle(now, event, &mut queue) {
            assert_eq!(arrivals[token as usize].replace(now.as_ps()), None, "arrived twice");
        }
    }
    assert_eq!((network.in_flight(), network.fabric.packets().len()), (0, 0));
    let arrivals: Vec<u64> = arrivals.into_iter().map(|at| at.expect("all arrive")).collect();
    let end = Time::from_ps(arrivals.iter().copied().max().unwrap());
    (arrivals, network.report(end, 100))
}

pub(super) fn all_to_all(hosts: u32, bytes: u64) -> Vec<(u64, u32, u32, u64)> {
    let pairs = (1..hosts).flat_map(|step| (0..hosts).map(move |from| (from, (from + step) % hosts)));
    pairs.map(|(from, to)| (0, from, to, bytes)).collect()
}

#[test]
fn a_packet_pays_its_bytes_once_and_its_path_once() {
    for bytes in [1, 100, MTU] {
        let (arrivals, report) = simulate(Topology::single_switch(2).unwrap(), &sc17(), &[(7, 0, 1, bytes)]);
        assert_eq!(arrivals, [7 + bytes * G + SWITCH + 2 * WIRE]);
        assert_eq!((report.packets, report.packet_hops), (1, 2));
        let (arrivals, report) = simulate(Topology::fat_tree(4, 1, 16).unwrap(), &sc17(), &[(0, 0, 15, bytes)]);
        assert_eq!(arrivals, [bytes * G + 5 * SWITCH + 6 * WIRE]);
        assert_eq!(report.packet_hops, 6);
    }
    // An empty message costs as much as one of one byte.
    assert_eq!(simulate(Topology::single_switch(2).unwrap(), &sc17(), &[(0, 0, 1, 0)]).0, [G + SWITCH + 2 * WIRE]);
}

#[test]
fn packets_of_a_message_follow_without_a_gap() {
    let bytes = 100 * MTU + 5;
    let (arrivals, report) = simulate(Topology::fat_tree(4, 1, 16).unwrap(), &sc17(), &[(0, 0, 15, bytes)]);
    assert_eq!(arrivals, [bytes * G + 5 * SWITCH + 6 * WIRE]);
    assert_eq!((report.packets, report.packet_hops, report.busiest.len()), (101, 606, 6));
    let busy = (bytes * G) as f64 / arrivals[0] as f64;
    assert!(report.busiest.iter().all(|link| (link.utilization - busy).abs() < 1e-12 && link.packets == 101));
}

#[test]
fn messages_of_a_card_are_a_gap_apart() {
    let parameters = Parameters { gap: Time::from_ns(100), ..sc17() };
    // 100 ns and the bytes after the first.
    let path = SWITCH + 2 * WIRE;
    let messages = [(0, 0, 1, 11), (0, 0, 1, 1), (0, 0, 1, 1), (500_000, 0, 1, 1)];
    let arrivals = simulate(Topology::single_switch(2).unwrap(), &parameters, &messages).0;
    let second = 100_000 + 10 * G;
    assert_eq!(arrivals, [11 * G + path, second + G + path, second + 100_000 + G + path, 500_000 + G + path]);
}

#[test]
fn a_slower_link_sets_the_pace_and_a_faster_one_waits_for_the_tail() {
    // 400, 100 and 400 Gbit/s are 20, 80 and 20 ps per byte.
    let text = "graph { edge [latency=0] h0 -- a b -- h1 [capacity=400] a -- b [capacity=100] }";
    let topology = Topology::from_dot(text).unwrap();
    let path = 2 * SWITCH;
    // On the slow link the packet takes 4096 x 80 ps; its tail leaves the fast link together with that of the slow one.
    let arrivals = simulate(topology.clone(), &sc17(), &[(0, 0, 1, MTU)]).0;
    assert_eq!(arrivals, [MTU * 80 + path]);
    let arrivals = simulate(topology, &sc17(), &[(0, 0, 1, 50 * MTU)]).0;
    assert_eq!(arrivals, [50 * MTU * 80 + path]);
}

#[test]
fn an_incast_takes_as_long_as_the_last_link_needs_for_all() {
    for (senders, bytes) in [(2, MTU), (10, 3 * MTU), (31, 10 * MTU)] {
        let messages: Vec<_> = (1..=senders).map(|from| (0, from, 0, bytes)).collect();
        for flow in [Flow::Credits, Flow::Drop] {
            let parameters = Parameters { flow, buffer: 1 << 24, ..sc17() };
            let topology = Topology::single_switch(senders as usize + 1).unwrap();
            let (arrivals, report) = simulate(topology, &parameters, &messages);
            let end = u64::from(senders) * bytes * G + SWITCH + 2 * WIRE;
            assert_eq!(arrivals.into_iter().max(), Some(end), "{senders} {flow:?}");
            let (busiest, queue) = (&report.busiest[0], report.longest_queue.unwrap());
            assert_eq!((&*busiest.from, &*busiest.to, &*queue.to), ("switch", "host 0", "host 0"));
            assert_eq!((queue.drops, report.resent), (0, 0));
            // At the arrival of the last packets, the other packets of each sender have left one at a time.
            let rounds = bytes / MTU;
            assert_eq!(queue.longest_queue, u64::from(senders) * bytes - (rounds - 1) * MTU);
        }
    }
}

#[test]
fn the_mean_queue_is_that_of_the_waiting_bytes() {
    // Two simultaneous packets: one leaves in T, the other waits T and leaves in T. Bytes times time: T/2, T + T/2.
    let messages = [(0, 1, 0, MTU), (0, 2, 0, MTU)];
    let (arrivals, report) = simulate(Topology::single_switch(3).unwrap(), &sc17(), &messages);
    let expected = (2 * MTU * MTU * G) as f64 / arrivals[1] as f64;
    let queue = report.longest_queue.unwrap();
    assert!((queue.mean_queue - expected).abs() < 1e-6, "{} {expected}", queue.mean_queue);
    assert_eq!(queue.longest_queue, 2 * MTU);
}

#[test]
fn a_buffer_of_one_packet_sends_one_a_round_trip() {
    // The path has two switches; the buffer behind the wire between them holds one packet. The next packet may leave
    // when the previous one has left that switch (switch latency and bytes later) and its credit has returned.
    let parameters = Parameters { buffer: MTU, ..sc17() };
    let topology = || Topology::from_dot("graph { h0 -- a -- b -- h1 }").unwrap();
    let packets = 20;
    let round = MTU * G + SWITCH + 2 * WIRE;
    let (arrivals, report) = simulate(topology(), &parameters, &[(0, 0, 1, packets * MTU)]);
    assert_eq!(arrivals, [(packets - 1) * round + MTU * G + 2 * SWITCH + 3 * WIRE]);
    assert_eq!(report.packet_hops, 3 * packets);
    // With buffer space for the bytes of a round trip, the link never idles.
    let parameters = Parameters { buffer: MTU + round / G, ..sc17() };
    assert_eq!(
        simulate(topology(), &parameters, &[(0, 0, 1, packets * MTU)]).0,
        [packets * MTU * G + 2 * SWITCH + 3 * WIRE]
    );
}

#[test]
fn congestion_spreads_backwards_with_credits_only() {
    // h0 and h1 send to h4 on b, h2 to h4 from b itself; h3 sends to h5 on b past the congestion, over the same wire.
    let topology = || Topology::from_dot("graph { h0 -- a h1 -- a h2 -- b h3 -- a h4 -- b h5 -- b a -- b }").unwrap();
    let messages = [(0, 0, 4, 50 * MTU), (0, 1, 4, 50 * MTU), (0, 2, 4, 50 * MTU), (0, 3, 5, 20 * MTU)];
    let victim = |flow, buffer| simulate(topology(), &Parameters { flow, buffer, ..sc17() }, &messages).0[3];
    // Three flows share the wire from a to b: alone, 20 packets would take a third of the time.
    let fair = 3 * 20 * MTU * G;
    let free = victim(Flow::Credits, 1 << 20);
    assert!(free < fair + 10 * MTU * G, "{free}");
    assert!(victim(Flow::Credits, 2 * MTU) > fair * 5 / 4);
    assert!(victim(Flow::Drop, 1 << 20) == free);
}

#[test]
fn ecmp_spreads_pairs_and_keeps_each_on_its_way() {
    // Every host of the first leaf sends to every host of the last.
    let topology = || Topology::fat_tree(16, 1, 128).unwrap();
    let messages: Vec<_> = (0..8).flat_map(|from| (120..128).map(move |to| (0, from, to, 10 * MTU))).collect();
    let report = simulate(topology(), &sc17(), &messages).1;
    let up = |report: &Report| {
        let of_leaf = report.busiest.iter().filter(|link| link.from == "switch 0 of level 1");
        of_leaf.map(|link| link.packets).collect::<Vec<_>>()
    };
    let packets = up(&report);
    assert_eq!(packets.iter().sum::<u64>(), 640);
    assert!(packets.len() == 8 && packets.iter().all(|&packets| packets <= 160), "{packets:?}");
    // A pair uses one path for all messages; another seed selects another.
    let pair: Vec<_> = (0..50).map(|_| (0, 0, 127, 3 * MTU)).collect();
    let way = |seed| {
        let report = simulate(topology(), &Parameters { seed, ..sc17() }, &pair).1;
        assert_eq!(report.busiest.len(), 4);
        report.busiest.iter().map(|link| format!("{} {}", link.from, link.to)).collect::<Vec<_>>()
    };
    assert_eq!(way(1), way(1));
    assert!((2..10).any(|seed| way(seed) != way(1)));
}

#[test]
fn adaptive_packets_avoid_the_collisions_of_hashes() {
    // A permutation for which every leaf needs all of its uplinks.
    let messages: Vec<_> = (0..128).map(|from| (0, from, (from + 8) % 128, 100 * MTU)).collect();
    let end = |routing| {
        let (arrivals, report) =
            simulate(Topology::fat_tree(16, 1, 128).unwrap(), &Parameters { routing, ..sc17() }, &messages);
        assert_eq!(report.packet_hops, 128 * 100 * 4);
        arrivals.into_iter().max().unwrap()
    };
    let alone = 100 * MTU * G + 3 * SWITCH + 4 * WIRE;
    assert!(end(Routing::Ecmp) > 2 * alone);
    assert!(end(Routing::Adaptive) < alone * 11 / 10, "{} {alone}", end(Routing::Adaptive));
}

#[test]
fn nothing_waits_for_itself_even_with_buffers_of_a_packet() {
    let ring = "graph { a -- b -- c -- d -- e -- f -- a h1 -- a h2 -- b h3 -- c h4 -- d h5 -- e h6 -- f }";
    let topologies = [
        Topology::torus(&[8], 1),
        Topology::torus(&[4, 4], 1),
        Topology::torus(&[3, 3, 3], 1),
        Topology::torus(&[5, 2], 2),
        Topology::dragonfly(Dragonfly { hosts: 2, routers: 3, global: 1, groups: 4 }),
        Topology::fat_tree(4, 1, 16),
        Topology::from_dot(ring),
    ];
    for topology in topologies.map(Result::unwrap) {
        let messages = all_to_all(topology.hosts(), 3 * MTU + 1);
        for routing in [Routing::Ecmp, Routing::Adaptive] {
            let parameters = Parameters { buffer: MTU, routing, ..sc17() };
            let report = simulate(topology.clone(), &parameters, &messages).1;
            assert_eq!(report.packets, 4 * messages.len() as u64, "{}", topology.description());
        }
    }
}

#[test]
fn a_tapered_tree_has_half_the_bisection() {
    // The hosts of one leaf send to those of another.
    let messages: Vec<_> = (0..16).map(|from| (0, from, from + 16, 100 * MTU)).collect();
    let end = |radix, taper| {
        let parameters = Parameters { routing: Routing::Adaptive, ..sc17() };
        let topology = Topology::fat_tree(radix, taper, 32 + 1).unwrap();
        simulate(topology, &parameters, &messages).0.into_iter().max().unwrap() - 3 * SWITCH - 4 * WIRE
    };
    // Each leaf has 16 hosts, with 16 or 8 uplinks.
    let (full, half) = (end(32, 1), end(24, 2));
    assert!((full..full * 21 / 20).contains(&(half / 2)), "{full} {half}");
}

#[test]
fn lost_packets_are_sent_until_all_is_there() {
    let messages: Vec<_> = (1..32).map(|from| (0, from, 0, 20 * MTU)).collect();
    for routing in [Routing::Ecmp, Routing::Adaptive] {
        let parameters = Parameters { flow: Flow::Drop, buffer: 4 * MTU, routing, ..sc17() };
        let (arrivals, report) = simulate(Topology::fat_tree(8, 1, 32).unwrap(), &parameters, &messages);
        assert_eq!(report.packets, 31 * 20);
        assert!(report.drops > 100 && report.resent == report.drops, "{}", report.drops);
        assert!(*arrivals.iter().max().unwrap() > 31 * 20 * MTU * G);
        assert!(report.longest_queue.unwrap().longest_queue <= 4 * MTU);
        assert!(report.busiest.iter().map(|link| link.drops).sum::<u64>() == report.drops);
    }
    // Computed by hand: one of two simultaneous packets is lost. The bound for each link is a full queue, two packets
    // and the latencies; the path has two links, so the card retransmits after twice that.
    let parameters = Parameters { flow: Flow::Drop, buffer: MTU, ..sc17() };
    let arrivals = simulate(Topology::single_switch(3).unwrap(), &parameters, &[(0, 1, 0, MTU), (0, 2, 0, MTU)]).0;
    let time_out = 2 * (3 * MTU * G + SWITCH + WIRE);
    let alone = MTU * G + SWITCH + 2 * WIRE;
    assert_eq!(arrivals, [alone, time_out + alone]);
}

#[test]
fn answers_go_between_the_packets_of_a_message() {
    let mut network = MessageNetwork::new(Topology::single_switch(2).unwrap(), sc17()).unwrap();
    let mut queue: DelayQueue<Event> = DelayQueue::default();
    let message =
        |token, bytes, is_urgent: bool| Message { from: 0, to: 1, bytes, token, tell_sent: !is_urgent, is_urgent };
    network.send(Time::ZERO, Time::ZERO, message(0, 10 * MTU, false), &mut queue);
    let mut notices = Vec::new();
    while let Some((now, event)) = queue.pop() {
        if event == Event::Send(0) && now == Time::ZERO {
            network.send(now, now, message(1, 1, true), &mut queue);
            network.send(now, now, message(2, 5, false), &mut queue);
        }
        notices.extend(network.handle(now, event, &mut queue).map(|notice| (now.as_ps(), notice)));
    }
    let path = SWITCH + 2 * WIRE;
    // The answer goes first; the short message follows the long one after g - G.
    let (long, short) = (G + 10 * MTU * G, G + 10 * MTU * G + 6_700 - G + 5 * G);
    let expected = [
        (G + path, Notice::Arrived { token: 1, to: 1 }),
        (long, Notice::Sent(0)),
        (short, Notice::Sent(2)),
        (long + path, Notice::Arrived { token: 0, to: 1 }),
        (short + path, Notice::Arrived { token: 2, to: 1 }),
    ];
    assert_eq!(notices, expected);
}

#[test]
fn the_same_input_gives_the_same_output() {
    for (flow, routing) in
        [(Flow::Credits, Routing::Adaptive), (Flow::Drop, Routing::Ecmp), (Flow::Drop, Routing::Adaptive)]
    {
        let parameters = Parameters { flow, routing, buffer: 2 * MTU, ..sc17() };
        let once = || simulate(Topology::torus(&[3, 4], 2).unwrap(), &parameters, &all_to_all(24, 2 * MTU));
        assert_eq!(once(), once());
    }
}

#[test]
fn impossible_parameters_are_named() {
    let error = |change: &dyn Fn(&mut Parameters)| {
        let mut parameters = sc17();
        change(&mut parameters);
        MessageNetwork::new(Topology::single_switch(2).unwrap(), parameters).unwrap_err().to_string()
    };
    assert_eq!(error(&|all| all.mtu = 0), "mtu must be 1 to 2^30 bytes, is 0");
    assert_eq!(error(&|all| all.buffer = 4095), "buffer must hold a packet of 4096 bytes (mtu), is 4095");
    assert_eq!(error(&|all| all.wire = Time::MAX), format!("link-latency must be at most a second, is {}", Time::MAX));
    assert_eq!(
        error(&|all| all.gap_per_byte = TimePerByte::from_fs_per_byte(u64::MAX)),
        "G must be at most 1000000 ns a byte (1 kB/s)"
    );
}
