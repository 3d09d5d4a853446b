// SPDX-License-Identifier: Apache-2.0
//! CPU time clocks. Simulated ones show simulated time, as if the program had used its CPU since the start of the job.

use std::cell::Cell;

use libc::{c_int, c_long, clock_t, clockid_t, rusage, suseconds_t, timespec, timeval, tms};

use crate::real_clock;
use crate::simulator::{PS_PER_S, Simulator};

/// Number of times that a thread may read an unchanged time. Further reads wait for time to pass.
const FREE_LOOKS: u32 = 1000;
/// Simulated duration of each further read, in picoseconds.
const LOOK_PS: u64 = PS_PER_S / 10_000;
/// Kind of a clock that belongs to a file descriptor, in the lowest bits of a negative clock id.
const OF_DESCRIPTOR: clockid_t = 3;

/// Returns true if the clock shows CPU time: the named ones, and those of other processes and threads, which have
/// negative ids.
pub fn is_cpu_time(clock: clockid_t) -> bool {
    clock < 0 && clock & 7 != OF_DESCRIPTOR
        || matches!(clock, libc::CLOCK_PROCESS_CPUTIME_ID | libc::CLOCK_THREAD_CPUTIME_ID)
}

/// Records a read of the CPU time. Repeated reads wait, so that time passes.
pub fn look(simulator: &Simulator) {
    thread_local! {
        static SEEN: Cell<(u64, u32)> = const { Cell::new((u64::MAX, 0)) };
    }
    let now = simulator.now_ps();
    let (last, looks) = SEEN.get();
    let looks = if now - last.min(now) <= 2 * LOOK_PS { looks + 1 } else { 0 };
    if looks > FREE_LOOKS {
        simulator.sleep(LOOK_PS);
    }
    SEEN.set((now, looks.min(FREE_LOOKS + 1)));
}

/// Returns the CPU time of the simulated clocks, if clocks are simulated.
fn simulated() -> Option<timespec> {
    let Some(simulator) = Simulator::clocks() else {
        real_clock::count_read();
        return None;
    };
    look(simulator);
    Some(simulator.time(libc::CLOCK_PROCESS_CPUTIME_ID))
}

/// Replaces the C library's function.
#[unsafe(no_mangle)]
pub extern "C" fn clock() -> clock_t {
    let time = simulated().unwrap_or_else(|| {
        let mut time = timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: the pointer to a local is valid.
        unsafe { libc::syscall(libc::SYS_clock_gettime, libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut time) };
        time
    });
    time.tv_sec * 1_000_000 + time.tv_nsec / 1000 // CLOCKS_PER_SEC is a million on every system (POSIX)
}

/// Replaces the C library's function.
///
/// # Safety
/// `usage` must be valid for writing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn getrusage(who: c_int, usage: *mut rusage) -> c_int {
    // SAFETY: the kernel checks the arguments.
    let result = unsafe { libc::syscall(libc::SYS_getrusage, who, usage) } as c_int;
    if let (0, true, Some(time)) = (result, who != libc::RUSAGE_CHILDREN, simulated()) {
        // SAFETY: the kernel has initialised it.
        unsafe {
            (*usage).ru_utime = timeval { tv_sec: time.tv_sec, tv_usec: (time.tv_nsec / 1000) as suseconds_t };
            (*usage).ru_stime = timeval { tv_sec: 0, tv_usec: 0 };
        }
    }
    result
}

/// Replaces the C library's function.
///
/// # Safety
/// `times` must be valid for writing, or NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn times(times: *mut tms) -> clock_t {
    let Some(time) = simulated() else {
        // SAFETY: the kernel checks the argument.
        return unsafe { libc::syscall(libc::SYS_times, times) };
    };
    // SAFETY: the kernel checks the argument.
    unsafe {
        let ticks_per_s = libc::sysconf(libc::_SC_CLK_TCK).max(1);
        let ticks = time.tv_sec * ticks_per_s + time.tv_nsec * ticks_per_s / 1_000_000_000 as c_long;
        if !times.is_null() && libc::syscall(libc::SYS_times, times) != -1 {
            ((*times).tms_utime, (*times).tms_stime) = (ticks, 0);
        }
        ticks
    }
}
