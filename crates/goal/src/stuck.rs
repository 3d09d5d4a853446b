use std::fmt;

use thiserror::Error;

use crate::op::Action;
use crate::progress::Progress;
use crate::schedule::Schedule;

/// A schedule cannot finish: ranks wait for each other, or for messages that nobody sends.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("the schedule cannot finish: {done} of {operations} operations are done{}", lines(.ranks))]
pub struct Stuck {
    /// Operations that were done
    pub done: usize,
    /// All operations
    pub operations: usize,
    /// Who waits, by rank
    pub ranks: Vec<StuckRank>,
}

/// A rank that waits for ever.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StuckRank {
    /// Its number
    pub rank: u32,
    /// What it has begun and cannot complete
    pub blocked: Vec<Blocked>,
    /// How many of its operations can therefore not start
    pub held: usize,
}

/// An operation that waits for another rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blocked {
    /// Its place in the rank, from 1
    pub ordinal: u32,
    /// As in GOAL text
    pub action: String,
    /// Whether it is a receive that waits for a message; otherwise a send above S that waits for its receive
    pub is_receive: bool,
}

/// Blocked operations shown for a rank.
const SHOWN: usize = 3;

fn lines(ranks: &[StuckRank]) -> String {
    ranks.iter().map(|rank| format!("\n  {rank}")).collect()
}

impl fmt::Display for StuckRank {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rank {} waits", self.rank)?;
        for (index, Blocked { ordinal, action, is_receive }) in self.blocked.iter().take(SHOWN).enumerate() {
            let what = if *is_receive { "a message" } else { "the receive" };
            let comma = if index > 0 { "," } else { "" };
            write!(f, "{comma} for {what} of operation {ordinal} ({action})")?;
        }
        if self.blocked.len() > SHOWN {
            write!(f, ", and for {} more", self.blocked.len() - SHOWN)?;
        }
        if self.held > 0 { write!(f, "; {} more operations need these", self.held) } else { Ok(()) }
    }
}

impl Stuck {
    /// What is left when nothing happens any more; `blocked`, by number, have started and are not done.
    pub fn new(schedule: &Schedule, progress: &Progress, blocked: &[u32]) -> Stuck {
        let of_rank = |ops: &[u32]| {
            let rank = schedule.rank(ops[0]);
            let blocked = ops.iter().map(|&op| Blocked {
                ordinal: schedule.ordinal(op),
                action: schedule.action(op).to_string(),
                is_receive: matches!(schedule.action(op), Action::Recv { .. }),
            });
            let held = schedule.of_rank(rank).filter(|&op| progress.is_held(op)).count();
            StuckRank { rank, blocked: blocked.collect(), held }
        };
        let ranks = blocked.chunk_by(|&one, &other| schedule.rank(one) == schedule.rank(other)).map(of_rank).collect();
        Stuck { done: progress.count(), operations: schedule.len(), ranks }
    }
}
