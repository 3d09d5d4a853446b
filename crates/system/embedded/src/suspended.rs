// SPDX-License-Identifier: Apache-2.0
//! A rank that was interrupted while it computed, for the search for polling loops.

use crate::context;
use crate::faults;
use crate::rank::Rank;
use crate::types::{Stop, zeroed};
use libc::user_regs_struct as Registers;
use std::ptr::addr_of;

unsafe extern "C" {
    /// First and last address of this executable's code, defined by the linker.
    static __executable_start: u8;
    static etext: u8;
}

/// An interrupted rank. Valid until the host continues or ends the rank.
pub struct Suspended {
    pub(crate) rank: *mut Rank,
}

impl Suspended {
    /// Executes one instruction. Returns false if the rank did something else: it made a call, or ended.
    pub fn step(&self) -> bool {
        // SAFETY: the rank is suspended with these registers.
        unsafe {
            if (*self.rank).interrupted.is_null() {
                return false;
            }
            (*self.rank).is_stepping = true;
            faults::set_step((*self.rank).interrupted);
            let stop = Rank::run(self.rank);
            (*self.rank).is_stepping = false;
            stop == Stop::Computes
        }
    }

    /// Returns the registers; `None` if the rank is not interrupted any more.
    pub fn registers(&self) -> Option<Registers> {
        // SAFETY: the registers stay on the rank's stack while it is suspended.
        let saved = unsafe { (*self.rank).interrupted.as_ref()? };
        let get = |number: libc::c_int| saved.uc_mcontext.gregs[number as usize] as u64;
        // SAFETY: a plain structure of numbers.
        let mut registers: Registers = zeroed();
        registers.r15 = get(libc::REG_R15);
        registers.r14 = get(libc::REG_R14);
        registers.r13 = get(libc::REG_R13);
        registers.r12 = get(libc::REG_R12);
        registers.rbp = get(libc::REG_RBP);
        registers.rbx = get(libc::REG_RBX);
        registers.r11 = get(libc::REG_R11);
        registers.r10 = get(libc::REG_R10);
        registers.r9 = get(libc::REG_R9);
        registers.r8 = get(libc::REG_R8);
        registers.rax = get(libc::REG_RAX);
        registers.rcx = get(libc::REG_RCX);
        registers.rdx = get(libc::REG_RDX);
        registers.rsi = get(libc::REG_RSI);
        registers.rdi = get(libc::REG_RDI);
        registers.orig_rax = u64::MAX; // in no system call
        registers.rip = get(libc::REG_RIP);
        registers.eflags = get(libc::REG_EFL);
        registers.rsp = get(libc::REG_RSP);
        registers.fs_base = thread_pointer();
        Some(registers)
    }

    /// Returns the contents of the vector and floating-point registers, as XSAVE stores them.
    pub fn vectors(&self) -> Option<Vec<u8>> {
        /// Position, in the area of FXSAVE, of the kernel's mark and of the size of the whole area (sigcontext.h).
        const MARK_AT: usize = 464;
        const SIZE_AT: usize = MARK_AT + 16;
        const MARK: u32 = 0x4650_5853;
        const FXSAVE: usize = 512;
        // SAFETY: as above; the kernel stores the area beside the registers.
        unsafe {
            let area = (*self.rank).interrupted.as_ref()?.uc_mcontext.fpregs.cast::<u8>();
            if area.is_null() {
                return None;
            }
            let word = |at: usize| area.add(at).cast::<u32>().read_unaligned();
            let length = if word(MARK_AT) == MARK { word(SIZE_AT) as usize } else { FXSAVE };
            Some(std::slice::from_raw_parts(area, length).to_vec())
        }
    }

    /// Copies memory to `out`. Returns the number of bytes copied: all or none.
    pub fn read(&self, address: u64, out: &mut [u8]) -> usize {
        // SAFETY: the destination is valid, and faults of the source are caught.
        let is_read = unsafe { context::copy(out.as_mut_ptr(), address as *const u8, out.len()) };
        if is_read { out.len() } else { 0 }
    }

    /// Returns true if the next instruction belongs to the simulator, which must not be executed step by step.
    pub fn is_in_simulator(&self) -> bool {
        let code = addr_of!(__executable_start) as u64..addr_of!(etext) as u64;
        self.registers().is_none_or(|registers| code.contains(&registers.rip))
    }
}

/// Returns the address of this thread's control block, which its first word holds (System V ABI, TLS variant II).
fn thread_pointer() -> u64 {
    let pointer: u64;
    // SAFETY: reads a word of this thread.
    unsafe { std::arch::asm!("mov {}, fs:0", out(reg) pointer, options(nostack, readonly, preserves_flags)) };
    pointer
}
