//! What the unit counts.

use crate::her::TaskOutcome;

/// Counts of requests and packets. `accepted` is the sum of all that were fed back and of those that are inside.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Requests that were accepted.
    pub accepted: u64,
    /// Packets that were fed back because their last handler returned.
    pub done: u64,
    /// Packets that were fed back without a handler.
    pub skipped: u64,
    /// Packets that were fed back because their last handler failed.
    pub faulted: u64,
    /// Packets that were fed back because the watchdog killed their last handler.
    pub timed_out: u64,
    /// Packets that were fed back because their message was given up.
    pub reset: u64,
    /// Commands that the command unit has taken.
    pub commands: u64,
    /// Errors that could not be written to the descriptor of their context, because the host refused the address.
    pub lost_status: u64,
}

impl Counters {
    /// Packets that were fed back.
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
