// SPDX-License-Identifier: Apache-2.0
//! Tasks whose progress can be shown.

use sim::Time;

/// Task whose progress is shown.
pub enum Task<'a> {
    /// Task of unknown length, with its description.
    Unknown(String),
    /// Task with a known number of operations.
    Counted {
        /// Number of completed operations.
        done: &'a (dyn Fn() -> u64 + Sync),
        /// Number of all operations.
        all: u64,
    },
    /// Simulation whose end is unknown.
    Simulated {
        /// Current simulated time.
        now: &'a (dyn Fn() -> Time + Sync),
        /// Number of events so far.
        events: &'a (dyn Fn() -> u64 + Sync),
    },
}
