// SPDX-License-Identifier: Apache-2.0
//! Injected failures: dying ranks and cards, and lost packets.

use net::Loss;
use sim::Time;

/// Failures of a run. Equal failures give equal runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Failures {
    /// Deaths of processes and cards.
    pub deaths: Vec<Death>,
    /// Packet losses.
    pub losses: Vec<Loss>,
    /// Seed for the choice of lost packets.
    pub seed: u64,
}

/// Death of a part of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Death {
    /// Rank.
    pub rank: u32,
    /// Simulated time of the death, after all other events of that time.
    pub at: Time,
    /// Dying part.
    pub victim: Victim,
}

/// Part of a node that dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Victim {
    /// The process. Its card closes the process's interfaces and continues.
    Process,
    /// The card. It sends and receives nothing more; the process's calls fail.
    Card,
}
