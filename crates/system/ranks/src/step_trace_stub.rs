// SPDX-License-Identifier: Apache-2.0
//! Replacement of `step_trace.rs` on processors other than x86-64, where threads cannot be single-stepped.

use super::polling_loop::{NotPolling, PollingLoop};
use super::rank_state::RecentLoops;
use super::stopped_thread::StoppedThread;
use std::collections::BTreeSet;

impl RecentLoops {
    /// Returns the address of a thread's next instruction if it lies in one of the loops.
    pub fn instruction_in_loop(&self, thread: &StoppedThread) -> Option<u64> {
        match *thread {}
    }
}

/// Steps a thread to its earlier stop point in a loop.
pub fn recall(thread: &StoppedThread, _known: &RecentLoops, _disturbed: &dyn Fn() -> bool) -> Option<PollingLoop> {
    match *thread {}
}

/// Steps of a thread. No value of this type exists.
pub enum StepTrace {}

impl StepTrace {
    /// Starts a trace at the next instruction of a thread.
    pub fn new(thread: &StoppedThread, _inspections: u32) -> StepTrace {
        match *thread {}
    }

    /// Steps the thread until a polling loop is found.
    ///
    /// # Errors
    /// [`NotPolling`] when the thread does not poll.
    pub fn find_loop(
        &mut self,
        _thread: &StoppedThread,
        _within: Option<&BTreeSet<u64>>,
        _disturbed: &dyn Fn() -> bool,
    ) -> Result<PollingLoop, NotPolling> {
        match *self {}
    }

    /// Returns the number of inspections after which a trace may have as many steps as this one; `None` if it is empty.
    pub fn inspections_needed(&self) -> Option<u32> {
        match *self {}
    }

    /// Returns the address of the last instruction.
    pub fn at(&self) -> u64 {
        match *self {}
    }

    /// Returns the addresses of the instructions so far.
    pub fn code(&self) -> BTreeSet<u64> {
        match *self {}
    }
}
