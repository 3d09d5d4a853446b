// SPDX-License-Identifier: Apache-2.0
//! Ranks of a live run (`spinrun --live`): all of them run at the same time, in real time.
//!
//! A reply resumes a rank without a wait for its next pause. The ranks ring the doorbell of the shared memory with each
//! call, and so do signals and PMI requests, so one look at the doorbell tells if any rank needs attention.

use super::call::Pause;
use super::output::Output;
use super::pauses::abort_status;
use super::rank_state::{Job, Process};
use super::{signals, threads};
use std::time::{Duration, Instant};

impl Job {
    /// Returns the beginning of a live run; `None` for a simulated one.
    pub fn live_since(&self) -> Option<Instant> {
        self.live.as_ref().map(|live| live.since)
    }

    /// Returns the next pause of a live rank, with the rank: a call, an end, or a violation of the protocol. Returns
    /// `None` if no rank has one now.
    pub fn next_live_pause(&mut self) -> Option<(usize, Pause)> {
        let bell = self.shared.doorbell();
        if let Some(signal) = signals::received() {
            return Some((0, Pause::Interrupted { signal }));
        }
        if self.deadline.is_some_and(|deadline| deadline <= Instant::now()) {
            return Some((0, Pause::TimedOut));
        }
        let live = self.live.as_ref()?;
        if live.seen == Some(bell) {
            return None;
        }
        let ranks = (live.first..self.ranks.len()).chain(0..live.first);
        let found = ranks.into_iter().find_map(|rank| Some((rank, self.pause_of_live_rank(rank)?)));
        let children = signals::children();
        let has_new_ended = children != self.children_seen;
        let mut ended = || (0..self.ranks.len()).find_map(|rank| Some((rank, self.reap(rank)?)));
        let found = match found {
            None if has_new_ended => ended().map(|(rank, status)| (rank, Pause::Exited { rank, status })),
            found => found,
        };
        let live = self.live.as_mut()?;
        match &found {
            Some((rank, _)) => live.first = (rank + 1) % self.ranks.len(),
            None => (live.seen, self.children_seen) = (Some(bell), children),
        }
        found
    }

    fn pause_of_live_rank(&mut self, rank: usize) -> Option<Pause> {
        if !matches!(self.ranks[rank].process, Process::Alive(_)) {
            return None;
        }
        self.pmi.serve(rank);
        if let Some(message) = self.pmi.fault(rank) {
            return Some(Pause::Refused { rank, message: format!("PMI: {message}") });
        }
        if let Some(code) = self.pmi.aborted(rank) {
            return Some(Pause::Exited { rank, status: abort_status(code) });
        }
        if let Some(message) = self.check_mpi_of_first_rank(rank) {
            return Some(Pause::Refused { rank, message });
        }
        let call = self.pending(rank).map(Pause::Call);
        call.or_else(|| self.refused.take().map(|(rank, message)| Pause::Refused { rank, message }))
    }

    /// Sleeps until a live rank may have a pause to hand out, for at most `limit`. Returns true if nothing rang.
    pub fn await_live_pause(&mut self, limit: Option<Duration>) -> bool {
        let until = limit.map(|limit| Instant::now() + limit);
        loop {
            let Some(seen) = self.live.as_ref().and_then(|live| live.seen) else { return false };
            if self.shared.watch_doorbell(seen) || self.shared.doorbell() != seen {
                return false;
            }
            for rank in 0..self.ranks.len() {
                self.drain(rank);
            }
            let left = |at: Instant| at.saturating_duration_since(Instant::now());
            let left = [until.map(left), self.deadline.map(left)].into_iter().flatten().min();
            if left == Some(Duration::ZERO) {
                return true;
            }
            let output = self.output.is_some().then_some(Output::PERIOD);
            self.shared.sleep(seen, [left, output].into_iter().flatten().min());
        }
    }

    /// Returns true if each thread of all live ranks waits for the reply to a call, or for another one of its process, so
    /// that only a card can let one continue.
    pub fn all_wait_for_cards(&mut self) -> bool {
        (0..self.ranks.len()).all(|rank| match self.ranks[rank].process {
            Process::Ended(_) => true,
            _ => self.ranks[rank].inside != 0 && threads::all_wait(self, rank),
        })
    }

    /// Returns the pause of a rank that was started or resumed.
    pub(super) fn pause_of_running(&mut self, rank: usize) -> Pause {
        if self.live.is_some() { Pause::Runs } else { self.wait(rank) }
    }
}
