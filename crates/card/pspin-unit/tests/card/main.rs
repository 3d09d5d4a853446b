// SPDX-License-Identifier: Apache-2.0
//! The PsPIN unit on a card of a cluster, running P4sPIN handlers.

mod commands;
#[path = "../../../accel/tests/rig/mod.rs"]
mod rig;

use abi::device::{DmaCmd, cmd, ret};
use accel::testing::code::{A0, RET, SPIN, T0, ZERO, add, addi, commands, lui, lw, returns, sw};
use accel::{Accelerator, Failure, Outcome, Reply, Transfer};
use bytemuck::bytes_of;
use machine::{Accelerator as Kind, Machine};
use pspin_unit::card::{Card, Layout};
use rig::{Rig, SUCCESS};
use sim::Time;

/// The scratchpad of cluster 0 follows 8 KiB of the runtime and 32 KiB of packets.
const STATE: u32 = 0x1000_a000;

fn machine(settings: &[&str]) -> Machine {
    rig::load("pspin-400g", settings)
}

/// Returns the accelerator of this card.
fn accelerator(machine: &Machine) -> Box<dyn Accelerator> {
    let Kind::Pspin(unit) = &machine.accelerator else { panic!("{} is another card", machine.name) };
    let layout = Layout::new(unit).expect("L1 memories that hold the stacks");
    Box::new(Card::new(layout, machine.hpu.clock, machine.network.mtu, accel::PRINT_CYCLES))
}

/// Runs the handler on one packet, without others. Returns the time in ns from the packet to the feedback.
fn time(rig: &mut Rig, message: u64, data: &[u8]) -> u64 {
    rig.world.now += Time::from_ns(100);
    let start = rig.world.now.as_ps();
    rig.offer(message, data);
    rig.run();
    (rig.ends.last().unwrap().at - start) / 1000
}

#[test]
fn an_empty_handler_takes_the_time_of_the_paper() {
    let mut rig = Rig::payload(&[], returns(ret::SUCCESS), &[]);
    // §IV-B1: 26 ns from the request at 64 B, 40 ns at 1,024 B. The packet is in L2 after 4 cycles and one per 64 B.
    // The first handler waits 12 cycles for its line of code.
    assert_eq!(time(&mut rig, 0, &[1; 64]), 4 + 1 + 26 + 12);
    assert_eq!(time(&mut rig, 1, &[1; 64]), 4 + 1 + 26);
    assert_eq!(time(&mut rig, 2, &[1; 1024]), 4 + 16 + 40);
    assert!(rig.ends.iter().all(|end| end.outcome == SUCCESS));
}

/// Returns a handler that adds the first word of its packet to the first word of its state.
fn sums() -> Vec<u32> {
    vec![
        lw(T0, A0, 16), // base of the payload
        lw(T0, T0, 0),
        0x0055_a02f, // amoadd.w zero, t0, (a1)
        addi(A0, ZERO, ret::SUCCESS as i32),
        RET,
    ]
}

#[test]
fn messages_beyond_the_queues_wait() {
    let mut rig = Rig::payload(&["accelerator.mpq.queues=8", "accelerator.inbound.message_ids=8"], sums(), &[]);
    for message in 0..100 {
        rig.offer(message, &(message as u32).to_le_bytes());
    }
    rig.run();
    assert_eq!(rig.ends.len(), 100);
    assert!(rig.ends.iter().all(|end| end.outcome == SUCCESS), "{:?}", rig.ends);
    // The first messages have the cluster of the state as home, while it has free queues.
    assert_eq!(rig.hpus()[..4], [0, 1, 8, 9]);
}

/// Returns a handler that copies the first word of its state to the host.
fn shows() -> Vec<u32> {
    commands(cmd::DMA_TO_HOST, STATE + 64, ret::SUCCESS)
}

#[test]
fn a_command_takes_issue_and_path() {
    let dma = DmaCmd { offset: 0, local: STATE, len: 8, ..DmaCmd::default() };
    let state = [vec![7; 64], bytes_of(&dma).to_vec()].concat();
    let mut rig = Rig::payload(&[], shows(), &state);
    rig.offer(0, &[0; 64]);
    let issued = rig.next_command().expect("a command");
    // The handler starts at 31 - 2 (feedback and doorbell) - 4 (return) = 25 in the column of an empty one: pointer at
    // 21.
    let at = rig.world.now.as_ps() / 1000;
    assert_eq!(rig.unit.read(issued.id, STATE, 8).unwrap(), Some(vec![7; 8]));
    assert_eq!(rig.unit.read(issued.id, STATE + 1020, 8).unwrap(), None, "beyond the end of its memory");
    rig.reply(&issued, Reply::Started(Transfer::Posted(Time::from_ns(at))));
    rig.run();
    assert_eq!(rig.ends.len(), 1);
    assert_eq!(rig.ends[0].outcome, SUCCESS);
}

#[test]
fn a_failing_handler_ends_alone() {
    // The second store is below the 8 KiB of stack.
    let code = vec![lui(T0, 0xffff_e000), add(T0, T0, 2), sw(ZERO, T0, 0), sw(ZERO, T0, -4), RET];
    let mut rig = Rig::payload(&[], code, &[]);
    rig.offer(0, &[0; 64]);
    rig.run();
    let Outcome::Failed(error) = &rig.ends[0].outcome else { panic!("{:?}", rig.ends) };
    assert_eq!(error.failure, Failure::Segv);
    assert!(error.message.contains("accelerator.stack_bytes"), "{}", error.message);
}

#[test]
fn the_watchdog_kills_a_handler() {
    let mut rig = Rig::payload(&["accelerator.default_watchdog_cycles=10000"], vec![SPIN], &[]);
    rig.offer(0, &[0; 64]);
    rig.run();
    let Outcome::Failed(error) = &rig.ends[0].outcome else { panic!("{:?}", rig.ends) };
    assert_eq!((error.failure, error.detail), (Failure::Timeout, 10_000));
}

#[test]
fn simulating_ahead_changes_nothing() {
    let run = |is_close| {
        let mut rig = Rig::payload(&[], sums(), &[]);
        rig.world.is_close = is_close;
        for message in 0..200_u64 {
            rig.offer(message, &vec![1; 4 + message as usize]);
        }
        rig.run();
        (rig.hpus(), rig.ends)
    };
    assert_eq!(run(false), run(true));
}

#[test]
fn withdrawn_messages_end_without_a_word() {
    let mut rig = Rig::payload(&[], vec![SPIN], &[]);
    for message in 0..50 {
        rig.offer(message, &[0; 64]);
    }
    let tasks = rig.unit.withdraw(&(0..50).collect::<Vec<_>>(), &mut rig.world).unwrap();
    assert_eq!(tasks.len(), 50);
    tasks.iter().filter_map(|task| task.packet).for_each(|packet| rig.unit.free(packet));
    rig.run();
    assert!(rig.ends.is_empty(), "{:?}", rig.ends);
}

#[test]
fn a_command_outlives_its_program() {
    let dma = DmaCmd { offset: 0, local: STATE, len: 8, ..DmaCmd::default() };
    let state = [vec![7; 64], bytes_of(&dma).to_vec()].concat();
    let mut rig = Rig::payload(&[], shows(), &state);
    rig.offer(0, &[0; 64]);
    let issued = rig.next_command().expect("a command");
    rig.reply(&issued, Reply::Started(Transfer::UnderWay));
    rig.unit.unload();
    rig.reply(&issued, Reply::Done(0));
    assert!(rig.unit.program().is_none());
}
