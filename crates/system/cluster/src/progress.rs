// SPDX-License-Identifier: Apache-2.0
//! Progress of a run, for another thread.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use sim::Time;

/// Progress of a run. Other threads may read it during the run.
#[derive(Debug, Default)]
pub struct RunProgress {
    now_ps: AtomicU64,
    events: AtomicU64,
}

impl RunProgress {
    /// Returns the simulated time.
    pub fn now(&self) -> Time {
        Time::from_ps(self.now_ps.load(Relaxed))
    }

    /// Returns the number of handled and waiting events.
    pub fn events(&self) -> u64 {
        self.events.load(Relaxed)
    }

    pub(crate) fn update(&self, now: Time, events: u64) {
        self.now_ps.store(now.as_ps(), Relaxed);
        self.events.store(events, Relaxed);
    }
}
