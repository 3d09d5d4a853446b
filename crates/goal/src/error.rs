use thiserror::Error;

use crate::stuck::Stuck;

/// Why a schedule cannot be executed to its end over a network.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum RunError {
    /// Ranks wait for each other, or for messages that nobody sends.
    #[error(transparent)]
    Stuck(#[from] Stuck),
    /// More time than the clock can count.
    #[error("{0} ends after more than 2^63 picoseconds (106 days) of simulated time")]
    TooLate(String),
    /// An operation that the model does not have.
    #[error("{0}: only --model nic has cards that do this")]
    NeedsCard(String),
    /// Ranks have several CPUs or NICs, and the model has not.
    #[error("the protocol model has one CPU and one NIC a rank; the schedule uses {cpus} and {nics}")]
    Resources {
        /// Highest CPU number, plus one
        cpus: usize,
        /// Highest NIC number, plus one
        nics: usize,
    },
    /// Ranks have several CPUs or NICs, and these are too many.
    #[error(
        "{ranks} ranks with {each} {what} each are more than {most} {what}: one operation with a high number gives all \
             ranks as many"
    )]
    TooMany {
        /// Number of ranks
        ranks: usize,
        /// Highest number, plus one
        each: usize,
        /// CPUs or NICs
        what: &'static str,
        /// The limit
        most: usize,
    },
    /// A network that cannot be, or is too small.
    #[error(transparent)]
    Network(#[from] net::NetError),
}
