// SPDX-License-Identifier: Apache-2.0
//! The time-stamp counter in simulated time.
//!
//! The kernel disables `rdtsc` and `rdtscp` (prctl(2), `PR_SET_TSC`), and a handler of the resulting SIGSEGV puts
//! simulated time into the registers. The counter runs at `SPIN_TSC_HZ`, which spinrun sets to the frequency in
//! `/proc/cpuinfo`, because programs such as Open MPI convert ticks with it.
//!
//! The kernel's own code in the process (vDSO) reads the real counter, as the C library uses it for its time-outs. The
//! setting belongs to a thread and its later children, so threads that run before `dlopen` loads `libportals.so` keep
//! the real counter, too.

use std::arch::x86_64::_rdtsc;
use std::ffi::CStr;
use std::ops::Range;
use std::sync::OnceLock;

use libc::{Elf64_Ehdr, Elf64_Phdr, REG_RAX, REG_RCX, REG_RDX, REG_RIP, siginfo_t, ucontext_t};

use rustix::process::{
    TimeStampCounterReadability, set_time_stamp_counter_readability, time_stamp_counter_readability,
};

use crate::simulator::{PS_PER_S, Simulator};

/// Environment variable with the counter's frequency in Hz.
const FREQUENCY: &CStr = c"SPIN_TSC_HZ";
/// Default frequency: one tick per nanosecond.
const DEFAULT_HZ: u64 = 1_000_000_000;
/// `si_code` of a general protection fault, which the disabled instruction raises.
const SI_KERNEL: i32 = 0x80;
const RDTSC: [u8; 2] = [0x0f, 0x31];
const RDTSCP: [u8; 3] = [0x0f, 0x01, 0xf9];

/// Values that the signal handler needs but cannot look up itself.
struct Counter {
    hz: u64,
    vdso: Range<u64>,
}

static COUNTER: OnceLock<Counter> = OnceLock::new();

/// Makes the counter of this thread, and of threads that it creates later, show simulated time. Returns false if the
/// kernel cannot disable the instructions.
pub fn simulate() -> bool {
    COUNTER.get_or_init(|| Counter { hz: frequency(), vdso: vdso() });
    refuse(true)
}

/// Returns true if this thread's counter shows simulated time.
pub fn is_simulated() -> bool {
    time_stamp_counter_readability() == Ok(TimeStampCounterReadability::RaiseSIGSEGV)
}

/// Restores the real counter in this process. A forked child of a rank, which is no rank, would inherit the setting.
pub fn restore() {
    refuse(false);
}

/// Enables or disables the instructions for this thread. Also safe in the SIGSEGV handler: it is a plain system call.
fn refuse(refused: bool) -> bool {
    let setting =
        if refused { TimeStampCounterReadability::RaiseSIGSEGV } else { TimeStampCounterReadability::Readable };
    set_time_stamp_counter_readability(setting).is_ok()
}

fn frequency() -> u64 {
    // SAFETY: a valid name; the value stays in place until the environment changes.
    let value = unsafe {
        let value = libc::getenv(FREQUENCY.as_ptr());
        if value.is_null() { None } else { CStr::from_ptr(value).to_str().ok() }
    };
    value.and_then(|value| value.parse().ok()).filter(|&hz| hz > 0).unwrap_or(DEFAULT_HZ)
}

/// Returns the address range of the kernel's code in this process.
fn vdso() -> Range<u64> {
    // SAFETY: the address is 0, or the kernel maps a whole ELF image there.
    unsafe {
        let base = libc::getauxval(libc::AT_SYSINFO_EHDR);
        if base == 0 {
            return 0..0;
        }
        let header = &*(base as *const Elf64_Ehdr);
        let table = (base + header.e_phoff) as *const Elf64_Phdr;
        let segments = std::slice::from_raw_parts(table, usize::from(header.e_phnum));
        let loaded = segments.iter().filter(|segment| segment.p_type == libc::PT_LOAD);
        base..base + loaded.map(|segment| segment.p_vaddr + segment.p_memsz).max().unwrap_or(0)
    }
}

/// Emulates the instruction that caused a signal, if it reads the counter. Returns true if it did.
///
/// # Safety
/// `info` and `context` must be those that the kernel passed to a SIGSEGV handler.
pub unsafe fn emulate(info: *const siginfo_t, context: *mut ucontext_t) -> bool {
    // SAFETY: the caller guarantees it.
    let (code, registers) = unsafe { ((*info).si_code, &mut (*context).uc_mcontext.gregs) };
    let at = registers[REG_RIP as usize] as u64;
    let (SI_KERNEL, Some(counter), Some(simulator)) = (code, COUNTER.get(), Simulator::clocks()) else { return false };
    if at >> 47 != 0 {
        return false; // outside of the address space, so no instruction
    }
    // SAFETY: the processor has read the instruction there. Its third byte is read only after the first two show that
    // it exists.
    let length = unsafe {
        let byte = |place: u64| ((at + place) as *const u8).read();
        match [byte(0), byte(1)] {
            RDTSC => RDTSC.len(),
            start if start == RDTSCP[..2] && byte(2) == RDTSCP[2] => RDTSCP.len(),
            _ => return false,
        }
    };
    let ticks = if counter.vdso.contains(&at) { real_counter() } else { counter.ticks(simulator.now_ps()) };
    registers[REG_RAX as usize] = (ticks & 0xffff_ffff) as i64;
    registers[REG_RDX as usize] = (ticks >> 32) as i64;
    if length == RDTSCP.len() {
        registers[REG_RCX as usize] = 0; // processor number: every rank has its own node
    }
    registers[REG_RIP as usize] += length as i64;
    true
}

/// Reads the real counter, which is otherwise disabled for this thread.
fn real_counter() -> u64 {
    refuse(false);
    // SAFETY: every x86-64 processor has the instruction.
    let ticks = unsafe { _rdtsc() };
    refuse(true);
    ticks
}

impl Counter {
    fn ticks(&self, ps: u64) -> u64 {
        (u128::from(ps) * u128::from(self.hz) / u128::from(PS_PER_S)) as u64
    }
}
