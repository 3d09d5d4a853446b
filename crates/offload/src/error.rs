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
    /// Ranks wait for each other, or for messages that nobody sends.
    #[error("the schedule cannot finish: {done} of {operations} operations are done at {at}{}{}", lost(*.dropped), lines(.ranks))]
    Stuck {
        /// Operations that were done
        done: usize,
        /// All operations
        operations: usize,
        /// Simulated time
        at: Time,
        /// Messages that no entry took
        dropped: u64,
        /// Who waits, by rank
        ranks: Vec<StuckRank>,
    },
    /// More time than the clock can count.
    #[error("{0} ends after more than 2^63 picoseconds (106 days) of simulated time")]
    TooLate(String),
    /// So many nodes are too many.
    #[error(transparent)]
    Network(#[from] net::NetError),
}

/// A rank that waits for ever.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StuckRank {
    /// Its number
    pub rank: u32,
    /// What it waits for, in words
    pub waits: Vec<String>,
    /// How many of its operations can therefore not start
    pub held: usize,
}

/// Waits shown for a rank.
const SHOWN: usize = 3;

fn lines(ranks: &[StuckRank]) -> String {
    ranks.iter().map(|rank| format!("\n  {rank}")).collect()
}

fn lost(messages: u64) -> String {
    if messages > 0 { format!("; {messages} messages found no entry and were dropped") } else { String::new() }
}

impl fmt::Display for StuckRank {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rank {} waits {}", self.rank, self.waits[..self.waits.len().min(SHOWN)].join(", "))?;
        if self.waits.len() > SHOWN {
            write!(f, ", and for {} more", self.waits.len() - SHOWN)?;
        }
        if self.held > 0 { write!(f, "; {} more operations need these", self.held) } else { Ok(()) }
    }
}
