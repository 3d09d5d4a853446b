use abi::portals::ReturnCode;
use sim::Time;
use thiserror::Error;

/// Why a schedule cannot be executed to its end.
pub type RunError = goal::RunError<CardError>;

/// What can be wrong with cards only.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum CardError {
    /// An operation that these cards cannot do, or that makes no sense.
    #[error("{operation}: {reason}")]
    Operation {
        /// Rank, place and text
        operation: String,
        /// What is wrong with it
        reason: String,
    },
    /// A card has no room, or refuses for another reason.
    #[error("{operation}: the card answers {call} with {code:?} at {at}")]
    Refused {
        /// Rank, place and text
        operation: String,
        /// The Portals function
        call: &'static str,
        /// Its return code
        code: ReturnCode,
        /// Simulated time
        at: Time,
    },
    /// A handler has failed.
    #[error("at {at}: {message}")]
    Handler {
        /// Simulated time
        at: Time,
        /// Node, handler and what it did
        message: String,
    },
    /// The schedule has more CPUs a rank than hosts of the machine have cores.
    #[error("the schedule uses {cpus} CPUs of a rank (cpu 0 to {}), and hosts of this machine have {cores} (host.cores)", cpus - 1)]
    Cores {
        /// Number of CPUs of a rank.
        cpus: usize,
        /// Number of cores of a host.
        cores: u32,
    },
    /// A card has met a state that cannot occur.
    #[error(transparent)]
    Internal(#[from] cluster::InternalError),
}

impl From<CardError> for RunError {
    fn from(error: CardError) -> RunError {
        RunError::Model(error)
    }
}
