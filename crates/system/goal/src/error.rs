use std::convert::Infallible;
use std::error::Error;

use net::NetError;
use thiserror::Error;

use crate::deadlock::Deadlock;

/// Why a schedule cannot be executed to its end. `M` are the errors that only the model has.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum RunError<M: Error + 'static = Infallible> {
    /// Ranks wait for each other, or for messages that nobody sends.
    #[error(transparent)]
    Deadlock(#[from] Deadlock),
    /// The run would last longer than its clock can count.
    #[error("{what} ends after more than 2^{bits} picoseconds ({} days) of simulated time", days(*.bits))]
    TooLate {
        /// The operation that ends too late
        what: String,
        /// The clock counts 2 to this power picoseconds
        bits: u32,
    },
    /// The network is impossible or too small for the schedule.
    #[error(transparent)]
    Network(#[from] NetError),
    /// An operation of a card in a model that has no cards.
    #[error("{0}: only the model nic has cards that do this")]
    NeedsCard(String),
    /// A state that cannot occur; it shows a defect of spinkit.
    #[error("internal error: {0}, please report")]
    Internal(String),
    /// A problem that only the model knows.
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
