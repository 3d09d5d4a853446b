// SPDX-License-Identifier: Apache-2.0
//! Model-independent state of a run.

use std::error::Error;
use std::ops::Range;

use sim::Time;

use crate::deadlock::{Deadlock, WaitCause};
use crate::dependencies::DependencyTracker;
use crate::error::RunError;
use crate::matching::Matching;
use crate::op::{Kind, Op};
use crate::outcome::Outcome;
use crate::run_progress::RunProgress;
use crate::schedule::Schedule;

/// Model-independent state of a run.
#[derive(Debug)]
pub(crate) struct RunState<'a> {
    pub schedule: &'a Schedule,
    pub ops: &'a [Op],
    /// Executed ranks.
    ranks: Range<u32>,
    pub dependencies: DependencyTracker<'a>,
    pub matching: Matching<'a>,
    /// S: maximum size in bytes of a message that does not wait for its receive.
    eager: u64,
    /// Number of sent messages.
    pub messages: u64,
    /// Empty list for [`RunState::take_ready`], kept for its allocation.
    spare: Vec<u32>,
}

/// Returns an error for a schedule with operations of a Portals or sPIN card.
pub(crate) fn refuse_card_operations<M: Error>(schedule: &Schedule) -> Result<(), RunError<M>> {
    match schedule.first_of_card() {
        Some(op) => Err(RunError::NeedsCard(schedule.describe(op))),
        None => Ok(()),
    }
}

impl<'a> RunState<'a> {
    /// Creates the state of a run of `ranks` before its start. See [`DependencyTracker::new`] for `with_ready_times`.
    pub fn new(
        schedule: &'a Schedule,
        ranks: Range<u32>,
        eager: u64,
        with_ready_times: bool,
        progress: RunProgress,
    ) -> RunState<'a> {
        RunState {
            schedule,
            ops: &schedule.ops,
            dependencies: DependencyTracker::of_ranks(schedule, ranks.clone(), with_ready_times, progress),
            ranks,
            matching: Matching::new(schedule),
            eager,
            messages: 0,
            spare: Vec::new(),
        }
    }

    /// Returns the executed ranks.
    #[inline]
    pub fn ranks(&self) -> Range<u32> {
        self.ranks.clone()
    }

    /// Returns the size in bytes of a send's message, or of a receive's buffer.
    #[inline]
    pub fn bytes(&self, op: u32) -> u64 {
        self.schedule.bytes(&self.ops[op as usize])
    }

    /// Returns true if the message of a send does not wait for its receive.
    #[inline]
    pub fn is_eager(&self, op: u32) -> bool {
        self.bytes(op) <= self.eager
    }

    /// Reserves memory for the receives without dependencies, which are posted at the start. Their number is estimated
    /// from a sample of the ranks.
    pub fn reserve_matching(&mut self) {
        const SAMPLE: usize = 256;
        let step = self.ranks.len().div_ceil(SAMPLE).max(1);
        let is_first = |&op: &u32| !self.dependencies.is_blocked(op) && self.ops[op as usize].kind() == Kind::Recv;
        let sample = self.ranks.clone().step_by(step);
        let receives: usize = sample.map(|rank| self.schedule.of_rank(rank).filter(is_first).count()).sum();
        self.matching.reserve(receives * step);
    }

    /// Posts a receive. Returns the send of the first matching message that has arrived, if any.
    #[inline(always)]
    pub fn post(&mut self, receive: u32) -> Option<u32> {
        self.matching.post(receive, &mut self.dependencies.operations)
    }

    /// Matches an arrived message of a send. Returns the first matching posted receive, if any.
    #[inline(always)]
    pub fn arrive(&mut self, send: u32) -> Option<u32> {
        self.matching.arrive(send, &mut self.dependencies.operations)
    }

    /// Returns true if an operation has become ready and is not yet taken.
    #[inline]
    pub fn has_ready(&self) -> bool {
        !self.dependencies.ready.is_empty()
    }

    /// Takes the operations that became ready, in the order of [`DependencyTracker::take_ready`]. Pass the list to
    /// [`RunState::recycle`] to reuse its memory.
    #[inline]
    pub fn take_ready(&mut self) -> Vec<u32> {
        let mut ready = std::mem::take(&mut self.spare);
        self.dependencies.take_ready(&mut ready);
        ready
    }

    /// Recycles a list of [`RunState::take_ready`].
    #[inline]
    pub fn recycle(&mut self, ready: Vec<u32>) {
        self.spare = ready;
    }

    /// Returns the error for an operation that exceeds the range of the clock.
    #[cold]
    pub fn too_late<M: Error>(&self, op: u32, bits: u32) -> RunError<M> {
        RunError::TooLate { what: self.schedule.describe(op), bits }
    }

    /// Ends a run without further events.
    ///
    /// # Errors
    /// If unfinished operations are left.
    pub fn finish(self, ends: Vec<Time>) -> Result<Outcome<()>, Deadlock> {
        let unmatched = self.matching.unmatched(&self.dependencies.operations);
        let operations: usize = self.ranks.clone().map(|rank| self.schedule.of_rank(rank).len()).sum();
        if self.dependencies.done_count() < operations {
            let waits = |&op: &u32| self.ops[op as usize].kind() == Kind::Recv || !self.is_eager(op);
            let cause = |op: u32| (op, WaitCause::of(self.schedule.action(op)));
            let waiting: Vec<_> = unmatched.into_iter().filter(waits).map(cause).collect();
            return Err(Deadlock::new(self.schedule, &self.dependencies, &waiting));
        }
        Ok(Outcome { ends, events: operations as u64 + self.messages, unreceived: unmatched, details: () })
    }
}
