// SPDX-License-Identifier: Apache-2.0
//! `libsimclock.so`, which `spinrun` preloads: a rank sleeps in simulated time, so that cards and other ranks continue
//! meanwhile. With `--clock simulated`, its clocks and its time-stamp counter show simulated time, too.
//!
//! A sleep takes no real time, except that a sleep until a time of a real clock does not end before that time.
//!
//! A read of a simulated clock takes no time. But a thread that reads it repeatedly is polling, so its further reads
//! take 25 ns each (`spin_time_ps`).
//!
//! Simulated clocks start at a fixed date unless spinrun sets another, so runs are reproducible. CPU time clocks show
//! the time since the start of the job; a thread that reads one repeatedly waits 100 us for each further read.
//! Everything stays real in processes that are no ranks (without `libportals.so`, not started by spinrun, or forked by
//! a rank), such as a shell or a compiler.

//! The library also contains the fork server, which makes ranks as copies of one process ([`abi::fork`]).

// The functions of this library have the names, types and `errno` of the C library's, and some run in signal handlers.
// So they use `libc`; rustix, whose functions are plain system calls, is used only where `errno` does not matter.

#[cfg(target_arch = "x86_64")]
mod children;
mod cpu;
#[cfg(target_arch = "x86_64")]
mod fork_server;
#[cfg(target_arch = "x86_64")]
mod real_clock;
mod signals;
mod simulator;
mod sleep;
#[cfg(target_arch = "x86_64")]
mod tsc;

use libc::{c_int, c_void, clockid_t, time_t, timespec, timeval};
use simulator::{EPOCH_S, Simulator, SleepPs, TimePs};
use std::ffi::CStr;
use std::mem::transmute;

/// Load-time constructor: a program linked to `libportals.so` is a rank from its first instruction on.
#[used]
#[unsafe(link_section = ".init_array")]
static START: extern "C" fn() = start;

extern "C" fn start() {
    // SAFETY: valid strings; the symbols, if present, are the functions of these types.
    unsafe {
        let time = libc::dlsym(libc::RTLD_DEFAULT, c"spin_time_ps".as_ptr());
        let sleep = libc::dlsym(libc::RTLD_DEFAULT, c"spin_sleep_ps".as_ptr());
        if time.is_null() || sleep.is_null() || is_program_of_rank() {
            #[cfg(target_arch = "x86_64")]
            tsc::restore();
            return;
        }
        simclock_begin(transmute::<*mut c_void, TimePs>(time), transmute::<*mut c_void, SleepPs>(sleep));
    }
}

/// Returns the value of a variable that is a number.
fn number(name: &CStr) -> Option<u64> {
    // SAFETY: a valid string; the value stays valid until the program changes it, and no other thread does so
    // meanwhile.
    let value = unsafe { libc::getenv(name.as_ptr()) };
    if value.is_null() {
        return None;
    }
    // SAFETY: as above.
    unsafe { CStr::from_ptr(value) }.to_str().ok()?.parse().ok()
}

/// Returns true if a rank started this process in a job whose program need not use `libportals.so`, which is preloaded
/// only for its clocks. The process becomes a rank only when it calls that library.
fn is_program_of_rank() -> bool {
    // SAFETY: a plain system call.
    let parent = unsafe { libc::getppid() };
    number(c"SPIN_PLAIN").is_some() && number(c"SPIN_SIM_PID") != Some(parent as u64)
}

/// Switches sleeps, and optionally clocks, to simulated time. `libportals.so` also calls it at its first use, as a
/// program may load that library by `dlopen`. Only the first call has an effect.
///
/// # Safety
/// The functions must be those of `libportals.so`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn simclock_begin(time_ps: TimePs, sleep_ps: SleepPs) {
    // SAFETY: the arguments are valid strings.
    let has = |name: &CStr| unsafe { !libc::getenv(name.as_ptr()).is_null() };
    if !has(c"SPIN_RANK") || Simulator::get().is_some() {
        return;
    }
    let has_clocks = has(c"SPIN_SIMULATED_CLOCK");
    let start_s = number(c"SPIN_CLOCK_START").unwrap_or(EPOCH_S);
    Simulator::set(Some(Simulator { time_ps, sleep_ps, has_clocks, start_s }));
    // SAFETY: registers a function that only changes this library's state, and changes a setting of the thread.
    unsafe { libc::pthread_atfork(None, None, Some(in_forked_child)) };
    #[cfg(target_arch = "x86_64")]
    if has_clocks && tsc::simulate() {
        signals::take_over();
    }
}

/// Restores the real clocks in a forked child, which is no rank.
extern "C" fn in_forked_child() {
    Simulator::set(None);
    #[cfg(target_arch = "x86_64")]
    tsc::restore();
}

/// Replaces the C library's function.
///
/// # Safety
/// `time` must be valid for writing, or NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clock_gettime(clock: clockid_t, time: *mut timespec) -> c_int {
    match Simulator::clocks() {
        Some(simulator) if !time.is_null() => {
            if cpu::is_cpu_time(clock) {
                cpu::look(simulator);
            }
            // SAFETY: the caller guarantees it.
            unsafe { time.write(simulator.time(clock)) };
            0
        }
        _ => {
            real_clock::count_read();
            // SAFETY: the kernel checks the arguments.
            unsafe { libc::syscall(libc::SYS_clock_gettime, clock, time) as c_int }
        }
    }
}

/// Replaces the C library's function.
///
/// # Safety
/// `time` must be valid for writing, or NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gettimeofday(time: *mut timeval, zone: *mut c_void) -> c_int {
    match Simulator::clocks() {
        Some(simulator) if !time.is_null() => {
            let now = simulator.time(libc::CLOCK_REALTIME);
            // SAFETY: the caller guarantees it.
            unsafe { time.write(timeval { tv_sec: now.tv_sec, tv_usec: now.tv_nsec / 1000 }) };
            0
        }
        _ => {
            real_clock::count_read();
            // SAFETY: the kernel checks the arguments.
            unsafe { libc::syscall(libc::SYS_gettimeofday, time, zone) as c_int }
        }
    }
}

/// Replaces the C library's function.
///
/// # Safety
/// `out` must be valid for writing, or NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn time(out: *mut time_t) -> time_t {
    let mut now = timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes to a local, and to `out`, which the caller guarantees to be valid.
    unsafe {
        clock_gettime(libc::CLOCK_REALTIME, &raw mut now);
        if !out.is_null() {
            out.write(now.tv_sec);
        }
    }
    now.tv_sec
}

/// Replaces the C11 function.
///
/// # Safety
/// `time` must be valid for writing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn timespec_get(time: *mut timespec, base: c_int) -> c_int {
    /// The only time base of the C library.
    const TIME_UTC: c_int = 1;
    // SAFETY: the caller guarantees it.
    if base == TIME_UTC && unsafe { clock_gettime(libc::CLOCK_REALTIME, time) } == 0 { base } else { 0 }
}
