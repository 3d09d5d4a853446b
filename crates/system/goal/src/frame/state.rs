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

/// The state of a run that does not depend on the model.
#[derive(Debug)]
pub(crate) struct RunState<'a> {
    pub schedule: &'a Schedule,
    pub ops: &'a [Op],
    /// The ranks that are executed.
    ranks: Range<u32>,
    pub dependencies: DependencyTracker<'a>,
    pub matching: Matching<'a>,
    /// S: size in bytes of the largest message that does not wait for its receive.
    eager: u64,
    /// Number of messages that were sent.
    pub messages: u64,
    /// A list that is empty, for [`RunState::take_ready`].
    spare: Vec<u32>,
}

/// Refuses a schedule that has operations of a Portals or sPIN card.
pub(crate) fn refuse_card_operations<M: Error>(schedule: &Schedule) -> Result<(), RunError<M>> {
    match schedule.first_of_card() {
        Some(op) => Err(RunError::NeedsCard(schedule.describe(op))),
        None => Ok(()),
    }
}

impl<'a> RunState<'a> {
    /// Creates the state of a run of `ranks` that has not begun. See [`DependencyTracker::new`] for `with_ready_times`.
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

    /// Returns the ranks that are executed.
    #[inline]
    pub fn ranks(&self) -> Range<u32> {
        self.ranks.clone()
    }

    /// Returns the size in bytes of the message of a send, or of the buffer of a receive.
    #[inline]
    pub fn bytes(&self, op: u32) -> u64 {
        self.schedule.bytes(&self.ops[op as usize])
    }

    /// Returns whether the message of a send does not wait for its receive.
    #[inline]
    pub fn is_eager(&self, op: u32) -> bool {
        self.bytes(op) <= self.eager
    }

    /// Makes room for the receives that depend on nothing, which are posted at the beginning. Their number is estimated from a
    /// sample of the ranks.
    pub fn reserve_matching(&mut self) {
        const SAMPLE: usize = 256;
        let step = self.ranks.len().div_ceil(SAMPLE).max(1);
        let is_first = |&op: &u32| !self.dependencies.is_blocked(op) && self.ops[op as usize].kind() == Kind::Recv;
        let sample = self.ranks.clone().step_by(step);
        let receives: usize = sample.map(|rank| self.schedule.of_rank(rank).filter(is_first).count()).sum();
        self.matching.reserve(receives * step);
    }

    /// Posts a receive. Returns the send of the first message that has arrived for it, if any.
    #[inline(always)]
    pub fn post(&mut self, receive: u32) -> Option<u32> {
        self.matching.post(receive, &mut self.dependencies.words)
    }

    /// Matches the message of a send that has arrived. Returns the first receive that was posted for it, if any.
    #[inline(always)]
    pub fn arrive(&mut self, send: u32) -> Option<u32> {
        self.matching.arrive(send, &mut self.dependencies.words)
    }

    /// Returns whether any operation has become ready and has not been taken.
    #[inline]
    pub fn has_ready(&self) -> bool {
        !self.dependencies.ready.is_empty()
    }

    /// Takes the operations that have become ready, in the order of [`DependencyTracker::take_ready`]. The list should be
    /// given back with [`RunState::recycle`], so that its memory is used again.
    #[inline]
    pub fn take_ready(&mut self) -> Vec<u32> {
        let mut ready = std::mem::take(&mut self.spare);
        self.dependencies.take_ready(&mut ready);
        ready
    }

    /// Gives back a list of [`RunState::take_ready`].
    #[inline]
    pub fn recycle(&mut self, ready: Vec<u32>) {
        self.spare = ready;
    }

    /// Returns the error for an operation that ends beyond what the clock can count.
    #[cold]
    pub fn too_late<M: Error>(&self, op: u32, bits: u32) -> RunError<M> {
        RunError::TooLate { what: self.schedule.describe(op), bits }
    }

    /// Ends a run in which nothing happens any more.
    ///
    /// # Errors
    /// When operations are left that are not done.
    pub fn finish<D>(self, ends: Vec<Time>, details: impl FnOnce(&[Time]) -> D) -> Result<Outcome<D>, Deadlock> {
        let unmatched = self.matching.unmatched(&self.dependencies.words);
        let operations: usize = self.ranks.clone().map(|rank| self.schedule.of_rank(rank).len()).sum();
        if self.dependencies.done_count() < operations {
            let waits = |&op: &u32| self.ops[op as usize].kind() == Kind::Recv || !self.is_eager(op);
            let cause = |op: u32| (op, WaitCause::of(self.schedule.action(op)));
            let waiting: Vec<_> = unmatched.into_iter().filter(waits).map(cause).collect();
            return Err(Deadlock::new(self.schedule, &self.dependencies, &waiting));
        }
        let details = details(&ends);
        Ok(Outcome { ends, events: operations as u64 + self.messages, unreceived: unmatched, details })
    }
}
