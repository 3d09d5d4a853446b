// SPDX-License-Identifier: Apache-2.0
//! Data of threads that run user code without holding back simulated time ([`super::free_running`]).

use super::polling_loop::PollingLoop;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// Minimum time between inspections of a free-running thread.
const SHORTEST_REST: Duration = Duration::from_millis(20);
/// Time for which a long-stopped thread runs freely if its loop can end by itself.
const TURN: Duration = Duration::from_millis(20);

/// A thread that an inspection found computing.
pub(super) struct Computing {
    pub(super) tid: u32,
    /// Address of the instruction at which the inspection ended; 0 if inspection failed.
    pub(super) at: u64,
    /// Addresses of the observed instructions.
    pub(super) code: BTreeSet<u64>,
    /// True if the thread may wait for another one.
    pub(super) is_suspect: bool,
}

/// State of a free-running thread.
pub(super) struct FreeRunState {
    pub(super) inspect_at: Instant,
    pub(super) rest: Duration,
    /// Wait count when it was last seen blocked.
    pub(super) blocked: Option<u64>,
    /// Loop in which it was stopped, if it is to run only briefly.
    pub(super) turn: Option<PollingLoop>,
}

impl FreeRunState {
    pub(super) fn new(turn: Option<PollingLoop>) -> FreeRunState {
        let rest = if turn.is_some() { TURN } else { SHORTEST_REST };
        FreeRunState { inspect_at: Instant::now() + rest, rest, blocked: None, turn }
    }
}

/// Report of a thread that no longer holds back simulated time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FreeRunReport {
    /// Rank number.
    pub rank: usize,
    /// Index of the thread in creation order within its process, from 0.
    pub thread: usize,
    /// Code position: function with offset, and file.
    pub place: String,
    /// CPU time used, in milliseconds.
    pub used_ms: u64,
}
