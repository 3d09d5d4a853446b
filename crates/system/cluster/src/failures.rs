//! Failures that the user wants: ranks and cards that die, and packets that are lost.

use net::Loss;
use sim::Time;

/// What fails in a run. The same failures give the same run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Failures {
    /// What dies, and when.
    pub deaths: Vec<Death>,
    /// Where packets are lost.
    pub losses: Vec<Loss>,
    /// Decides which packets are lost.
    pub seed: u64,
}

/// The death of a part of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Death {
    /// The rank.
    pub rank: u32,
    /// When it dies, in simulated time: after everything else of that time.
    pub at: Time,
    /// What dies.
    pub victim: Victim,
}

/// What dies of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Victim {
    /// The process. Its card closes the process's interfaces and goes on.
    Process,
    /// The card. Nothing leaves it and nothing reaches it any more; the process's calls fail.
    Card,
}
