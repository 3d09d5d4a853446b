// SPDX-License-Identifier: Apache-2.0
//! Progress of a run, for another thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Progress of a run, for display by another thread. Clones share the count.
#[derive(Clone, Debug, Default)]
pub struct RunProgress {
    /// Number of starts and ends of operations.
    steps: Arc<AtomicU64>,
}

impl RunProgress {
    /// Returns the number of executed operations, to within a thousandth. A started, unfinished operation counts half.
    pub fn operations(&self) -> u64 {
        self.steps.load(Ordering::Relaxed) / 2
    }

    /// Adds `steps` starts and ends of operations.
    #[inline]
    pub(crate) fn add(&self, steps: u64) {
        self.steps.fetch_add(steps, Ordering::Relaxed);
    }

    /// Resets the count to zero, for a restarted run.
    pub(crate) fn reset(&self) {
        self.steps.store(0, Ordering::Relaxed);
    }
}
