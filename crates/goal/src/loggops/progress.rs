use super::engine::prefetch;
use crate::op::{ON_START, Op};
use crate::schedule::Schedule;

/// Marks a word that counts dependencies.
const HELD: u32 = 1 << 31;

/// Which operations have started and are done, and whom that frees.
#[derive(Debug)]
pub(super) struct Progress<'a> {
    ops: &'a [Op],
    edges: &'a [u32],
    /// Whether anything waits for a start.
    has_starts: bool,
    /// One word an operation: with [`HELD`], how many of its dependencies are not yet satisfied; later whatever
    /// [`Matching`](super::matching::Matching) needs to remember of it.
    pub words: Vec<u32>,
    /// When the last of each operation's dependencies was satisfied, in picoseconds. Only for schedules with several CPUs:
    /// on a single one, no dependency ends after the CPU is free.
    ready: Vec<u64>,
    /// Operations freed since they were last taken.
    pub freed: Vec<u32>,
    pub done: usize,
}

impl<'a> Progress<'a> {
    pub fn new(schedule: &'a Schedule, with_ready_times: bool) -> Progress<'a> {
        let (mut words, mut has_starts) = (vec![0; schedule.len()], false);
        for edge in &*schedule.edges {
            has_starts |= edge & ON_START != 0;
            let word = &mut words[(edge & !ON_START) as usize];
            *word = (*word | HELD) + 1;
        }
        let ready = if with_ready_times { vec![0; schedule.len()] } else { Vec::new() };
        Progress { ops: &schedule.ops, edges: &schedule.edges, has_starts, words, ready, freed: Vec::new(), done: 0 }
    }

    /// Whether the operation waits for others of its rank.
    #[inline]
    pub fn is_held(&self, op: u32) -> bool {
        self.words[op as usize] & HELD != 0
    }

    /// When all that the operation waited for had happened.
    #[inline]
    pub fn ready(&self, op: u32) -> u64 {
        self.ready.get(op as usize).copied().unwrap_or(0)
    }

    /// Raises the above.
    #[inline]
    pub fn not_before(&mut self, op: u32, at: u64) {
        if let Some(ready) = self.ready.get_mut(op as usize) {
            *ready = (*ready).max(at);
        }
    }

    #[inline]
    fn edges_of(&self, op: u32) -> &'a [u32] {
        let op = op as usize;
        &self.edges[self.ops[op].edges as usize..self.ops[op + 1].edges as usize]
    }

    /// Fetches what [`Progress::done`] will need.
    #[inline]
    pub fn prefetch_dependents(&self, record: &Op) {
        prefetch(self.edges.as_ptr().wrapping_add(record.edges as usize));
    }

    #[inline]
    pub fn started(&mut self, op: u32, at: u64) {
        if !self.has_starts {
            return;
        }
        for edge in self.edges_of(op).iter().take_while(|edge| *edge & ON_START != 0) {
            self.satisfy(edge & !ON_START, at);
        }
    }

    #[inline]
    pub fn done(&mut self, op: u32, at: u64) {
        self.done += 1;
        for &edge in self.edges_of(op).iter().skip_while(|edge| *edge & ON_START != 0) {
            self.satisfy(edge, at);
        }
    }

    #[inline]
    fn satisfy(&mut self, op: u32, at: u64) {
        self.not_before(op, at);
        let word = &mut self.words[op as usize];
        *word -= 1;
        if *word == HELD {
            *word = 0;
            self.freed.push(op);
        }
    }
}
