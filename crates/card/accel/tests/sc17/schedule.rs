// SPDX-License-Identifier: Apache-2.0
//! Assignment of handlers to HPUs, and their run times.

use abi::device::{PutCmd, cmd, ret};
use abi::portals::Process;
use accel::testing::code::{A0, A7, ECALL, RET, T0, ZERO, addi, bnez, commands, returns};
use accel::{Command, Place, Reply};
use bytemuck::bytes_of;
use sim::Time;

use crate::rig::{Rig, SUCCESS};
use crate::{CYCLE, STATE, sizes};

/// Assembles a payload handler that counts down from `rounds`.
fn works(rounds: i32) -> Vec<u32> {
    vec![addi(T0, ZERO, rounds), addi(T0, T0, -1), bnez(T0, -1), addi(A0, ZERO, ret::SUCCESS as i32), RET]
}

fn with(hpus: u32, contexts: u32, code: Vec<u32>) -> Rig {
    let settings = sizes(hpus, contexts);
    Rig::payload(&settings.each_ref().map(String::as_str), code, &[])
}

/// Returns the run time of the only handler, in ps.
fn alone(code: Vec<u32>) -> u64 {
    let mut rig = with(1, 1, code);
    rig.offer(1, &[0; 8]);
    rig.run();
    let end = &rig.ends[0];
    assert_eq!((end.at, end.occupancy, &end.outcome), (end.cycles * CYCLE, end.cycles * CYCLE, &SUCCESS));
    end.at
}

#[test]
fn tasks_wait_for_a_context_in_the_order_in_which_they_were_offered() {
    let time = alone(works(10));
    let mut rig = with(2, 2, works(10));
    (1..=5).for_each(|message| rig.offer(message, &[0; 8]));
    rig.run();
    assert_eq!(rig.times(), [(1, time), (2, time), (3, 2 * time), (4, 2 * time), (5, 3 * time)]);
    let hpus = rig.hpus();
    assert_eq!(hpus, [0, 1, 0, 1, 0]);
    assert_eq!(rig.unit.busy(0), Time::from_ps(5 * time));
}

#[test]
fn the_least_occupied_hpu_gets_the_next_task() {
    // Contexts 0 and 2 belong to HPU 0, 1 and 3 to HPU 1. Two of the three tasks are on HPU 0, where the second waits.
    let time = alone(works(10));
    let mut rig = with(2, 4, works(10));
    (1..=3).for_each(|message| rig.offer(message, &[0; 8]));
    rig.run();
    assert_eq!(rig.times(), [(1, time), (2, time), (3, 2 * time)]);
    assert_eq!(rig.ends[2].occupancy, 2 * time, "it had a context from the start");
    assert_eq!(rig.world.slices[2], (0, time, 2 * time, "payload".to_owned()));
}

/// Assembles a handler that puts 8 bytes and then returns, and its state with the command's argument.
fn puts() -> (Vec<u32>, Vec<u8>) {
    let put = PutCmd { local: u64::from(STATE), len: 8, target_id: Process { nid: 9, pid: 0 }, ..PutCmd::default() };
    (commands(cmd::PUT_FROM_DEVICE, STATE, ret::SUCCESS), bytes_of(&put).to_vec())
}

#[test]
fn a_handler_that_waits_leaves_its_hpu_to_another_one() {
    let (code, state) = puts();
    let settings = sizes(1, 2);
    let mut rig = Rig::payload(&settings.each_ref().map(String::as_str), code, &state);
    (1..=2).for_each(|message| rig.offer(message, &[0; 8]));
    let first = rig.next_command().unwrap();
    let Command::Put(message) = &first.command else { panic!("{first:?}") };
    assert_eq!((message.place, message.length, message.target.nid), (Place::Device(STATE.into()), 8, 9));
    assert_eq!((first.message, &*first.handler), (1, "payload"));
    let call = rig.world.now;
    rig.reply(&first, Reply::Leaves(call + Time::from_ns(1000)));
    let second = rig.next_command().unwrap();
    assert_eq!((second.message, rig.world.now), (2, call + call), "it has run since the first one waits");
    rig.reply(&second, Reply::Done(0));
    rig.run();
    let left = 1_000_000 + call.as_ps();
    let rest = rig.ends[0].cycles * CYCLE - call.as_ps();
    assert_eq!(rig.times(), [(2, 2 * call.as_ps() + rest), (1, left + rest)]);
    let stays: Vec<_> = rig.world.slices.iter().map(|(_, start, end, _)| (*start, *end)).collect();
    let call = call.as_ps();
    assert_eq!(stays, [(0, call), (call, 2 * call + rest), (left, left + rest)]);
}

#[test]
fn a_handler_whose_put_does_not_block_continues() {
    let (code, state) = puts();
    for reply in [Reply::Leaves(Time::from_ns(1000)), Reply::Queued] {
        let mut rig = Rig::payload(&["accelerator.put_blocks=false"], code.clone(), &state);
        rig.offer(1, &[0; 8]);
        let put = rig.next_command().unwrap();
        let queued = reply == Reply::Queued;
        rig.reply(&put, reply);
        if queued {
            rig.reply(&put, Reply::Done(0)); // the message leaves, but no handler waits for that
        }
        rig.run();
        assert_eq!(rig.times(), [(1, rig.ends[0].cycles * CYCLE)]);
    }
}

#[test]
fn a_put_that_finds_no_room_in_the_network_blocks_until_it_has_left() {
    let (code, state) = puts();
    let mut rig = Rig::payload(&[], code, &state);
    rig.offer(1, &[0; 8]);
    let put = rig.next_command().unwrap();
    let call = rig.world.now;
    rig.reply(&put, Reply::Queued);
    rig.run();
    assert_eq!(rig.times(), []);
    rig.world.now = Time::from_ns(5000);
    rig.reply(&put, Reply::Done(0));
    rig.run();
    let rest = rig.ends[0].cycles * CYCLE - call.as_ps();
    assert_eq!(rig.times(), [(1, 5_000_000 + rest)]);
    let slice = |start: u64, end: u64, name: &str| (0, start, end, name.to_owned());
    let wait = slice(call.as_ps(), 5_000_000, "wait for message");
    assert_eq!(rig.world.slices, [wait, slice(0, 5_000_000 + rest, "payload")]);
}

#[test]
fn handlers_that_yield_take_turns() {
    // Yields, works, and returns.
    let code = [&[addi(A7, ZERO, cmd::YIELD as i32), ECALL][..], &works(10)].concat();
    let time = alone(code.clone());
    let mut rig = with(1, 2, code);
    (1..=2).for_each(|message| rig.offer(message, &[0; 8]));
    rig.run();
    let names: Vec<_> = rig.world.slices.iter().map(|(_, start, end, _)| (*start, *end)).collect();
    let call = names[0].1;
    // The first yields to the second, the second to the first, which then runs to completion.
    assert_eq!(names, [(0, call), (call, 2 * call), (2 * call, call + time), (call + time, 2 * time)]);
    assert_eq!(rig.times(), [(1, call + time), (2, 2 * time)]);
}

#[test]
fn handlers_learn_on_which_hpu_they_run() {
    // A payload handler may return 0 and 6: the number of its HPU is a return code here.
    let code = vec![addi(A7, ZERO, cmd::MY_HPU as i32), ECALL, RET];
    let mut rig = with(2, 2, code);
    (1..=2).for_each(|message| rig.offer(message, &[0; 8]));
    rig.run();
    assert_eq!(rig.ends[0].outcome, accel::Outcome::Payload { dropped: true }, "HPU 0");
    let accel::Outcome::Failed(error) = &rig.ends[1].outcome else { panic!("{:?}", rig.ends[1]) };
    assert_eq!(error.message, "returned 1, which is no return code of a payload handler");
    let code = vec![addi(A7, ZERO, cmd::NUM_HPUS as i32), ECALL, RET];
    let mut rig = with(6, 6, code);
    rig.offer(1, &[0; 8]);
    rig.run();
    assert_eq!(rig.ends[0].outcome, SUCCESS, "6 HPUs");
}

#[test]
fn withdrawn_tasks_make_room_for_others() {
    let time = alone(works(10));
    let mut rig = with(1, 1, works(10));
    (1..=4).for_each(|message| rig.offer(message, &[0; 8]));
    rig.world.now = Time::from_ps(time / 2);
    let withdrawn = rig.unit.withdraw(&[1, 3], &mut rig.world).unwrap();
    // The waiting task is first, then the running one.
    assert_eq!(withdrawn.iter().map(|task| task.message).collect::<Vec<_>>(), [3, 1]);
    assert_eq!(rig.world.slices, [(0, 0, time / 2, "payload".to_owned())]);
    rig.run();
    assert_eq!(rig.times(), [(2, time / 2 + time), (4, time / 2 + 2 * time)]);
}

#[test]
fn a_unit_without_a_program_runs_nothing() {
    let mut rig = with(1, 1, returns(ret::SUCCESS));
    rig.offer(1, &[0; 8]);
    rig.unit.unload();
    rig.run(); // the event of the handler is obsolete
    assert_eq!(rig.times(), []);
    assert!(rig.unit.program().is_none());
    let task = rig.task(2, accel::Input::Payload, None);
    let offered = rig.unit.offer(task, &mut rig.world);
    assert_eq!(offered, Err(accel::InternalError::NoProgram));
}
