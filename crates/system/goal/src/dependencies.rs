use std::ops::Range;

use sim::Time;
use sim::memory::prefetch;

use crate::op::{ON_START, Op};
use crate::run_progress::RunProgress;
use crate::schedule::Schedule;
use crate::words::OperationWords;

/// Up to this many ready operations are sorted by insertion.
const FEW: usize = 8;

/// Starts and ends are added to [`RunProgress`] in batches of at most this size.
const BATCH: usize = 1 << 10;

/// Tracks which operations of a schedule have started and are done, and which of their dependents become ready.
///
/// An executor first takes the operations that depend on nothing with [`DependencyTracker::take_first`]. It reports when
/// an operation [starts](DependencyTracker::started) and when it is [done](DependencyTracker::done), and then takes the
/// operations that have become ready with [`DependencyTracker::take_ready`].
#[derive(Debug)]
pub struct DependencyTracker<'a> {
    ops: &'a [Op],
    edges: &'a [u32],
    /// Whether any operation waits for the start of another.
    has_start_dependencies: bool,
    pub(crate) words: OperationWords,
    /// For each operation, when the last of its dependencies was satisfied, in picoseconds; empty unless asked for.
    ready_times: Vec<u64>,
    /// Operations that have become ready since they were last taken.
    pub(crate) ready: Vec<u32>,
    done: usize,
    /// Number of starts and ends.
    steps: usize,
    /// The number of steps, a power of two, that are added to `progress` at a time.
    batch: usize,
    progress: RunProgress,
}

impl<'a> DependencyTracker<'a> {
    /// Creates the tracker of a run that has not begun. With `with_ready_times` the times given to
    /// [`DependencyTracker::started`] and [`DependencyTracker::done`] are kept, which takes 8 bytes an operation. The run
    /// is shown by `progress`.
    pub fn new(schedule: &'a Schedule, with_ready_times: bool, progress: RunProgress) -> DependencyTracker<'a> {
        DependencyTracker::of_ranks(schedule, 0..schedule.ranks(), with_ready_times, progress)
    }

    /// Creates a tracker for the operations of `ranks` alone.
    pub(crate) fn of_ranks(
        schedule: &'a Schedule,
        ranks: Range<u32>,
        with_ready_times: bool,
        progress: RunProgress,
    ) -> DependencyTracker<'a> {
        let first_op = |rank: u32| schedule.ranks[rank as usize] as usize;
        let first_edge = |rank: u32| schedule.ops[first_op(rank)].edges as usize;
        let mut words = OperationWords::new(schedule.len(), first_op(ranks.start)..first_op(ranks.end));
        let mut has_start_dependencies = false;
        for edge in &schedule.edges[first_edge(ranks.start)..first_edge(ranks.end)] {
            has_start_dependencies |= edge & ON_START != 0;
            words.add_dependency(edge & !ON_START);
        }
        DependencyTracker {
            ops: &schedule.ops,
            edges: &schedule.edges,
            has_start_dependencies,
            words,
            ready_times: if with_ready_times { vec![0; schedule.len()] } else { Vec::new() },
            ready: Vec::new(),
            done: 0,
            steps: 0,
            batch: (schedule.len() / BATCH).next_power_of_two().min(BATCH),
            progress,
        }
    }

    /// Counts the starts and ends of operations in `progress` from now on.
    pub fn report_to(&mut self, progress: RunProgress) {
        self.progress = progress;
    }

    /// Returns whether the operation depends on others that have not yet started or are not yet done.
    #[inline]
    pub fn is_blocked(&self, op: u32) -> bool {
        self.words.is_blocked(op)
    }

    /// Replaces the contents of `first` by the operations of `rank` that depend on nothing: sends before receives before
    /// calculations. Must be called before any of them is executed, as that unblocks others.
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

    /// Makes [`DependencyTracker::ready_at`] at least `at`.
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

    /// Returns whether any operation waits for the start of this one.
    #[inline]
    pub(crate) fn unblocks_on_start(&self, op: u32) -> bool {
        self.has_start_dependencies && self.edges_of(op).first().is_some_and(|edge| edge & ON_START != 0)
    }

    /// Reports that an operation starts, which satisfies every `irequires` on it. Must be called once, before
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

    /// Prefetches what the operation `ahead` places behind this one will need. Ranks execute their operations more or less
    /// in order, but there are too many ranks for the processor to see that.
    #[inline(always)]
    pub(crate) fn prefetch(&self, op: u32, ahead: usize) {
        let op = op as usize;
        prefetch(self.ops.as_ptr().wrapping_add(op + ahead));
        self.words.prefetch(op + ahead);
        prefetch(self.edges.as_ptr().wrapping_add(self.ops[op].edges as usize + ahead));
    }

    /// Prefetches the list of dependents of an operation.
    #[inline(always)]
    pub(crate) fn prefetch_dependents(&self, record: &Op) {
        prefetch(self.edges.as_ptr().wrapping_add(record.edges as usize));
    }

    /// Prefetches the number of dependencies of the first dependent of an operation, whose list of dependents has been
    /// prefetched.
    #[inline(always)]
    pub(crate) fn prefetch_counts(&self, record: &Op) {
        if let Some(edge) = self.edges.get(record.edges as usize) {
            let op = (edge & !ON_START) as usize;
            self.words.prefetch(op);
            prefetch(self.ops.as_ptr().wrapping_add(op));
        }
    }

    /// Returns whether any operation waits for this one.
    #[inline]
    pub(crate) fn has_dependents(&self, op: u32) -> bool {
        !self.edges_of(op).is_empty()
    }

    /// Reports that an operation without dependents is done. Must be called once, instead of [`DependencyTracker::done`].
    #[inline]
    pub(crate) fn done_alone(&mut self) {
        self.done += 1;
        self.step();
    }

    /// Reports that an operation is done, which satisfies every `requires` on it. Must be called once.
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
        if self.words.satisfy_dependency(op) {
            self.ready.push(op);
        }
    }

    /// Replaces the contents of `ready` by the operations that have become ready since the last call: rank by rank, sends
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
        // There are nearly always few ready operations.
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

    /// Returns the number of operations that are done.
    #[inline]
    pub fn done_count(&self) -> usize {
        self.done
    }
}
