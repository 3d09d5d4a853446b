// SPDX-License-Identifier: Apache-2.0
//! Threads of ranks that are stopped in polling loops.

use super::polling_loop::{Location, Polling, PollingLoop};
use super::rank_state::{Job, PollingThread, SilentPeriod};
use super::signals;
use super::step_trace::StepTrace;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

impl Job {
    /// Returns the locations polled by the stopped loops of a rank.
    pub fn polled(&self, rank: usize) -> impl Iterator<Item = Location> {
        self.ranks[rank].stopped.iter().flat_map(|poller| poller.polls.reads.keys().copied())
    }

    /// Returns the kind of polling of a rank, or `None` if it does not poll.
    pub fn polling(&self, rank: usize) -> Option<Polling> {
        self.ranks[rank].silence.polling
    }

    /// Returns a polling rank with a write to a polled location since it last ran. Each rank is returned once.
    pub fn touched(&mut self) -> Option<usize> {
        self.touched.pop_first()
    }

    /// Records that threads of a rank run. Stopped threads stay stopped until their polled locations change.
    pub(super) fn mark_running(&mut self, rank: usize) {
        self.end_batch();
        self.write_pages(rank);
        self.ranks[rank].pages.forget();
        self.forget_silence(rank);
    }

    /// Records that a rank made a call.
    pub(super) fn forget_silence(&mut self, rank: usize) {
        self.touched.remove(&rank);
        self.asleep.retain(|&other| other != rank);
        self.ranks[rank].silence = SilentPeriod::default();
    }

    /// Releases all stopped threads of a rank.
    pub(super) fn release_all(&mut self, rank: usize) {
        self.mark_running(rank);
        self.ranks[rank].stopped.clear();
    }

    /// Returns the kind of polling of a rank whose threads all wait; `None` if none of them is stopped in a loop.
    pub(super) fn kind_of_polling(&self, rank: usize) -> Option<Polling> {
        let stopped = &self.ranks[rank].stopped;
        let counts = stopped.iter().any(|poller| !poller.polls.endless);
        (!stopped.is_empty()).then_some(if counts { Polling::Counting } else { Polling::Stuck })
    }

    /// Drops stopped threads of a rank that were killed, so that the kernel can end its process.
    pub(super) fn forget_killed_threads(&mut self, rank: usize) {
        self.ranks[rank].stopped.retain(|poller| !poller.thread.has_ended());
    }

    /// Records a write of `length` bytes to a rank's memory at `address`.
    pub(super) fn note_write(&mut self, rank: usize, address: u64, length: u64) {
        let overlaps = |location: Location| {
            location.address < address.saturating_add(length)
                && address < location.address.saturating_add(location.length)
        };
        // During a posted call, the rank checks its memory when the call completes.
        let polls = self.polling(rank).is_some() && self.ranks[rank].posted.is_none();
        if polls && self.polled(rank).any(overlaps) {
            self.touched.insert(rank);
            self.ranks[rank].silence.is_written = true;
        }
    }

    /// Returns a predicate that is true once another event needs attention, so that the end of a step is no longer
    /// awaited.
    pub(super) fn disturbed(&self, rank: usize) -> impl Fn() -> bool {
        let seen = self.shared.doorbell();
        move || {
            self.shared.doorbell() != seen
                || self.pmi.has_input(rank)
                || signals::received().is_some()
                || self.deadline.is_some_and(|deadline| deadline <= Instant::now())
        }
    }

    /// Releases the stopped threads of a rank whose polled locations changed, and returns true if there were any. A
    /// thread that keeps polling in the same loop is stopped again. Locations that the loop itself writes are compared
    /// only if all threads of the rank wait (`all_wait`), because another thread in the same loop changes them
    /// temporarily.
    pub(super) fn release_changed(&mut self, rank: usize, all_wait: bool) -> bool {
        let changed = |poller: &PollingThread| poller.thread.has_changed(&poller.polls, all_wait);
        if !self.ranks[rank].stopped.iter().any(changed) {
            return false;
        }
        let mut stopped = std::mem::take(&mut self.ranks[rank].stopped);
        let disturbed = self.disturbed(rank);
        stopped.retain_mut(|poller| !changed(poller) || poller.polls_again(&disturbed));
        drop(disturbed);
        self.ranks[rank].stopped = stopped;
        let silence = &mut self.ranks[rank].silence;
        (silence.since, silence.inspect_after) = (None, Duration::ZERO);
        true
    }
}

/// Returns the locations that a loop polls.
pub(super) fn locations(polls: &PollingLoop) -> BTreeSet<Location> {
    polls.reads.keys().copied().collect()
}

impl PollingThread {
    /// Steps the thread. Returns true if it keeps polling in the same loop.
    pub(super) fn polls_again(&mut self, disturbed: &dyn Fn() -> bool) -> bool {
        let again = StepTrace::new(&self.thread, 0).find_loop(&self.thread, Some(&self.polls.code), disturbed).ok();
        again.filter(|again| again.endless == self.polls.endless).map(|again| self.polls = again).is_some()
    }
}
