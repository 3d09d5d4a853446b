//! The latency of a packet in a unit without load, stage by stage (PsPIN §IV-B1, and the published design).

use std::rc::Rc;

use accel::pspin::Cycle;
use accel::pspin::her::{Role, TaskOutcome};

use crate::rig::{Packet, Rig, Seen, context};

/// Cycles from the request to feedback, by stage: cluster scheduler, end of the DMA, assignment, function pointer, doorbell,
/// NIC.
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

/// §IV-B1: 3 ns to the scheduler, 12 ns for 64 B and 26 ns for 1,024 B, 1 ns to assign, 7 ns to call the handler (of which the
/// first returns the function pointer), the doorbell, 1 ns to the NIC.
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

/// The published design: 3, 11 + B/64, 2 from the end of the DMA to the function pointer, 8 for loop, return and doorbell, 2.
#[test]
fn pspin_published_has_the_measured_stages() {
    let totals = [(64, 27), (128, 28), (256, 30), (512, 34), (1024, 42), (1536, 50), (2048, 58)];
    for (size, total) in totals {
        let stages = stages("pspin-published", size);
        assert_eq!(stages, [3, u64::from(11 + size / 64), 1, 1, 8, 2], "{size} B");
        assert_eq!(stages.iter().sum::<u64>(), total, "{size} B");
    }
}

/// A byte more is a beat more, except where the paper's least number of beats covers it.
#[test]
fn a_byte_more_takes_a_beat_more() {
    for (machine, expected) in [("pspin-400g", [26, 33, 41]), ("pspin-published", [28, 35, 43])] {
        for (size, total) in [65, 513, 1025].into_iter().zip(expected) {
            assert_eq!(stages(machine, size).iter().sum::<u64>(), total, "{machine}: {size} B");
        }
    }
}

/// A transfer of no bytes has no DMA: the task goes to an HPU at once.
#[test]
fn a_packet_that_stays_in_l2_is_not_copied() {
    let mut rig = Rig::fixed("pspin-400g", &[], |_, _| 0);
    let packet = Packet { message: 0, size: 0, eom: true, context: Rc::new(context(&[Role::Payload])) };
    rig.submit(&packet).unwrap();
    rig.finish();
    assert_eq!(rig.nic.feedback[0].0, 3 + 1 + 1 + 8 + 1);
}
