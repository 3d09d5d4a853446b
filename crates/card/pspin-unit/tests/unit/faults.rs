// SPDX-License-Identifier: Apache-2.0
//! Failing handlers: their resources are freed, and host and driver are informed (PsPIN §III-B2, B3).

use std::rc::Rc;

use abi::pspin::cause;
use bytemuck::bytes_of;
use pspin_unit::command::Command;
use pspin_unit::her::{DriverEvent, ExecutionContext, Failure, HpuId, Range, Role, Task, TaskOutcome};
use pspin_unit::{Cycle, Status};

use crate::fixed::Act;
use crate::rig::{Packet, Rig, context, machine};

const DESCRIPTOR: u64 = 0x10_0f00;
const ALL: [Role; 3] = [Role::Header, Role::Payload, Role::Completion];
const FAULT: TaskOutcome =
    TaskOutcome::Faulted(Failure::Fault(hpu::Fault::Store { pc: 0x1d00_0104, addr: 0x44, len: 4 }));

fn packets(roles: &[Role], count: u32) -> Vec<Packet> {
    let context = Rc::new(ExecutionContext { descriptor: DESCRIPTOR, ..context(roles) });
    (0..count).map(|at| Packet { message: 4, size: 64, eom: at + 1 == count, context: context.clone() }).collect()
}

fn status(role: Role, count: u64) -> Vec<u8> {
    let status = Status { cause: cause::STORE, pc: 0x1d00_0104, address: 0x44, message: 4, role: role as u32, count };
    bytes_of(&status).to_vec()
}

#[test]
fn a_handler_of_each_role_may_fail() {
    let acts: [fn(&Task, Range) -> Vec<Act>; 3] = [
        |task, _| if task.role == Role::Header { vec![Act::Fail(FAULT)] } else { Vec::new() },
        |task, _| if task.role == Role::Payload && task.her.user == 1 { vec![Act::Fail(FAULT)] } else { Vec::new() },
        |task, _| if task.role == Role::Completion { vec![Act::Fail(FAULT)] } else { Vec::new() },
    ];
    for (role, acts) in ALL.into_iter().zip(acts) {
        let mut rig = Rig::acting(machine("pspin-400g", &[]), (), |_, _| 5, acts);
        rig.flood(packets(&ALL, 4));
        rig.check_accounts();
        let hpu = HpuId { cluster: 0, hpu: if role == Role::Payload { 1 } else { 0 } };
        let event = DriverEvent::Failed { hpu, role, message: 4, outcome: FAULT, descriptor: DESCRIPTOR };
        assert_eq!(rig.nic.events.iter().map(|(_, event)| event).collect::<Vec<_>>(), [&event]);
        let (at, address, bytes) = &rig.nic.written[0];
        // One cycle in the queue of statuses, then as a host-direct write: 4 to the unit, a beat, 2 for the host.
        let told = rig.nic.events[0].0 + 1 + 3 + 1 + 2;
        assert_eq!((*at, *address, bytes), (told, DESCRIPTOR, &status(role, 1)));
        let counters = rig.unit.counters();
        // After a failed header handler, no packet of the message is processed.
        let expected = match role {
            Role::Header => (0, 4, 0),
            Role::Payload | Role::Completion => (3, 0, 1),
        };
        assert_eq!((counters.done, counters.skipped, counters.faulted), expected, "{role:?}");
        assert_eq!(rig.nic.feedback.iter().filter(|(_, feedback)| feedback.last).count(), 1);
    }
}

/// Every error of a context counts. A descriptor that the host refuses is counted too, and has no other effect.
#[test]
fn errors_are_counted() {
    let fail = |_: &Task, _: Range| vec![Act::Fail(FAULT)];
    let mut rig = Rig::acting(machine("pspin-400g", &[]), (), |_, _| 5, fail);
    rig.flood(packets(&[Role::Payload], 3));
    rig.check_accounts();
    let counts: Vec<&[u8]> = rig.nic.written.iter().map(|(_, _, bytes)| &bytes[24..]).collect();
    assert_eq!(counts, [1_u64, 2, 3].map(u64::to_ne_bytes));
    let mut rig = Rig::acting(machine("pspin-400g", &[]), (), |_, _| 5, fail);
    let context = Rc::new(ExecutionContext { descriptor: 0x99, ..context(&[Role::Payload]) });
    rig.flood([Packet { message: 0, size: 64, eom: true, context }]);
    rig.check_accounts();
    assert_eq!((rig.unit.counters().lost_status, rig.nic.events.len()), (1, 1));
}

/// The feedback of a failed handler waits for its commands in flight, and late data is discarded.
#[test]
fn commands_in_flight_drain() {
    for commands in 0..=4 {
        let acts: fn(&Task, Range) -> Vec<Act> = match commands {
            0 => |_, _| vec![Act::Fail(FAULT)],
            1 => |_, l1| reading(l1, 1),
            2 => |_, l1| reading(l1, 2),
            3 => |_, l1| reading(l1, 3),
            _ => |_, l1| reading(l1, 4),
        };
        let mut rig = Rig::acting(machine("pspin-400g", &[]), (), |_, _| 5, acts);
        rig.flood(packets(&[Role::Payload], 40));
        rig.check_accounts();
        assert_eq!((rig.unit.counters().faulted, rig.unit.counters().commands), (40, 40 * commands));
        let mut rig = Rig::acting(machine("pspin-400g", &[]), (), |_, _| 5, acts);
        rig.flood(packets(&[Role::Payload], 1));
        rig.check_accounts();
        assert_eq!(rig.nic.reads.len() as u64, commands);
        assert_ne!(rig.unit.memory().read(PACKET, 64).unwrap(), brought(), "the handler had failed when the data came");
    }
}

/// Address of the first packet in L1.
const PACKET: u32 = 0x1000_0000 + 8_192;

/// Content of host memory at 0x10_0000.
fn brought() -> [u8; 64] {
    std::array::from_fn(|at| at as u8)
}

fn reading(data: Range, commands: usize) -> Vec<Act> {
    let mut acts = vec![Act::Issue(Command::FromHost { host: 0x10_0000, data, event: None }); commands];
    acts.push(Act::Fail(FAULT));
    acts
}

/// The host refuses addresses that the IOMMU does not map. The handler fails, whether it waits for the response or not.
#[test]
fn a_refused_host_address_is_a_failure() {
    let acts: [fn(&Task, Range) -> Vec<Act>; 2] = [
        |_, _| vec![Act::Issue(Command::HostDirect { host: 0xdead_0000, data: [0; 64], size: 32 })],
        |_, _| vec![Act::Issue(Command::HostDirect { host: 0xdead_0000, data: [0; 64], size: 32 }), Act::Wait],
    ];
    for acts in acts {
        let mut rig = Rig::acting(machine("pspin-400g", &[]), (), |_, _| 5, acts);
        rig.flood(packets(&[Role::Payload], 5));
        rig.check_accounts();
        let failure = TaskOutcome::Faulted(Failure::Host { address: 0xdead_0000 });
        assert!(rig.nic.feedback.iter().all(|(_, feedback)| feedback.outcome == failure));
        assert_eq!(rig.nic.events.len(), 5);
    }
}

/// The watchdog also kills a handler that waits for a command.
#[test]
fn the_watchdog_bites_while_a_handler_waits() {
    let set = ["accelerator.host.read_cycles=5000"];
    let acts =
        |_: &Task, l1: Range| vec![Act::Issue(Command::FromHost { host: 0x10_0000, data: l1, event: None }), Act::Wait];
    let mut rig = Rig::acting(machine("pspin-400g", &set), (), |_, _| 0, acts);
    let context = Rc::new(ExecutionContext { watchdog_cycles: 300, ..context(&[Role::Payload]) });
    rig.flood([Packet { message: 0, size: 64, eom: true, context }]);
    rig.check_accounts();
    let (at, feedback) = rig.nic.feedback[0];
    assert_eq!(feedback.outcome, TaskOutcome::TimedOut);
    // The feedback waits for the response: issued at 25, 4 to the engine, 4, 5000, 2 beats, 2 back, 1 to the NIC.
    assert_eq!(at, 25 + 4 + 4 + 5000 + 2 + 2 + 1);
    assert_eq!(rig.nic.reads.len(), 1);
    assert_ne!(rig.unit.memory().read(PACKET, 64).unwrap(), brought());
}

/// With one host-direct command in flight, a status reaches the host 6 cycles after it is taken; then the next is
/// taken. The first is taken in the cycle after its feedback, four wait, and the remaining feedback waits for them.
/// Sixteen handlers all fail in one cycle.
#[test]
fn a_failure_waits_until_its_status_may() {
    let acts = |_: &Task, _: Range| vec![Act::Fail(FAULT)];
    let set = ["accelerator.commands.in_flight_per_target=1"];
    let instructions = |_, message: u32| 100 - u64::from(message);
    let mut rig = Rig::acting(machine("pspin-400g", &set), (), instructions, acts);
    let context = Rc::new(ExecutionContext { descriptor: DESCRIPTOR, ..context(&[Role::Payload]) });
    for message in 0..16 {
        rig.run_until(Cycle(message.into()));
        rig.submit(&Packet { message, size: 0, eom: true, context: context.clone() }).unwrap();
    }
    rig.finish();
    rig.check_accounts();
    let first = rig.nic.feedback[0].0;
    let at: Vec<u64> = rig.nic.feedback.iter().map(|(at, _)| at - first).collect();
    let waits = (0..11).map(|turn| 8 + 6 * turn);
    assert_eq!(at, (0..5).chain(waits).collect::<Vec<_>>());
    let written: Vec<u64> = rig.nic.written.iter().map(|(at, ..)| at - first).collect();
    assert_eq!(written, (0..16).map(|turn| 7 + 6 * turn).collect::<Vec<_>>());
}
