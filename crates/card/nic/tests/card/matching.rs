// SPDX-License-Identifier: Apache-2.0
//! Matching of messages to entries, and the notifications of program and initiator (Portals 4.3 §3.12).

use abi::portals::{self as ptl, AckReq, EventKind, Handle, List, NiFail, Process, me, ni};
use nic::testing::packets::{data, header, packets, put};
use nic::testing::{Recorder, any_entry};
use nic::{Body, NewEntry, Request, RequestKind, Response};
use sim::Time;

use crate::rig::{NI, Rig, cards};

const FIRST: u64 = 0x10_0000;
const SECOND: u64 = 0x20_0000;
const THIRD: u64 = 0x30_0000;

/// Creates one card without peers, and the queue of its portal table entry 0.
fn alone(options: u32) -> (Rig, Handle) {
    let mut rig = cards(1, &[], Recorder::default());
    let eq = rig.cards[0].portals_mut().eq_alloc(NI, 32).unwrap();
    rig.portal(0, NI, 0, options, eq);
    (rig, eq)
}

/// Creates an entry with these match bits; its start identifies it to the program.
fn entry(start: u64, match_bits: u64, options: u32) -> NewEntry {
    let mut new = any_entry(start, 4096, me::EVENT_LINK_DISABLE | options);
    (new.me.match_bits, new.user_ptr) = (match_bits, start);
    new
}

/// Delivers messages one after the other; returns the program's events.
fn deliver(rig: &mut Rig, eq: Handle, requests: &[Request]) -> Vec<(EventKind, u64, NiFail)> {
    for (request, id) in requests.iter().zip(1..) {
        for packet in packets(&header(id, *request), 4096) {
            rig.arrive(rig.now, packet);
        }
        rig.run();
    }
    told(rig, eq)
}

/// Returns the program's events: kind, `user_ptr` of the entry, and outcome.
fn told(rig: &mut Rig, eq: Handle) -> Vec<(EventKind, u64, NiFail)> {
    let events = rig.events(0, eq).into_iter();
    events.map(|event| (kind(event.kind), event.user_ptr, fail(event.ni_fail_type))).collect()
}

fn kind(raw: u8) -> EventKind {
    *EventKind::ALL.iter().map(|(kind, _)| kind).find(|kind| **kind as u8 == raw).unwrap()
}

fn fail(raw: u8) -> NiFail {
    *NiFail::ALL.iter().map(|(fail, _)| fail).find(|fail| **fail as u8 == raw).unwrap()
}

/// Returns the answers that the card sent.
fn answers(rig: &Rig) -> Vec<Response> {
    let response = |body: &Body| match body {
        Body::Response(response) => *response,
        Body::Request(request) => panic!("the card has sent a request: {request:?}"),
    };
    rig.around.departures.iter().map(|left| response(&left.packet.header.body)).collect()
}

fn acknowledged(request: Request) -> Request {
    Request { ack: AckReq::Ack, op: Some(5), ..request }
}

#[test]
fn entries_match_in_the_order_of_their_appending_and_the_priority_list_comes_first() {
    let (mut rig, eq) = alone(0);
    rig.append(0, NI, List::Overflow, entry(THIRD, 7, 0));
    rig.append(0, NI, List::Priority, entry(FIRST, 7, me::USE_ONCE));
    rig.append(0, NI, List::Priority, entry(SECOND, 7, me::USE_ONCE));
    let request = Request { match_bits: 7, ..put(16) };
    let told = deliver(&mut rig, eq, &[request, request, request]);
    let ok = NiFail::Ok;
    assert_eq!(
        told,
        [
            (EventKind::Put, FIRST, ok),
            (EventKind::AutoUnlink, FIRST, ok),
            (EventKind::Put, SECOND, ok),
            (EventKind::AutoUnlink, SECOND, ok),
            (EventKind::Put, THIRD, ok),
        ]
    );
    for start in [FIRST, SECOND, THIRD] {
        assert_eq!(rig.around.load(0, start, 16), data(0, 16), "{start:#x}");
    }
}

#[test]
fn bits_and_initiators_that_an_entry_ignores_do_not_matter() {
    let (mut rig, eq) = alone(0);
    let mut from_two = entry(FIRST, 0x70, 0);
    from_two.me.match_id = Process { nid: 2, pid: ptl::ID_ANY };
    let mut low_bits = entry(SECOND, 0x70, 0);
    low_bits.me.ignore_bits = 0xf;
    rig.append(0, NI, List::Priority, from_two);
    rig.append(0, NI, List::Priority, low_bits);
    rig.append(0, NI, List::Priority, entry(THIRD, 0x80, 0));
    let from = |nid, match_bits| Request { match_bits, initiator: Process { nid, pid: 0 }, ..put(8) };
    let told = deliver(&mut rig, eq, &[from(1, 0x70), from(2, 0x70), from(2, 0x7f), from(1, 0x80), from(1, 0x81)]);
    let takers: Vec<u64> = told.iter().map(|(_, user_ptr, _)| *user_ptr).collect();
    assert_eq!(takers, [SECOND, FIRST, SECOND, THIRD], "the last message matches nothing");
    assert_eq!(rig.cards[0].portals_mut().ni_status(NI, ptl::StatusRegister::DropCount as u64), Ok(1));
}

/// Portals 4.3 §3.12: the entry is unlinked when less than `min_free` bytes are left.
#[test]
fn a_locally_managed_offset_advances_until_too_little_room_is_left() {
    let (mut rig, eq) = alone(0);
    let mut managed = entry(FIRST, 0, me::MANAGE_LOCAL);
    (managed.me.le.length, managed.me.min_free) = (100, 30);
    rig.append(0, NI, List::Priority, managed);
    rig.append(0, NI, List::Priority, entry(SECOND, 0, 0));
    // 100 - 40 = 60 ≥ 30; 60 - 35 = 25 < 30. Initiator-chosen offsets do not count for the first entry.
    let told = deliver(&mut rig, eq, &[Request { remote_offset: 9, ..put(40) }, put(35), put(8)]);
    let takers: Vec<(EventKind, u64)> = told.iter().map(|(kind, user_ptr, _)| (*kind, *user_ptr)).collect();
    let first = [(EventKind::Put, FIRST), (EventKind::Put, FIRST), (EventKind::AutoUnlink, FIRST)];
    assert_eq!(takers, [&first[..], &[(EventKind::Put, SECOND)]].concat());
    assert_eq!(rig.around.load(0, FIRST, 75), [data(0, 40), data(0, 35)].concat());
}

#[test]
fn a_message_is_cut_at_the_end_of_its_entry_unless_that_refuses() {
    let (mut rig, eq) = alone(0);
    let mut whole = entry(FIRST, 0, me::NO_TRUNCATE);
    whole.me.le.length = 10;
    let mut short = entry(SECOND, 0, 0);
    short.me.le.length = 20;
    rig.append(0, NI, List::Priority, whole);
    rig.append(0, NI, List::Priority, short);
    for (id, request) in (1..).zip([put(10), put(11), acknowledged(Request { remote_offset: 15, ..put(10) })]) {
        packets(&header(id, request), 4096).into_iter().for_each(|packet| rig.arrive(rig.now, packet));
        rig.run();
    }
    let seen: Vec<_> = rig.events(0, eq).iter().map(|event| (event.user_ptr, event.rlength, event.mlength)).collect();
    assert_eq!(seen, [(FIRST, 10, 10), (SECOND, 11, 11), (SECOND, 10, 5)]);
    let answer = answers(&rig)[0];
    assert_eq!((answer.mlength, answer.remote_offset, answer.fail), (5, 15, NiFail::Ok));
}

/// Life of an unexpected message: an entry appended later takes its header.
#[test]
fn an_appended_entry_takes_the_oldest_unexpected_header_that_it_matches() {
    let (mut rig, eq) = alone(0);
    let mut any = entry(THIRD, 0, me::MANAGE_LOCAL);
    any.me.ignore_bits = u64::MAX;
    rig.append(0, NI, List::Overflow, any);
    let request = |match_bits, hdr_data| Request { match_bits, hdr_data, ..put(8) };
    let told = deliver(&mut rig, eq, &[request(1, 10), request(2, 20), request(2, 21)]);
    assert_eq!(told.len(), 3, "a PUT for each message");
    rig.append(0, NI, List::Priority, entry(FIRST, 2, me::USE_ONCE));
    let events = rig.events(0, eq);
    let seen: Vec<_> = events.iter().map(|event| (kind(event.kind), event.user_ptr, event.hdr_data)).collect();
    assert_eq!(seen, [(EventKind::PutOverflow, FIRST, 20), (EventKind::AutoUnlink, FIRST, 0)]);
    assert_eq!(events[0].start, THIRD + 8, "where the second message lies");
}

/// All refusals of a request: the initiator's status, and the status register that counts it.
#[test]
fn refusals_reach_the_initiator_and_the_status_registers() {
    use ptl::StatusRegister::{DropCount, OperationViolations, PermissionViolations};
    let mut foreign = entry(FIRST, 1, 0);
    foreign.me.le.uid = 77;
    let mut puts_only = entry(FIRST, 2, 0);
    puts_only.me.le.options &= !me::OP_GET;
    let mut gets_only = entry(FIRST, 3, 0);
    gets_only.me.le.options &= !me::OP_PUT;
    let get = |match_bits| Request { kind: RequestKind::Get, match_bits, ..put(8) };
    let bits = |match_bits| Request { match_bits, ..put(8) };
    for (request, wanted, register) in [
        (bits(1), NiFail::PermViolation, PermissionViolations),
        (get(2), NiFail::OpViolation, OperationViolations),
        (bits(3), NiFail::OpViolation, OperationViolations),
        (bits(4), NiFail::Dropped, DropCount),
        (Request { pt_index: 9, ..put(8) }, NiFail::Dropped, DropCount),
        (Request { pt_index: 1, ..put(8) }, NiFail::PtDisabled, DropCount),
    ] {
        let (mut rig, eq) = alone(0);
        rig.portal(0, NI, 1, ptl::pt::ALLOC_DISABLED, ptl::EQ_NONE);
        for new in [foreign, puts_only, gets_only] {
            rig.append(0, NI, List::Priority, new);
        }
        assert_eq!(deliver(&mut rig, eq, &[acknowledged(request)]), [], "{wanted:?}");
        let answer = answers(&rig)[0];
        assert_eq!((answer.op, answer.fail, answer.mlength, answer.length), (5, wanted, 0, 0));
        for other in [DropCount, OperationViolations, PermissionViolations] {
            let count = rig.cards[0].portals_mut().ni_status(NI, other as u64);
            assert_eq!(count, Ok(i32::from(other == register)), "{wanted:?} {other:?}");
        }
        assert_eq!(rig.around.written(0), 0, "{wanted:?}");
    }
}

/// Messages without a target interface or, on a physical interface, without a target process.
#[test]
fn nobody_there() {
    let mut rig = cards(1, &[], Recorder::default());
    let (physical, _) = rig.cards[0]
        .portals_mut()
        .ni_init(ptl::IFACE_DEFAULT, ni::NO_MATCHING | ni::PHYSICAL, ptl::ID_ANY, None)
        .unwrap();
    rig.portal(0, physical, 0, 0, ptl::EQ_NONE);
    let to = |interface, pid| {
        let request = acknowledged(Request { target: Process { nid: 0, pid }, ..put(8) });
        let mut header = header(u64::from(interface) << 8 | u64::from(pid), request);
        std::rc::Rc::make_mut(&mut header).interface = interface;
        header
    };
    for header in [to(1, 0), to(3, nic::api::DEFAULT_PID), to(3, nic::api::DEFAULT_PID + 1)] {
        packets(&header, 4096).into_iter().for_each(|packet| rig.arrive(rig.now, packet));
        rig.run();
    }
    let fails: Vec<NiFail> = answers(&rig).iter().map(|answer| answer.fail).collect();
    // The second finds its process, but portal table entry 0 has no entry.
    assert_eq!(fails, [NiFail::Dropped, NiFail::Dropped, NiFail::Undeliverable]);
}

/// A message of 100 bytes whose first byte is at the port at 1 µs, by hand: 100 · 20 ps = 2 ns at the port, 30 ns to
/// match, 100 · 6.7 ps = 0.67 ns and 50 ns over the host's interconnect. The acknowledgement leaves immediately.
#[test]
fn a_deposit_takes_its_time() {
    let (mut rig, eq) = alone(0);
    rig.append(0, NI, List::Priority, entry(FIRST, 0, 0));
    let start = Time::from_ns(1000);
    packets(&header(1, acknowledged(put(100))), 4096).into_iter().for_each(|packet| rig.arrive(start, packet));
    rig.run();
    let written = start + Time::from_ps(2_000 + 30_000 + 670 + 50_000);
    assert_eq!(rig.around.writes.iter().map(|write| write.at).collect::<Vec<_>>(), [written]);
    assert_eq!(rig.around.departures[0].at, written);
    assert!(rig.around.notices.contains(&(written, 0, nic::Notice::Queue(eq))));
}

/// On an rdma card the CPU finishes a message later. An entry that takes the header before that still gets its event.
#[test]
fn a_header_is_taken_before_the_cpu_has_seen_its_message() {
    let mut rig = cards(1, &["nic.kind=rdma"], Recorder::default());
    let eq = rig.cards[0].portals_mut().eq_alloc(NI, 8).unwrap();
    rig.portal(0, NI, 0, 0, eq);
    rig.append(0, NI, List::Overflow, entry(THIRD, 0, 0));
    packets(&header(1, put(8)), 4096).into_iter().for_each(|packet| rig.arrive(rig.now, packet));
    rig.run();
    rig.append(0, NI, List::Priority, entry(FIRST, 0, me::USE_ONCE));
    assert_eq!(told(&mut rig, eq), []);
    assert!(rig.complete(0));
    let ok = NiFail::Ok;
    let expected =
        [(EventKind::Put, THIRD, ok), (EventKind::PutOverflow, FIRST, ok), (EventKind::AutoUnlink, FIRST, ok)];
    assert_eq!(told(&mut rig, eq), expected);
}
