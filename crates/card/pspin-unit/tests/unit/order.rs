// SPDX-License-Identifier: Apache-2.0
//! Order of handlers within a message, and packets without handlers (PsPIN §III-B1).

use std::rc::Rc;

use pspin_unit::Cycle;
use pspin_unit::her::{Busy, DriverEvent, ExecutionContext, Role, TaskOutcome};

use crate::rig::{Packet, Rig, Seen, context};

const ALL: [Role; 3] = [Role::Header, Role::Payload, Role::Completion];

fn message(number: u32, packets: u32, context: ExecutionContext) -> impl Iterator<Item = Packet> {
    let context = Rc::new(context);
    (0..packets).map(move |packet| Packet {
        message: number,
        size: 64,
        eom: packet + 1 == packets,
        context: context.clone(),
    })
}

/// Returns role, packet, start and end of each handler.
fn handlers(log: &[(u64, Seen)]) -> Vec<(Role, u64, u64, u64)> {
    let ends = |user, role| {
        log.iter().find_map(|(at, seen)| match seen {
            Seen::End { user: of, role: which, .. } if (*of, *which) == (user, role) => Some(*at),
            _ => None,
        })
    };
    let starts = log.iter().filter_map(|(at, seen)| match seen {
        Seen::Start { user, role } => Some((*role, *user, *at, ends(*user, *role).unwrap())),
        _ => None,
    });
    starts.collect()
}

#[test]
fn header_first_payload_in_parallel_completion_last() {
    for packets in [1, 2, 7] {
        let mut rig = Rig::fixed("pspin-400g", &[], |_, _| 100);
        rig.flood(message(3, packets, context(&ALL)));
        rig.check_accounts();
        let ran = handlers(&rig.unit.observer().0);
        assert_eq!(ran.len() as u32, packets + 2);
        let (header, completion) = (ran[0], ran[ran.len() - 1]);
        assert_eq!((header.0, header.1), (Role::Header, 0), "on the first packet");
        assert_eq!((completion.0, completion.1), (Role::Completion, u64::from(packets) - 1), "on the last one");
        let payload = &ran[1..ran.len() - 1];
        assert!(payload.iter().all(|ran| ran.0 == Role::Payload && ran.2 > header.3 && ran.3 < completion.2));
        // All payload handlers run concurrently.
        let (last_start, first_end) =
            (payload.iter().map(|ran| ran.2).max().unwrap(), payload.iter().map(|ran| ran.3).min().unwrap());
        assert!(last_start < first_end);
        // The last packet is fed back after the completion handler, with the end of the message.
        let (at, feedback) = *rig.nic.feedback.last().unwrap();
        assert_eq!((feedback.user, feedback.last), (u64::from(packets) - 1, true));
        assert_eq!(at, completion.3 + 1);
        assert!(rig.nic.feedback[..rig.nic.feedback.len() - 1].iter().all(|(_, feedback)| !feedback.last));
    }
}

/// Two dependent handlers of a message are 4 cycles apart: 3 to the scheduler and 1 for the notification.
#[test]
fn the_next_handler_of_a_message_comes_after_four_cycles() {
    let mut rig = Rig::fixed("pspin-400g", &[], |_, _| 1);
    rig.flood(message(0, 1, context(&ALL)));
    let log = &rig.unit.observer().0;
    let sent: Vec<u64> = log.iter().filter(|(_, seen)| matches!(seen, Seen::Sent { .. })).map(|(at, _)| *at).collect();
    let ends: Vec<u64> = log.iter().filter(|(_, seen)| matches!(seen, Seen::End { .. })).map(|(at, _)| *at).collect();
    assert_eq!((sent[1] - ends[0], sent[2] - ends[1]), (1 + 3, 1 + 3));
}

#[test]
fn packets_without_handlers_are_fed_back() {
    for roles in [&[][..], &[Role::Header], &[Role::Completion], &[Role::Header, Role::Completion], &[Role::Payload]] {
        let mut rig = Rig::fixed("pspin-400g", &[], |_, _| 10);
        rig.flood(message(9, 5, context(roles)));
        rig.check_accounts();
        let ran: Vec<Role> = handlers(&rig.unit.observer().0).into_iter().map(|ran| ran.0).collect();
        let expected = if roles == [Role::Payload] { vec![Role::Payload; 5] } else { roles.to_vec() };
        assert_eq!(ran, expected);
        let skipped = rig.unit.counters().skipped;
        assert_eq!(
            skipped,
            if roles.contains(&Role::Payload) { 0 } else { 5 - u64::from(roles.contains(&Role::Completion)) }
        );
        assert_eq!(rig.nic.feedback.iter().filter(|(_, feedback)| feedback.last).count(), 1);
    }
}

/// Numbers that are equal modulo the number of queues are different messages: the second waits until the first has
/// ended.
#[test]
fn numbers_never_alias() {
    let mut rig = Rig::fixed("pspin-400g", &[], |_, _| 10);
    let (first, other) =
        (message(5, 2, context(&ALL)).collect::<Vec<_>>(), message(261, 1, context(&ALL)).next().unwrap());
    rig.submit(&first[0]).unwrap();
    assert_eq!(rig.submit(&first[1]), Err(Busy::Cycle));
    rig.run_until(Cycle(500));
    assert_eq!(rig.submit(&other), Err(Busy::Queue));
    rig.submit(&first[1]).unwrap();
    rig.run_until(Cycle(501));
    // The last packet has arrived, but the queue is not free before its handlers have ended.
    assert_eq!(rig.submit(&other), Err(Busy::Queue));
    rig.run_until(Cycle(1000));
    rig.submit(&other).unwrap();
    rig.finish();
    rig.check_accounts();
    assert_eq!(rig.nic.feedback.iter().map(|(_, feedback)| feedback.message).collect::<Vec<_>>(), [5, 5, 261]);
}

/// While a header handler runs, requests fill the cells of the queue: its private one and the shared ones.
#[test]
fn cells_are_finite() {
    let mut rig = Rig::fixed("pspin-400g", &["accelerator.mpq.shared_cells=3"], |_, _| 1000);
    let packets: Vec<Packet> = message(1, 8, context(&ALL)).collect();
    for (cycle, packet) in packets[..4].iter().enumerate() {
        rig.run_until(Cycle(cycle as u64));
        rig.submit(packet).unwrap();
    }
    rig.run_until(Cycle(100));
    assert_eq!(rig.submit(&packets[4]), Err(Busy::Cells));
    // A queue without requests still has its private cell.
    rig.submit(&message(2, 1, context(&ALL)).next().unwrap()).unwrap();
    rig.flood(packets[4..].iter().cloned());
    rig.check_accounts();
}

#[test]
fn a_message_without_end_is_given_up() {
    let mut rig = Rig::fixed("pspin-400g", &[], |_, _| 10);
    let idle = |number| message(number, 2, ExecutionContext { idle_cycles: 5000, descriptor: 0x77, ..context(&ALL) });
    rig.submit(&idle(7).next().unwrap()).unwrap();
    rig.finish();
    assert_eq!(rig.nic.events, [(5000, DriverEvent::Idle { message: 7, descriptor: 0x77, is_free: true })]);
    rig.check_accounts();
    // The queue then serves another message.
    rig.flood(idle(7 + 256));
    rig.check_accounts();
    assert_eq!(rig.nic.events.len(), 1);
}

/// Among 255 active messages, the idle one is found although the tree only approximates the order.
#[test]
fn an_idle_message_is_found_among_many() {
    let mut rig = Rig::fixed("pspin-400g", &[], |_, _| 1);
    let context = Rc::new(ExecutionContext { idle_cycles: 3000, ..context(&[Role::Payload]) });
    let packet = |message| Packet { message, size: 64, eom: false, context: context.clone() };
    for round in 0..20 {
        for message in (0..256).filter(|message| round == 0 || *message != 100) {
            rig.submit(&packet(message)).unwrap();
            let next = rig.unit.now() + 1_u64;
            rig.run_until(next);
        }
    }
    let (at, event) = &rig.nic.events[0];
    assert_eq!(*event, DriverEvent::Idle { message: 100, descriptor: 0, is_free: true });
    assert!((3100..3100 + 1024).contains(at), "{at}");
    assert_eq!(rig.nic.events.len(), 1);
}

/// Waiting packets of an abandoned message are fed back; running handlers end as usual.
#[test]
fn a_reset_accounts_for_every_packet() {
    for cycle in [1, 10, 40, 130, 150, 300, 400] {
        let mut rig = Rig::fixed("pspin-400g", &[], |_, _| 100);
        let packets: Vec<Packet> = message(3, 30, context(&ALL)).collect();
        for (at, packet) in packets.iter().enumerate() {
            rig.run_until(Cycle(at as u64));
            if at as u64 == cycle {
                assert!(rig.unit.reset_message(3));
                assert!(!rig.unit.reset_message(4), "no such message");
            }
            // An abandoned message accepts no more packets.
            if rig.submit(packet) == Err(Busy::Queue) {
                break;
            }
        }
        if cycle >= 30 {
            rig.run_until(Cycle(cycle));
            rig.unit.reset_message(3);
        }
        rig.finish();
        rig.check_accounts();
        let reset = rig.nic.feedback.iter().filter(|(_, feedback)| feedback.outcome == TaskOutcome::MessageReset);
        assert!(reset.count() > 0 || cycle > 30, "{cycle}");
        assert_eq!(rig.nic.feedback.iter().filter(|(_, feedback)| feedback.last).count(), 1, "{cycle}");
        rig.flood(message(3 + 256, 3, context(&ALL)));
        rig.check_accounts();
    }
}

/// Returns the clusters that receive the packets of message 1 if each cluster holds two tasks.
fn clusters(policy: &str, pin: Option<u16>) -> Vec<u16> {
    let set = [format!("accelerator.dispatch.policy={policy}"), "accelerator.cluster.tasks=2".to_owned()];
    let set: Vec<&str> = set.iter().map(String::as_str).collect();
    let mut rig = Rig::fixed("pspin-400g", &set, |_, _| 500);
    rig.flood(message(1, 6, ExecutionContext { pin, ..context(&[Role::Payload]) }));
    rig.check_accounts();
    let log = rig.unit.observer().0.iter();
    log.filter_map(|(_, seen)| if let Seen::Sent { cluster, .. } = seen { Some(*cluster) } else { None }).collect()
}

/// Policies (PsPIN §III-B1): the home cluster first, then the least loaded one with the lowest number; always the least
/// loaded one; or only one cluster, for which all packets wait.
#[test]
fn policies_choose_the_cluster() {
    assert_eq!(clusters("home", None), [1, 1, 0, 2, 3, 0]);
    assert_eq!(clusters("least-loaded", None), [0, 1, 2, 3, 0, 1]);
    assert_eq!(clusters("pinned", Some(2)), [2; 6]);
    assert_eq!(clusters("pinned", None), [1; 6]);
}
