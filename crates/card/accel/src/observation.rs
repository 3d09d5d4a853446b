// SPDX-License-Identifier: Apache-2.0
//! Observation of handlers, fixed when a card is created.

/// Observation of the handlers of all cards of a run. It changes no result, except that free prints save their cycles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Observation {
    /// Detects data races and reads of unwritten memory (`spinrun --sanitize`).
    pub sanitize: bool,
    /// Printing by handlers takes no simulated time (`--print-free`).
    pub free_prints: bool,
    /// Counts the executions of each instruction (`--profile`).
    pub profile: bool,
}

impl Observation {
    /// Returns the cycles of a print by a handler.
    pub fn print_cycles(self) -> u64 {
        if self.free_prints { 0 } else { crate::PRINT_CYCLES }
    }
}
