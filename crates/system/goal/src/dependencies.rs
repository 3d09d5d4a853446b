// SPDX-License-Identifier: Apache-2.0
//! Tracking of dependencies between operations.

use std::ops::Range;

use sim::Time;
use sim::memory::prefetch;

use crate::op::{ON_START, Op};
use crate::operation_table::OperationTable;
use crate::run_progress::RunProgress;
use crate::schedule::Schedule;

/// Maximum number of ready operations for insertion sort.
const FEW: usize = 8;

/// Maximum batch size for adding starts and ends to [`RunProgress`].
const BATCH: usize = 1 << 10;

/// Tracks the started and finished operations of a schedule, and their dependents that become ready.
///
/// An executor first takes the operations without dependencies with [`DependencyTracker::take_first`]. It reports the
/// [start](DependencyTracker::started) and the [end](DependencyTracker::done) of each operation, and then takes the
/// operations that became ready with [`DependencyTracker::take_ready`].
#[derive(Debug)]
pub struct DependencyTracker<'a> {
    ops: &'a [Op],
    edges: &'a [u32],
    /// True if any operation waits for the start of another.
    has_start_dependencies: bool,
    pub(crate) operations: OperationTable,
    /// Time at which the last dependency of each operation was satisfied, in picoseconds; empty unless requested.
    ready_times: Vec<u64>,
    /// Operations that became ready since the last take.
    pub(crate) ready: Vec<u32>,
    done: usize,
    /// Number of starts and ends.
    steps: usize,
    /// Number of steps, a power of two, between updates of `progress`.
    batch: usize,
    progress: RunProgress,
}

impl<'a> DependencyTracker<'a> {
    /// Creates the tracker of a run before its start. `with_ready_times` keeps the times passed to
    /// [`DependencyTracker::started`] and [`DependencyTracker::done`], which takes 8 bytes per operation. `progress`
    /// shows the run.
    pub fn new(schedule: &'a Schedule, with_ready_times: bool, progress: RunProgress) -> DependencyTracker<'a> {
        DependencyTracker::of_ranks(schedule, 0..schedule.ranks(), with_ready_times, progress)
    }

    /// Creates a tracker for the operations of `ranks` only.
    pub(crate) fn of_ranks(
        schedule: &'a Schedule,
        ranks: Range<u32>,
        with_ready_times: bool,
        progress: RunProgress,
    ) -> DependencyTracker<'a> {
        let first_op = |rank: u32| schedule.ranks[rank as usize] as usize;
        let first_edge = |rank: u32| schedule.ops[first_op(rank)].edges as usize;
        let mut operations = OperationTable::new(schedule.len(), first_op(ranks.start)..first_op(ranks.end));
        let mut has_start_dependencies = false;
        for edge in &schedule.edges[first_edge(ranks.start)..first_edge(ranks.end)] {
            has_start_dependencies |= edge & ON_START != 0;
            operations.add_dependency(edge & !ON_START);
        }
        DependencyTracker {
            ops: &schedule.ops,
            edges: &schedule.edges,
            has_start_dependencies,
            operations,
            ready_times: if with_ready_times { vec![0; schedule.len()] } else { Vec::new() },
            ready: Vec::new(),
            done: 0,
            steps: 0,
            batch: (schedule.len() / BATCH).next_power_of_two().min(BATCH),
            progress,
        }
    }

    /// Reports starts and ends of operations in `progress` from now on.
    pub fn report_to(&mut self, progress: RunProgress) {
        self.progress = progress;
    }

    /// Returns true if the operation depends on another that has not yet started or finished.
    #[inline]
    pub fn is_blocked(&self, op: u32) -> bool {
        self.operations.is_blocked(op)
    }

    /// Replaces the contents of `first` by the operations of `rank` without dependencies: sends before receives before
    /// calculations. Must be called before any of them executes, as that unblocks others.
    pub fn take_first(&self, rank: Range<u32>, first: &mut Vec<u32>) {
        first.clear();
        first.extend(rank.filter(|&op| !self.is_blocked(op)));
        first.sort_by_key(|&op| self.ops[op as usize].kind());
    }

    /// Returns the latest time at which a dependency of the operation was satisfied; zero without ready times.
    #[inline]
    pub fn ready_at(&self, op: u32) -> Time {
        Time::from_ps(self.ready_times.get(op as usize).copied().unwrap_or(0))
    }

    /// Raises [`DependencyTracker::ready_at`] to at least `at`.
    #[inline]
    pub fn not_before(&mut self, op: u32, at: Time) {
        if let Some(ready) = self.ready_times.get_mut(op as usize) {
            *ready = (*ready).max(at.as_ps());
        }
    }

    #[inline]
    fn edges_of(&self, op: u32) -> &'a [u32] {
        let op = op as usize;
        &self.edges[self.ops[op].edges as usize..self.ops[op + 1].edges as usize]
    }

    /// Returns true if any operation waits for the start of this one.
    #[inline]
    pub(crate) fn unblocks_on_start(&self, op: u32) -> bool {
        self.has_start_dependencies && self.edges_of(op).first().is_some_and(|edge| edge & ON_START != 0)
    }

    /// Records the start of an operation, which satisfies every `irequires` on it. Must be called once, before
    /// [`DependencyTracker::done`].
    #[inline(always)]
    pub fn started(&mut self, op: u32, at: Time) {
        self.step();
        if !self.has_start_dependencies {
            return;
        }
        for edge in self.edges_of(op).iter().take_while(|edge| *edge & ON_START != 0) {
            self.satisfy(edge & !ON_START, at);
        }
    }

    /// Prefetches data for the operation `ahead` places behind this one. Ranks execute their operations nearly in
    /// order, but too many ranks interleave for the hardware prefetcher.
    #[inline(always)]
    pub(crate) fn prefetch(&self, op: u32, ahead: usize) {
        let op = op as usize;
        prefetch(self.ops.as_ptr().wrapping_add(op + ahead));
        self.operations.prefetch(op + ahead);
        prefetch(self.edges.as_ptr().wrapping_add(self.ops[op].edges as usize + ahead));
    }

    /// Prefetches the list of dependents of an operation.
    #[inline(always)]
    pub(crate) fn prefetch_dependents(&self, record: &Op) {
        prefetch(self.edges.as_ptr().wrapping_add(record.edges as usize));
    }

    /// Prefetches the dependency count of an operation's first dependent, after the list of dependents is prefetched.
    #[inline(always)]
    pub(crate) fn prefetch_counts(&self, record: &Op) {
        if let Some(edge) = self.edges.get(record.edges as usize) {
            let op = (edge & !ON_START) as usize;
            self.operations.prefetch(op);
            prefetch(self.ops.as_ptr().wrapping_add(op));
        }
    }

    /// Returns true if any operation waits for this one.
    #[inline]
    pub(crate) fn has_dependents(&self, op: u32) -> bool {
        !self.edges_of(op).is_empty()
    }

    /// Records the end of an operation without dependents. Must be called once, instead of [`DependencyTracker::done`].
    #[inline]
    pub(crate) fn done_alone(&mut self) {
        self.done += 1;
        self.step();
    }

    /// Records the end of an operation, which satisfies every `requires` on it. Must be called once.
    #[inline]
    pub fn done(&mut self, op: u32, at: Time) {
        self.done_alone();
        for &edge in self.edges_of(op) {
            if !self.has_start_dependencies || edge & ON_START == 0 {
                self.satisfy(edge, at);
            }
        }
    }

    #[inline(always)]
    fn step(&mut self) {
        self.steps += 1;
        if self.steps & (self.batch - 1) == 0 {
            self.progress.add(self.batch as u64);
        }
    }

    #[inline]
    fn satisfy(&mut self, op: u32, at: Time) {
        self.not_before(op, at);
        if self.operations.satisfy_dependency(op) {
            self.ready.push(op);
        }
    }

    /// Replaces the contents of `ready` by the operations that became ready since the last call: rank by rank, sends
    /// before receives before calculations, otherwise in the order in which they became ready.
    #[inline]
    pub fn take_ready(&mut self, ready: &mut Vec<u32>) {
        ready.clear();
        if self.ready.is_empty() {
            return;
        }
        std::mem::swap(ready, &mut self.ready);
        let order = |op: u32| {
            let record = &self.ops[op as usize];
            (record.rank, record.kind())
        };
        // Nearly always only a few operations are ready.
        for end in 1..ready.len().min(FEW) {
            let (op, mut place) = (ready[end], end);
            let key = order(op);
            while place > 0 && key < order(ready[place - 1]) {
                ready[place] = ready[place - 1];
                place -= 1;
            }
            ready[place] = op;
        }
        if ready.len() > FEW {
            ready.sort_by_key(|&op| order(op));
        }
    }

    /// Returns the number of finished operations.
    #[inline]
    pub fn done_count(&self) -> usize {
        self.done
    }
}
