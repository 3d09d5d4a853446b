// SPDX-License-Identifier: Apache-2.0
//! The message queues against a naive model: handlers run, their packets and order, and the outcome of each packet.

use std::collections::BTreeMap;
use std::rc::Rc;

use proptest::prelude::*;
use pspin_unit::her::{Failure, Range, Role, Task, TaskOutcome};

use crate::fixed::Act;
use crate::rig::{Log, Packet, Rig, Seen, context, machine};

const ROLES: [Role; 3] = [Role::Header, Role::Payload, Role::Completion];
const FAULT: TaskOutcome = TaskOutcome::Faulted(Failure::Fault(hpu::Fault::Fetch { pc: 0 }));

/// Returns true for handlers that fail; depends only on packet and role.
fn fails(user: u64, role: Role) -> bool {
    (user * 7 + role as u64 * 3).is_multiple_of(5)
}

fn acts(task: &Task, _: Range) -> Vec<Act> {
    if fails(task.her.user, task.role) { vec![Act::Fail(FAULT)] } else { Vec::new() }
}

/// A message: a bit for each role with a handler, and its number of packets.
type Message = (u8, u32);

/// A handler run: its packet and its role.
type Run = (u64, Role);

fn has(roles: u8, role: Role) -> bool {
    roles >> role as u8 & 1 != 0
}

/// Runs the handlers of a message on its packets, one after the other. Returns the handlers run, and the outcome of
/// each packet.
fn naive(roles: u8, packets: &[u64]) -> (Vec<Run>, Vec<(u64, TaskOutcome)>) {
    let mut ran = Vec::new();
    let mut run = |user: u64, role| {
        ran.push((user, role));
        if fails(user, role) { FAULT } else { TaskOutcome::Done }
    };
    let failed = has(roles, Role::Header) && run(packets[0], Role::Header) == FAULT;
    let mut ends: Vec<(u64, TaskOutcome)> = packets
        .iter()
        .map(|user| match has(roles, Role::Payload) && !failed {
            true => (*user, run(*user, Role::Payload)),
            false => (*user, TaskOutcome::Skipped),
        })
        .collect();
    if has(roles, Role::Completion) && !failed {
        let last = packets.len() - 1;
        ends[last].1 = run(packets[last], Role::Completion);
    }
    (ran, ends)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn queues_do_what_the_model_does(
        rounds in prop::collection::vec(prop::collection::vec((0_u8..8, 1_u32..12), 1..4), 1..6),
        order in prop::collection::vec(any::<prop::sample::Index>(), 200),
        length in 0_u64..60,
        cells in 0_u32..6,
    ) {
        let set = [format!("accelerator.mpq.shared_cells={cells}"), "accelerator.mpq.queues=4".to_owned()];
        let set: Vec<&str> = set.iter().map(String::as_str).collect();
        let instructions = move |role: Role, message: u32| length * (1 + u64::from(message % 3)) + role as u64;
        let mut rig = Rig::acting(machine("pspin-400g", &set), Log::default(), instructions, acts);
        // Message numbers of a round equal those of the previous round modulo the number of queues, so its messages
        // wait for those.
        let mut packets = Vec::new();
        let mut messages: BTreeMap<u32, (u8, Vec<u64>)> = BTreeMap::new();
        let mut order = order.iter().cycle();
        for (round, live) in (0..).zip(&rounds) {
            let contexts: Vec<_> = live.iter().map(|(roles, _)| {
                let roles: Vec<Role> = ROLES.into_iter().filter(|role| has(*roles, *role)).collect();
                Rc::new(context(&roles))
            }).collect();
            let mut left: Vec<Message> = live.clone();
            while left.iter().any(|(_, left)| *left > 0) {
                let open: Vec<usize> = (0..left.len()).filter(|index| left[*index].1 > 0).collect();
                let index = open[order.next().expect("it is a cycle").index(open.len())];
                left[index].1 -= 1;
                let message = round * 4 + index as u32;
                messages.entry(message).or_insert((live[index].0, Vec::new())).1.push(packets.len() as u64);
                packets.push(Packet { message, size: 64, eom: left[index].1 == 0, context: contexts[index].clone() });
            }
        }
        rig.flood(packets.clone());
        rig.check_accounts();

        let log = &rig.unit.observer().0;
        for (message, (roles, users)) in &messages {
            let (ran, ends) = naive(*roles, users);
            let of_message = |user: &u64| packets[*user as usize].message == *message;
            let started: Vec<(u64, Role)> = log.iter().filter_map(|(_, seen)| match seen {
                Seen::Start { user, role } if of_message(user) => Some((*user, *role)),
                _ => None,
            }).collect();
            // Payload handlers may start in another order, because their packets go to several clusters.
            let mut sorted = started.clone();
            sorted.sort_by_key(|(user, role)| (*role as u8, *user));
            prop_assert_eq!(&sorted, &ran);
            let mut found: Vec<(u64, TaskOutcome)> = rig.nic.feedback.iter()
                .filter(|(_, feedback)| feedback.message == *message)
                .map(|(_, feedback)| (feedback.user, feedback.outcome))
                .collect();
            found.sort_by_key(|(user, _)| *user);
            prop_assert_eq!(found, ends);
            let lasts = rig.nic.feedback.iter().filter(|(_, feedback)| feedback.message == *message && feedback.last);
            prop_assert_eq!(lasts.count(), 1);

            // The header handler runs before all others, and the completion handler after them.
            let when = |wanted: Role, is_end: bool| log.iter().filter_map(move |(at, seen)| match seen {
                Seen::Start { user, role } if !is_end && of_message(user) && *role == wanted => Some(*at),
                Seen::End { user, role, .. } if is_end && of_message(user) && *role == wanted => Some(*at),
                _ => None,
            });
            if let (Some(end), Some(start)) = (when(Role::Header, true).max(), when(Role::Payload, false).min()) {
                prop_assert!(end < start);
            }
            if let (Some(end), Some(start)) = (when(Role::Payload, true).max(), when(Role::Completion, false).min()) {
                prop_assert!(end < start);
            }
        }
    }
}
