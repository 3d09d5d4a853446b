// SPDX-License-Identifier: Apache-2.0
//! The calling convention P4sPIN (sPIN App. B) with the numbers and structures of [`abi::device`].

use abi::device::{
    AssertCmd, AtomicCmd, CasCmd, DmaAtomicCmd, DmaCmd, FetchAddCmd, FetchAtomicCmd, HeaderArgs, PayloadArgs, PrintCmd,
    PutCmd, cmd, err, ret,
};
use abi::portals::{AckReq, AtomicOp, CtEvent, Datatype};
use bytemuck::{Pod, bytes_of, pod_read_unaligned};

use super::format::{self, string};
use super::{Answer, Arguments, Call, Convention, HandlerMemory, Refusal, Request};
use crate::command::{Command, Counter, Direction, Dma, Fetch, HostAtomic, HostMemory, HostOperation, Message, Place};
use crate::outcome::{Failure, HandlerError, Outcome, Verdict};
use crate::task::{Input, MessageHeader, MessageKind, Role, Task};

/// `PTL_LOCAL_ME_CT`: the operation counts on the ME's counter.
const LOCAL_ME_CT: u16 = 1;
/// `PTL_ME_HOST_MEM`: the DMA accesses the ME's host memory.
const ME_HOST_MEM: u32 = 0;
/// `PTL_HANDLER_HOST_MEM`: the DMA accesses the second range of host memory.
const HANDLER_HOST_MEM: u32 = 1;

/// Result of a command with an argument out of range.
const INVALID: Refusal = Refusal::Result(err::INVALID);

/// The calling convention of P4sPIN.
#[derive(Clone, Copy, Debug, Default)]
pub struct P4spin;

impl Convention for P4spin {
    fn arguments(&self, task: &Task, block: u32, user_header: &[u8]) -> Arguments {
        let state = task.handlers.state.as_ref().map_or(0, |state| state.address);
        match task.input {
            Input::Header(header) => {
                let arguments = header_arguments(&header, task.handlers.user_hdr, user_header);
                Arguments { block: arguments, registers: [block, state, 0] }
            }
            Input::Payload => {
                let payload = bytes_of(&payload_arguments(task)).to_vec();
                Arguments { block: payload, registers: [block, state, 0] }
            }
            Input::Completion { dropped, flow_control } => {
                let dropped = i32::try_from(dropped).unwrap_or(i32::MAX) as u32;
                Arguments { block: Vec::new(), registers: [dropped, u32::from(flow_control), state] }
            }
        }
    }

    fn outcome(&self, role: Role, value: u32) -> Outcome {
        let (verdict, pending) = match (role, value) {
            (Role::Header, ret::DROP) => (Verdict::Drop, false),
            (Role::Header, ret::DROP_PENDING) => (Verdict::Drop, true),
            (Role::Header, ret::PROCESS_DATA) => (Verdict::Process, false),
            (Role::Header, ret::PROCESS_DATA_PENDING) => (Verdict::Process, true),
            (Role::Header, ret::PROCEED) => (Verdict::Proceed, false),
            (Role::Header, ret::PROCEED_PENDING) => (Verdict::Proceed, true),
            (Role::Payload, ret::DROP | ret::SUCCESS) => return Outcome::Payload { dropped: value == ret::DROP },
            (Role::Completion, ret::SUCCESS | ret::SUCCESS_PENDING) => {
                return Outcome::Completion { pending: value == ret::SUCCESS_PENDING };
            }
            (role, value) => return Outcome::Failed(error_code(role, value)),
        };
        Outcome::Header { verdict, pending }
    }

    fn only_looks(&self, number: u32) -> bool {
        [cmd::DMA_TEST, cmd::CT_GET, cmd::MY_HPU, cmd::NUM_HPUS, cmd::YIELD].contains(&number)
    }

    fn request(&self, call: Call, memory: &mut dyn HandlerMemory) -> Result<Request, Refusal> {
        let at = call.argument;
        Ok(match call.number {
            cmd::PUT_FROM_DEVICE | cmd::PUT_FROM_HOST => {
                let from_host = call.number == cmd::PUT_FROM_HOST;
                Request::Call(Command::Put(message(&read(at, memory)?, from_host)?))
            }
            cmd::GET_TO_HOST | cmd::GET_TO_DEVICE => {
                // A get has no acknowledgement (App. B.6).
                let command = PutCmd { ack_req: AckReq::None as u16, ..read(at, memory)? };
                Request::Call(Command::Get(message(&command, call.number == cmd::GET_TO_HOST)?))
            }
            cmd::ATOMIC_FROM_DEVICE | cmd::ATOMIC_FROM_HOST => {
                let command: AtomicCmd = read(at, memory)?;
                let operation = AtomicOp::from_raw(u64::from(command.operation)).ok_or(INVALID)?;
                let datatype = Datatype::from_raw(u64::from(command.datatype)).ok_or(INVALID)?;
                let message = message(&command.put, call.number == cmd::ATOMIC_FROM_HOST)?;
                Request::Call(Command::Atomic(message, operation, datatype))
            }
            cmd::FETCH_ATOMIC => {
                let FetchAtomicCmd { atomic, operand, result, pad: _ } = read(at, memory)?;
                let operation = AtomicOp::from_raw(u64::from(atomic.operation)).ok_or(INVALID)?;
                let datatype = Datatype::from_raw(u64::from(atomic.datatype)).ok_or(INVALID)?;
                let message = message(&PutCmd { ack_req: AckReq::None as u16, ..atomic.put }, false)?;
                Request::Call(Command::FetchAtomic(message, Fetch { operation, datatype, operand, result }))
            }
            cmd::DMA_TO_HOST | cmd::DMA_FROM_HOST => {
                let to_host = call.number == cmd::DMA_TO_HOST;
                let DmaCmd { offset, local, len: length, options, handle: _ } = read(at, memory)?;
                let direction = if to_host { Direction::ToHost } else { Direction::FromHost };
                Request::Start(Command::Dma(Dma { direction, host: host(options)?, offset, local, length }))
            }
            cmd::DMA_CAS | cmd::DMA_FETCH_ADD => {
                let DmaAtomicCmd { offset, value, swap, result, datatype, options, handle: _ } = read(at, memory)?;
                let operation = if call.number == cmd::DMA_CAS {
                    HostOperation::CompareAndSwap { compare: value, swap }
                } else {
                    let datatype = Datatype::from_raw(u64::from(datatype)).ok_or(INVALID)?;
                    HostOperation::FetchAndAdd { datatype, increment: value }
                };
                Request::Start(Command::HostAtomic(HostAtomic { host: host(options)?, offset, operation, result }))
            }
            cmd::DMA_TEST => Request::Test(at),
            cmd::DMA_WAIT => Request::Wait(at),
            cmd::CAS => {
                let CasCmd { compare, swap, address, pad: _ } = read(at, memory)?;
                Request::CompareAndSwap { address, compare, swap }
            }
            cmd::FETCH_ADD => {
                let FetchAddCmd { increment, address, before: _, pad: _ } = read(at, memory)?;
                Request::FetchAndAdd { address, increment }
            }
            cmd::CT_INC | cmd::CT_GET | cmd::CT_SET => {
                let value: CtEvent = read(at, memory)?;
                Request::Call(Command::Counter(match call.number {
                    cmd::CT_INC => Counter::Add(value),
                    cmd::CT_GET => Counter::Get,
                    _ => Counter::Set(value),
                }))
            }
            cmd::MY_HPU => Request::MyHpu,
            cmd::NUM_HPUS => Request::HpuCount,
            cmd::YIELD => Request::Yield,
            cmd::PRINT => {
                let PrintCmd { format, arguments } = read(at, memory)?;
                let text = format::format(format, arguments, memory);
                Request::Print(text.map_err(|what| Refusal::Fault { what, detail: format })?)
            }
            cmd::ABORT => Request::Abort(abort("aborted".into())),
            cmd::ASSERT => Request::Abort(abort(assertion(&read(at, memory)?, memory))),
            other => {
                let what = format!("issued command {other}, which this card does not have");
                return Err(Refusal::Fault { what, detail: other });
            }
        })
    }

    fn answer(&self, call: Call, answer: Answer, memory: &mut dyn HandlerMemory) {
        let at = call.argument;
        match answer {
            Answer::Handle(handle) if matches!(call.number, cmd::DMA_CAS | cmd::DMA_FETCH_ADD) => {
                change(at, memory, |command: &mut DmaAtomicCmd| command.handle = handle);
            }
            Answer::Handle(handle) => change(at, memory, |command: &mut DmaCmd| command.handle = handle),
            Answer::Before(value) if call.number == cmd::CAS => {
                change(at, memory, |command: &mut CasCmd| command.compare = value);
            }
            Answer::Before(value) => change(at, memory, |command: &mut FetchAddCmd| command.before = value),
            Answer::Counter(value) => memory.write(at, bytes_of(&value)),
        }
    }
}

/// Returns the error of a handler that aborts.
fn abort(message: String) -> HandlerError {
    HandlerError { failure: Failure::Failed, message, detail: u64::from(ret::FAIL) }
}

/// Returns the message of a failed assertion.
fn assertion(failed: &AssertCmd, memory: &mut dyn HandlerMemory) -> String {
    let mut text = |at| String::from_utf8_lossy(&string(at, 256, memory).unwrap_or_default()).into_owned();
    let (expression, file, function) = (text(failed.expression), text(failed.file), text(failed.function));
    format!("failed: assertion '{expression}' does not hold in {function}, {file}:{}", failed.line)
}

/// Returns the bytes of `ptl_header_t` followed by the user header (App. B.3). Missing bytes of a message shorter than
/// the user header are zero. Without a user header in the message, its place holds `hdr_data`: the handlers of App. C.3.5
/// pass the user header as the last argument of their puts.
fn header_arguments(header: &MessageHeader, user_hdr: u32, user_header: &[u8]) -> Vec<u8> {
    let arguments = HeaderArgs {
        kind: match header.kind {
            MessageKind::Put => 0,
            MessageKind::Get => 1,
            MessageKind::Atomic => 2,
            MessageKind::FetchAtomic => 3,
        },
        pad: 0,
        length: header.length,
        target_id: header.target,
        source_id: header.source,
        match_bits: header.match_bits,
        offset: header.offset,
        hdr_data: header.hdr_data,
    };
    let mut bytes = bytes_of(&arguments).to_vec();
    if user_hdr == 0 {
        bytes.extend_from_slice(bytes_of(&arguments.hdr_data));
        return bytes;
    }
    let end = bytes.len() + user_hdr as usize;
    bytes.extend_from_slice(user_header);
    bytes.resize(end, 0);
    bytes
}

/// Returns the `ptl_payload_t` (App. B.4).
fn payload_arguments(task: &Task) -> PayloadArgs {
    let Some(packet) = task.packet else { return PayloadArgs::default() };
    PayloadArgs {
        length: u64::from(packet.payload_bytes()),
        offset: packet.payload_offset().saturating_sub(u64::from(task.handlers.user_hdr)),
        base: packet.payload_address(),
        pad: 0,
    }
}

/// Returns the error of a handler that returned an error or an invalid return code.
fn error_code(role: Role, value: u32) -> HandlerError {
    let (failure, message) = match value {
        ret::FAIL => (Failure::Failed, "returned FAIL".into()),
        ret::SEGV => (Failure::Segv, "returned SEGV".into()),
        other => (Failure::Failed, format!("returned {other}, which is no return code of a {} handler", role.name())),
    };
    HandlerError { failure, message, detail: u64::from(value) }
}

/// Reads the structure of a command.
fn read<T: Pod>(at: u32, memory: &mut dyn HandlerMemory) -> Result<T, Refusal> {
    let bytes = memory.read(at, size_of::<T>() as u32);
    bytes.map(|bytes| pod_read_unaligned(&bytes)).ok_or_else(|| Refusal::Fault {
        what: format!("issued a command at {at:#x}, which is not its own"),
        detail: at,
    })
}

/// Updates the structure of a command.
fn change<T: Pod>(at: u32, memory: &mut dyn HandlerMemory, change: impl FnOnce(&mut T)) {
    if let Ok(mut command) = read(at, memory) {
        change(&mut command);
        memory.write(at, bytes_of(&command));
    }
}

/// Returns the host memory that the options of a DMA select.
fn host(options: u32) -> Result<HostMemory, Refusal> {
    match options {
        ME_HOST_MEM => Ok(HostMemory::Entry),
        HANDLER_HOST_MEM => Ok(HostMemory::Handlers),
        _ => Err(INVALID),
    }
}

/// Builds a message with its data in the ME's host memory or on the card.
fn message(command: &PutCmd, from_host: bool) -> Result<Message, Refusal> {
    let ack = AckReq::from_raw(command.ack_req.into()).ok_or(INVALID)?;
    if command.ct > LOCAL_ME_CT {
        return Err(INVALID);
    }
    Ok(Message {
        place: if from_host { Place::Host(command.local) } else { Place::Device(command.local) },
        length: command.len,
        target: command.target_id,
        match_bits: command.match_bits,
        remote_offset: command.remote_offset,
        hdr_data: command.hdr_data,
        user_ptr: u64::from(command.user_ptr),
        ack,
        counted: command.ct == LOCAL_ME_CT,
    })
}
