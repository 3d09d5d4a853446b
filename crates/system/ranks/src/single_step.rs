//! Instructions that a thread has executed.

use super::polling_loop::{Location, Value};
use iced_x86::{FlowControl, Instruction, Mnemonic, Register};
use libc::user_regs_struct as Registers;

/// A read access of an instruction.
pub struct Access {
    /// The location that was read.
    pub location: Location,
    /// The contents of the location; `None` if they cannot be read from outside of the process.
    pub value: Option<Value>,
}

/// A write access of an instruction.
pub struct Write {
    /// The location that was written.
    pub location: Location,
    /// Its contents before; `None` if they cannot be read from outside of the process, or are too long.
    pub before: Option<Value>,
    /// Its contents after.
    pub after: Option<Value>,
}

/// An instruction that was executed.
pub struct Step {
    /// The registers before the instruction.
    pub registers: Registers,
    /// The instruction.
    pub instruction: Instruction,
    /// The read accesses.
    pub reads: Vec<Access>,
    /// The write accesses.
    pub writes: Vec<Write>,
}

/// Returns the value of a register for the computation of an address. Vector registers have none.
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
    /// Returns the locations that were written.
    pub fn written(&self) -> impl Iterator<Item = Location> {
        self.writes.iter().map(|write| write.location)
    }

    /// Returns true if it calls the kernel.
    pub fn calls_the_kernel(&self) -> bool {
        matches!(self.instruction.mnemonic(), Mnemonic::Syscall | Mnemonic::Sysenter | Mnemonic::Int)
    }

    /// Whether it reads data: neither thread-local data, nor an address to go to.
    pub fn reads_data(&self) -> bool {
        let own_segment = matches!(self.instruction.memory_segment(), Register::FS | Register::GS);
        let goes = matches!(
            self.instruction.flow_control(),
            FlowControl::IndirectCall | FlowControl::IndirectBranch | FlowControl::Return
        );
        !goes && !own_segment
    }
}
