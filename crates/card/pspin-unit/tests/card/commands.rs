// SPDX-License-Identifier: Apache-2.0
//! Commands of handlers: their path through the command unit (PsPIN §III-B1, §IV-B2).

use abi::device::{DmaCmd, PutCmd, cmd, ret};
use accel::testing::code::{A0, RET, ZERO, addi, commands};
use accel::{Reply, Transfer};
use bytemuck::bytes_of;
use sim::Time;

use crate::STATE;
use crate::rig::{Rig, SUCCESS};

/// Address of the arguments of a handler's calls, after the data in its state.
const ARGUMENTS: u32 = STATE + 960;

/// Creates a card whose handler has this code, with `arguments` in its state.
fn card(settings: &[&str], code: Vec<u32>, arguments: &[u8]) -> Rig {
    Rig::payload(settings, code, &[&[7; 960][..], arguments].concat())
}

/// Returns the times in ns at which the commands of `handlers` handlers leave, all requested at the same time.
fn leave(settings: &[&str], number: u32, arguments: &[u8], handlers: u64) -> Vec<u64> {
    let mut rig = card(settings, commands(number, ARGUMENTS, ret::SUCCESS), arguments);
    (0..handlers).for_each(|message| rig.offer(message, &[0; 8]));
    let mut times = Vec::new();
    while let Some(issued) = rig.next_command() {
        let now = rig.world.now;
        times.push(now.as_ps() / 1000);
        let reply = match number {
            cmd::DMA_TO_HOST => Reply::Started(Transfer::Posted(now)),
            cmd::PUT_FROM_DEVICE => Reply::Leaves(now),
            _ => Reply::Done(0),
        };
        rig.reply(&issued, reply);
    }
    assert_eq!((rig.ends.len(), rig.ends.iter().all(|end| end.outcome == SUCCESS)), (handlers as usize, true));
    times
}

fn put(len: u64) -> Vec<u8> {
    bytes_of(&PutCmd { local: STATE.into(), len, ..PutCmd::default() }).to_vec()
}

fn write(len: u32) -> Vec<u8> {
    bytes_of(&DmaCmd { offset: 0, local: STATE, len, ..DmaCmd::default() }).to_vec()
}

/// A command without data takes 7 cycles to issue, 4 to its engine, and 1 there. The outbound engine needs a cycle per
/// beat of a packet and 4 more; writes to the host pass through.
#[test]
fn a_command_takes_issue_path_and_its_data() {
    let one = |number, arguments: &[u8]| leave(&[], number, arguments, 1)[0];
    let bare = one(cmd::PUT_FROM_HOST, &put(64));
    // The packet is in L2 after 5 cycles. Its handler begins 17 cycles later, waits 12 cycles for its line of code, and
    // calls after 4 cycles of the runtime and three instructions.
    assert_eq!(bare, 5 + 17 + 4 + 12 + 4 + 7 + 4 + 1);
    for (bytes, beats) in [(1, 1), (64, 1), (65, 2), (512, 8)] {
        assert_eq!(one(cmd::PUT_FROM_DEVICE, &put(bytes)) - bare, 4 + beats - 1, "{bytes} B");
        assert_eq!(one(cmd::DMA_TO_HOST, &write(bytes as u32)) - bare, 4, "{bytes} B");
    }
}

/// Eight handlers call within a few cycles. The outbound engine needs one cycle per beat of each packet, as all are in
/// the same L1; the off-cluster engine needs one more per copy.
#[test]
fn commands_take_turns_at_their_engine() {
    let gaps = |times: Vec<u64>| times.windows(2).map(|pair| pair[1] - pair[0]).collect::<Vec<u64>>();
    assert_eq!(gaps(leave(&[], cmd::PUT_FROM_DEVICE, &put(256), 8)), [4; 7]);
    assert_eq!(gaps(leave(&[], cmd::DMA_TO_HOST, &write(256), 8)), [5; 7]);
    assert_eq!(gaps(leave(&["accelerator.off_cluster.l1_gap_cycles=9"], cmd::DMA_TO_HOST, &write(64), 8)), [10; 7]);
}

/// A handler starts five writes. The fifth waits until one of the first four is done, and the end of the handler until
/// all are.
#[test]
fn four_commands_are_in_flight() {
    let start = commands(cmd::DMA_TO_HOST, ARGUMENTS, ret::SUCCESS)[..4].repeat(5);
    let mut rig = card(&[], [start, vec![addi(A0, ZERO, ret::SUCCESS as i32), RET]].concat(), &write(64));
    rig.offer(0, &[0; 8]);
    let mut issued = Vec::new();
    for _ in 0..4 {
        issued.push(rig.next_command().expect("four commands"));
        rig.reply(&issued[issued.len() - 1], Reply::Started(Transfer::UnderWay));
    }
    rig.world.now += Time::from_ns(1_000);
    let now = rig.world.now;
    rig.reply(&issued.remove(2), Reply::Done(0));
    issued.push(rig.next_command().expect("the fifth"));
    // The response takes 2 cycles, the path to the engine 4, a beat 1, and the read 4.
    assert_eq!((rig.world.now - now).as_ps() / 1000, 2 + 4 + 1 + 4);
    rig.reply(&issued[3], Reply::Started(Transfer::UnderWay));
    rig.run();
    for command in issued {
        assert!(rig.ends.is_empty());
        rig.world.now += Time::from_ns(1_000);
        rig.reply(&command, Reply::Done(0));
        rig.run();
    }
    assert_eq!(rig.ends[0].outcome, SUCCESS);
    // The response takes two cycles, and one to the card, which sees it at the end of that cycle.
    assert_eq!(Time::from_ps(rig.ends[0].at) - rig.world.now, Time::ZERO);
}

/// Closing an interface while commands of its handlers are in flight frees their HPUs, packets and queues without
/// replies.
#[test]
fn commands_of_withdrawn_handlers_hold_nothing() {
    let set = ["accelerator.mpq.queues=4", "accelerator.inbound.message_ids=4", "accelerator.clusters=1"];
    let start = commands(cmd::DMA_TO_HOST, ARGUMENTS, ret::SUCCESS);
    let mut rig = card(&set, start, &write(64));
    let messages: Vec<u64> = (0..4).collect();
    messages.iter().for_each(|message| rig.offer(*message, &[0; 8]));
    // Two commands get replies, and two none.
    let issued: Vec<_> = (0..4).map(|_| rig.next_command().expect("four commands")).collect();
    issued[..2].iter().for_each(|command| rig.reply(command, Reply::Started(Transfer::UnderWay)));
    let tasks = rig.unit.withdraw(&messages, &mut rig.world).unwrap();
    tasks.iter().filter_map(|task| task.packet).for_each(|packet| rig.unit.free(packet));
    rig.run();
    assert!(tasks.len() == 4 && rig.ends.is_empty());
    for message in 4..8 {
        rig.offer(message, &[0; 8]);
        let command = rig.next_command().expect("a queue is free");
        let now = rig.world.now;
        rig.reply(&command, Reply::Started(Transfer::Posted(now)));
        rig.run();
    }
    assert_eq!(rig.ends.len(), 4);
}
