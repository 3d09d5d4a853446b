use thiserror::Error;

use crate::stuck::Stuck;

/// Why a schedule cannot be executed to its end.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum RunError {
    /// Ranks wait for each other, or for messages that nobody sends.
    #[error(transparent)]
    Stuck(#[from] Stuck),
    /// More time than the clock can count.
    #[error("{0} ends after more than 2^64 picoseconds (213 days) of simulated time")]
    TooLate(String),
    /// An operation that the model does not have.
    #[error("{0}: LogGOPS has no cards that could do this")]
    NeedsCard(String),
}
