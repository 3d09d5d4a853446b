use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use sim::Time;
use sim::memory::{Large, prefetch};

use crate::op::{ON_START, Op};
use crate::schedule::Schedule;

/// Marks a word that counts dependencies.
const HELD: u32 = 1 << 31;

/// So many freed operations are sorted one by one.
const FEW: usize = 8;

/// Starts and ends are told to [`Schedule::done`] at most so many at a time.
const BATCH: usize = 1 << 10;

/// Which operations have started and are done, and whom that frees: what every executor of a [`Schedule`] needs.
///
/// An executor first takes the operations that are not [held](Progress::is_held), says of each when it
/// [starts](Progress::started) and when it is [done](Progress::done), and thereafter
/// [takes](Progress::take_freed) what that has freed.
#[derive(Debug)]
pub struct Progress<'a> {
    ops: &'a [Op],
    edges: &'a [u32],
    /// Whether anything waits for a start.
    has_starts: bool,
    /// One word an operation: with [`HELD`], how many of its dependencies are not yet satisfied; later whatever
    /// [`Matching`](crate::Matching) needs to remember of it.
    pub(crate) words: Large<u32>,
    /// When the last of each operation's dependencies was satisfied, in picoseconds, if asked for.
    ready: Vec<u64>,
    /// Operations freed since they were last taken.
    pub(crate) freed: Vec<u32>,
    done: usize,
    /// Starts and ends.
    steps: usize,
    /// So many steps, a power of two, are added at a time to
    batch: usize,
    /// what others see of it.
    public: &'a AtomicU64,
}

impl<'a> Progress<'a> {
    /// Of a schedule that has not begun. Only `with_ready_times` are the times given to [`Progress::started`] and
    /// [`Progress::done`] kept, for 8 bytes an operation.
    pub fn new(schedule: &'a Schedule, with_ready_times: bool) -> Progress<'a> {
        Progress::of_ranks(schedule, 0..schedule.ranks(), with_ready_times)
    }

    /// Of these ranks alone.
    pub(crate) fn of_ranks(schedule: &'a Schedule, ranks: Range<u32>, with_ready_times: bool) -> Progress<'a> {
        let edge = |rank: u32| schedule.ops[schedule.ranks[rank as usize] as usize].edges as usize;
        let (mut words, mut has_starts) = (Large::zeroed(schedule.len()), false);
        words.populate(schedule.ranks[ranks.start as usize] as usize..schedule.ranks[ranks.end as usize] as usize);
        for edge in &schedule.edges[edge(ranks.start)..edge(ranks.end)] {
            has_starts |= edge & ON_START != 0;
            let word: &mut u32 = &mut words[(edge & !ON_START) as usize];
            *word = (*word | HELD) + 1;
        }
        let ready = if with_ready_times { vec![0; schedule.len()] } else { Vec::new() };
        Progress {
            ops: &schedule.ops,
            edges: &schedule.edges,
            has_starts,
            words,
            ready,
            freed: Vec::new(),
            done: 0,
            steps: 0,
            batch: (schedule.len() / BATCH).next_power_of_two().min(BATCH),
            public: &schedule.steps,
        }
    }

    /// Whether the operation waits for others of its rank.
    #[inline]
    pub fn is_held(&self, op: u32) -> bool {
        self.words[op as usize] & HELD != 0
    }

    /// Replaces the contents of `first` by those of a rank's operations that wait for nothing, sends before receives before
    /// calculations. Take them before any is executed, as that frees others.
    pub fn take_first(&self, of_rank: Range<u32>, first: &mut Vec<u32>) {
        first.clear();
        first.extend(of_rank.filter(|&op| !self.is_held(op)));
        first.sort_by_key(|&op| self.ops[op as usize].kind());
    }

    /// The latest of the times at which what the operation waited for had happened; zero without ready times.
    #[inline]
    pub fn ready(&self, op: u32) -> Time {
        Time::from_ps(self.ready.get(op as usize).copied().unwrap_or(0))
    }

    /// Raises [`Progress::ready`].
    #[inline]
    pub fn not_before(&mut self, op: u32, at: Time) {
        if let Some(ready) = self.ready.get_mut(op as usize) {
            *ready = (*ready).max(at.as_ps());
        }
    }

    #[inline]
    fn edges_of(&self, op: u32) -> &'a [u32] {
        let op = op as usize;
        &self.edges[self.ops[op].edges as usize..self.ops[op + 1].edges as usize]
    }

    /// Whether anything waits for the start of an operation.
    #[inline]
    pub(crate) fn frees_by_start(&self, op: u32) -> bool {
        self.has_starts && self.edges_of(op).first().is_some_and(|edge| edge & ON_START != 0)
    }

    /// Says that an operation starts: what `irequires` it need not wait for it any more. Once, before
    /// [`Progress::done`].
    #[inline(always)]
    pub fn started(&mut self, op: u32, at: Time) {
        self.step();
        if !self.has_starts {
            return;
        }
        for edge in self.edges_of(op).iter().take_while(|edge| *edge & ON_START != 0) {
            self.satisfy(edge & !ON_START, at);
        }
    }

    /// Fetches what the operation `ahead` places behind this one will need: ranks go through their operations more or less
    /// in order, but there are too many ranks for the processor to see that.
    #[inline(always)]
    pub(crate) fn prefetch(&self, op: u32, ahead: usize) {
        let op = op as usize;
        prefetch(self.ops.as_ptr().wrapping_add(op + ahead));
        prefetch(self.words.as_ptr().wrapping_add(op + ahead));
        prefetch(self.edges.as_ptr().wrapping_add(self.ops[op].edges as usize + ahead));
    }

    /// Fetches what says which operations wait for this one.
    #[inline(always)]
    pub(crate) fn prefetch_dependents(&self, record: &Op) {
        prefetch(self.edges.as_ptr().wrapping_add(record.edges as usize));
    }

    /// Fetches how many others the first of those that wait for this one wait for, when the above is fetched.
    #[inline(always)]
    pub(crate) fn prefetch_counts(&self, record: &Op) {
        if let Some(edge) = self.edges.get(record.edges as usize) {
            let op = (edge & !ON_START) as usize;
            prefetch(self.words.as_ptr().wrapping_add(op));
            prefetch(self.ops.as_ptr().wrapping_add(op));
        }
    }

    /// Says that an operation is done: what `requires` it need not wait for it any more. Once.
    #[inline]
    pub fn done(&mut self, op: u32, at: Time) {
        self.done += 1;
        self.step();
        for &edge in self.edges_of(op) {
            if !self.has_starts || edge & ON_START == 0 {
                self.satisfy(edge, at);
            }
        }
    }

    #[inline(always)]
    fn step(&mut self) {
        self.steps += 1;
        if self.steps & (self.batch - 1) == 0 {
            self.public.fetch_add(self.batch as u64, Ordering::Relaxed);
        }
    }

    #[inline]
    fn satisfy(&mut self, op: u32, at: Time) {
        self.not_before(op, at);
        let word = &mut self.words[op as usize];
        *word -= 1;
        if *word == HELD {
            *word = 0;
            self.freed.push(op);
        }
    }

    /// Replaces the contents of `freed` by the operations freed since the last call: rank by rank, sends before receives
    /// before calculations, otherwise in the order in which they were freed.
    #[inline]
    pub fn take_freed(&mut self, freed: &mut Vec<u32>) {
        freed.clear();
        if self.freed.is_empty() {
            return;
        }
        std::mem::swap(freed, &mut self.freed);
        let order = |op: u32| {
            let record = &self.ops[op as usize];
            (record.rank, record.kind())
        };
        // Nearly always there are few.
        for end in 1..freed.len().min(FEW) {
            let (op, mut place) = (freed[end], end);
            let key = order(op);
            while place > 0 && key < order(freed[place - 1]) {
                freed[place] = freed[place - 1];
                place -= 1;
            }
            freed[place] = op;
        }
        if freed.len() > FEW {
            freed.sort_by_key(|&op| order(op));
        }
    }

    /// Number of operations that are done.
    #[inline]
    pub fn count(&self) -> usize {
        self.done
    }
}
