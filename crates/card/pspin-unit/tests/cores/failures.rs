// SPDX-License-Identifier: Apache-2.0
//! Handlers that fail or do not end: the HPU recovers, and other handlers are unaffected.

use abi::pspin::cause;
use accel::testing::code::*;
use bytemuck::bytes_of;
use hpu::Fault;
use pspin_unit::Status;
use pspin_unit::her::{DriverEvent, Failure, HpuId, Role, TaskOutcome};

use crate::rig::{HANDLER, PROGRAM, Rig};

const A2: u32 = 12;
const ENTRY: u32 = PROGRAM + 24 * 4;

/// Returns a handler that runs `zero` if the first word of the packet is 0, or else `other`.
fn either(zero: &[u32], other: &[u32]) -> Vec<u32> {
    let select = [lw(A1, A0, 0), lw(A1, A1, 8), lw(A2, A1, 0), bnez(A2, zero.len() as i32 + 1)];
    [&select[..], zero, other].concat()
}

#[test]
fn a_fault_names_its_instruction_and_the_hpu_goes_on() {
    let fail = |code: &[u32]| {
        let mut rig = Rig::new(&either(&[RET], code));
        let (_, outcome) = rig.run(&[1; 64]);
        // All HPUs still work: more packets than HPUs in flight.
        (0..100).for_each(|_| rig.submit(&[0; 64]));
        rig.wait(5_000);
        assert_eq!(rig.nic.feedback.len(), 101);
        assert!(rig.nic.feedback[1..].iter().all(|(_, feedback)| feedback.outcome == TaskOutcome::Done));
        let TaskOutcome::Faulted(Failure::Fault(fault)) = outcome else { panic!("{outcome:?}") };
        fault
    };
    let pc = ENTRY + 5 * 4;
    assert_eq!(fail(&[lw(A2, ZERO, 4)]), Fault::Load { pc, addr: 4, len: 4 });
    assert_eq!(fail(&[sw(A2, ZERO, 4)]), Fault::Store { pc, addr: 4, len: 4 });
    assert_eq!(fail(&[0]), Fault::Illegal { pc, word: 0 });
    assert_eq!(fail(&[ECALL]), Fault::Illegal { pc, word: ECALL });
    assert_eq!(fail(&[0x0010_0073]), Fault::Breakpoint { pc });
    assert_eq!(fail(&[immediate(0x67, 0, 0, ZERO, 16)]), Fault::Fetch { pc: 16 });
    // amoadd.w a2, a2, (a1), with a misaligned a1
    assert_eq!(fail(&[addi(A1, A1, 2), 0x00c5_a62f]), Fault::Misaligned { pc: pc + 4, addr: 0x1000_2002 });
}

#[test]
fn the_watchdog_kills_what_does_not_end() {
    // An endless loop without accesses, one with accesses to L1, and one that always waits for L2. The answer to the
    // last access of the third arrives 5 cycles after the watchdog limit.
    let handler_memory = [lui(A1, HANDLER + 0x1000), lw(A2, A1, 0), 0xffdf_f06f];
    for (endless, late) in [(&[SPIN][..], 0), (&[lw(A2, A1, 0), 0xffdf_f06f], 0), (&handler_memory, 5)] {
        let mut rig = Rig::new(&either(&[RET], endless));
        rig.context.watchdog_cycles = 500;
        let submitted = rig.submit_as(4, &[1; 64]);
        (0..60).for_each(|_| rig.submit(&[0; 64]));
        rig.wait(5_000);
        assert_eq!(rig.nic.feedback.len(), 61);
        let killed: Vec<u64> = rig
            .nic
            .feedback
            .iter()
            .filter(|(_, feedback)| feedback.outcome == TaskOutcome::TimedOut)
            .map(|(at, _)| *at)
            .collect();
        // 16 cycles to the assignment, the limit, 20 to recover, and the feedback.
        assert_eq!(killed.iter().map(|at| at - submitted).collect::<Vec<_>>(), [16 + 500 + late + 20 + 1]);
        assert_eq!(rig.run(&[0; 64]).1, TaskOutcome::Done);
    }
}

/// The handler's fourth instruction stores to L2, 8 cycles after the assignment; the store happens 9 cycles later, and
/// the answer arrives 18 cycles later. A store in flight happens, and the HPU starts to recover once it has the answer.
#[test]
fn an_access_on_its_way_happens_before_its_handler_is_killed() {
    let mut rig = Rig::new(&[lui(A1, HANDLER + 0x1000), addi(A1, A1, 0), addi(A2, ZERO, 7), sw(A2, A1, 0), SPIN]);
    rig.context.watchdog_cycles = 1_000;
    assert_eq!(rig.run(&[0; 64]).1, TaskOutcome::TimedOut, "its instructions are in the cache then");
    for watchdog in [6, 8, 9, 17, 18, 25, 26, 27, 40] {
        rig.unit.memory().write(HANDLER + 0x1000, 4).unwrap().fill(0);
        rig.context.watchdog_cycles = watchdog;
        let asked = watchdog > 8;
        let recovers = if asked { watchdog.max(8 + 18) } else { watchdog };
        assert_eq!(rig.run(&[0; 64]), (16 + recovers + 20 + 1, TaskOutcome::TimedOut), "{watchdog}");
        assert_eq!(rig.word(HANDLER + 0x1000), if asked { 7 } else { 0 }, "{watchdog}");
    }
}

/// The driver receives the context a cycle after the task, so no watchdog expires before that.
#[test]
fn a_watchdog_bites_two_cycles_after_the_assignment_at_the_earliest() {
    let mut rig = Rig::new(&[SPIN]);
    rig.context.watchdog_cycles = 1_000;
    rig.run(&[0; 64]);
    for (watchdog, bites) in [(1, 2), (2, 2), (3, 3)] {
        rig.context.watchdog_cycles = watchdog;
        assert_eq!(rig.run(&[0; 64]), (16 + bites + 20 + 1, TaskOutcome::TimedOut), "{watchdog}");
    }
}

/// As in the hardware, a limit of 0 means that no watchdog runs.
#[test]
fn a_watchdog_of_zero_cycles_never_bites() {
    let mut rig = Rig::new(&[SPIN]);
    rig.context.watchdog_cycles = 0;
    rig.submit(&[0; 64]);
    rig.wait(50_000);
    assert_eq!(rig.nic.feedback.len(), 0, "the handler still runs");
}

#[test]
fn two_runs_are_the_same() {
    let run = || {
        let mut rig =
            Rig::new(&either(&[lui(A1, HANDLER + 0x1000), lw(A2, A1, 0), addi(A2, A2, 1), sw(A2, A1, 0), RET], &[0]));
        (0..300_u32).for_each(|packet| rig.submit(&[u8::from(packet % 7 == 0); 64]));
        rig.wait(20_000);
        (rig.word(HANDLER + 0x1000), rig.nic.feedback)
    };
    let first = run();
    assert_eq!(first.1.len(), 300);
    assert_eq!(first, run());
}

/// A handler continues after storing an error code; its task fails at the doorbell.
#[test]
fn a_reported_error_is_the_end_of_the_task() {
    // The second code is ignored.
    let report = [lui(A1, 0x1B20_5000), addi(A2, ZERO, 77), sw(A2, A1, 0x54), sw(A1, A1, 0x54), addi(A2, A2, 1), RET];
    let mut rig = Rig::new(&either(&[RET], &report));
    rig.context.descriptor = 0x4000;
    let outcome = TaskOutcome::Faulted(Failure::Reported { code: 77 });
    rig.run(&[1; 64]);
    // The four selecting instructions stall on three loads, and two cycles for the taken branch.
    assert_eq!(rig.run(&[1; 64]), (26 + 9 + 5, outcome));
    let hpu = HpuId { cluster: 0, hpu: 0 };
    let event = |message| DriverEvent::Failed { hpu, role: Role::Payload, message, outcome, descriptor: 0x4000 };
    assert_eq!(rig.nic.events, [event(4), event(8)]);
    let status = |message, count| Status { cause: cause::REPORTED, pc: 0, address: 77, message, role: 1, count };
    let written: Vec<&[u8]> = rig.nic.written.iter().map(|(_, _, bytes)| &bytes[..]).collect();
    assert_eq!(written, [bytes_of(&status(4, 1)), bytes_of(&status(8, 2))]);
    assert_eq!(rig.run(&[0; 64]).1, TaskOutcome::Done);
}

/// A store requests the end of the run. The driver receives the request and its HPU in the cycle of the store; until
/// the run ends, the handler continues.
#[test]
fn a_program_may_end_the_run() {
    let terminate = [lui(A1, 0x1B20_0000), sw(A1, A1, 0), RET];
    let mut rig = Rig::new(&either(&[RET], &terminate));
    rig.run(&[1; 64]);
    assert_eq!(rig.run(&[1; 64]), (26 + 9 + 2, TaskOutcome::Done));
    assert_eq!(rig.nic.events, vec![DriverEvent::Terminated { hpu: HpuId { cluster: 0, hpu: 0 } }; 2]);
}
