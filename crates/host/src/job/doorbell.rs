//! The word in shared memory that wakes the simulator.

use abi::mailbox::{DOORBELL_RING, DOORBELL_SLEEPS};
use std::sync::atomic::{AtomicU32, Ordering};

/// Rings a doorbell. Signal handlers may call it.
pub fn ring(bell: &AtomicU32) {
    if bell.fetch_add(DOORBELL_RING, Ordering::SeqCst) & DOORBELL_SLEEPS != 0 {
        // SAFETY: a system call on a mapped word.
        unsafe { libc::syscall(libc::SYS_futex, bell.as_ptr(), libc::FUTEX_WAKE, i32::MAX) };
    }
}
