// SPDX-License-Identifier: Apache-2.0
//! Word in shared memory that wakes the simulator.

use abi::mailbox::{DOORBELL_RING, DOORBELL_SLEEPS};
use rustix::thread::futex;
use std::sync::atomic::{AtomicU32, Ordering};

/// Rings a doorbell. Async-signal-safe: allocates nothing and takes no lock.
pub fn ring(bell: &AtomicU32) {
    if bell.fetch_add(DOORBELL_RING, Ordering::SeqCst) & DOORBELL_SLEEPS != 0 {
        // Cannot fail: the word is mapped and aligned.
        let _ = futex::wake(bell, futex::Flags::empty(), i32::MAX as u32);
    }
}
