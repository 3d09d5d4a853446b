// SPDX-License-Identifier: Apache-2.0
//! Replacement of `stopped_thread.rs` on processors other than x86-64, where threads cannot be inspected.

use super::polling_loop::{NotPolling, PollingLoop};
use embedded::Suspended;

/// A stopped thread. No value of this type exists.
pub enum StoppedThread {}

impl StoppedThread {
    /// Never called, as no rank is embedded.
    pub fn embedded(rank: Suspended) -> StoppedThread {
        rank.never()
    }

    /// Returns the thread's id.
    pub fn tid(&self) -> u32 {
        match *self {}
    }

    /// Returns true if the thread has ended.
    pub fn has_ended(&self) -> bool {
        match *self {}
    }

    /// Returns true if a polled location has changed.
    pub fn has_changed(&self, _polls: &PollingLoop, _own: bool) -> bool {
        match *self {}
    }

    /// Fails, as threads cannot be inspected.
    ///
    /// # Errors
    /// Always [`NotPolling::Denied`].
    pub fn stop(_tid: u32, _waited_for: bool, _disturbed: &dyn Fn() -> bool) -> Result<StoppedThread, NotPolling> {
        Err(NotPolling::Denied)
    }
}

/// Returns the process itself, as if it had one running thread.
pub fn running_threads(process: u32, inside: impl Fn(u32) -> bool) -> Vec<u32> {
    if inside(process) { Vec::new() } else { vec![process] }
}
