// SPDX-License-Identifier: Apache-2.0
//! Commands of handlers, and the replies to them.

use abi::device::{AtomicCmd, CasCmd, DmaAtomicCmd, DmaCmd, FetchAddCmd, PutCmd, cmd, err, map, ret};
use abi::portals::{AckReq, AtomicOp, CtEvent, Datatype};
use accel::testing::code::{A0, A7, ECALL, RET, S0, ZERO, addi, commands, lui, lw};
use accel::{
    Command, Counter, Direction, Dma, Failure, HostAtomic, HostMemory, HostOperation, InternalError, Outcome, Place,
    Reply, Transfer,
};
use bytemuck::{bytes_of, pod_read_unaligned};
use sim::Time;

use crate::rig::{Rig, SUCCESS};
use crate::{CYCLE, STATE};

/// Assembles a handler that issues these commands with the start of the state as argument, and returns the last result.
fn results(numbers: &[u32]) -> Vec<u32> {
    let mut code = vec![lui(S0, STATE)];
    for number in numbers {
        code.extend([addi(A0, S0, 0), addi(A7, ZERO, *number as i32), ECALL]);
    }
    code.push(RET);
    code
}

/// Runs a handler until it issues command `number` with `argument`. Returns the rig and the command.
fn issues(number: u32, argument: &[u8]) -> (Rig, accel::Issued) {
    let mut rig = Rig::payload(&[], results(&[number]), argument);
    rig.offer(1, &[0; 8]);
    let issued = rig.next_command().expect("a command for the card");
    (rig, issued)
}

/// Returns the return code of the handler that ended.
fn returned(rig: &Rig) -> i32 {
    match &rig.ends[0].outcome {
        Outcome::Payload { dropped } => {
            let code = if *dropped { ret::DROP } else { ret::SUCCESS };
            code as i32
        }
        Outcome::Failed(error) => error.detail as i32,
        other => panic!("{other:?}"),
    }
}

#[test]
fn messages_contain_the_arguments_of_the_handler() {
    let put = PutCmd {
        local: 16,
        len: 24,
        match_bits: 3,
        remote_offset: 4,
        hdr_data: 5,
        user_ptr: 6,
        ct: 1,
        ack_req: AckReq::Ack as u16,
        ..PutCmd::default()
    };
    for (number, host) in [(cmd::PUT_FROM_DEVICE, false), (cmd::PUT_FROM_HOST, true)] {
        let (_, issued) = issues(number, bytes_of(&put));
        let Command::Put(message) = issued.command else { panic!("{issued:?}") };
        assert_eq!(message.place, if host { Place::Host(16) } else { Place::Device(16) });
        let numbers = (message.length, message.match_bits, message.remote_offset, message.hdr_data, message.user_ptr);
        assert_eq!(numbers, (24, 3, 4, 5, 6));
        assert_eq!((message.ack, message.counted), (AckReq::Ack, true));
    }
    let (_, issued) = issues(cmd::GET_TO_DEVICE, bytes_of(&PutCmd { ack_req: 999, ..put }));
    let Command::Get(message) = issued.command else { panic!("{issued:?}") };
    assert_eq!((message.place, message.ack), (Place::Device(16), AckReq::None), "a get has no acknowledgement");
    let atomic = AtomicCmd { put, operation: AtomicOp::Sum as u32, datatype: Datatype::Int32 as u32 };
    let (_, issued) = issues(cmd::ATOMIC_FROM_HOST, bytes_of(&atomic));
    let Command::Atomic(message, AtomicOp::Sum, Datatype::Int32) = issued.command else { panic!("{issued:?}") };
    assert_eq!(message.place, Place::Host(16));
}

#[test]
fn arguments_out_of_range_never_reach_the_card() {
    let put = PutCmd::default();
    let atomic = AtomicCmd { put, operation: 999, datatype: Datatype::Int32 as u32 };
    let cases: [(u32, Vec<u8>); 5] = [
        (cmd::PUT_FROM_HOST, bytes_of(&PutCmd { ack_req: 999, ..put }).to_vec()),
        (cmd::PUT_FROM_DEVICE, bytes_of(&PutCmd { ct: 2, ..put }).to_vec()),
        (cmd::ATOMIC_FROM_DEVICE, bytes_of(&atomic).to_vec()),
        (cmd::DMA_TO_HOST, bytes_of(&DmaCmd { options: 2, ..DmaCmd::default() }).to_vec()),
        (cmd::DMA_FETCH_ADD, bytes_of(&DmaAtomicCmd { datatype: 999, ..DmaAtomicCmd::default() }).to_vec()),
    ];
    for (number, argument) in cases {
        let mut rig = Rig::payload(&[], results(&[number]), &argument);
        rig.offer(1, &[0; 8]);
        rig.run();
        assert_eq!(returned(&rig), err::INVALID, "{number}");
    }
}

#[test]
fn a_reply_is_the_result_of_the_call() {
    let (mut rig, issued) = issues(cmd::PUT_FROM_HOST, bytes_of(&PutCmd::default()));
    let call = rig.world.now;
    rig.reply(&issued, Reply::Done(err::INVALID));
    rig.run();
    assert_eq!(returned(&rig), err::INVALID);
    assert!(rig.ends[0].at > call.as_ps() && rig.ends[0].at == rig.ends[0].cycles * CYCLE);
    let (mut rig, issued) = issues(cmd::PUT_FROM_DEVICE, bytes_of(&PutCmd::default()));
    rig.reply(&issued, Reply::Fault { what: "put nonsense".into(), address: 77 });
    rig.run();
    let Outcome::Failed(error) = &rig.ends[0].outcome else { panic!("{:?}", rig.ends[0]) };
    assert_eq!((error.failure, &*error.message, error.detail), (Failure::Segv, "put nonsense", 77));
}

#[test]
fn a_get_to_the_card_waits_for_its_data() {
    // Gets 8 bytes to the state behind the argument, and returns the first of its words.
    let at = STATE + 0x100;
    let get = PutCmd { local: u64::from(at), len: 8, ..PutCmd::default() };
    let mut code = commands(cmd::GET_TO_DEVICE, STATE, 0);
    code.truncate(code.len() - 2);
    code.extend([lui(S0, STATE), lw(A0, S0, 0x100), RET]);
    let mut rig = Rig::payload(&[], code, bytes_of(&get));
    rig.offer(1, &[0; 8]);
    let issued = rig.next_command().unwrap();
    assert!(rig.unit.may_write(issued.id, at, 8) && !rig.unit.may_write(issued.id, at + 0x400, 8));
    rig.reply(&issued, Reply::Blocked);
    rig.run();
    assert_eq!(rig.times(), []);
    rig.world.now = Time::from_ns(3000);
    rig.unit.deliver(issued.id, at, &[6, 0, 0, 0, 9, 9, 9, 9]).unwrap();
    rig.reply(&issued, Reply::Done(0));
    rig.run();
    assert_eq!((rig.ends[0].outcome == SUCCESS, rig.ends[0].at > 3_000_000), (true, true));
}

/// Assembles a handler that starts a DMA read, issues command `number` with its handle, and returns the result.
fn reads(number: u32) -> (Vec<u32>, DmaCmd) {
    let dma = DmaCmd { offset: 3, local: STATE + 0x100, len: 16, options: 1, handle: 99 };
    let handle = std::mem::offset_of!(DmaCmd, handle) as i32;
    let mut code = results(&[cmd::DMA_FROM_HOST]);
    code.pop();
    code.extend([lw(A0, S0, handle), addi(A7, ZERO, number as i32), ECALL, RET]);
    (code, dma)
}

#[test]
fn a_transfer_continues_while_its_handler_runs() {
    let (code, dma) = reads(cmd::DMA_WAIT);
    let mut rig = Rig::payload(&[], code, bytes_of(&dma));
    rig.offer(1, &[0; 8]);
    let issued = rig.next_command().unwrap();
    let expected =
        Dma { direction: Direction::FromHost, host: HostMemory::Handlers, offset: 3, local: STATE + 0x100, length: 16 };
    assert_eq!(issued.command, Command::Dma(expected));
    rig.reply(&issued, Reply::Started(Transfer::UnderWay));
    let argument = rig.read(&issued, STATE, size_of::<DmaCmd>() as u32).unwrap();
    assert_eq!(pod_read_unaligned::<DmaCmd>(&argument), DmaCmd { handle: 0, ..dma }, "the card has written the handle");
    rig.run();
    assert_eq!(rig.times(), [], "the handler waits");
    rig.world.now = Time::from_ns(9000);
    rig.reply(&issued, Reply::Done(err::FAILED));
    rig.run();
    assert_eq!(returned(&rig), err::FAILED);
    assert!(rig.ends[0].at > 9_000_000);
}

#[test]
fn a_handler_may_test_its_transfers() {
    let (code, dma) = reads(cmd::DMA_TEST);
    for (transfer, done, result) in [
        (Transfer::UnderWay, false, 0),
        (Transfer::UnderWay, true, 1),
        (Transfer::Posted(Time::from_ns(1)), false, 1),
        (Transfer::Posted(Time::from_ns(9000)), false, 0),
    ] {
        let mut rig = Rig::payload(&[], code.clone(), bytes_of(&dma));
        rig.offer(1, &[0; 8]);
        let issued = rig.next_command().unwrap();
        assert!(rig.world.now > Time::from_ns(1));
        rig.reply(&issued, Reply::Started(transfer));
        if done {
            rig.reply(&issued, Reply::Done(0));
        }
        rig.run();
        assert_eq!(returned(&rig), result, "{transfer:?}");
    }
}

#[test]
fn data_for_a_handler_that_has_ended_goes_to_shared_memory_only() {
    let (mut code, dma) = reads(cmd::DMA_TEST);
    code.truncate(code.len() - 4);
    code.extend([addi(A0, ZERO, ret::SUCCESS as i32), RET]); // without testing the transfer
    let mut rig = Rig::payload(&["accelerator.hpus=1", "accelerator.contexts=1"], code, bytes_of(&dma));
    rig.offer(1, &[0; 8]);
    let first = rig.next_command().unwrap();
    rig.reply(&first, Reply::Started(Transfer::UnderWay));
    rig.run();
    assert_eq!(rig.ends[0].outcome, SUCCESS);
    rig.offer(2, &[0; 8]);
    let second = rig.next_command().unwrap();
    assert_eq!(second.id.slot, Some(1), "the first transfer still has its handle");
    let stack = map::CONTEXTS + map::CONTEXT_STRIDE - 64;
    for address in [STATE + 0x100, stack] {
        rig.unit.deliver(first.id, address, &[5; 4]).unwrap();
    }
    assert_eq!(rig.read(&second, STATE + 0x100, 4).unwrap(), [5; 4]);
    assert_eq!(rig.read(&second, stack, 4).unwrap(), [0; 4], "that is another handler's now");
    rig.reply(&first, Reply::Done(0));
    assert_eq!(rig.unit.complete(first.id, Reply::Done(0), &mut rig.world), unexpected(&first));
}

fn unexpected(issued: &accel::Issued) -> Result<(), InternalError> {
    Err(InternalError::UnexpectedReply(issued.id.thread))
}

#[test]
fn unexpected_replies_are_errors_of_the_simulator() {
    let (mut rig, issued) = issues(cmd::PUT_FROM_HOST, bytes_of(&PutCmd::default()));
    let started = Reply::Started(Transfer::UnderWay);
    assert_eq!(rig.unit.complete(issued.id, started, &mut rig.world), unexpected(&issued));
    let (mut rig, issued) = issues(cmd::PUT_FROM_HOST, bytes_of(&PutCmd::default()));
    rig.reply(&issued, Reply::Done(0));
    assert_eq!(rig.unit.complete(issued.id, Reply::Blocked, &mut rig.world), unexpected(&issued));
}

#[test]
fn atomics_on_host_memory_are_transfers_too() {
    let command = DmaAtomicCmd { offset: 8, value: 1, swap: 2, result: 32, ..DmaAtomicCmd::default() };
    let (_, issued) = issues(cmd::DMA_CAS, bytes_of(&command));
    let operation = HostOperation::CompareAndSwap { compare: 1, swap: 2 };
    let expected = HostAtomic { host: HostMemory::Entry, offset: 8, operation, result: 32 };
    assert_eq!((issued.command, issued.id.slot), (Command::HostAtomic(expected), Some(0)));
    let command = DmaAtomicCmd { datatype: Datatype::Int32 as u32, ..command };
    let (_, issued) = issues(cmd::DMA_FETCH_ADD, bytes_of(&command));
    let operation = HostOperation::FetchAndAdd { datatype: Datatype::Int32, increment: 1 };
    assert_eq!(issued.command, Command::HostAtomic(HostAtomic { operation, ..expected }));
}

#[test]
fn counter_operations_are_commands_to_the_card() {
    let value = CtEvent { success: 5, failure: 6 };
    let (_, issued) = issues(cmd::CT_INC, bytes_of(&value));
    assert_eq!(issued.command, Command::Counter(Counter::Add(value)));
    let (_, issued) = issues(cmd::CT_SET, bytes_of(&value));
    assert_eq!(issued.command, Command::Counter(Counter::Set(value)));
    let mut rig = Rig::payload(&[], [&results(&[cmd::CT_GET])[..4], &[lw(A0, S0, 0), RET]].concat(), &[0; 16]);
    rig.offer(1, &[0; 8]);
    let issued = rig.next_command().unwrap();
    assert_eq!(issued.command, Command::Counter(Counter::Get));
    rig.reply(&issued, Reply::Counter(CtEvent { success: 6, failure: 0 }));
    rig.run();
    assert_eq!(returned(&rig), 6);
}

#[test]
fn atomics_on_card_memory_need_no_card() {
    // A compare-and-swap of the word after its argument, which contains 4.
    let at = STATE + 32;
    let word = |command: &[u8]| {
        let mut state = command.to_vec();
        state.resize(32, 0);
        state.extend(4u64.to_le_bytes());
        state
    };
    for (compare, swapped, now) in [(4, 1, 7), (5, 0, 4)] {
        let command = CasCmd { compare, swap: 7, address: at, pad: 0 };
        // Returns the sum of the result and the word.
        let code = [&results(&[cmd::CAS])[..4], &[lw(S0, S0, 32), 0x0085_0533, RET]].concat(); // add a0, a0, s0
        let mut rig = Rig::payload(&[], code, &word(bytes_of(&command)));
        rig.offer(1, &[0; 8]);
        rig.run();
        assert_eq!(returned(&rig), swapped + now);
    }
    let before = std::mem::offset_of!(FetchAddCmd, before) as i32;
    let command = FetchAddCmd { increment: 3, before: 0, address: at, pad: 0 };
    let code = [&results(&[cmd::FETCH_ADD])[..4], &[lw(A0, S0, before), lw(S0, S0, 32), 0x0085_0533, RET]].concat();
    let mut rig = Rig::payload(&[], code, &word(bytes_of(&command)));
    rig.offer(1, &[0; 8]);
    rig.run();
    assert_eq!(returned(&rig), 4 + 7);
    for address in [at + 4, map::PROGRAM] {
        let command = CasCmd { address, ..CasCmd::default() };
        let mut rig = Rig::payload(&[], results(&[cmd::CAS]), &word(bytes_of(&command)));
        rig.offer(1, &[0; 8]);
        rig.run();
        let Outcome::Failed(error) = &rig.ends[0].outcome else { panic!("{:?}", rig.ends[0]) };
        assert_eq!(error.message, format!("asked for an atomic operation at {address:#x}"));
    }
}
