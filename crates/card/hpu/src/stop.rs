// SPDX-License-Identifier: Apache-2.0
//! Reasons for which the engine returns, and faults.

use std::fmt;

use crate::op::Flow;

/// Reason for which [`Engine::run`](crate::Engine::run) returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The handler returned this value.
    Return(u32),
    /// The handler issues a command. The card answers with [`Thread::set_result`](crate::Thread::set_result) and runs
    /// the thread again.
    Call {
        /// Number of the command.
        number: u32,
        /// Argument of the command.
        argument: u32,
    },
    /// The next instruction must execute at its exact time: an atomic operation, a load or store next to a fence, or an
    /// access to a word on which a handler waits. The next run executes it.
    Sync,
    /// A debugger stops the thread before its next instruction; only in
    /// [`Engine::run_stepwise`](crate::Engine::run_stepwise).
    Break,
    /// The thread exceeded its cycle limit.
    Limit,
    /// The handler failed; [`Thread::pc`](crate::Thread::pc) is the address of the failed instruction.
    Fault(Fault),
}

/// Reason for a handler's failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A load from memory without read permission.
    Load {
        /// Address of the instruction.
        pc: u32,
        /// First accessed address.
        addr: u32,
        /// Size of the access in bytes.
        len: u32,
    },
    /// A store to memory without write permission.
    Store {
        /// Address of the instruction.
        pc: u32,
        /// First accessed address.
        addr: u32,
        /// Size of the access in bytes.
        len: u32,
    },
    /// An atomic operation at an address that is not a multiple of its size.
    Misaligned {
        /// Address of the instruction.
        pc: u32,
        /// First accessed address.
        addr: u32,
    },
    /// Execution left the program.
    Fetch {
        /// An address without an instruction.
        pc: u32,
    },
    /// An invalid instruction word, or an instruction with an unsupported feature, such as a rounding mode other than
    /// to nearest, the floating-point exception flags, or an unknown control register.
    Illegal {
        /// Address of the instruction.
        pc: u32,
        /// Encoding, in the low 16 bits for a two-byte instruction.
        word: u32,
    },
    /// A breakpoint instruction, which compilers emit for unreachable code.
    Breakpoint {
        /// Address of the instruction.
        pc: u32,
    },
}

impl Fault {
    /// Returns the address of the failed instruction.
    pub fn pc(self) -> u32 {
        match self {
            Fault::Load { pc, .. }
            | Fault::Store { pc, .. }
            | Fault::Misaligned { pc, .. }
            | Fault::Fetch { pc }
            | Fault::Illegal { pc, .. }
            | Fault::Breakpoint { pc } => pc,
        }
    }

    /// Returns the accessed address, or that of the instruction if it accessed no memory.
    pub fn address(self) -> u32 {
        match self {
            Fault::Load { addr, .. } | Fault::Store { addr, .. } | Fault::Misaligned { addr, .. } => addr,
            Fault::Fetch { pc } | Fault::Illegal { pc, .. } | Fault::Breakpoint { pc } => pc,
        }
    }

    /// Returns the fault of an instruction at `pc` that ended with `flow`. `denied` is the address and size of the
    /// denied access, `word` the encoding of the instruction.
    pub(crate) fn of(flow: Flow, pc: u32, (addr, len): (u32, u32), word: u32) -> Fault {
        match flow {
            Flow::Load => Fault::Load { pc, addr, len },
            Flow::Store => Fault::Store { pc, addr, len },
            Flow::Misaligned => Fault::Misaligned { pc, addr },
            Flow::Break => Fault::Breakpoint { pc },
            Flow::Illegal | Flow::Next | Flow::Jump | Flow::Command => Fault::Illegal { pc, word },
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Fault::Load { pc, addr, len } => {
                write!(f, "load of {len} B at {addr:#010x} is not allowed (pc {pc:#010x})")
            }
            Fault::Store { pc, addr, len } => {
                write!(f, "store of {len} B at {addr:#010x} is not allowed (pc {pc:#010x})")
            }
            Fault::Misaligned { pc, addr } => write!(f, "misaligned atomic operation at {addr:#010x} (pc {pc:#010x})"),
            Fault::Fetch { pc } => write!(f, "execution left the program (pc {pc:#010x})"),
            Fault::Illegal { pc, word } => write!(f, "illegal instruction {word:#010x} (pc {pc:#010x})"),
            Fault::Breakpoint { pc } => write!(f, "breakpoint (pc {pc:#010x})"),
        }
    }
}

impl std::error::Error for Fault {}
