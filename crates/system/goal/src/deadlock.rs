use std::fmt;

use sim::Time;
use thiserror::Error;

use crate::dependencies::DependencyTracker;
use crate::op::Action;
use crate::schedule::Schedule;

/// A schedule cannot finish: ranks wait for each other, or for messages that nobody sends.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("the schedule cannot finish: {done} of {operations} operations are done{}{}", place(self), lines(.ranks))]
pub struct Deadlock {
    /// Number of operations that were done
    pub done: usize,
    /// Number of all operations
    pub operations: usize,
    /// When the last thing happened, in models that report it
    pub at: Option<Time>,
    /// Number of messages that were dropped because nothing matched them, in models that drop messages
    pub dropped: u64,
    /// The ranks that wait, in ascending order
    pub ranks: Vec<DeadlockedRank>,
}

/// A rank that waits for ever.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadlockedRank {
    /// Its number
    pub rank: u32,
    /// The operations that have started and cannot complete
    pub waiting: Vec<Waiting>,
    /// Number of its operations that are still blocked
    pub blocked: usize,
}

/// An operation that has started and cannot complete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// Its place in the rank, from 1
    pub ordinal: u32,
    /// The operation as in GOAL text
    pub action: String,
    /// What would complete it
    pub cause: WaitCause,
}

/// What an operation waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitCause {
    /// A receive waits for a message.
    Message,
    /// A send that is not eager waits for its receive.
    Receive,
    /// A test waits for a counter of the card.
    Counter {
        /// Its number
        counter: u32,
        /// Events that it has counted
        successes: u64,
        /// Failures that it has counted
        failures: u64,
        /// The number of events that the test waits for
        target: u64,
    },
}

impl WaitCause {
    /// Returns what a send or a receive waits for.
    pub fn of(action: Action<'_>) -> WaitCause {
        if matches!(action, Action::Recv { .. }) { WaitCause::Message } else { WaitCause::Receive }
    }
}

/// Number of waiting operations that are shown for a rank.
const SHOWN: usize = 3;

fn place(Deadlock { at, dropped, .. }: &Deadlock) -> String {
    let at = at.map(|at| format!(" at {at}")).unwrap_or_default();
    match dropped {
        0 => at,
        _ => format!("{at}; {dropped} messages found no entry and were dropped"),
    }
}

fn lines(ranks: &[DeadlockedRank]) -> String {
    ranks.iter().map(|rank| format!("\n  {rank}")).collect()
}

impl fmt::Display for DeadlockedRank {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rank {} waits", self.rank)?;
        for (index, Waiting { ordinal, action, cause }) in self.waiting.iter().take(SHOWN).enumerate() {
            let comma = if index > 0 { "," } else { "" };
            write!(f, "{comma} for {cause} of operation {ordinal} ({action})")?;
        }
        if self.waiting.len() > SHOWN {
            write!(f, ", and for {} more", self.waiting.len() - SHOWN)?;
        }
        if self.blocked > 0 { write!(f, "; {} more operations need these", self.blocked) } else { Ok(()) }
    }
}

impl fmt::Display for WaitCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WaitCause::Message => f.write_str("a message"),
            WaitCause::Receive => f.write_str("the receive"),
            WaitCause::Counter { counter, successes, failures, target } => {
                write!(f, "counter {counter}, which is at {successes}")?;
                if *failures > 0 {
                    write!(f, " ({failures} failures)")?;
                }
                write!(f, " of {target},")
            }
        }
    }
}

impl Deadlock {
    /// Describes a run in which nothing happens any more. `waiting`, in ascending order, are the operations that have
    /// started and are not done.
    pub fn new(schedule: &Schedule, dependencies: &DependencyTracker, waiting: &[(u32, WaitCause)]) -> Deadlock {
        let of_rank = |waiting: &[(u32, WaitCause)]| {
            let rank = schedule.rank(waiting[0].0);
            let waiting = waiting.iter().map(|&(op, cause)| Waiting {
                ordinal: schedule.ordinal(op),
                action: schedule.action(op).to_string(),
                cause,
            });
            let blocked = schedule.of_rank(rank).filter(|&op| dependencies.is_blocked(op)).count();
            DeadlockedRank { rank, waiting: waiting.collect(), blocked }
        };
        let ranks = waiting.chunk_by(|one, other| schedule.rank(one.0) == schedule.rank(other.0)).map(of_rank);
        Deadlock {
            done: dependencies.done_count(),
            operations: schedule.len(),
            at: None,
            dropped: 0,
            ranks: ranks.collect(),
        }
    }
}
