use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// How far a run is, for another thread that displays it. Clones share the count.
#[derive(Clone, Debug, Default)]
pub struct RunProgress {
    /// Starts and ends of operations.
    steps: Arc<AtomicU64>,
}

impl RunProgress {
    /// Returns how many operations have been executed so far, to within a thousandth. An operation that has started and is
    /// not done counts half.
    pub fn operations(&self) -> u64 {
        self.steps.load(Ordering::Relaxed) / 2
    }

    /// Counts `steps` more starts and ends of operations.
    #[inline]
    pub(crate) fn add(&self, steps: u64) {
        self.steps.fetch_add(steps, Ordering::Relaxed);
    }

    /// Starts again from zero, as a run that starts again does.
    pub(crate) fn reset(&self) {
        self.steps.store(0, Ordering::Relaxed);
    }
}
