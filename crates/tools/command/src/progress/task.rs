// SPDX-License-Identifier: Apache-2.0
//! The tasks whose progress can be shown.

use sim::Time;

/// A task whose progress is shown.
pub enum Task<'a> {
    /// A task of unknown length, with its description.
    Unknown(String),
    /// A task with a known number of operations.
    Counted {
        /// The number of operations done so far.
        done: &'a (dyn Fn() -> u64 + Sync),
        /// The number of all operations.
        all: u64,
    },
    /// A simulation whose end is unknown.
    Simulated {
        /// The simulated time now.
        now: &'a (dyn Fn() -> Time + Sync),
        /// The number of events so far.
        events: &'a (dyn Fn() -> u64 + Sync),
    },
}
