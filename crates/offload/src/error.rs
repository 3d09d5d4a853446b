use std::fmt;

use abi::portals::Rc as Code;
use sim::Time;
use thiserror::Error;

/// Why a schedule cannot be executed to its end.
#[derive(Debug, Error)]
pub enum RunError {
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
        code: Code,
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
    /// A deadlock: ranks wait for each other, or for messages that nobody sends.
    #[error("the schedule cannot finish: {done} of {operations} operations are done at {at}{}{}", lost(*.dropped), lines(.ranks))]
    Deadlock {
        /// Number of operations that were done
        done: usize,
        /// Number of all operations
        operations: usize,
        /// Simulated time
        at: Time,
        /// Number of messages that no entry took
        dropped: u64,
        /// The ranks that wait
        ranks: Vec<DeadlockedRank>,
    },
    /// More time than the clock can count.
    #[error("{0} ends after more than 2^63 picoseconds (106 days) of simulated time")]
    TooLate(String),
    /// The simulator contradicts itself.
    #[error("internal error: {0}, please report")]
    Internal(String),
    /// The schedule has more CPUs a rank than hosts of the machine have cores.
    #[error("the schedule uses {cpus} CPUs of a rank (cpu 0 to {}), and hosts of this machine have {cores} (host.cores)", cpus - 1)]
    Cores {
        /// Number of CPUs of a rank.
        cpus: usize,
        /// Number of cores of a host.
        cores: u32,
    },
    /// The network cannot have this many nodes.
    #[error(transparent)]
    Network(#[from] cluster::NetError),
}

/// A rank in a deadlock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadlockedRank {
    /// Its number
    pub rank: u32,
    /// What it waits for, in words
    pub waits: Vec<String>,
    /// Number of its operations that cannot start because of that
    pub blocked: usize,
}

/// Waits shown for a rank.
const SHOWN: usize = 3;

fn lines(ranks: &[DeadlockedRank]) -> String {
    ranks.iter().map(|rank| format!("\n  {rank}")).collect()
}

fn lost(messages: u64) -> String {
    if messages > 0 { format!("; {messages} messages found no entry and were dropped") } else { String::new() }
}

impl fmt::Display for DeadlockedRank {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rank {} waits {}", self.rank, self.waits[..self.waits.len().min(SHOWN)].join(", "))?;
        if self.waits.len() > SHOWN {
            write!(f, ", and for {} more", self.waits.len() - SHOWN)?;
        }
        if self.blocked > 0 { write!(f, "; {} more operations need these", self.blocked) } else { Ok(()) }
    }
}
