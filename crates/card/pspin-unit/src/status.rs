// SPDX-License-Identifier: Apache-2.0
//! Error report that the unit writes to the descriptor of an execution context in host memory (§III-B2, B3).

use abi::pspin::cause;
use bytemuck::{Pod, Zeroable};
use hpu::Fault;

use crate::her::{Failure, Role, TaskOutcome};

/// Status in the descriptor of an execution context, in the card's byte order. It fits into a host-direct command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Status {
    /// Cause of the error: see [`cause`].
    pub cause: u32,
    /// Address of the instruction, or 0.
    pub pc: u32,
    /// First address of the access that failed, or 0.
    pub address: u64,
    /// Message number.
    pub message: u32,
    /// Role of the handler: 0 header, 1 payload, 2 completion; 3 for none.
    pub role: u32,
    /// Number of errors of this context, including this one.
    pub count: u64,
}

impl Status {
    /// Returns the status of a failed handler.
    pub fn of(outcome: TaskOutcome, role: Role, message: u32, count: u64) -> Status {
        let (cause, pc, address) = match outcome {
            TaskOutcome::TimedOut => (cause::WATCHDOG, 0, 0),
            TaskOutcome::Faulted(Failure::Command { address, .. }) => (cause::COMMAND, 0, u64::from(address)),
            TaskOutcome::Faulted(Failure::Host { address }) => (cause::HOST, 0, address),
            TaskOutcome::Faulted(Failure::Reported { code }) => (cause::REPORTED, 0, u64::from(code)),
            TaskOutcome::Faulted(Failure::Fault(fault)) => of_fault(fault),
            TaskOutcome::Done | TaskOutcome::Skipped | TaskOutcome::MessageReset => (0, 0, 0),
        };
        Status { cause, pc, address, message, role: role as u32, count }
    }

    /// Returns the status of an abandoned message.
    pub fn idle(message: u32, count: u64) -> Status {
        Status { cause: cause::IDLE, message, role: 3, count, ..Status::default() }
    }
}

fn of_fault(fault: Fault) -> (u32, u32, u64) {
    match fault {
        Fault::Load { pc, addr, .. } => (cause::LOAD, pc, u64::from(addr)),
        Fault::Store { pc, addr, .. } => (cause::STORE, pc, u64::from(addr)),
        Fault::Misaligned { pc, addr } => (cause::MISALIGNED, pc, u64::from(addr)),
        Fault::Fetch { pc } => (cause::FETCH, pc, 0),
        Fault::Illegal { pc, .. } => (cause::ILLEGAL, pc, 0),
        Fault::Breakpoint { pc } => (cause::BREAKPOINT, pc, 0),
    }
}
