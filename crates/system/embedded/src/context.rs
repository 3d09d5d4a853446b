// SPDX-License-Identifier: Apache-2.0
//! Switches between the stacks of the simulator and of ranks.
//!
//! A suspended context is its stack pointer; the callee-saved registers and the control words of the floating-point
//! units lie on its stack (System V ABI, §3.2.1).

use std::arch::naked_asm;

/// Number of 8-byte words of a suspended context: control words, six registers, return address.
const WORDS: usize = 8;

/// Stack pointer of a suspended context.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(transparent)]
pub struct Context(pub usize);

/// Suspends the present context into `from` and continues `to`. Returns when another switch continues `from`.
///
/// # Safety
/// `to` must be suspended, and its stack unchanged since.
#[unsafe(naked)]
pub unsafe extern "C" fn switch(from: *mut Context, to: Context) {
    naked_asm!(
        "push rbp",
        "push rbx",
        "push r12",
        "push r13",
        "push r14",
        "push r15",
        "sub rsp, 8",
        "stmxcsr [rsp]",
        "fnstcw [rsp + 4]",
        "mov [rdi], rsp",
        "mov rsp, rsi",
        "ldmxcsr [rsp]",
        "fldcw [rsp + 4]",
        "add rsp, 8",
        "pop r15",
        "pop r14",
        "pop r13",
        "pop r12",
        "pop rbx",
        "pop rbp",
        "ret",
    )
}

/// First instructions of a rank: continues at the entry point in r12, with the registers of a new process (System V
/// ABI, §3.4.1).
#[unsafe(naked)]
unsafe extern "C" fn enter() {
    naked_asm!("xor ebp, ebp", "xor edx, edx", "jmp r12")
}

impl Context {
    /// Makes a context that continues at `entry` with the stack pointer `stack`, a multiple of 16.
    ///
    /// # Safety
    /// The words below `stack` must be writable.
    pub unsafe fn new(stack: usize, entry: usize) -> Context {
        /// Default control words: all floating-point exceptions masked, double extended precision (§3.4.1).
        const CONTROL: u64 = 0x1f80 | 0x037f << 32;
        let words: [u64; WORDS] = [CONTROL, 0, 0, 0, entry as u64, 0, 0, enter as *const () as u64];
        let at = stack - size_of_val(&words);
        // SAFETY: the caller guarantees it.
        unsafe { (at as *mut [u64; WORDS]).write(words) };
        Context(at)
    }
}

/// Copies `length` bytes. Returns false if a byte cannot be accessed ([`RESUME`]); the bytes before it are copied.
///
/// # Safety
/// `to` must not belong to an object that the compiler knows to be unchanged.
#[unsafe(naked)]
pub unsafe extern "C" fn copy(to: *mut u8, from: *const u8, length: usize) -> bool {
    naked_asm!(
        "mov rcx, rdx",
        ".globl spin_embedded_copy_access",
        "spin_embedded_copy_access:",
        "rep movsb",
        "mov eax, 1",
        "ret",
        ".globl spin_embedded_copy_failed",
        "spin_embedded_copy_failed:",
        "xor eax, eax",
        "ret",
    )
}

unsafe extern "C" {
    fn spin_embedded_copy_access();
    fn spin_embedded_copy_failed();
}

/// Returns the address at which [`copy`] continues after a fault at `address`, if that is its access.
pub fn continuation(address: u64) -> Option<u64> {
    (address == spin_embedded_copy_access as *const () as u64).then_some(spin_embedded_copy_failed as *const () as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    thread_local! {
        static SIMULATOR: Cell<Context> = const { Cell::new(Context(0)) };
        static RANK: Cell<Context> = const { Cell::new(Context(0)) };
        static STEPS: Cell<u32> = const { Cell::new(0) };
    }

    extern "C" fn body() -> ! {
        loop {
            STEPS.set(STEPS.get() + 1);
            // SAFETY: the test is suspended in its switch.
            unsafe { switch(RANK.with(Cell::as_ptr), SIMULATOR.get()) };
        }
    }

    #[test]
    fn a_context_continues_after_its_switch() {
        let mut stack = vec![0_u128; 4096];
        let top = stack.as_mut_ptr_range().end as usize;
        // SAFETY: the stack is large enough. As after a call, it is not aligned at the entry of `body`.
        RANK.set(unsafe { Context::new(top - 24, body as *const () as usize) });
        for step in 1..=3 {
            // SAFETY: `body` is suspended.
            unsafe { switch(SIMULATOR.with(Cell::as_ptr), RANK.get()) };
            assert_eq!(STEPS.get(), step);
        }
    }
}
