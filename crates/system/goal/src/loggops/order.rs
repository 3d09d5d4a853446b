// SPDX-License-Identifier: Apache-2.0
//! Numbering of events.

use super::queue::Entry;

/// Assigns ascending numbers to events at their insertion. Events of the same time are executed in number order.
pub(super) trait Order {
    /// True if numbers are final as soon as they are assigned.
    const IS_FINAL: bool;
    /// Records the execution of event `number` at time `at`, which may insert others.
    fn begin(&mut self, at: u64, number: u32);
    /// Returns the number of the next inserted event.
    fn next(&mut self) -> u32;
    /// Returns true if an event must not be inserted yet, because its number is not final and will precede `at`.
    fn is_early(&mut self, at: u64, number: u32) -> bool;
    /// Stores a new event of `rank` for later, if it must not be inserted yet. Returns true if stored.
    fn keeps(&mut self, rank: u32, entry: Entry) -> bool;
    /// Records that operation `op` with this number starts to wait for its resources.
    fn waits(&mut self, number: u32, op: u32);
}

/// Order of a single thread for all ranks, whose numbers are final.
#[derive(Debug, Default)]
pub(super) struct Alone(u32);

impl Order for Alone {
    const IS_FINAL: bool = true;

    #[inline(always)]
    fn begin(&mut self, _: u64, _: u32) {}

    #[inline(always)]
    fn next(&mut self) -> u32 {
        self.0 += 1;
        self.0 - 1
    }

    #[inline(always)]
    fn is_early(&mut self, _: u64, _: u32) -> bool {
        false
    }

    #[inline(always)]
    fn keeps(&mut self, _: u32, _: Entry) -> bool {
        false
    }

    #[inline(always)]
    fn waits(&mut self, _: u32, _: u32) {}
}
