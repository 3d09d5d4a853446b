// SPDX-License-Identifier: Apache-2.0
//! Report of a deadlocked schedule.

use std::fmt;

use sim::Time;
use thiserror::Error;

use crate::dependencies::DependencyTracker;
use crate::op::Action;
use crate::schedule::Schedule;

/// Error of a schedule that cannot finish: ranks wait for each other, or for messages that no rank sends.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("the schedule cannot finish: {done} of {operations} operations are done{}{}", place(self), lines(.ranks))]
pub struct Deadlock {
    /// Number of finished operations
    pub done: usize,
    /// Number of all operations
    pub operations: usize,
    /// Time of the last event, in models that report it
    pub at: Option<Time>,
    /// Number of messages dropped without a match, in models that drop messages
    pub dropped: u64,
    /// Waiting ranks, in ascending order
    pub ranks: Vec<DeadlockedRank>,
}

/// A rank that waits forever.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadlockedRank {
    /// Rank
    pub rank: u32,
    /// Started operations that cannot complete
    pub waiting: Vec<Waiting>,
    /// Number of blocked operations
    pub blocked: usize,
}

/// A started operation that cannot complete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// Index in the rank, from 1
    pub ordinal: u32,
    /// Operation as in GOAL text
    pub action: String,
    /// Missing event
    pub cause: WaitCause,
}

/// Cause of an operation's wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitCause {
    /// A receive waits for a message.
    Message,
    /// A rendezvous send waits for its receive.
    Receive,
    /// A test waits for a counter of the card.
    Counter {
        /// Number of the counter
        counter: u32,
        /// Counted successes
        successes: u64,
        /// Counted failures
        failures: u64,
        /// Number of successes that the test waits for
        target: u64,
    },
}

impl WaitCause {
    /// Returns the wait cause of a send or a receive.
    pub fn of(action: Action<'_>) -> WaitCause {
        if matches!(action, Action::Recv { .. }) { WaitCause::Message } else { WaitCause::Receive }
    }
}

/// Maximum number of waiting operations shown for a rank.
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
    /// Describes a stalled run. `waiting` are the started, unfinished operations in ascending order.
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
