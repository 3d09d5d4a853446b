// SPDX-License-Identifier: Apache-2.0
//! Partitions: nodes of different jobs, whose messages do not reach each other.

use std::rc::Rc;

use abi::portals::{self as ptl, AckReq, EventKind, List, Md, NiFail, Process, StatusRegister, md, ni};
use nic::testing::packets::{header, packets, put};
use nic::testing::{Bench, Recorder, any_entry};
use nic::{AtomicSpec, Body, DropReason, Header, Member, Partition, Request, RequestKind, Response, Target};
use sim::Time;

use crate::rig::{NI, Rig, cards, machine};

const START: u64 = 0x10_0000;

/// Creates four cards: nodes 0 and 2 are one job, of user 7, and nodes 3 and 1 another.
fn two_jobs() -> Rig {
    let mut rig = cards(4, &[], Recorder::connected(Time::from_ns(100)));
    for (nodes, uid) in [(vec![0, 2], 7), (vec![3, 1], 8)] {
        let partition = Rc::new(Partition::new(nodes.iter().map(|node| vec![*node]).collect(), 4));
        for (nid, node) in (0..).zip(nodes) {
            rig.cards[node as usize].portals_mut().join(Member::alone(&partition, nid), uid);
        }
    }
    rig
}

fn fail(raw: u8) -> NiFail {
    *NiFail::ALL.iter().map(|(fail, _)| fail).find(|fail| **fail as u8 == raw).unwrap()
}

/// Nid and pid name a process where a node has several (Portals 4.3 §2.2).
#[test]
fn processes_of_a_node_have_different_pids() {
    let mut rig = Bench::new(&machine(&[]), 3, 0, Recorder::connected(Time::from_ns(100)));
    let partition = Rc::new(Partition::new(vec![vec![0, 1], vec![2]], 2));
    for (process, (nid, index)) in [(0, 0), (0, 1), (1, 0)].into_iter().enumerate() {
        let member = Member { index, ..Member::alone(&partition, nid) };
        rig.cards[process].portals_mut().join(member, 7);
    }
    let options = ni::MATCHING | ni::PHYSICAL;
    let mut open = |process: usize, pid| {
        let opened = rig.cards[process].portals_mut().ni_init(ptl::IFACE_DEFAULT, options, pid, None);
        opened.map(|(ni, _)| ni)
    };
    // The second process has pid 2 by default, so the first one cannot choose it; 9 is free.
    assert_eq!(open(0, 2), Err(ptl::ReturnCode::PidInUse));
    let first = open(0, 9);
    assert_eq!(open(1, 9), Err(ptl::ReturnCode::PidInUse));
    let interfaces = [first, open(1, ptl::ID_ANY), open(2, ptl::ID_ANY)].map(Result::unwrap);
    let ids = [0, 1, 2].map(|process| rig.cards[process].portals_mut().physical_id(interfaces[process]).unwrap());
    assert_eq!(ids, [(0, 9), (0, 2), (1, 1)].map(|(nid, pid)| Process { nid, pid }));
    for (process, ni) in interfaces.into_iter().enumerate() {
        rig.portal(process, ni, 0, 0, ptl::EQ_NONE);
        rig.append(process, ni, List::Priority, any_entry(START, 4096, ptl::me::EVENT_LINK_DISABLE));
    }
    let eq = rig.cards[2].portals_mut().eq_alloc(interfaces[2], 8).unwrap();
    let options = md::EVENT_SEND_DISABLE;
    let md = Md { start: START, length: 64, options, eq_handle: eq, ct_handle: ptl::CT_NONE, pad: 0 };
    let md = rig.bind(2, interfaces[2], md);
    rig.around.fill(2, START, 64);
    for (pid, wanted) in [(9, NiFail::Ok), (2, NiFail::Ok), (2, NiFail::Ok), (1, NiFail::Undeliverable)] {
        rig.put(2, md, 8, AckReq::Ack, Target { process: Process { nid: 0, pid }, ..target(0) });
        rig.run();
        let fails: Vec<_> = rig.events(2, eq).iter().map(|event| fail(event.ni_fail_type)).collect();
        assert_eq!(fails, [wanted], "pid {pid}");
    }
    assert_eq!([0, 1, 2].map(|process| rig.around.written(process)), [8, 16, 0]);
}

/// A program that forges packets, as a fault of another card might.
#[test]
fn packets_from_another_job_change_nothing_but_the_status_register() {
    let atomic = AtomicSpec { op: ptl::AtomicOp::Sum, datatype: ptl::Datatype::Uint64 };
    for kind in [RequestKind::Put, RequestKind::Get, RequestKind::Atomic(atomic), RequestKind::FetchAtomic(atomic)] {
        let mut rig = two_jobs();
        let eq = rig.cards[0].portals_mut().eq_alloc(NI, 8).unwrap();
        rig.portal(0, NI, 0, 0, eq);
        rig.append(0, NI, List::Priority, any_entry(START, 4096, ptl::me::EVENT_LINK_DISABLE));
        let ack = if kind.replies() { AckReq::None } else { AckReq::Ack };
        let forged = header(1 << 40 | 1, Request { kind, ack, op: Some(5), uid: 7, ..put(8) });
        packets(&forged, 4096).into_iter().for_each(|packet| rig.arrive(rig.now, packet));
        rig.run();
        assert_eq!((rig.events(0, eq), rig.around.written(0)), (vec![], 0), "{kind:?}");
        let violations = rig.cards[0].portals_mut().ni_status(NI, StatusRegister::PermissionViolations as u64);
        assert_eq!(violations, Ok(1), "{kind:?}");
        let drops = rig.cards[0].stats().counts.drops;
        assert_eq!(drops.keys().collect::<Vec<_>>(), [&DropReason::Foreign], "{kind:?}");
        let Body::Response(answer) = rig.around.departures[0].packet.header.body else { panic!("an answer") };
        assert_eq!((answer.fail, answer.mlength, answer.length), (NiFail::PermViolation, 0, 0), "{kind:?}");
    }
}

/// An answer that the other job forges for a get in flight brings no data, and the right answer still does.
#[test]
fn a_forged_answer_completes_no_operation() {
    let mut rig = two_jobs();
    let eq = rig.cards[0].portals_mut().eq_alloc(NI, 8).unwrap();
    rig.portal(2, NI, 0, 0, ptl::EQ_NONE);
    rig.append(2, NI, List::Priority, any_entry(START, 4096, ptl::me::EVENT_LINK_DISABLE));
    rig.around.fill(2, START, 8);
    let options = Md { start: START, length: 64, options: 0, eq_handle: eq, ct_handle: ptl::CT_NONE, pad: 0 };
    let md = rig.bind(0, NI, options);
    rig.get(0, md, 8, target(1));
    while rig.around.departures.is_empty() {
        assert!(rig.step(), "the get leaves the card");
    }
    let request = rig.around.departures[0].packet.header.clone();
    let Body::Request(Request { op: Some(op), .. }) = request.body else { panic!("a get expects an answer") };
    let forged = Response {
        op,
        to: request.id,
        mlength: 8,
        remote_offset: 0,
        fail: NiFail::Ok,
        list: List::Priority,
        length: 8,
    };
    let forged = Rc::new(Header { id: 1 << 40 | 9, source: 1, target: 0, interface: 0, body: Body::Response(forged) });
    packets(&forged, 4096).into_iter().for_each(|packet| rig.arrive(rig.now, packet));
    rig.run_until(rig.now + Time::from_ns(50));
    assert_eq!((rig.events(0, eq), rig.around.written(0)), (vec![], 0));
    rig.run();
    let events: Vec<_> = rig.events(0, eq).iter().map(|event| (event.kind, fail(event.ni_fail_type))).collect();
    assert_eq!((events, rig.around.written(0)), (vec![(EventKind::Reply as u8, NiFail::Ok)], 8));
}

fn target(rank: u32) -> Target {
    let process = Process { nid: rank, pid: 0 };
    Target { process, pt_index: 0, match_bits: 0, remote_offset: 0, user_ptr: 0, hdr_data: 0 }
}

/// Processes name the nodes of their job from 0. Other numbers name nodes of other jobs, or none.
#[test]
fn names_of_nodes_belong_to_the_job() {
    let mut rig = two_jobs();
    let physical = [0, 1, 2, 3].map(|node: usize| {
        let portals = rig.cards[node].portals_mut();
        let (ni, _) = portals.ni_init(ptl::IFACE_DEFAULT, ni::MATCHING | ni::PHYSICAL, ptl::ID_ANY, None).unwrap();
        rig.portal(node, ni, 0, 0, ptl::EQ_NONE);
        rig.append(node, ni, List::Priority, any_entry(START, 4096, ptl::me::EVENT_LINK_DISABLE));
        ni
    });
    let nids = [0, 1, 2, 3].map(|node: usize| rig.cards[node].portals_mut().physical_id(physical[node]).unwrap().nid);
    assert_eq!(nids, [0, 1, 1, 0]);
    let eq = rig.cards[3].portals_mut().eq_alloc(physical[3], 8).unwrap();
    let options = md::EVENT_SEND_DISABLE;
    let md = Md { start: START, length: 64, options, eq_handle: eq, ct_handle: ptl::CT_NONE, pad: 0 };
    let md = rig.bind(3, physical[3], md);
    rig.around.fill(3, START, 64);
    for (nid, wanted) in [
        (0, NiFail::Ok),
        (1, NiFail::Ok),
        (2, NiFail::PermViolation),
        (3, NiFail::PermViolation),
        (4, NiFail::Undeliverable),
        (u32::MAX - 1, NiFail::Undeliverable),
    ] {
        let process = Process { nid, pid: nic::api::DEFAULT_PID };
        rig.put(3, md, 8, AckReq::Ack, Target { process, ..target(0) });
        rig.run();
        let fails: Vec<_> = rig.events(3, eq).iter().map(|event| fail(event.ni_fail_type)).collect();
        assert_eq!(fails, [wanted], "node {nid}");
    }
    assert_eq!([0, 1, 2, 3].map(|node| rig.around.written(node)), [0, 8, 0, 8]);
}
