// SPDX-License-Identifier: Apache-2.0
//! The time-stamp counter as a clock, which handlers' process and card share without system calls.

use std::time::{Duration, Instant};

/// Returns the time-stamp counter.
#[cfg(target_arch = "x86_64")]
pub fn ticks() -> u64 {
    // SAFETY: every processor of this architecture has the counter.
    unsafe { core::arch::x86_64::_rdtsc() }
}

/// Returns 0: the engine does not start on other architectures.
#[cfg(not(target_arch = "x86_64"))]
pub fn ticks() -> u64 {
    0
}

/// Rate of the counter.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    per_ns: f64,
}

impl Clock {
    /// Measures the rate, for 20 ms.
    pub fn measure() -> Clock {
        let (start, first) = (Instant::now(), ticks());
        std::thread::sleep(Duration::from_millis(20));
        let (elapsed, last) = (start.elapsed(), ticks());
        Clock { per_ns: (last.wrapping_sub(first) as f64 / elapsed.as_nanos() as f64).max(1e-3) }
    }

    /// Returns the nanoseconds between two readings, rounded.
    pub fn ns(&self, from: u64, to: u64) -> u64 {
        (to.saturating_sub(from) as f64 / self.per_ns).round() as u64
    }

    /// Returns the ticks of a duration in nanoseconds.
    pub fn ticks(&self, ns: u64) -> u64 {
        (ns as f64 * self.per_ns) as u64
    }
}
