//! The replacement of `steps.rs` for processors other than x86-64, on which threads cannot be inspected.

use super::memory_loop::{Loop, NoLoop};
use std::collections::BTreeSet;

/// A thread that is stopped. No value of this type exists.
pub enum StoppedThread {}

impl StoppedThread {
    /// Whether the thread has this id.
    pub fn is(&self, _tid: u32) -> bool {
        match *self {}
    }

    /// Whether the thread has ended.
    pub fn has_ended(&self) -> bool {
        match *self {}
    }

    /// Whether the contents of a polled place have changed.
    pub fn has_changed(&self, _polls: &Loop) -> bool {
        match *self {}
    }

    /// Finds the loop that the thread is in.
    ///
    /// # Errors
    /// [`NoLoop`] when it does not poll.
    pub fn find_loop(&self, _within: Option<&BTreeSet<u64>>, _disturbed: &dyn Fn() -> bool) -> Result<Loop, NoLoop> {
        match *self {}
    }
}

/// Returns the process itself, as if it had one thread that runs.
pub fn running_threads(process: u32, inside: impl Fn(u32) -> bool) -> Vec<u32> {
    if inside(process) { Vec::new() } else { vec![process] }
}

/// Refuses, as threads cannot be inspected.
///
/// # Errors
/// Always [`NoLoop::Denied`].
pub fn find_polling(
    _tid: u32,
    _waited_for: bool,
    _disturbed: &dyn Fn() -> bool,
) -> Result<(Loop, StoppedThread), NoLoop> {
    Err(NoLoop::Denied)
}
