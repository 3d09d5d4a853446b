//! What the unit writes into the descriptor of an execution context in host memory when a handler fails (§III-B2, B3).

use bytemuck::{Pod, Zeroable};
use hpu::Fault;

use crate::pspin::her::{Failure, Role, TaskOutcome};

/// The status in the descriptor of an execution context, in the byte order of the card. It fits into a host-direct command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Status {
    /// What happened: see the constants.
    pub cause: u32,
    /// The address of the instruction, or 0.
    pub pc: u32,
    /// The first address of the access that failed, or 0.
    pub address: u64,
    /// The message.
    pub message: u32,
    /// The part of the handler: 0 header, 1 payload, 2 completion; 3 for none.
    pub role: u32,
    /// How many errors this context has had, with this one.
    pub count: u64,
}

impl Status {
    /// A load from memory that is not the handler's.
    pub const LOAD: u32 = 1;
    /// A store to memory that is not the handler's.
    pub const STORE: u32 = 2;
    /// A misaligned atomic operation.
    pub const MISALIGNED: u32 = 3;
    /// Execution left the handler's code.
    pub const FETCH: u32 = 4;
    /// An illegal instruction.
    pub const ILLEGAL: u32 = 5;
    /// A breakpoint.
    pub const BREAKPOINT: u32 = 6;
    /// A command or a transfer with memory of the card that is not the handler's.
    pub const COMMAND: u32 = 7;
    /// A command with memory of the host that the host refuses.
    pub const HOST: u32 = 8;
    /// The watchdog killed the handler.
    pub const WATCHDOG: u32 = 9;
    /// No packet came for the message, and it was given up.
    pub const IDLE: u32 = 10;
    /// The handler has reported an error; `address` is what it has reported.
    pub const REPORTED: u32 = 11;

    /// The status of a handler that failed.
    pub fn of(outcome: TaskOutcome, role: Role, message: u32, count: u64) -> Status {
        let (cause, pc, address) = match outcome {
            TaskOutcome::TimedOut => (Status::WATCHDOG, 0, 0),
            TaskOutcome::Faulted(Failure::Command { address, .. }) => (Status::COMMAND, 0, u64::from(address)),
            TaskOutcome::Faulted(Failure::Host { address }) => (Status::HOST, 0, address),
            TaskOutcome::Faulted(Failure::Reported { code }) => (Status::REPORTED, 0, u64::from(code)),
            TaskOutcome::Faulted(Failure::Fault(fault)) => of_fault(fault),
            TaskOutcome::Done | TaskOutcome::Skipped | TaskOutcome::MessageReset => (0, 0, 0),
        };
        Status { cause, pc, address, message, role: role as u32, count }
    }

    /// The status of a message that was given up.
    pub fn idle(message: u32, count: u64) -> Status {
        Status { cause: Status::IDLE, message, role: 3, count, ..Status::default() }
    }
}

fn of_fault(fault: Fault) -> (u32, u32, u64) {
    match fault {
        Fault::Load { pc, addr, .. } => (Status::LOAD, pc, u64::from(addr)),
        Fault::Store { pc, addr, .. } => (Status::STORE, pc, u64::from(addr)),
        Fault::Misaligned { pc, addr } => (Status::MISALIGNED, pc, u64::from(addr)),
        Fault::Fetch { pc } => (Status::FETCH, pc, 0),
        Fault::Illegal { pc, .. } => (Status::ILLEGAL, pc, 0),
        Fault::Breakpoint { pc } => (Status::BREAKPOINT, pc, 0),
    }
}
