// SPDX-License-Identifier: Apache-2.0
//! Signals to the simulator: exit of a child, input from a child, and termination requests.
//!
//! The handlers are installed through `libc`: rustix has no function for that, and nix no safe one.

use super::doorbell;
use super::job_spec::JobError;
use std::io;
use std::os::fd::RawFd;
use std::ptr::null_mut;
use std::sync::Once;
use std::sync::atomic::{AtomicI32, AtomicPtr, AtomicU32, Ordering::SeqCst};

/// Maximum number of concurrent jobs per process.
const JOBS: usize = 64;

static BELLS: [AtomicPtr<AtomicU32>; JOBS] = [const { AtomicPtr::new(null_mut()) }; JOBS];
static HANDLING: AtomicU32 = AtomicU32::new(0);
static RECEIVED: AtomicI32 = AtomicI32::new(0);
static CHILDREN: AtomicU32 = AtomicU32::new(0);
static INPUTS: AtomicU32 = AtomicU32::new(0);

/// Returns the latest termination signal, if any.
pub fn received() -> Option<i32> {
    Some(RECEIVED.load(SeqCst)).filter(|&signal| signal != 0)
}

/// Returns a number that changes whenever a child of this process ends.
pub fn children() -> u32 {
    CHILDREN.load(SeqCst)
}

/// Returns a number that changes whenever a descriptor of [`on_input`] becomes readable.
pub fn inputs() -> u32 {
    INPUTS.load(SeqCst)
}

/// Makes input and end of file on `fd` ring the doorbells.
pub fn on_input(fd: RawFd) -> io::Result<()> {
    // SAFETY: plain system calls on a descriptor.
    let set = unsafe {
        let flags = libc::fcntl(fd, libc::F_GETFL);
        flags != -1
            && libc::fcntl(fd, libc::F_SETOWN, libc::getpid()) != -1
            && libc::fcntl(fd, libc::F_SETFL, flags | libc::O_ASYNC) != -1
    };
    if set { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Makes the simulator read the descriptors of [`on_input`] again.
pub fn expect_input() {
    INPUTS.fetch_add(1, SeqCst);
    ring_bells();
}

/// Makes signals ring this doorbell.
pub fn watch(bell: &AtomicU32) -> Result<(), JobError> {
    static INSTALL: Once = Once::new();
    INSTALL.call_once(|| {
        [libc::SIGCHLD, libc::SIGIO].into_iter().for_each(install);
        [libc::SIGINT, libc::SIGTERM, libc::SIGHUP].into_iter().for_each(install);
    });
    let bell = std::ptr::from_ref(bell).cast_mut();
    let free = BELLS.iter().any(|place| place.compare_exchange(null_mut(), bell, SeqCst, SeqCst).is_ok());
    let too_many = || JobError::System { what: "run more jobs at once", source: io::ErrorKind::QuotaExceeded.into() };
    free.then_some(()).ok_or_else(too_many)
}

/// Stops signals from ringing this doorbell. On return, no handler uses the doorbell any more.
pub fn unwatch(bell: &AtomicU32) {
    let bell = std::ptr::from_ref(bell).cast_mut();
    for place in &BELLS {
        let _ = place.compare_exchange(bell, null_mut(), SeqCst, SeqCst);
    }
    while HANDLING.load(SeqCst) != 0 {
        std::hint::spin_loop();
    }
}

/// Installs the handler, unless the signal was already ignored when the process started (nohup).
fn install(signal: i32) {
    // SAFETY: the handler only uses atomics and system calls.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, std::ptr::null(), &raw mut action);
        if action.sa_sigaction == libc::SIG_IGN && !matches!(signal, libc::SIGCHLD | libc::SIGIO) {
            return;
        }
        action.sa_sigaction = handle as extern "C" fn(i32) as usize;
        action.sa_flags = libc::SA_RESTART | libc::SA_NOCLDSTOP;
        libc::sigaction(signal, &raw const action, null_mut());
    }
}

/// Returns the doorbells of all jobs.
fn bells() -> impl Iterator<Item = *mut AtomicU32> {
    BELLS.iter().map(|place| place.load(SeqCst)).filter(|bell| !bell.is_null())
}

fn ring_bells() {
    HANDLING.fetch_add(1, SeqCst);
    // SAFETY: `unwatch` waits for this function to return before a doorbell is freed.
    bells().for_each(|bell| doorbell::ring(unsafe { &*bell }));
    HANDLING.fetch_sub(1, SeqCst);
}

/// Handler of all signals. Must neither allocate nor take a lock.
extern "C" fn handle(signal: i32) {
    // SAFETY: the thread's own errno, which a signal handler must preserve.
    let errno = unsafe { *libc::__errno_location() };
    if signal == libc::SIGCHLD {
        CHILDREN.fetch_add(1, SeqCst);
    } else if signal == libc::SIGIO {
        INPUTS.fetch_add(1, SeqCst);
    } else if bells().next().is_some() {
        RECEIVED.store(signal, SeqCst);
    } else {
        // No job has ranks to end first.
        // SAFETY: both functions are async-signal-safe.
        unsafe {
            libc::signal(signal, libc::SIG_DFL);
            libc::raise(signal);
        }
    }
    ring_bells();
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = errno };
}
