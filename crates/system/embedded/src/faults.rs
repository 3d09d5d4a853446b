// SPDX-License-Identifier: Apache-2.0
//! Signals of ranks.
//!
//! A crash ends the rank that runs. A clock interrupts a rank that runs for long, so that the simulator can look at
//! the deadline, at signals from outside, and for a polling loop. The rank's registers then stay in the signal's frame
//! on its stack until it continues.

use crate::context::continuation;
use crate::rank;
use crate::types::{Stop, zeroed};
use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::io;
use std::ptr::null_mut;
use std::sync::OnceLock;
use std::time::Duration;

/// Signals of a crash.
const CRASHES: [c_int; 6] = [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGABRT, libc::SIGSYS];
/// CPU time between two ticks of the clock.
const TICK: Duration = Duration::from_millis(1);
/// Size of the stack for handlers of crashes.
const ALTERNATE_STACK: usize = 128 << 10;
/// Single-step flag of the processor (TF of EFLAGS).
const STEP_FLAG: i64 = 0x100;

/// Actions before [`install`], by the position in [`CRASHES`].
static PREVIOUS: OnceLock<[libc::sigaction; CRASHES.len()]> = OnceLock::new();

thread_local! {
    /// Value of [`rank::runs`] at the latest tick.
    static RUNS_AT_TICK: Cell<u64> = const { Cell::new(0) };
}

type Handler = extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void);

/// Returns the signal of the clock.
fn clock_signal() -> c_int {
    libc::SIGRTMIN() + 7
}

/// Installs the handlers, once for the process.
fn install() {
    PREVIOUS.get_or_init(|| {
        set(libc::SIGTRAP, stepped, libc::SA_RESTART);
        set(clock_signal(), ticked, libc::SA_RESTART);
        CRASHES.map(|signal| set(signal, crashed, libc::SA_ONSTACK))
    });
}

/// Sets the handler of a signal, which is not blocked meanwhile, as a handler may suspend the rank. Returns the
/// previous action.
fn set(signal: c_int, handler: Handler, flags: c_int) -> libc::sigaction {
    let (mut action, mut previous): (libc::sigaction, libc::sigaction) = (zeroed(), zeroed());
    action.sa_sigaction = handler as *const () as usize;
    action.sa_flags = libc::SA_SIGINFO | libc::SA_NODEFER | flags;
    // SAFETY: valid structures; the handlers are async-signal-safe.
    unsafe { libc::sigaction(signal, &raw const action, &raw mut previous) };
    previous
}

extern "C" fn crashed(signal: c_int, _: *mut libc::siginfo_t, registers: *mut c_void) {
    // SAFETY: the kernel passes the registers.
    let counter = unsafe { &mut (*registers.cast::<libc::ucontext_t>()).uc_mcontext.gregs[libc::REG_RIP as usize] };
    if let Some(next) = continuation(*counter as u64) {
        *counter = next as i64;
        return;
    }
    if !rank::current().is_null() {
        // SAFETY: a rank runs. Its stack is given up; this handler's stack is free again.
        unsafe { rank::end(signal) };
    }
    // A fault of the simulator: it occurs again, under the previous action.
    let number = CRASHES.iter().position(|other| *other == signal);
    if let (Some(previous), Some(number)) = (PREVIOUS.get(), number) {
        // SAFETY: the action that the system returned.
        unsafe { libc::sigaction(signal, &raw const previous[number], null_mut()) };
    }
}

extern "C" fn ticked(_: c_int, _: *mut libc::siginfo_t, registers: *mut c_void) {
    let rank = rank::current();
    if rank.is_null() || RUNS_AT_TICK.replace(rank::runs()) != rank::runs() {
        return;
    }
    // SAFETY: the rank runs; within its own code it holds no lock of a library.
    unsafe {
        let registers: *mut libc::ucontext_t = registers.cast();
        let counter = (*registers).uc_mcontext.gregs[libc::REG_RIP as usize] as u64;
        if (*rank).is_stepping || !(*rank).area.contains(&counter) {
            return;
        }
        let errno = *libc::__errno_location();
        (*rank).interrupted = registers;
        rank::suspend(Stop::Computes);
        (*rank).interrupted = null_mut();
        *libc::__errno_location() = errno;
    }
}

extern "C" fn stepped(_: c_int, _: *mut libc::siginfo_t, registers: *mut c_void) {
    let rank = rank::current();
    // SAFETY: the kernel passes the registers, and a rank that steps runs.
    unsafe {
        let registers: *mut libc::ucontext_t = registers.cast();
        if rank.is_null() {
            return;
        }
        if !(*rank).is_stepping {
            rank::end(libc::SIGTRAP);
        }
        (*registers).uc_mcontext.gregs[libc::REG_EFL as usize] &= !STEP_FLAG;
        (*rank).is_stepping = false;
        (*rank).interrupted = registers;
        rank::suspend(Stop::Computes);
        (*rank).interrupted = null_mut();
    }
}

/// Sets the single-step flag in the registers of an interrupted rank.
///
/// # Safety
/// The registers must be those of a suspended rank.
pub unsafe fn set_step(registers: *mut libc::ucontext_t) {
    // SAFETY: the caller guarantees it.
    unsafe { (*registers).uc_mcontext.gregs[libc::REG_EFL as usize] |= STEP_FLAG };
}

/// Clock of a thread that runs ranks, with its stack for handlers.
pub struct Clock {
    timer: libc::timer_t,
    previous_stack: libc::stack_t,
    _stack: Box<[u8]>,
}

impl Clock {
    /// Prepares this thread for ranks.
    ///
    /// # Errors
    /// The system's error when it provides no timer.
    pub fn new() -> io::Result<Clock> {
        install();
        let mut stack = vec![0; ALTERNATE_STACK].into_boxed_slice();
        let alternate = libc::stack_t { ss_sp: stack.as_mut_ptr().cast(), ss_flags: 0, ss_size: ALTERNATE_STACK };
        let mut previous_stack: libc::stack_t = zeroed();
        let mut event: libc::sigevent = zeroed();
        event.sigev_notify = libc::SIGEV_THREAD_ID;
        event.sigev_signo = clock_signal();
        let tick = libc::timespec { tv_sec: 0, tv_nsec: TICK.as_nanos() as i64 };
        let interval = libc::itimerspec { it_interval: tick, it_value: tick };
        let mut timer: libc::timer_t = null_mut();
        // SAFETY: valid structures; the stack lives as long as it is used.
        unsafe {
            event.sigev_notify_thread_id = libc::gettid();
            if libc::sigaltstack(&raw const alternate, &raw mut previous_stack) == -1
                || libc::timer_create(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut event, &raw mut timer) == -1
            {
                return Err(io::Error::last_os_error());
            }
            libc::timer_settime(timer, 0, &raw const interval, null_mut());
        }
        Ok(Clock { timer, previous_stack, _stack: stack })
    }
}

impl Drop for Clock {
    fn drop(&mut self) {
        // SAFETY: this thread's timer, and the stack before.
        unsafe {
            libc::timer_delete(self.timer);
            libc::sigaltstack(&raw const self.previous_stack, null_mut());
        }
    }
}
