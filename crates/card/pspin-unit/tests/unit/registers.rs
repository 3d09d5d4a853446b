// SPDX-License-Identifier: Apache-2.0
//! Scheduler timing caused by registers between its parts. A 64 B request accepted in cycle T is sent to its cluster in
//! T + 3; an empty handler ends in T + 25, which the queue sees in T + 26.

use std::rc::Rc;

use pspin_unit::Cycle;
use pspin_unit::her::{ExecutionContext, Role, TaskOutcome};

use crate::fixed::Fixed;
use crate::rig::{Nic, Packet, Rig, Seen, context};

fn packet(message: u32, size: u32, eom: bool, roles: &[Role]) -> Packet {
    Packet { message, size, eom, context: Rc::new(context(roles)) }
}

/// Submits packets in their cycles, and runs to the end.
fn run<F: Fn(Role, u32) -> u64>(rig: &mut Rig<Fixed<F>>, packets: &[(u64, Packet)]) {
    for (at, packet) in packets {
        rig.run_until(Cycle(*at));
        rig.submit(packet).unwrap();
    }
    rig.finish();
    rig.check_accounts();
}

/// Returns the cycles in which tasks reach clusters, with their roles.
fn sent<F: Fn(Role, u32) -> u64>(rig: &mut Rig<Fixed<F>>) -> Vec<(u64, Role)> {
    let log = rig.unit.observer().0.iter();
    log.filter_map(|(at, seen)| if let Seen::Sent { role, .. } = seen { Some((*at, *role)) } else { None }).collect()
}

fn fed_back<F: Fn(Role, u32) -> u64>(rig: &Rig<Fixed<F>>) -> Vec<(u64, TaskOutcome)> {
    rig.nic.feedback.iter().map(|(at, feedback)| (*at, feedback.outcome)).collect()
}

/// The feedback of cycle 26 frees a place and a buffer, which the dispatcher sees in cycle 27.
#[test]
fn the_dispatcher_sees_the_room_of_the_last_cycle() {
    let buffer = [("max_packet_bytes", "limits"), ("packet_buffer_bytes", "cluster"), ("slot_bytes", "cluster")];
    let buffer = buffer.map(|(key, table)| format!("accelerator.{table}.{key}=2048"));
    let buffer = buffer.each_ref().map(String::as_str);
    for limit in [&["accelerator.cluster.tasks=1"][..], &buffer] {
        let mut rig = Rig::fixed("pspin-400g", &[&["accelerator.clusters=1"], limit].concat(), |_, _| 0);
        run(&mut rig, &[0, 1].map(|at| (at, packet(at as u32, 64, true, &[Role::Payload]))));
        assert_eq!(sent(&mut rig), [(3, Role::Payload), (27, Role::Payload)], "{limit:?}");
    }
}

/// The cluster scheduler registers a task without bytes like one with a packet.
#[test]
fn a_task_without_bytes_is_assigned_in_the_next_cycle() {
    let mut rig = Rig::fixed("pspin-400g", &[], |_, _| 0);
    run(&mut rig, &[(0, packet(0, 0, true, &[Role::Payload]))]);
    let found = rig.unit.observer().0.iter();
    // Sent in 3, chosen in 4 and assigned in 5, function pointer in 6, doorbell 8 cycles later.
    assert_eq!(found.map(|(at, _)| *at).collect::<Vec<_>>(), [0, 3, 5, 6, 14, 15]);
}

/// Each queue has one private cell, and none are shared. One packet is in the feedback register, four in the FIFO
/// behind it, one at the dispatcher, and one in the cell. Then one leaves per cycle.
#[test]
fn four_packets_without_handlers_wait() {
    let set = ["accelerator.mpq.shared_cells=0", "accelerator.mpq.cells_per_queue=1"];
    let mut rig = Rig::fixed("pspin-400g", &set, |_, _| 0);
    rig.nic = Nic { refuses: Some(|cycle| cycle < 200), ..Nic::default() };
    let mut accepted = 0;
    for at in 0..100 {
        rig.run_until(Cycle(at));
        accepted += u64::from(rig.submit(&packet(0, 64, false, &[])).is_ok());
    }
    assert_eq!(accepted, 1 + 4 + 1 + 1);
    rig.finish();
    rig.check_accounts();
    let expected: Vec<_> = (200..200 + accepted).map(|at| (at, TaskOutcome::Skipped)).collect();
    assert_eq!(fed_back(&rig), expected);
}

/// The queue sees in cycle 26 that the header handler has ended, and is selected in 28, even if its second request, of
/// cycle 25, may be selected in 27.
#[test]
fn an_end_is_selected_two_cycles_later_whatever_comes() {
    for second in [20, 25, 26] {
        let roles = [Role::Header, Role::Payload];
        let mut rig = Rig::fixed("pspin-400g", &[], |_, _| 0);
        run(&mut rig, &[(0, packet(0, 64, false, &roles)), (second, packet(0, 64, true, &roles))]);
        assert_eq!(sent(&mut rig), [(3, Role::Header), (29, Role::Payload), (30, Role::Payload)], "{second}");
    }
}

/// The first request of a message determines its handlers.
#[test]
fn later_requests_do_not_change_the_handlers_of_a_message() {
    let all = [Role::Header, Role::Payload, Role::Completion];
    let ran = |first: &[Role], last: &[Role]| {
        let mut rig = Rig::fixed("pspin-400g", &[], |_, _| 0);
        run(&mut rig, &[(0, packet(0, 64, false, first)), (1, packet(0, 64, true, last))]);
        sent(&mut rig).into_iter().map(|(_, role)| role).collect::<Vec<_>>()
    };
    assert_eq!(ran(&[Role::Payload], &all), [Role::Payload; 2]);
    assert_eq!(ran(&all, &[]), [Role::Header, Role::Payload, Role::Payload, Role::Completion]);
    assert_eq!(ran(&[Role::Completion], &all), [Role::Completion]);
}

/// A packet of cycle 0 would be selected in cycle 2. If its message is abandoned before, it is not; instead it is
/// selected two cycles after the reset, then dispatched and fed back.
#[test]
fn a_message_that_is_given_up_gives_its_packets_two_cycles_later() {
    for reset in [1, 2] {
        let mut rig = Rig::fixed("pspin-400g", &[], |_, _| 0);
        rig.submit(&packet(0, 64, false, &[Role::Payload])).unwrap();
        rig.run_until(Cycle(reset));
        assert!(rig.unit.reset_message(0));
        rig.finish();
        rig.check_accounts();
        assert_eq!(fed_back(&rig), [(reset + 2 + 2, TaskOutcome::MessageReset)]);
    }
}

/// The header handler of 500 instructions ends in cycle 24 + 500, and the queue sees it in the next. Its three packets
/// are fed back from the second cycle after that on.
#[test]
fn packets_of_a_message_that_is_given_up_wait_for_its_handlers() {
    let mut rig = Rig::fixed("pspin-400g", &[], |_, _| 500);
    for at in 0..3 {
        rig.run_until(Cycle(at));
        rig.submit(&packet(0, 64, false, &[Role::Header])).unwrap();
    }
    rig.run_until(Cycle(100));
    assert!(rig.unit.reset_message(0));
    rig.finish();
    rig.check_accounts();
    let first = 24 + 500 + 1 + 2 + 2;
    assert_eq!(fed_back(&rig), [0, 1, 2].map(|packet| (first + packet, TaskOutcome::MessageReset)));
}

/// In a cycle, the idle time-out, like a reset by the driver, precedes the ends of tasks. So the end of the message's
/// last task frees the queue.
#[test]
fn an_end_in_the_cycle_of_the_time_out_is_the_last_of_its_message() {
    let mut rig = Rig::fixed("pspin-400g", &[], |_, _| 0);
    let context = ExecutionContext { idle_cycles: 26, ..context(&[Role::Payload]) };
    rig.submit(&Packet { message: 0, size: 64, eom: false, context: Rc::new(context) }).unwrap();
    rig.finish();
    rig.check_accounts();
    let (at, feedback) = rig.nic.feedback[0];
    assert_eq!((at, feedback.outcome, feedback.last), (26, TaskOutcome::Done, true));
    assert!(matches!(rig.nic.events[..], [(26, pspin_unit::her::DriverEvent::Idle { is_free: false, .. })]));
}
