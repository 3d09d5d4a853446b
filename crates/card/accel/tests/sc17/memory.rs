// SPDX-License-Identifier: Apache-2.0
//! Memories, packet buffers and arguments.

use std::rc::Rc;

use abi::device::{DmaCmd, HeaderArgs, PayloadArgs, cmd, map, ret};
use accel::testing::code::{A0, A1, RET, T0, addi, commands, lw, sw};
use accel::{AllocationError, HandlerSet, Input, Reply};
use bytemuck::{bytes_of, pod_read_unaligned};

use crate::STATE;
use crate::rig::{Rig, SUCCESS, header};

/// Assembles a command that exposes the handler's memory to the test: a DMA to the host. The handler's first argument
/// is still in `a0`.
fn shows(code: u32) -> Vec<u32> {
    let mut shows = vec![sw(A0, A1, 0x100)]; // the state keeps the first argument
    shows.extend(commands(cmd::DMA_TO_HOST, STATE, code));
    shows
}

fn dma() -> Vec<u8> {
    bytes_of(&DmaCmd { local: STATE, len: 8, ..DmaCmd::default() }).to_vec()
}

#[test]
fn packets_find_buffers_until_all_are_full() {
    let mut rig = Rig::payload(&["accelerator.packet_buffer_bytes=8192"], shows(ret::SUCCESS), &[]);
    assert_eq!(rig.unit.packet_buffers(), 2);
    let first = rig.store(0, &[1; 4096], 0).unwrap().unwrap();
    let second = rig.store(4096, &[2; 100], 0).unwrap().unwrap();
    assert_eq!(rig.store(8192, &[3; 1], 0), Ok(None));
    assert_eq!(rig.unit.take(first).unwrap(), [1; 4096]);
    let third = rig.store(8192, &[3; 10], 0).unwrap().unwrap();
    assert_eq!(rig.store(0, &[], 0), Ok(None));
    rig.unit.free(second);
    assert_eq!(rig.unit.take(third).unwrap(), [3; 10]);
    assert!(rig.store(0, &[], 0).unwrap().is_some());
}

#[test]
fn a_trim_waits_for_packets_and_handlers() {
    let mut rig = Rig::payload(&[], shows(ret::SUCCESS), &[]);
    let packet = rig.store(0, &[1; 64], 0).unwrap().unwrap();
    rig.unit.trim();
    assert_eq!(rig.unit.take(packet).unwrap(), [1; 64]);
    rig.unit.trim();
    let again = rig.store(0, &[], 0).unwrap().unwrap();
    assert_eq!(again.length, 0);
}

#[test]
fn hpu_memory_is_zero_when_it_is_allocated() {
    let mut rig = Rig::payload(&["accelerator.memory_bytes=4096"], shows(ret::SUCCESS), &[7; 1024]);
    assert_eq!(rig.unit.allocate(0), Err(AllocationError::Empty));
    assert_eq!(rig.unit.allocate(3073), Err(AllocationError::Full(3073)));
    rig.handlers = Rc::new(HandlerSet::default()); // drops the last owner of the first piece
    let again = rig.unit.allocate(4096).unwrap();
    assert_eq!((again.address, again.length), (STATE, 4096));
    let again = Some(again);
    let payload = rig.unit.program().and_then(|program| program.named("payload")).cloned();
    rig.handlers = Rc::new(HandlerSet { payload, state: again, ..HandlerSet::default() });
    rig.unit.initialise(rig.handlers.state.as_ref().unwrap(), &dma()).unwrap();
    rig.offer(1, &[0; 8]);
    let shown = rig.next_command().unwrap();
    let bytes = rig.read(&shown, STATE, 1024).unwrap();
    assert_eq!(bytes[..24], dma());
    assert!(bytes[24..0x100].iter().chain(&bytes[0x104..]).all(|byte| *byte == 0));
}

#[test]
fn a_payload_handler_sees_the_payload_aligned() {
    let mut rig = Rig::payload(&[], shows(ret::SUCCESS), &dma());
    let handlers = Rc::into_inner(std::mem::take(&mut rig.handlers)).unwrap();
    rig.handlers = Rc::new(HandlerSet { user_hdr: 13, ..handlers });
    let data: Vec<u8> = (0..100).collect();
    let packet = rig.store(0, &data, 13).unwrap().unwrap();
    let task = rig.task(1, Input::Payload, Some(packet));
    assert_eq!(task.payload_bytes(), 87);
    rig.unit.offer(task, &mut rig.world).unwrap();
    let shown = rig.next_command().unwrap();
    let block = u32::from_le_bytes(rig.read(&shown, STATE + 0x100, 4).unwrap().try_into().unwrap());
    assert_eq!(block, map::CONTEXTS);
    let arguments = rig.read(&shown, block, size_of::<PayloadArgs>() as u32).unwrap();
    let PayloadArgs { length, offset, base, .. } = pod_read_unaligned::<PayloadArgs>(&arguments);
    assert_eq!((length, offset, base % 8), (87, 0, 0));
    assert_eq!(rig.read(&shown, base, 87).unwrap(), data[13..]);
    assert!(rig.unit.may_write(shown.id, base, 87), "a packet is the handler's own");
    assert!(!rig.unit.may_write(shown.id, block, 4), "its arguments are not");
    assert_eq!(rig.read(&shown, base + 96, 1), None, "behind the packet");
    rig.reply(&shown, Reply::Done(0));
    rig.run();
    assert_eq!(rig.ends[0].outcome, SUCCESS);
}

#[test]
fn a_header_handler_sees_the_header_followed_by_the_user_header() {
    let mut rig = Rig::new(&[], [shows(ret::PROCEED), vec![], vec![]], &dma());
    let handlers = Rc::into_inner(std::mem::take(&mut rig.handlers)).unwrap();
    rig.handlers = Rc::new(HandlerSet { user_hdr: 8, ..handlers });
    // The message is shorter than its user header.
    let packet = rig.store(0, &[1, 2, 3], 3).unwrap().unwrap();
    let task = rig.task(1, Input::Header(header()), Some(packet));
    rig.unit.offer(task, &mut rig.world).unwrap();
    let shown = rig.next_command().unwrap();
    let size = size_of::<HeaderArgs>() as u32;
    let bytes = rig.read(&shown, map::CONTEXTS, size + 8).unwrap();
    let arguments = pod_read_unaligned::<HeaderArgs>(&bytes[..size_of::<HeaderArgs>()]);
    let expected = HeaderArgs {
        kind: 0,
        pad: 0,
        length: 100,
        target_id: header().target,
        source_id: header().source,
        match_bits: 5,
        offset: 6,
        hdr_data: 7,
    };
    assert_eq!(arguments, expected);
    assert_eq!(bytes[size as usize..], [1, 2, 3, 0, 0, 0, 0, 0]);
}

#[test]
fn a_completion_handler_sees_what_was_lost() {
    // Returns the sum of its first two arguments: dropped bytes and flow control.
    let code = vec![0x00b5_0533, RET]; // add a0, a0, a1
    let mut rig = Rig::new(&[], [vec![], vec![], code], &[]);
    let task = rig.task(1, Input::Completion { dropped: u64::from(ret::SUCCESS) - 1, flow_control: true }, None);
    rig.unit.offer(task, &mut rig.world).unwrap();
    rig.run();
    assert_eq!(rig.ends[0].outcome, accel::Outcome::Completion { pending: false });
}

#[test]
fn handlers_of_one_context_do_not_see_each_others_arguments_but_share_the_state() {
    // Increments state[0] and returns the sum.
    let code = vec![lw(T0, A1, 0), addi(T0, T0, 1), sw(T0, A1, 0), addi(A0, T0, 0), RET];
    let mut rig = Rig::payload(&["accelerator.hpus=1", "accelerator.contexts=1"], code, &[5, 0, 0, 0]);
    (1..=2).for_each(|message| rig.offer(message, &[0; 8]));
    rig.run();
    assert_eq!(rig.ends[0].outcome, SUCCESS, "5 + 1");
    let accel::Outcome::Failed(error) = &rig.ends[1].outcome else { panic!("{:?}", rig.ends[1]) };
    assert_eq!(error.detail, 7);
}
