// SPDX-License-Identifier: Apache-2.0
//! Errors of a run on cards.

use abi::portals::ReturnCode;
use sim::Time;
use thiserror::Error;

/// Error of an unfinished run.
pub type RunError = goal::RunError<CardError>;

/// Error specific to cards.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum CardError {
    /// An operation that these cards do not support, or that is invalid.
    #[error("{operation}: {reason}")]
    Operation {
        /// Rank, index and text
        operation: String,
        /// Reason
        reason: String,
    },
    /// A card has no room, or refuses for another reason.
    #[error("{operation}: the card answers {call} with {code:?} at {at}")]
    Refused {
        /// Rank, index and text
        operation: String,
        /// Portals function
        call: &'static str,
        /// Return code
        code: ReturnCode,
        /// Simulated time
        at: Time,
    },
    /// A handler failed.
    #[error("at {at}: {message}")]
    Handler {
        /// Simulated time
        at: Time,
        /// Node, handler and failure
        message: String,
    },
    /// The schedule has more CPUs per rank than the machine's hosts have cores.
    #[error("the schedule uses {cpus} CPUs of a rank (cpu 0 to {}), and hosts of this machine have {cores} (host.cores)", cpus - 1)]
    Cores {
        /// Number of CPUs of a rank.
        cpus: usize,
        /// Number of cores of a host.
        cores: u32,
    },
    /// A card reached an impossible state.
    #[error(transparent)]
    Internal(#[from] cluster::InternalError),
}

impl From<CardError> for RunError {
    fn from(error: CardError) -> RunError {
        RunError::Model(error)
    }
}
