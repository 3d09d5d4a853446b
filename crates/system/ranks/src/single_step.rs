// SPDX-License-Identifier: Apache-2.0
//! Instructions that a thread executed, with their memory accesses.

use super::polling_loop::{Location, Value};
use iced_x86::{FlowControl, Instruction, Mnemonic, Register};
use libc::user_regs_struct as Registers;

/// Read access of an instruction.
pub struct Access {
    /// Location read.
    pub location: Location,
    /// Contents of the location; `None` if unreadable from outside of the process.
    pub value: Option<Value>,
}

/// Write access of an instruction.
pub struct Write {
    /// Location written.
    pub location: Location,
    /// Contents before the write; `None` if too long, or unreadable from outside of the process.
    pub before: Option<Value>,
    /// Contents after the write.
    pub after: Option<Value>,
}

/// An executed instruction.
pub struct Step {
    /// Registers before the instruction.
    pub registers: Registers,
    /// Decoded instruction.
    pub instruction: Instruction,
    /// Read accesses.
    pub reads: Vec<Access>,
    /// Write accesses.
    pub writes: Vec<Write>,
}

/// Returns the value of a register for an address computation; `None` for vector registers.
pub fn register_value(r: &Registers, register: Register) -> Option<u64> {
    Some(match register {
        Register::FS => r.fs_base,
        Register::GS => r.gs_base,
        Register::ES | Register::CS | Register::SS | Register::DS => 0,
        Register::RAX => r.rax,
        Register::RBX => r.rbx,
        Register::RCX => r.rcx,
        Register::RDX => r.rdx,
        Register::RSI => r.rsi,
        Register::RDI => r.rdi,
        Register::RBP => r.rbp,
        Register::RSP => r.rsp,
        Register::R8 => r.r8,
        Register::R9 => r.r9,
        Register::R10 => r.r10,
        Register::R11 => r.r11,
        Register::R12 => r.r12,
        Register::R13 => r.r13,
        Register::R14 => r.r14,
        Register::R15 => r.r15,
        other if other.is_gpr32() => register_value(r, other.full_register())? & 0xffff_ffff,
        _ => return None,
    })
}

impl Step {
    /// Returns the locations written.
    pub fn written(&self) -> impl Iterator<Item = Location> {
        self.writes.iter().map(|write| write.location)
    }

    /// Returns true if the instruction enters the kernel.
    pub fn calls_the_kernel(&self) -> bool {
        matches!(self.instruction.mnemonic(), Mnemonic::Syscall | Mnemonic::Sysenter | Mnemonic::Int)
    }

    /// Returns true if it reads data other than thread-local data and jump targets.
    pub fn reads_data(&self) -> bool {
        let own_segment = matches!(self.instruction.memory_segment(), Register::FS | Register::GS);
        let goes = matches!(
            self.instruction.flow_control(),
            FlowControl::IndirectCall | FlowControl::IndirectBranch | FlowControl::Return
        );
        !goes && !own_segment
    }
}
