// SPDX-License-Identifier: Apache-2.0
//! Latency of a packet in an idle unit, stage by stage (PsPIN §IV-B1, and the published design).

use std::rc::Rc;

use pspin_unit::Cycle;
use pspin_unit::her::{Role, TaskOutcome};

use crate::rig::{Packet, Rig, Seen, context};

/// Returns the cycles from the request to feedback, by stage: cluster scheduler, end of the DMA, assignment, function
/// pointer, doorbell, NIC.
fn stages(machine: &str, size: u32) -> [u64; 6] {
    let mut rig = Rig::fixed(machine, &[], |_, _| 0);
    rig.run_until(Cycle(100));
    let packet = Packet { message: 5, size, eom: true, context: Rc::new(context(&[Role::Payload])) };
    rig.submit(&packet).unwrap();
    rig.finish();
    rig.check_accounts();
    let (user, role, outcome) = (0, Role::Payload, TaskOutcome::Done);
    let log = &rig.unit.observer().0;
    let seen = [
        Seen::Accepted(user),
        // Message 5 has cluster 1 as its home.
        Seen::Sent { user, role, cluster: 1 },
        Seen::DmaDone,
        Seen::Assigned { cluster: 1, hpu: 0 },
        Seen::Start { user, role },
        Seen::End { user, role, outcome },
        Seen::Feedback { user, outcome },
    ];
    assert_eq!(log.iter().map(|(_, seen)| *seen).collect::<Vec<_>>(), seen);
    let at: Vec<u64> = log.iter().map(|(at, _)| *at).collect();
    assert_eq!(at[0], 100);
    std::array::from_fn(|stage| at[stage + 1] - at[stage])
}

/// §IV-B1: 3 ns to the scheduler, 12 ns for 64 B and 26 ns for 1,024 B, 1 ns to assign, 7 ns to call the handler (the
/// first of them returns the function pointer), the doorbell, 1 ns to the NIC.
#[test]
fn pspin_400g_has_the_stages_of_the_paper() {
    for (size, dma, total) in
        [(64, 12, 26), (128, 12, 26), (256, 14, 28), (512, 18, 32), (1024, 26, 40), (1536, 34, 48)]
    {
        let stages = stages("pspin-400g", size);
        assert_eq!(stages, [3, dma, 1, 1, 8, 1], "{size} B");
        assert_eq!(stages.iter().sum::<u64>(), total, "{size} B");
    }
}

/// The published design: 3, 11 + B/64, 2 from the end of the DMA to the function pointer, 8 for loop, return and
/// doorbell, 2.
#[test]
fn pspin_published_has_the_measured_stages() {
    let totals = [(64, 27), (128, 28), (256, 30), (512, 34), (1024, 42), (1536, 50), (2048, 58)];
    for (size, total) in totals {
        let stages = stages("pspin-published", size);
        assert_eq!(stages, [3, u64::from(11 + size / 64), 1, 1, 8, 2], "{size} B");
        assert_eq!(stages.iter().sum::<u64>(), total, "{size} B");
    }
}

/// One more byte costs one more beat, unless the paper's minimum number of beats covers it.
#[test]
fn a_byte_more_takes_a_beat_more() {
    for (machine, expected) in [("pspin-400g", [26, 33, 41]), ("pspin-published", [28, 35, 43])] {
        for (size, total) in [65, 513, 1025].into_iter().zip(expected) {
            assert_eq!(stages(machine, size).iter().sum::<u64>(), total, "{machine}: {size} B");
        }
    }
}

/// A transfer of no bytes needs no DMA: the task is assigned in the cycle after it reaches the cluster.
#[test]
fn a_packet_that_stays_in_l2_is_not_copied() {
    let mut rig = Rig::fixed("pspin-400g", &[], |_, _| 0);
    let packet = Packet { message: 0, size: 0, eom: true, context: Rc::new(context(&[Role::Payload])) };
    rig.submit(&packet).unwrap();
    rig.finish();
    assert_eq!(rig.nic.feedback[0].0, 3 + 1 + 1 + 1 + 8 + 1);
}

/// From the first byte at the NIC to the request: 4 cycles and one per 64 B beat.
#[test]
fn a_packet_is_written_to_l2_first() {
    for (machine, totals) in [("pspin-400g", [31, 44, 60]), ("pspin-published", [32, 46, 62])] {
        for (size, total) in [64, 512, 1024].into_iter().zip(totals) {
            let mut rig = Rig::fixed(machine, &[], |_, _| 0);
            rig.arrive(&Packet { message: 0, size, eom: true, context: Rc::new(context(&[Role::Payload])) });
            rig.finish();
            assert_eq!(rig.nic.feedback[0].0, total, "{machine}: {size} B");
        }
    }
}

/// A feedback waits at most for the seven other HPUs of its cluster and the three other clusters (6 ns and 2 ns in
/// §IV-B1).
#[test]
fn arbiters_delay_feedback_by_their_other_requesters() {
    for (stride, count) in [(4, 8), (1, 4)] {
        // One request per cycle, and handlers that all end in the same cycle: each later one has one instruction less.
        let mut rig = Rig::fixed("pspin-400g", &[], move |_, message| 100 - u64::from(message / stride));
        for index in 0..count {
            rig.run_until(Cycle(u64::from(index)));
            // Messages that are multiples of 4 have cluster 0 as their home; the others are spread over the clusters.
            let message = index * stride;
            rig.submit(&Packet { message, size: 0, eom: true, context: Rc::new(context(&[Role::Payload])) }).unwrap();
        }
        rig.finish();
        let log = &rig.unit.observer().0;
        let ends: Vec<u64> =
            log.iter().filter(|(_, seen)| matches!(seen, Seen::End { .. })).map(|(at, _)| *at).collect();
        assert!(ends.iter().all(|end| *end == ends[0]), "{ends:?}");
        let waits: Vec<u64> = rig.nic.feedback.iter().map(|(at, _)| at - ends[0] - 1).collect();
        assert_eq!(waits, (0..u64::from(count)).collect::<Vec<_>>());
    }
}
