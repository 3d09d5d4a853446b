// SPDX-License-Identifier: Apache-2.0
//! Operations of a card's own process: triggered operations, events and failures, and the shared DMA engine.

use std::rc::Rc;

use abi::portals::{self as ptl, AckReq, CtEvent, EventKind, List, Md, NiFail, Process, me, ni};
use nic::testing::{Recorder, any_entry};
use nic::{Body, Header, Packet, Response, Track, TriggeredOp};
use sim::Time;

use crate::rig::{NI, append, bind, cards, network, target};

const FROM: u64 = 0x10_0000;
const TO: u64 = 0x80_0000;
const ONE: CtEvent = CtEvent { success: 1, failure: 0 };

/// Operations start when successes and failures reach their threshold, and one counter triggers the next.
#[test]
fn counters_start_what_waits_for_them_in_the_order_of_thresholds() {
    let mut rig = network(2, &[]);
    let (first, second) = (rig.counter(0, NI), rig.counter(0, NI));
    append(&mut rig, 1, NI, TO, 64, 0, ptl::CT_NONE);
    let md = bind(&mut rig, 0, FROM, 64, ptl::CT_NONE);
    let transfer = |rig: &mut crate::rig::Rig, length| {
        TriggeredOp::Transfer(rig.cards[0].portals_mut().put(md, 0, length, AckReq::None as u64, target(1, 0)).unwrap())
    };
    let (at_one, at_two) = (transfer(&mut rig, 1), transfer(&mut rig, 2));
    rig.act(0, |card, ports| {
        card.trigger(0, second, 2, at_two, ports).unwrap();
        card.trigger(0, second, 1, at_one, ports).unwrap();
        card.trigger(0, first, 2, TriggeredOp::CtInc(second, CtEvent { success: 1, failure: 1 }), ports).unwrap();
        card.ct_inc(first, ONE, ports).unwrap();
    });
    rig.run();
    assert_eq!((rig.around.departures.len(), rig.cards[0].portals().triggered_left()), (0, 3));
    rig.act(0, |card, ports| card.ct_inc(first, ONE, ports)).unwrap();
    rig.run();
    let lengths: Vec<usize> = rig.around.departures.iter().map(|left| left.packet.data.len()).collect();
    assert_eq!(lengths, [1, 2]);
    assert_eq!((rig.count(0, second), rig.cards[0].portals().triggered_left()), ((1, 1), 0));
    assert_eq!((rig.cards[0].stats().triggered_peak, rig.cards[1].stats().triggered_peak), (3, 0));
}

/// All fetches and deposits of a card pass one DMA engine, one after the other.
#[test]
fn the_dma_engine_does_one_thing_at_a_time() {
    let mut rig = network(2, &[]);
    for node in 0..2 {
        append(&mut rig, node, NI, TO, 1 << 16, 0, ptl::CT_NONE);
        let md = bind(&mut rig, node, FROM, 20_000, ptl::CT_NONE);
        let other = 1 - node as u32;
        rig.put(node, md, 20_000, AckReq::None, target(other, 0));
        rig.get(node, md, 9_000, target(other, 30_000));
    }
    rig.run();
    for node in 0..2 {
        let mut row = rig.around.row(node, Track::Dma);
        // Five packets fetched and five deposited, and three of each for the gets.
        assert_eq!(row.len(), 16);
        row.sort();
        assert!(row.windows(2).all(|pair| pair[0].1 <= pair[1].0), "{row:?}");
        let busy: Time = row.iter().map(|(start, end)| *end - *start).sum();
        // 29 000 bytes in each direction, 6.7 ps each; ends are rounded to a picosecond.
        assert!(busy.as_ps().abs_diff(58_000 * 67 / 10) < 32, "{busy}");
    }
}

/// The program's event has the status of the answer to a put.
#[test]
fn every_failure_of_an_answer_reaches_the_program() {
    for fail in NiFail::ALL.iter().map(|(fail, _)| *fail) {
        let mut rig = cards(2, &[], Recorder::default());
        let (eq, ct) = (rig.cards[0].portals_mut().eq_alloc(NI, 8).unwrap(), rig.counter(0, NI));
        let options = ptl::md::EVENT_CT_ACK | ptl::md::EVENT_SEND_DISABLE;
        let md = Md { start: FROM, length: 64, options, eq_handle: eq, ct_handle: ct, pad: 0 };
        let md = rig.bind(0, NI, md);
        rig.put(0, md, 64, AckReq::Ack, target(1, 0));
        rig.run();
        let Body::Request(request) = rig.around.departures[0].packet.header.body else { panic!("not a request") };
        let op = request.op.expect("an operation that wants an answer");
        let to = rig.around.departures[0].packet.header.id;
        let response = Response { op, to, mlength: 7, remote_offset: 3, fail, list: List::Priority, length: 0 };
        let header = Header { id: 1 << 40, source: 1, target: 0, interface: 0, body: Body::Response(response) };
        rig.arrive(rig.now, Packet::new(Rc::new(header), 0, Vec::new()));
        rig.run();
        let events = rig.events(0, eq);
        let seen: Vec<_> = events.iter().map(|event| (event.kind, event.ni_fail_type, event.mlength)).collect();
        assert_eq!(seen, [(EventKind::Ack as u8, fail as u8, 7)], "{fail:?}");
        let ok = u64::from(fail == NiFail::Ok);
        assert_eq!(rig.count(0, ct), (ok, 1 - ok), "{fail:?}");
    }
}

/// A nonexistent node: SEND reports it, and no answer is awaited.
#[test]
fn an_operation_to_no_node_is_undeliverable() {
    let mut rig = cards(2, &[], Recorder::connected(Time::from_ns(100)));
    let options = ni::NO_MATCHING | ni::PHYSICAL;
    let (physical, _) = rig.cards[0].portals_mut().ni_init(ptl::IFACE_DEFAULT, options, ptl::ID_ANY, None).unwrap();
    let eq = rig.cards[0].portals_mut().eq_alloc(physical, 8).unwrap();
    let md = Md { start: FROM, length: 64, options: 0, eq_handle: eq, ct_handle: ptl::CT_NONE, pad: 0 };
    let md = rig.bind(0, physical, md);
    let mut nowhere = target(9, 0);
    nowhere.process = Process { nid: 9, pid: nic::api::DEFAULT_PID };
    rig.put(0, md, 8, AckReq::Ack, nowhere);
    rig.run();
    let seen: Vec<_> = rig.events(0, eq).iter().map(|event| (event.kind, event.ni_fail_type)).collect();
    assert_eq!(seen, [(EventKind::Send as u8, NiFail::Undeliverable as u8)]);
    assert_eq!((rig.around.departures.len(), rig.cards[0].stats().counts.undeliverable), (0, 1));
}

/// A triggered append links its entry once the counter reaches the threshold, and a triggered unlink removes it again.
#[test]
fn entries_come_and_go_with_counters() {
    let mut rig = cards(1, &[], Recorder::default());
    let (eq, ct) = (rig.cards[0].portals_mut().eq_alloc(NI, 8).unwrap(), rig.counter(0, NI));
    rig.portal(0, NI, 0, 0, eq);
    let new = any_entry(TO, 64, me::USE_ONCE);
    let entry =
        rig.act(0, |card, ports| card.append_triggered(NI, new, List::Priority as u64, None, (ct, 1), ports)).unwrap();
    rig.act(0, |card, ports| card.trigger(0, ct, 2, TriggeredOp::Unlink(entry), ports)).unwrap();
    assert_eq!(rig.cards[0].portals_mut().unlink(entry), Err(ptl::ReturnCode::ArgInvalid), "it is in no list yet");
    rig.act(0, |card, ports| card.ct_inc(ct, ONE, ports)).unwrap();
    assert_eq!(rig.events(0, eq).iter().map(|event| event.kind).collect::<Vec<_>>(), [EventKind::Link as u8]);
    rig.act(0, |card, ports| card.ct_inc(ct, ONE, ports)).unwrap();
    assert!(rig.cards[0].portals_mut().entry_interface(entry).is_err(), "it is gone");
    assert_eq!(rig.events(0, eq).len(), 0, "nobody is told");
}
