// SPDX-License-Identifier: Apache-2.0
//! Sleeps in simulated time, which take no real time.

use std::ptr::null_mut;

use libc::{c_int, c_long, c_uint, clockid_t, fd_set, nfds_t, pollfd, time_t, timespec, timeval, useconds_t};

use crate::clock_gettime;
use crate::cpu::is_cpu_time;
use crate::simulator::{PS_PER_S, Simulator};

fn picoseconds(time: &timespec) -> u128 {
    time.tv_sec as u128 * u128::from(PS_PER_S) + time.tv_nsec as u128 * 1000
}

/// Replaces the C library's function. Signals never interrupt it in simulated time, so no time remains.
///
/// # Safety
/// `request` must be valid; `remaining` valid for writing, or NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nanosleep(request: *const timespec, remaining: *mut timespec) -> c_int {
    // SAFETY: the caller guarantees it.
    match unsafe { clock_nanosleep(libc::CLOCK_REALTIME, 0, request, remaining) } {
        0 => 0,
        error => {
            // SAFETY: the pointer to this thread's errno is valid.
            unsafe { *libc::__errno_location() = error };
            -1
        }
    }
}

fn real_sleep(clock: clockid_t, flags: c_int, request: *const timespec, remaining: *mut timespec) -> c_int {
    // SAFETY: the kernel checks the arguments.
    let slept = unsafe { libc::syscall(libc::SYS_clock_nanosleep, clock, flags, request, remaining) };
    // SAFETY: the pointer to this thread's errno is valid.
    if slept == 0 { 0 } else { unsafe { *libc::__errno_location() } }
}

/// Replaces the C library's function; returns an error number.
///
/// # Safety
/// `request` must be valid; `remaining` valid for writing, or NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clock_nanosleep(
    clock: clockid_t,
    flags: c_int,
    request: *const timespec,
    remaining: *mut timespec,
) -> c_int {
    let Some(simulator) = Simulator::get().filter(|_| !is_cpu_time(clock) && !request.is_null()) else {
        return real_sleep(clock, flags, request, remaining);
    };
    // SAFETY: the caller guarantees it.
    let wanted = unsafe { request.read() };
    if wanted.tv_sec < 0 || !(0..1_000_000_000).contains(&wanted.tv_nsec) {
        return libc::EINVAL;
    }
    let mut now = timespec { tv_sec: 0, tv_nsec: 0 };
    let is_absolute = flags & libc::TIMER_ABSTIME != 0;
    if is_absolute {
        // SAFETY: the pointer to a local is valid.
        unsafe { clock_gettime(clock, &raw mut now) };
    }
    simulator.sleep(picoseconds(&wanted).saturating_sub(picoseconds(&now)).try_into().unwrap_or(u64::MAX));
    // The real clock may be earlier than the wanted time.
    if is_absolute && !simulator.has_clocks { real_sleep(clock, flags, request, remaining) } else { 0 }
}

/// Replaces the C library's function.
#[unsafe(no_mangle)]
pub extern "C" fn usleep(microseconds: useconds_t) -> c_int {
    let request = timespec {
        tv_sec: time_t::from(microseconds / 1_000_000),
        tv_nsec: c_long::from(microseconds % 1_000_000) * 1000,
    };
    // SAFETY: the pointer to a local is valid.
    unsafe { nanosleep(&raw const request, null_mut()) }
}

/// Replaces the C library's function. Returns 0 in simulated time; in real time, the remainder after a signal.
#[unsafe(no_mangle)]
pub extern "C" fn sleep(seconds: c_uint) -> c_uint {
    let request = timespec { tv_sec: time_t::from(seconds), tv_nsec: 0 };
    let mut remaining = timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointers to locals are valid.
    match unsafe { nanosleep(&raw const request, &raw mut remaining) } {
        0 => 0,
        _ => remaining.tv_sec as c_uint,
    }
}

/// Replaces the C11 function.
///
/// # Safety
/// `request` must be valid; `remaining` valid for writing, or NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn thrd_sleep(request: *const timespec, remaining: *mut timespec) -> c_int {
    /// Return value for an interrupt; other errors return any other negative number.
    const INTERRUPTED: c_int = -1;
    // SAFETY: the caller guarantees it.
    match unsafe { clock_nanosleep(libc::CLOCK_REALTIME, 0, request, remaining) } {
        0 => 0,
        libc::EINTR => INTERRUPTED,
        _ => INTERRUPTED - 1,
    }
}

/// Replaces the C library's function. Without descriptors it is a sleep.
///
/// # Safety
/// As for the C library's function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn poll(descriptors: *mut pollfd, count: nfds_t, milliseconds: c_int) -> c_int {
    match Simulator::get() {
        Some(simulator) if count == 0 && milliseconds > 0 => {
            simulator.sleep(milliseconds as u64 * (PS_PER_S / 1000));
            0
        }
        // SAFETY: the kernel checks the arguments.
        _ => unsafe { libc::syscall(libc::SYS_poll, descriptors, count, milliseconds) as c_int },
    }
}

/// Replaces the C library's function. Without descriptors it is a sleep.
///
/// # Safety
/// As for the C library's function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn select(
    count: c_int,
    reading: *mut fd_set,
    writing: *mut fd_set,
    failing: *mut fd_set,
    limit: *mut timeval,
) -> c_int {
    let has_sets = [reading, writing, failing].iter().any(|set| !set.is_null());
    match Simulator::get() {
        Some(_) if !has_sets && !limit.is_null() => {
            // SAFETY: the caller guarantees it.
            let timeval { tv_sec, tv_usec } = unsafe { limit.read() };
            let request = timespec { tv_sec, tv_nsec: tv_usec * 1000 };
            // SAFETY: the pointer to a local is valid.
            unsafe { nanosleep(&raw const request, null_mut()) }
        }
        // SAFETY: the kernel checks the arguments.
        _ => unsafe { libc::syscall(libc::SYS_select, count, reading, writing, failing, limit) as c_int },
    }
}
