//! Data of threads that run in their own code and do not hold simulated time back ([`super::free_running`]).

use super::polling_loop::PollingLoop;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// The shortest time between the inspections of a thread that is free_running.
const SHORTEST_REST: Duration = Duration::from_millis(20);
/// The time for which a thread runs whose loop can end by itself, after it was stopped for long.
const TURN: Duration = Duration::from_millis(20);

/// A thread that computes, as an inspection has found.
pub(super) struct Computing {
    pub(super) tid: u32,
    /// The address of the instruction at which the inspection ended; 0 if it could not be inspected.
    pub(super) at: u64,
    /// The addresses of the instructions that were seen.
    pub(super) code: BTreeSet<u64>,
    /// True if the thread may wait for another one.
    pub(super) is_suspect: bool,
}

/// The state of a thread that is free_running.
pub(super) struct FreeRunState {
    pub(super) inspect_at: Instant,
    pub(super) rest: Duration,
    /// The number of its waits when it was last seen blocked.
    pub(super) blocked: Option<u64>,
    /// The loop in which it was stopped, if it is only to run for a moment.
    pub(super) turn: Option<PollingLoop>,
}

impl FreeRunState {
    pub(super) fn new(turn: Option<PollingLoop>) -> FreeRunState {
        let rest = if turn.is_some() { TURN } else { SHORTEST_REST };
        FreeRunState { inspect_at: Instant::now() + rest, rest, blocked: None, turn }
    }
}

/// A thread that no longer holds simulated time back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FreeRunReport {
    /// The rank.
    pub rank: usize,
    /// The number of the thread in the order in which those of the process were made, from 0 on.
    pub thread: usize,
    /// The place in its code: a function with an offset, and the file that has it.
    pub place: String,
    /// The CPU time that it had used, in milliseconds.
    pub used_ms: u64,
}
