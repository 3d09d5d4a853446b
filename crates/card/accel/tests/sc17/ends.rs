// SPDX-License-Identifier: Apache-2.0
//! Ends of handlers.

use abi::device::{cmd, map, ret};
use accel::testing::code::{A0, A7, ECALL, RET, SPIN, T0, ZERO, addi, lui, lw, returns, sw};
use accel::{Failure, HandlerError, Input, Outcome, Verdict};

use crate::CYCLE;
use crate::rig::{Rig, header};

/// Returns the outcome and end time of a payload handler with this code.
fn end(settings: &[&str], code: Vec<u32>) -> (Outcome, u64) {
    let mut rig = Rig::payload(settings, code, &[]);
    rig.offer(1, &[0; 8]);
    rig.run();
    let end = rig.ends.pop().unwrap();
    assert!(rig.ends.is_empty());
    (end.outcome, end.at)
}

fn error(settings: &[&str], code: Vec<u32>) -> HandlerError {
    match end(settings, code).0 {
        Outcome::Failed(error) => error,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_handler_that_runs_for_too_long_is_killed() {
    let (outcome, at) = end(&["accelerator.watchdog_cycles=1000"], vec![SPIN]);
    let message = "was killed after 1000 cycles (accelerator.watchdog_cycles)".to_owned();
    let error = HandlerError { failure: Failure::Timeout, message, detail: 1000 };
    assert_eq!(outcome, Outcome::Failed(error));
    // A jump takes a few cycles: the first one over the limit is the last.
    assert!((1000 * CYCLE..1010 * CYCLE).contains(&at), "{at}");
}

#[test]
fn a_command_at_the_limit_is_one_too_many() {
    // The handler tests a nonexistent transfer 1000 times.
    let code = vec![addi(A7, ZERO, cmd::DMA_TEST as i32), ECALL, 0xffdf_f06f]; // jal x0, -4
    assert_eq!(error(&["accelerator.watchdog_cycles=100"], code).failure, Failure::Timeout);
}

#[test]
fn accesses_to_foreign_memory_are_faults() {
    let place = map::HPU_MEMORY + 0x1000; // the rig has 1024 bytes
    let load = error(&[], vec![lui(T0, place), lw(A0, T0, 4), RET]);
    assert_eq!((load.failure, load.detail), (Failure::Segv, u64::from(place) + 4));
    let expected = format!(
        "failed: load of 4 B at {:#010x} is not allowed (pc {:#010x}), 3076 B past the end of its HPU memory (1024 B)",
        place + 4,
        map::PROGRAM + 4
    );
    assert_eq!(load.message, expected);
    let store = error(&[], vec![lui(T0, map::PROGRAM), sw(ZERO, T0, 0), RET]);
    assert_eq!((store.failure, store.detail), (Failure::Segv, u64::from(map::PROGRAM)));
    let illegal = error(&[], vec![0]);
    assert_eq!((illegal.failure, illegal.detail), (Failure::Segv, u64::from(map::PROGRAM)));
}

#[test]
fn commands_that_do_not_exist_and_their_foreign_arguments_are_faults() {
    let unknown = error(&[], vec![addi(A7, ZERO, 99), ECALL, RET]);
    assert_eq!((unknown.failure, unknown.detail), (Failure::Segv, 99));
    assert_eq!(unknown.message, "issued command 99, which this card does not have");
    let foreign = error(&[], vec![addi(A0, ZERO, 16), addi(A7, ZERO, cmd::CT_GET as i32), ECALL, RET]);
    assert_eq!((foreign.failure, foreign.detail), (Failure::Segv, 16));
    assert_eq!(foreign.message, "issued a command at 0x10, which is not its own");
}

#[test]
fn a_handler_may_abort() {
    let aborted = error(&[], vec![addi(A7, ZERO, cmd::ABORT as i32), ECALL, RET]);
    let detail = u64::from(ret::FAIL);
    assert_eq!(aborted, HandlerError { failure: Failure::Failed, message: "aborted".into(), detail });
    let failed = error(&[], returns(ret::SEGV));
    let detail = u64::from(ret::SEGV);
    assert_eq!(failed, HandlerError { failure: Failure::Segv, message: "returned SEGV".into(), detail });
}

#[test]
fn the_meaning_of_return_codes_depends_on_the_role() {
    let header_outcomes = [
        (ret::DROP, Verdict::Drop, false),
        (ret::DROP_PENDING, Verdict::Drop, true),
        (ret::PROCESS_DATA, Verdict::Process, false),
        (ret::PROCESS_DATA_PENDING, Verdict::Process, true),
        (ret::PROCEED, Verdict::Proceed, false),
        (ret::PROCEED_PENDING, Verdict::Proceed, true),
    ];
    for (code, verdict, pending) in header_outcomes {
        assert_eq!(outcome(0, code), Outcome::Header { verdict, pending }, "{code}");
    }
    assert_eq!(outcome(1, ret::SUCCESS), Outcome::Payload { dropped: false });
    assert_eq!(outcome(1, ret::DROP), Outcome::Payload { dropped: true });
    assert_eq!(outcome(2, ret::SUCCESS), Outcome::Completion { pending: false });
    assert_eq!(outcome(2, ret::SUCCESS_PENDING), Outcome::Completion { pending: true });
    for (role, code) in [(0, ret::SUCCESS), (1, ret::PROCEED), (2, ret::DROP), (0, ret::FAIL), (1, 77)] {
        let Outcome::Failed(error) = outcome(role, code) else { panic!("{role} may return {code}") };
        assert_eq!((error.failure, error.detail), (Failure::Failed, u64::from(code)));
    }
}

/// Returns the outcome of the header (0), payload (1) or completion handler (2) that returns `code`.
fn outcome(role: usize, code: u32) -> Outcome {
    let mut codes = [vec![], vec![], vec![]];
    codes[role] = returns(code);
    let mut rig = Rig::new(&[], codes, &[]);
    let completion = Input::Completion { dropped: 0, flow_control: false };
    let input = [Input::Header(header()), Input::Payload, completion][role];
    let task = rig.task(1, input, None);
    rig.unit.offer(task, &mut rig.world).unwrap();
    rig.run();
    rig.ends.pop().unwrap().outcome
}
