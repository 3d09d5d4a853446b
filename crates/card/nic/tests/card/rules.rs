// SPDX-License-Identifier: Apache-2.0
//! Messages by the rules of LogGOPSim2, with hand-computed times: L = 50 ns to and from host memory, 20 ps per byte on
//! the wire, a header matched in 30 ns, a later packet in 2 ns. From port to port a packet takes 198.7 ns: 116.8 ns of
//! wires and switch, and 4095 bytes for the network, which takes whole packets.

use abi::portals::{AckReq, CT_NONE, EQ_NONE, me};
use nic::testing::Recorder;
use sim::Time;

use crate::rig::{NI, Rig, append, bind, cards, target};

const FROM: u64 = 0x10_0000;
const TO: u64 = 0x80_0000;
const RULES: [&str; 5] = [
    "network.injection=sum",
    "nic.match_overlaps=gap",
    "nic.match_reply_ns=30",
    "dma.messages=latency",
    "dma.handlers=requests",
];

/// Creates two cards with these rules, and a counter of the messages at the second.
fn network(more: &[&str]) -> (Rig, u32) {
    let mut rig = cards(2, &[&RULES, more].concat(), Recorder::connected(Time::from_ps(198_700)));
    (0..2).for_each(|node| rig.portal(node, NI, 0, 0, EQ_NONE));
    let far = rig.counter(1, NI);
    append(&mut rig, 1, NI, TO, 1 << 20, me::EVENT_CT_COMM, far);
    (rig, far)
}

/// Runs until a counter of a node reaches `count`; returns that time.
fn counted(rig: &mut Rig, node: usize, ct: u32, count: u64) -> u64 {
    while rig.count(node, ct).0 < count {
        assert!(rig.step(), "{:?} of {count}", rig.count(node, ct));
    }
    rig.now.as_ps()
}

/// LogGOPSim2's M(s), from the start at the port to the match of the last packet, between two latencies.
#[test]
fn a_put_takes_two_latencies_and_the_reception_and_match_of_each_packet() {
    let messages = [
        (0, 198_700 + 30_000),
        (8, 198_700 + 7 * 20 + 30_000),
        (4096, 198_700 + 4095 * 20 + 30_000),
        (65_536, 198_700 + (81_900 + 30_000) + 15 * (81_900 + 2_000)),
        // The last packet waits for the match of the previous one, then takes its own 99 bytes.
        (4196, 198_700 + (81_900 + 30_000) + 99 * 20 + 2_000),
    ];
    for (bytes, on_the_way) in messages {
        let (mut rig, far) = network(&[]);
        rig.around.fill(0, FROM, bytes);
        let md = bind(&mut rig, 0, FROM, bytes, CT_NONE);
        rig.put(0, md, bytes, AckReq::None, target(1, 0));
        assert_eq!(counted(&mut rig, 1, far, 1), 50_000 + on_the_way + 50_000, "{bytes} B");
        assert_eq!(rig.around.load(1, TO, bytes), rig.around.load(0, FROM, bytes), "{bytes} B");
    }
}

/// The port is busy for g + (s - 1) G per message, and whole messages leave in posting order.
#[test]
fn messages_leave_a_gap_and_their_bytes_apart() {
    let (mut rig, _) = network(&[]);
    let md = bind(&mut rig, 0, FROM, 1 << 20, CT_NONE);
    for bytes in [8, 65_536, 0, 4096, 1] {
        rig.put(0, md, bytes, AckReq::None, target(1, 0));
    }
    rig.run();
    let left: Vec<(u64, u64)> =
        rig.around.departures.iter().map(|left| (left.at.as_ps(), left.packet.offset)).collect();
    let mut expected = vec![(50_000, 0)];
    let mut start = 50_000 + 6_700 + 7 * 20;
    expected.extend((0..16).map(|packet| (start + packet * 81_920, packet * 4096)));
    start += 6_700 + 65_535 * 20;
    expected.push((start, 0));
    start += 6_700;
    expected.push((start, 0));
    start += 6_700 + 4095 * 20;
    expected.push((start, 0));
    assert_eq!(left, expected);
}

/// The reply of a get takes no time at the target, and is matched like any message.
#[test]
fn a_get_takes_a_latency_on_either_end() {
    let (mut rig, _) = network(&[]);
    let near = rig.counter(0, NI);
    let md = bind(&mut rig, 0, FROM, 4096, near);
    rig.around.fill(1, TO, 4096);
    rig.get(0, md, 4096, target(1, 0));
    let request = 50_000 + 198_700 + 30_000;
    assert_eq!(counted(&mut rig, 0, near, 1), request + 198_700 + 4095 * 20 + 30_000 + 50_000);
    assert_eq!(rig.around.load(0, FROM, 4096), rig.around.load(1, TO, 4096));
}

/// The part of the gap between messages that exceeds their matching keeps the target's port busy.
#[test]
fn the_gap_runs_beside_the_match() {
    for (header_ns, apart) in [("30", 30_140), ("2", 6_840), ("0", 6_840)] {
        let (mut rig, far) = network(&[&format!("nic.match_header_ns={header_ns}"), "network.g_ns=6.7"]);
        let md = bind(&mut rig, 0, FROM, 8, CT_NONE);
        // Both arrive at the same time.
        let own = bind(&mut rig, 1, FROM, 8, CT_NONE);
        rig.put(0, md, 8, AckReq::None, target(1, 0));
        rig.put(1, own, 8, AckReq::None, target(1, 0));
        let first = counted(&mut rig, 1, far, 1);
        assert_eq!(counted(&mut rig, 1, far, 2) - first, apart, "{header_ns} ns");
    }
}

/// A get behind a put reads the put's data, although its reply leaves immediately.
#[test]
fn a_get_reads_what_the_put_before_it_has_written() {
    let (mut rig, _) = network(&[]);
    let near = rig.counter(0, NI);
    rig.around.fill(0, FROM, 8);
    let (from, to) = (bind(&mut rig, 0, FROM, 8, CT_NONE), bind(&mut rig, 0, FROM + 64, 8, near));
    rig.put(0, from, 8, AckReq::None, target(1, 0));
    rig.get(0, to, 8, target(1, 0));
    rig.run();
    assert_eq!(rig.count(0, near), (1, 0));
    assert_eq!(rig.around.load(0, FROM + 64, 8), rig.around.load(0, FROM, 8));
}
