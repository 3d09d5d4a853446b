// SPDX-License-Identifier: Apache-2.0
//! Counters of the unit.

use crate::her::TaskOutcome;

/// Counts of requests and packets. `accepted` equals the packets fed back plus those still inside.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Accepted requests.
    pub accepted: u64,
    /// Packets fed back after their last handler returned.
    pub done: u64,
    /// Packets fed back without a handler.
    pub skipped: u64,
    /// Packets fed back after their last handler failed.
    pub faulted: u64,
    /// Packets fed back after the watchdog killed their last handler.
    pub timed_out: u64,
    /// Packets fed back because their message was abandoned.
    pub reset: u64,
    /// Commands accepted by the command unit.
    pub commands: u64,
    /// Error reports lost because the host refused the address of the context's descriptor.
    pub lost_status: u64,
}

impl Counters {
    /// Returns the number of packets fed back.
    pub fn fed_back(&self) -> u64 {
        self.done + self.skipped + self.faulted + self.timed_out + self.reset
    }

    #[inline]
    pub(crate) fn count(&mut self, outcome: TaskOutcome) {
        let counter = match outcome {
            TaskOutcome::Done => &mut self.done,
            TaskOutcome::Skipped => &mut self.skipped,
            TaskOutcome::Faulted(_) => &mut self.faulted,
            TaskOutcome::TimedOut => &mut self.timed_out,
            TaskOutcome::MessageReset => &mut self.reset,
        };
        *counter += 1;
    }
}
