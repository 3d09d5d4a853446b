// SPDX-License-Identifier: Apache-2.0
//! Flow control: stops of portal table entries, and their notifications (Portals 4.3 §3.6.1).

use abi::portals::{self as ptl, AckReq, EventKind, Handle, List, NiFail, NiLimits, Process, me, ni, pt};
use nic::testing::packets::{header, packets, put};
use nic::testing::{Recorder, any_entry};
use nic::{Body, NewEntry, Request};
use sim::Time;

use crate::rig::{NI, Rig, cards};

const TO: u64 = 0x10_0000;

/// Returns a card with a flow-controlled portal table entry 0, whose queue holds `events` events.
fn controlled(events: u64) -> (Rig, Handle) {
    let mut rig = cards(1, &[], Recorder::default());
    let eq = rig.cards[0].portals_mut().eq_alloc(NI, events).unwrap();
    rig.portal(0, NI, 0, pt::FLOWCTRL, eq);
    (rig, eq)
}

fn entry(options: u32) -> NewEntry {
    any_entry(TO, 8192, me::EVENT_LINK_DISABLE | options)
}

/// Delivers a message with back-to-back packets, starting now.
fn arrive(rig: &mut Rig, id: u32, length: u64) {
    let request = Request { ack: AckReq::Ack, op: Some(id), ..put(length) };
    packets(&header(id.into(), request), 4096).into_iter().for_each(|packet| rig.arrive(rig.now, packet));
}

fn kinds(rig: &mut Rig, eq: Handle) -> Vec<u8> {
    rig.events(0, eq).iter().map(|event| event.kind).collect()
}

/// Returns the outcomes that initiators received.
fn outcomes(rig: &Rig) -> Vec<(u32, NiFail)> {
    let answers = rig.around.departures.iter().map(|left| match left.packet.header.body {
        Body::Response(response) => (response.op, response.fail),
        Body::Request(_) => panic!("the card has sent a request"),
    });
    answers.collect()
}

#[test]
fn a_message_that_matches_nothing_stops_the_portal_until_the_program_enables_it() {
    let (mut rig, eq) = controlled(8);
    for id in [1, 2] {
        arrive(&mut rig, id, 8);
        rig.run();
    }
    let events = rig.events(0, eq);
    assert_eq!(events.len(), 1, "the second message finds the entry disabled already");
    assert_eq!((events[0].kind, events[0].ni_fail_type), (EventKind::PtDisabled as u8, NiFail::PtDisabled as u8));
    rig.append(0, NI, List::Priority, entry(0));
    rig.cards[0].portals_mut().pt_enable(NI, 0).unwrap();
    arrive(&mut rig, 3, 8);
    rig.run();
    assert_eq!(outcomes(&rig), [(1, NiFail::PtDisabled), (2, NiFail::PtDisabled), (3, NiFail::Ok)]);
    assert_eq!(rig.cards[0].stats().flow_control, 1);
}

#[test]
fn without_flow_control_a_full_queue_loses_the_oldest_event() {
    let mut rig = cards(1, &[], Recorder::default());
    let eq = rig.cards[0].portals_mut().eq_alloc(NI, 1).unwrap();
    rig.portal(0, NI, 0, 0, eq);
    rig.append(0, NI, List::Priority, entry(0));
    for id in [1, 2] {
        arrive(&mut rig, id, u64::from(id));
        rig.run();
    }
    let (event, lost) = rig.cards[0].portals_mut().eq_take(eq).unwrap().unwrap();
    assert_eq!((event.mlength, lost), (2, true));
}

/// The next events are known while none was lost and the queue is at most half full, so that a loss needs as many
/// further events.
#[test]
fn events_are_known_while_their_loss_is_far() {
    let mut rig = cards(1, &[], Recorder::default());
    let eq = rig.cards[0].portals_mut().eq_alloc(NI, 4).unwrap();
    rig.portal(0, NI, 0, 0, eq);
    rig.append(0, NI, List::Priority, entry(0));
    let known = |rig: &mut Rig| -> Vec<u64> {
        rig.cards[0].portals_mut().eq_known(eq).unwrap().map(|event| event.mlength).collect()
    };
    assert_eq!(known(&mut rig), []);
    for (id, there) in [(1, vec![1]), (2, vec![1, 2]), (3, vec![]), (4, vec![]), (5, vec![])] {
        arrive(&mut rig, id, u64::from(id));
        rig.run();
        assert_eq!(known(&mut rig), there, "{id}");
    }
    let taken: Vec<_> = (0..2)
        .map(|_| rig.cards[0].portals_mut().eq_take(eq).unwrap().map(|(event, lost)| (event.mlength, lost)))
        .collect();
    assert_eq!(taken, [Some((2, true)), Some((3, false))]);
    assert_eq!(known(&mut rig), [4, 5]);
    assert!(rig.cards[0].portals_mut().eq_known(ptl::INVALID_HANDLE).is_err());
}

/// Room for events is promised at the match: the second message is refused before the first posts an event, and the
/// flow-control event follows the first message.
#[test]
fn a_full_event_queue_stops_the_portal_and_no_event_is_lost() {
    let (mut rig, eq) = controlled(1);
    rig.append(0, NI, List::Priority, entry(0));
    arrive(&mut rig, 1, 8192);
    arrive(&mut rig, 2, 8);
    rig.run();
    assert_eq!(kinds(&mut rig, eq), [EventKind::Put as u8, EventKind::PtDisabled as u8]);
    assert_eq!(outcomes(&rig), [(2, NiFail::PtDisabled), (1, NiFail::Ok)]);
    assert_eq!(rig.cards[0].portals_mut().ni_status(NI, ptl::StatusRegister::DropCount as u64), Ok(1));
}

/// The overflow list accepts no more headers than the interface's limit.
#[test]
fn unexpected_headers_are_limited() {
    let mut rig = cards(1, &[], Recorder::default());
    rig.act(0, |card, ports| card.ni_fini(NI, ports)).unwrap();
    let desired = NiLimits { max_unexpected_headers: 1, ..NiLimits::default() };
    let options = ni::MATCHING | ni::LOGICAL;
    let (ni, limits) =
        rig.cards[0].portals_mut().ni_init(ptl::IFACE_DEFAULT, options, ptl::ID_ANY, Some(desired)).unwrap();
    assert_eq!(limits.max_unexpected_headers, 1);
    rig.cards[0].portals_mut().set_map(ni, [Process { nid: 0, pid: nic::api::DEFAULT_PID }].into()).unwrap();
    let eq = rig.cards[0].portals_mut().eq_alloc(ni, 8).unwrap();
    for (index, options) in [(0, pt::FLOWCTRL), (1, 0)] {
        rig.portal(0, ni, index, options, eq);
        rig.append(0, ni, List::Overflow, NewEntry { pt_index: index, ..entry(0) });
    }
    arrive(&mut rig, 1, 8);
    rig.run();
    arrive(&mut rig, 2, 8);
    let plain = Request { ack: AckReq::Ack, op: Some(3), pt_index: 1, ..put(8) };
    packets(&header(3, plain), 4096).into_iter().for_each(|packet| rig.arrive(rig.now, packet));
    rig.run();
    assert_eq!(outcomes(&rig), [(1, NiFail::Ok), (2, NiFail::PtDisabled), (3, NiFail::Dropped)]);
    assert_eq!(kinds(&mut rig, eq), [EventKind::Put as u8, EventKind::PtDisabled as u8]);
}

/// `PtlPTDisable` returns once the message in flight is complete: its packets take 2 · 81.92 ns at the port.
#[test]
fn disabling_waits_for_messages_under_way() {
    let (mut rig, eq) = controlled(8);
    rig.append(0, NI, List::Priority, entry(0));
    arrive(&mut rig, 1, 8192);
    rig.run_until(Time::from_ns(150));
    rig.cards[0].portals_mut().pt_disable(NI, 0).unwrap();
    assert!(!rig.cards[0].portals_mut().pt_idle(NI, 0));
    // 163.84 ns, 2 ns to look up the packet, 4096 · 6.7 ps = 27.4432 ns and 50 ns to the host.
    let end = Time::from_ps(163_840 + 2_000 + 27_444 + 50_000);
    rig.run_until(end - Time::from_ps(1));
    assert!(!rig.cards[0].portals_mut().pt_idle(NI, 0));
    rig.run_until(end);
    assert!(rig.cards[0].portals_mut().pt_idle(NI, 0));
    assert_eq!(kinds(&mut rig, eq), [EventKind::Put as u8], "the program has asked for it: no event of flow control");
}
