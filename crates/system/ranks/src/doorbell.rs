//! The word in shared memory that wakes the simulator.

use abi::mailbox::{DOORBELL_RING, DOORBELL_SLEEPS};
use rustix::thread::futex;
use std::sync::atomic::{AtomicU32, Ordering};

/// Rings a doorbell. Signal handlers may call it: it allocates nothing, and takes no lock.
pub fn ring(bell: &AtomicU32) {
    if bell.fetch_add(DOORBELL_RING, Ordering::SeqCst) & DOORBELL_SLEEPS != 0 {
        // It cannot fail: the word is mapped and aligned.
        let _ = futex::wake(bell, futex::Flags::empty(), i32::MAX as u32);
    }
}
