// SPDX-License-Identifier: Apache-2.0
//! Trace of real clocks in the rank's memory.

use std::sync::atomic::{AtomicU64, Ordering};

/// Number of reads of a real clock. A loop that ends at a real time thus changes memory, which shows spinrun that the rank
/// does not repeat itself.
static READS: AtomicU64 = AtomicU64::new(0);

/// Counts a read of a real clock.
pub fn count_read() {
    READS.fetch_add(1, Ordering::Relaxed);
}
