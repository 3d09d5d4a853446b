// SPDX-License-Identifier: Apache-2.0
//! Interfaces that are closed and reopened while messages are in flight.

use abi::portals::{AckReq, AtomicOp, CtEvent, Datatype, EQ_NONE, Handle, ReturnCode, me};
use nic::{AtomicSpec, DropReason};
use sim::Time;

use crate::rig::{NI, Rig, append, bind, network, target};

const NICS: [&str; 3] = ["nic.kind=rdma", "nic.kind=portals4", "nic.kind=spin"];
const BYTES: u64 = 1 << 18;
const FROM: u64 = 0x10_0000;
const TO: u64 = 0x80_0000;

/// Reopens the interface of a node, with portal table entry 0.
fn open_again(rig: &mut Rig, node: usize) -> Handle {
    let ni = rig.open(node);
    rig.portal(node, ni, 0, 0, EQ_NONE);
    ni
}

/// Executes the CPU work of a node's rdma card.
fn complete(rig: &mut Rig, node: usize) {
    while rig.complete(node) {
        rig.run();
    }
}

/// Runs an operation of node 0 on node 1, whose interface is closed after `closed` and immediately reopened with the
/// same objects. Returns node 0's final counter, and the number of bytes written at node 1 afterwards.
fn reopened(nic: &str, closed: Time, start: impl Fn(&mut Rig, u32)) -> ((u64, u64), u64) {
    let mut rig = network(2, &[nic]);
    let (near, far) = (rig.counter(0, NI), rig.counter(1, NI));
    let entry = append(&mut rig, 1, NI, TO, BYTES, me::EVENT_CT_COMM, far);
    rig.around.fill(0, FROM, BYTES);
    start(&mut rig, near);
    rig.run_until(closed);
    let (old, before) = (NI, rig.around.written(1));
    rig.act(1, |card, ports| card.ni_fini(old, ports)).unwrap();
    let new = open_again(&mut rig, 1);
    assert_ne!(new, old);
    let counter = rig.counter(1, new);
    let again = append(&mut rig, 1, new, TO, BYTES, me::EVENT_CT_COMM, counter);
    assert_ne!((counter, again), (far, entry));
    assert_eq!(rig.cards[1].portals_mut().ct_value(far), Err(ReturnCode::ArgInvalid));
    assert_eq!(rig.cards[1].portals_mut().unlink(entry), Err(ReturnCode::ArgInvalid));
    rig.run();
    (0..2).for_each(|node| complete(&mut rig, node));
    assert_eq!(rig.cards[1].portals_mut().unlink(again), Ok(()), "no message uses the new entry");
    assert_eq!(rig.cards[1].portals_mut().pt_free(new, 0), Ok(()), "nor its portal table entry");
    assert_eq!(rig.count(1, counter), (0, 0));
    let drops = rig.cards[1].stats().counts.drops;
    assert_eq!(drops.keys().collect::<Vec<_>>(), [&DropReason::Closed]);
    assert_eq!((drops[&DropReason::Closed].messages, drops[&DropReason::Closed].first.at), (1, closed));
    assert_eq!(rig.around.warnings, Vec::<String>::new());
    let written = rig.around.written(1) - before;
    (rig.count(0, near), written)
}

#[test]
fn a_message_under_way_is_dropped_with_its_interface() {
    for nic in NICS {
        // 64 packets take 82 ns each; some have arrived.
        let outcome = reopened(nic, Time::from_ns(3000), |rig, near| {
            let md = bind(rig, 0, FROM, BYTES, near);
            rig.put(0, md, BYTES, AckReq::Ct, target(1, 0));
        });
        assert_eq!(outcome, ((0, 1), 0), "{nic}");
    }
}

#[test]
fn a_get_under_way_fails_when_its_target_closes() {
    for nic in NICS {
        // Its packets are read from memory in 27 ns each.
        let outcome = reopened(nic, Time::from_ns(1200), |rig, near| {
            let md = bind(rig, 0, FROM, BYTES, near);
            rig.get(0, md, BYTES, target(1, 0));
        });
        assert_eq!(outcome, ((0, 1), 0), "{nic}");
    }
}

/// At any instant of the close, an atomic operation is either done or not, and its initiator is notified once.
#[test]
fn an_atomic_under_way_is_answered_once() {
    for nic in NICS {
        for fetch in [false, true] {
            let mut failed = 0;
            for after in (0..1500).step_by(10) {
                let mut rig = network(2, &[nic]);
                let (near, far) = (rig.counter(0, NI), rig.counter(1, NI));
                append(&mut rig, 1, NI, TO, 8, me::EVENT_CT_COMM, far);
                let md = bind(&mut rig, 0, FROM, 16, near);
                rig.around.store(0, FROM, &[5]);
                let spec = AtomicSpec { op: AtomicOp::Sum, datatype: Datatype::Uint64 };
                rig.act(0, |card, ports| {
                    let transfer = match fetch {
                        false => card.portals_mut().atomic(md, 0, 8, AckReq::Ct as u64, target(1, 0), spec),
                        true => card.portals_mut().fetch_atomic((md, 8), (md, 0), 8, target(1, 0), spec, None),
                    };
                    card.start(transfer.unwrap(), Time::ZERO, ports);
                });
                rig.run_until(Time::from_ns(after));
                let old = NI;
                rig.act(1, |card, ports| card.ni_fini(old, ports)).unwrap();
                rig.run();
                complete(&mut rig, 0);
                let (success, failure) = rig.count(0, near);
                assert_eq!(success + failure, 1, "{nic} {fetch} {after}");
                failed += failure;
                let sum = rig.around.load(1, TO, 1)[0];
                assert!(sum == 5 || success == 0 && sum == 0, "{nic} {fetch} {after}: {sum}");
            }
            assert!((20..140).contains(&failed), "{nic} {fetch}: {failed}");
        }
    }
}

/// Initiator side: the data of a reply is not written, and no event is posted.
#[test]
fn replies_to_a_closed_interface_change_nothing() {
    for nic in NICS {
        let mut rig = network(2, &[nic]);
        let near = rig.counter(0, NI);
        append(&mut rig, 1, NI, TO, BYTES, 0, abi::portals::CT_NONE);
        rig.around.fill(1, TO, BYTES);
        let md = bind(&mut rig, 0, FROM, BYTES, near);
        rig.get(0, md, BYTES, target(1, 0));
        rig.run_until(Time::from_ns(4000));
        let before = rig.around.written(0);
        assert!((1..BYTES).contains(&before), "{nic}: {before}");
        let old = NI;
        rig.act(0, |card, ports| card.ni_fini(old, ports)).unwrap();
        let new = open_again(&mut rig, 0);
        let counter = rig.counter(0, new);
        rig.run();
        complete(&mut rig, 0);
        assert_eq!(rig.around.written(0), before, "{nic}");
        assert_eq!(rig.count(0, counter), (0, 0), "{nic}");
    }
}

/// Closing an interface discards its waiting triggered operations, and the work that an rdma card left to the CPU.
#[test]
fn triggered_operations_end_with_their_interface() {
    for nic in NICS {
        let mut rig = network(2, &[nic]);
        let (trigger, far) = (rig.counter(0, NI), rig.counter(1, NI));
        append(&mut rig, 1, NI, TO, 8, me::EVENT_CT_COMM, far);
        let (md, old) = (bind(&mut rig, 0, FROM, 8, abi::portals::CT_NONE), NI);
        for threshold in [1, 2] {
            rig.act(0, |card, ports| {
                let transfer = card.portals_mut().put(md, 0, 8, AckReq::None as u64, target(1, 0)).unwrap();
                card.trigger(0, trigger, threshold, nic::TriggeredOp::Transfer(transfer), ports).unwrap();
            });
        }
        let one = CtEvent { success: 1, failure: 0 };
        rig.act(0, |card, ports| card.ct_inc(trigger, one, ports)).unwrap();
        rig.act(0, |card, ports| card.ni_fini(old, ports)).unwrap();
        let new = open_again(&mut rig, 0);
        let counter = rig.counter(0, new);
        rig.act(0, |card, ports| card.ct_inc(counter, CtEvent { success: 9, failure: 0 }, ports)).unwrap();
        rig.run();
        (0..2).for_each(|node| complete(&mut rig, node));
        // A card has sent the first message before that; an rdma card has left it to the CPU.
        assert_eq!(rig.count(1, far), (u64::from(!nic.ends_with("rdma")), 0), "{nic}");
        assert_eq!(rig.cards[0].portals().triggered_left(), 0, "{nic}");
    }
}
