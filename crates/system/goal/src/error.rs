// SPDX-License-Identifier: Apache-2.0
//! Errors of a run.

use std::convert::Infallible;
use std::error::Error;

use net::NetError;
use thiserror::Error;

use crate::deadlock::Deadlock;

/// Error of an unfinished run. `M` is the type of model-specific errors.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum RunError<M: Error + 'static = Infallible> {
    /// Ranks wait for each other, or for messages that no rank sends.
    #[error(transparent)]
    Deadlock(#[from] Deadlock),
    /// The run exceeds the range of its clock.
    #[error("{what} ends after more than 2^{bits} picoseconds ({} days) of simulated time", days(*.bits))]
    TooLate {
        /// Operation that ends too late
        what: String,
        /// The clock counts 2 to this power picoseconds
        bits: u32,
    },
    /// The network is invalid or too small for the schedule.
    #[error(transparent)]
    Network(#[from] NetError),
    /// A card operation in a model without cards.
    #[error("{0}: only the model nic has cards that do this")]
    NeedsCard(String),
    /// An impossible state, caused by a defect of spinkit.
    #[error("internal error: {0}, please report")]
    Internal(String),
    /// A model-specific error.
    #[error(transparent)]
    Model(M),
}

/// Returns 2 to the power of `bits` picoseconds in whole days.
fn days(bits: u32) -> u128 {
    const PS_PER_DAY: u128 = 86_400 * 1_000_000_000_000;
    (1 << bits) / PS_PER_DAY
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_of_the_clock_is_told_in_days() {
        let error = |bits| RunError::<Infallible>::TooLate { what: "it".into(), bits }.to_string();
        assert_eq!(error(64), "it ends after more than 2^64 picoseconds (213 days) of simulated time");
        assert_eq!(error(63), "it ends after more than 2^63 picoseconds (106 days) of simulated time");
    }
}
