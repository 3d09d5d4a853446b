// SPDX-License-Identifier: Apache-2.0
//! Packets of messages in any order: interleaved, overtaking each other, before their header.
//!
//! The port takes 20 ps per byte and at least 6.7 ns for a header packet; matching a header takes 30 ns, looking up
//! another packet 2 ns; data crosses to the host at 6.7 ps per byte, one packet after the other, plus 50 ns.

use abi::portals::{AckReq, EQ_NONE, List, NiFail, me};
use nic::testing::packets::{data, header, packets, put};
use nic::testing::{Recorder, any_entry};
use nic::{Body, DropReason, Packet, Request, Track};
use sim::Time;

use crate::rig::{NI, Rig, cards};

const TO: u64 = 0x10_0000;
const MTU: u32 = 64;

/// Creates a card with small packets, and an entry for each match bits below 4.
fn receiver(settings: &[&str]) -> Rig {
    let settings = [&["network.mtu_bytes=64"][..], settings].concat();
    let mut rig = cards(1, &settings, Recorder::default());
    rig.portal(0, NI, 0, 0, EQ_NONE);
    for match_bits in 0..4 {
        let mut new = any_entry(TO + match_bits * 0x1_0000, 4096, me::EVENT_COMM_DISABLE);
        new.me.match_bits = match_bits;
        rig.append(0, NI, List::Priority, new);
    }
    rig
}

/// Returns the packets of a message that requests an acknowledgement for operation `match_bits`.
fn message(match_bits: u64, length: u64) -> Vec<Packet> {
    let request = Request { match_bits, ack: AckReq::Ack, op: Some(match_bits as u32), ..put(length) };
    packets(&header(match_bits + 1, request), MTU)
}

/// Returns the arrival times of data in host memory, and its offsets in the message.
fn written(rig: &Rig) -> Vec<(u64, u64)> {
    rig.around.writes.iter().map(|write| (write.at.as_ps(), write.start & 0xffff)).collect()
}

/// Returns operation and outcome of the acknowledgements.
fn acknowledgements(rig: &Rig) -> Vec<(u32, NiFail)> {
    let answer = |packet: &Packet| match packet.header.body {
        Body::Response(response) => (response.op, response.fail),
        Body::Request(_) => panic!("the card has sent a request"),
    };
    rig.around.departures.iter().map(|left| answer(&left.packet)).collect()
}

/// Delivers packets, all at once, and handles all further events.
fn arrive(rig: &mut Rig, packets: impl IntoIterator<Item = Packet>) {
    packets.into_iter().for_each(|packet| rig.arrive(rig.now, packet));
    rig.run();
}

#[test]
fn two_messages_interleaved_go_where_each_belongs() {
    let mut rig = receiver(&[]);
    let (one, two) = (message(0, 150), message(1, 130));
    arrive(&mut rig, one.into_iter().zip(two).flat_map(|(one, two)| [one, two]));
    assert_eq!(rig.around.load(0, TO, 150), data(0, 150));
    assert_eq!(rig.around.load(0, TO + 0x1_0000, 130), data(0, 130));
    assert_eq!(acknowledgements(&rig), [(0, NiFail::Ok), (1, NiFail::Ok)]);
    // Two headers, two full packets, 22 bytes and 2 bytes: each starts when the previous one is through.
    let starts: Vec<u64> = rig.around.row(0, Track::NicIn).iter().map(|(start, _)| start.as_ps()).collect();
    assert_eq!(starts, [0, 6_700, 13_400, 14_680, 15_960, 16_400]);
}

#[test]
fn a_packet_that_arrives_while_the_header_is_matched_waits_for_the_match() {
    let mut rig = receiver(&[]);
    arrive(&mut rig, message(0, 128));
    // The header is through the port at 1.28 ns and matched at 31.28 ns; the other packet is looked up 2 ns later. Each
    // takes 64 * 6.7 ps = 428.8 ps to the host, and 50 ns; the path is free again for the second.
    assert_eq!(written(&rig), [(31_280 + 429 + 50_000, 0), (33_280 + 429 + 50_000, 64)]);
}

#[test]
fn packets_overtake_each_other_behind_the_header() {
    let mut rig = receiver(&[]);
    let packets = message(0, 300);
    arrive(&mut rig, [0, 4, 2, 1, 3].map(|number| packets[number].clone()));
    assert_eq!(rig.around.load(0, TO, 300), data(0, 300));
    assert_eq!(acknowledgements(&rig), [(0, NiFail::Ok)]);
    assert_eq!(rig.cards[0].stats().counts.packets_held, 0);
}

#[test]
fn packets_that_precede_their_header_wait_for_it() {
    let mut rig = receiver(&[]);
    let packets = message(0, 192);
    rig.arrive(Time::ZERO, packets[2].clone());
    rig.arrive(Time::ZERO, packets[1].clone());
    rig.run();
    assert_eq!((rig.around.writes.len(), rig.cards[0].stats().counts.packets_held), (0, 2));
    // Much later the header arrives; it is matched after 31.28 ns, and the others are looked up 2 ns later.
    rig.arrive(Time::from_ns(1000), packets[0].clone());
    rig.run();
    let header = 1_000_000 + 31_280 + 429 + 50_000;
    let first = 1_000_000 + 33_280 + 429 + 50_000; // in the order of arrival, back to back
    assert_eq!(written(&rig), [(header, 0), (first, 128), (first + 429, 64)]);
    assert_eq!(rig.around.load(0, TO, 192), data(0, 192));
    assert_eq!(acknowledgements(&rig), [(0, NiFail::Ok)]);
}

#[test]
fn a_packet_just_before_its_header_waits_for_the_match() {
    let mut rig = receiver(&[]);
    let mut packets = message(0, 128);
    packets.swap(0, 1);
    arrive(&mut rig, packets);
    // The header is through the port behind the other packet at 2.56 ns.
    assert_eq!(written(&rig), [(32_560 + 429 + 50_000, 0), (34_560 + 429 + 50_000, 64)]);
    assert_eq!(
        rig.cards[0].stats().counts.packets_held,
        0,
        "the header was there before the packet had been looked up"
    );
}

/// Two packet buffers: of five packets that precede their headers, three find no room.
#[test]
fn packets_that_find_no_room_fail_their_message() {
    let mut rig = receiver(&["accelerator.packet_buffer_bytes=128"]);
    let (one, two) = (message(0, 192), message(1, 256));
    arrive(&mut rig, [&two[1], &one[1], &two[2], &one[2], &two[3]].map(Packet::clone));
    arrive(&mut rig, [one[0].clone()]);
    assert_eq!(acknowledgements(&rig), [(0, NiFail::PtDisabled)]);
    assert_eq!(rig.cards[0].portals_mut().pt_enable(NI, 0), Ok(()));
    // The first message has released its buffer.
    arrive(&mut rig, [two[0].clone()]);
    assert_eq!(acknowledgements(&rig), [(0, NiFail::PtDisabled), (1, NiFail::PtDisabled)]);
    let stats = rig.cards[0].stats();
    assert_eq!((stats.counts.packets_held, stats.counts.packets_dropped, stats.flow_control), (2, 3, 2));
    let drops = &stats.counts.drops[&DropReason::NoBuffer];
    assert_eq!((drops.messages, drops.packets, drops.bytes), (2, 3, 192));
    rig.cards[0].portals_mut().pt_enable(NI, 0).unwrap();
    let third = message(2, 192);
    arrive(&mut rig, third.into_iter().rev());
    assert_eq!(rig.around.load(0, TO + 0x2_0000, 192), data(0, 192), "all places are free again");
}

/// A message without a matching entry ends when all of it has arrived, regardless of the header's position.
#[test]
fn an_early_packet_of_a_message_that_nobody_takes_is_thrown_away() {
    let mut rig = receiver(&[]);
    let mut packets = message(9, 128);
    packets.swap(0, 1);
    rig.arrive(Time::ZERO, packets[0].clone());
    rig.run();
    rig.arrive(rig.now, packets[1].clone());
    rig.run();
    assert_eq!(acknowledgements(&rig), [(9, NiFail::Dropped)]);
    assert_eq!(rig.around.written(0), 0);
}
