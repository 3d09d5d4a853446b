// SPDX-License-Identifier: Apache-2.0
//! Builder of schedules, with detection of dependency cycles.

use std::sync::OnceLock;

use thiserror::Error;

use crate::nic::NicOp;
use crate::op::{ANY, Action, Kind, MAX_CALC_NS, MAX_OPS, ON_START, Op};
use crate::schedule::{Schedule, Table, Wait};

/// Builds a [`Schedule`] rank by rank, with the ranks in any order.
#[derive(Debug)]
pub struct Builder {
    ranks: u32,
    ops: Vec<Op>,
    edges: Vec<u32>,
    wide: Vec<u64>,
    nic_ops: Vec<NicOp>,
    /// Rank and first operation of each rank, in the order in which they were begun.
    blocks: Vec<(u32, u32)>,
    /// Dependencies of the current rank.
    pending: Vec<Edge>,
    cpus: usize,
    nics: usize,
    has_wildcards: bool,
}

/// Tables of one rank.
pub(crate) struct RankTables<'a> {
    pub ops: &'a mut [Op],
    pub edges: &'a mut [u32],
    pub wide: &'a [u64],
}

/// A dependency of the current rank.
#[derive(Clone, Copy, Debug)]
struct Edge {
    later: u32,
    earlier: u32,
    wait: Wait,
}

/// Error of an invalid schedule.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum BuildError {
    /// Too many operations or dependencies.
    #[error("a schedule has at most {MAX_OPS} operations and as many dependencies")]
    TooLarge,
    /// Operations wait for each other in a cycle.
    #[error(
        "rank {rank}: cycle of dependencies: operation {} waits for itself{}", .operations[0],
        if .operations.len() > 1 { format!(" through {}", list(&.operations[1..])) } else { String::new() }
    )]
    Cycle {
        /// Rank
        rank: u32,
        /// Indices in the rank, from 1; each operation waits for the next, the last for the first
        operations: Vec<u32>,
        /// Index, in order of addition, of the dependency that closes the cycle
        dependency: usize,
    },
    /// A rank was never begun.
    #[error("rank {0} has no block, but num_ranks is {1}")]
    RankMissing(u32, u32),
    /// A rank was begun twice.
    #[error("rank {0} has two blocks")]
    RankTwice(u32),
}

fn list(operations: &[u32]) -> String {
    const SHOWN: usize = 8;
    let mut names: Vec<String> = operations.iter().take(SHOWN).map(u32::to_string).collect();
    if operations.len() > SHOWN {
        names.push(format!("… ({} operations)", operations.len()));
    }
    names.join(", ")
}

impl Builder {
    /// Creates a builder for `ranks` ranks, at most [`MAX_RANKS`](crate::MAX_RANKS).
    pub fn new(ranks: u32) -> Builder {
        Builder {
            ranks,
            ops: Vec::new(),
            edges: Vec::new(),
            wide: Vec::new(),
            nic_ops: Vec::new(),
            blocks: Vec::new(),
            pending: Vec::new(),
            cpus: 1,
            nics: 1,
            has_wildcards: false,
        }
    }

    /// Returns the number of ranks.
    pub fn ranks(&self) -> u32 {
        self.ranks
    }

    /// Returns the number of operations so far, which is the index of the next operation.
    pub fn len(&self) -> u32 {
        self.ops.len() as u32
    }

    /// Returns true if no operation was added.
    pub fn is_empty(&self) -> bool {
        self.ops.is_empty()
    }

    /// Begins a rank, which receives all operations until [`Builder::end_rank`].
    pub fn begin_rank(&mut self, rank: u32) {
        debug_assert!(rank < self.ranks, "rank {rank} of {}", self.ranks);
        self.blocks.push((rank, self.ops.len() as u32));
    }

    /// Adds an operation to the current rank and returns its index.
    ///
    /// # Errors
    /// If the schedule has too many operations.
    #[inline]
    pub fn add(&mut self, action: Action, cpu: u8, nic: u8) -> Result<u32, BuildError> {
        if self.ops.len() == MAX_OPS {
            return Err(BuildError::TooLarge);
        }
        self.cpus = self.cpus.max(usize::from(cpu) + 1);
        self.nics = self.nics.max(usize::from(nic) + 1);
        let mut op = match action {
            Action::Calc(ns) => {
                debug_assert!(ns <= MAX_CALC_NS);
                Op { size: ns as u32, peer: (ns >> 32) as u32, ..Op::new(Kind::Calc, cpu, nic, 0) }
            }
            Action::Send { bytes, to, tag, space } => {
                debug_assert!(to < self.ranks && tag != ANY);
                self.message(Op { peer: to, tag, ..Op::new(Kind::Send, cpu, nic, space) }, bytes)
            }
            Action::Recv { bytes, from, tag, space } => {
                self.has_wildcards |= from.is_none() || tag.is_none();
                let (peer, tag) = (from.unwrap_or(ANY), tag.unwrap_or(ANY));
                self.message(Op { peer, tag, ..Op::new(Kind::Recv, cpu, nic, space) }, bytes)
            }
            Action::Nic(op) => {
                self.nic_ops.push(op.clone());
                Op { size: self.nic_ops.len() as u32 - 1, ..Op::new(Kind::Nic, cpu, nic, 0) }
            }
        };
        op.rank = self.blocks.last().expect("a rank was begun").0;
        self.ops.push(op);
        Ok(self.ops.len() as u32 - 1)
    }

    #[inline]
    fn message(&mut self, mut op: Op, bytes: u64) -> Op {
        match u32::try_from(bytes) {
            Ok(bytes) => op.size = bytes,
            Err(_) => {
                op.widen(self.wide.len() as u32);
                self.wide.push(bytes);
            }
        }
        op
    }

    /// Makes `later` depend on `earlier`; both are operations of the current rank.
    #[inline]
    pub fn depend(&mut self, later: u32, earlier: u32, wait: Wait) {
        self.pending.push(Edge { later, earlier, wait });
    }

    /// Ends the current rank.
    ///
    /// # Errors
    /// If its dependencies have a cycle, or the schedule has too many of them.
    pub fn end_rank(&mut self) -> Result<(), BuildError> {
        let &(rank, first) = self.blocks.last().expect("a rank was begun");
        let base = self.edges.len();
        if base + self.pending.len() > MAX_OPS {
            return Err(BuildError::TooLarge);
        }
        // Counting sort by the earlier operation. `edges` of an operation is first the number of its dependents, then
        // the position of the next edge, and finally the start of its edges.
        let ops = &mut self.ops[first as usize..];
        for edge in &self.pending {
            ops[(edge.earlier - first) as usize].edges += 1;
        }
        let mut end = base as u32;
        for op in &mut *ops {
            end += op.edges;
            op.edges = end;
        }
        self.edges.resize(end as usize, 0);
        let mut backwards = false;
        // Edges are placed from last to first, so that those of `irequires` precede the others.
        for wait in [Wait::Done, Wait::Started] {
            let mark = if wait == Wait::Started { ON_START } else { 0 };
            for edge in self.pending.iter().rev().filter(|edge| edge.wait == wait) {
                let op = &mut ops[(edge.earlier - first) as usize];
                op.edges -= 1;
                self.edges[op.edges as usize] = edge.later | mark;
                backwards |= edge.later <= edge.earlier;
            }
        }
        if backwards && let Some(cycle) = self.cycle(rank, first) {
            return Err(cycle);
        }
        self.pending.clear();
        Ok(())
    }

    /// Returns a cycle among the dependencies of the current rank, if any.
    fn cycle(&self, rank: u32, first: u32) -> Option<BuildError> {
        let count = self.ops.len() - first as usize;
        let mut waits = vec![0u32; count];
        for edge in &self.pending {
            waits[(edge.later - first) as usize] += 1;
        }
        let mut free: Vec<usize> = (0..count).filter(|&op| waits[op] == 0).collect();
        while let Some(op) = free.pop() {
            let start = self.ops[first as usize + op].edges as usize;
            let end = self.ops.get(first as usize + op + 1).map_or(self.edges.len(), |next| next.edges as usize);
            for edge in &self.edges[start..end] {
                let later = ((edge & !ON_START) - first) as usize;
                waits[later] -= 1;
                if waits[later] == 0 {
                    free.push(later);
                }
            }
        }
        // Every remaining operation waits for another remaining one.
        let left = |op: u32| waits[(op - first) as usize] > 0;
        let mut cause = vec![usize::MAX; count];
        for (number, edge) in self.pending.iter().enumerate() {
            if left(edge.later) && left(edge.earlier) {
                cause[(edge.later - first) as usize] = number;
            }
        }
        let mut op = waits.iter().position(|&waits| waits > 0)?;
        for _ in 0..count {
            op = (self.pending[cause[op]].earlier - first) as usize;
        }
        let (mut operations, mut dependency, start) = (Vec::new(), 0, op);
        loop {
            operations.push(op as u32 + 1);
            dependency = dependency.max(cause[op]);
            op = (self.pending[cause[op]].earlier - first) as usize;
            if op == start {
                return Some(BuildError::Cycle { rank, operations, dependency });
            }
        }
    }

    /// Returns the tables of the only rank, with positions from its start.
    pub(crate) fn take_rank(&mut self) -> RankTables<'_> {
        debug_assert_eq!(self.blocks.len(), 1, "one rank");
        RankTables { ops: &mut self.ops, edges: &mut self.edges, wide: &self.wide }
    }

    /// Forgets the only rank, and keeps the numbers of CPUs and NICs.
    pub(crate) fn clear_rank(&mut self) {
        self.ops.clear();
        self.edges.clear();
        self.wide.clear();
        self.blocks.clear();
    }

    /// Returns the highest CPU and NIC numbers so far, plus one, and true if a receive has a wildcard.
    pub(crate) fn resources(&self) -> (usize, usize, bool) {
        (self.cpus, self.nics, self.has_wildcards)
    }

    /// Returns the schedule.
    ///
    /// # Errors
    /// If a rank was begun twice or never.
    pub fn finish(mut self) -> Result<Schedule, BuildError> {
        self.ops.push(Op { edges: self.edges.len() as u32, ..Op::default() });
        let in_order = self.blocks.iter().enumerate().all(|(index, block)| index as u32 == block.0);
        if !in_order {
            self.sort()?;
        }
        if self.blocks.len() < self.ranks as usize {
            return Err(BuildError::RankMissing(self.blocks.len() as u32, self.ranks));
        }
        let mut ranks: Vec<u32> = self.blocks.iter().map(|block| block.1).collect();
        ranks.push(self.ops.len() as u32 - 1);
        Ok(Schedule {
            ops: Table::Owned(self.ops),
            edges: Table::Owned(self.edges),
            ranks: Table::Owned(ranks),
            wide: Table::Owned(self.wide),
            nic_ops: self.nic_ops,
            cpus: self.cpus,
            nics: self.nics,
            has_wildcards: self.has_wildcards,
            largest: OnceLock::new(),
        })
    }

    /// Sorts the operations by rank.
    fn sort(&mut self) -> Result<(), BuildError> {
        let ends = self.blocks.iter().skip(1).map(|block| block.1).chain([self.ops.len() as u32 - 1]);
        let mut blocks: Vec<(u32, u32, u32)> =
            self.blocks.iter().zip(ends).map(|(&(rank, first), end)| (rank, first, end)).collect();
        blocks.sort_unstable();
        let (mut ops, mut edges) = (Vec::with_capacity(self.ops.len()), Vec::with_capacity(self.edges.len()));
        for (expected, &(rank, first, end)) in blocks.iter().enumerate() {
            match rank.cmp(&(expected as u32)) {
                std::cmp::Ordering::Less => return Err(BuildError::RankTwice(rank)),
                std::cmp::Ordering::Greater => return Err(BuildError::RankMissing(expected as u32, self.ranks)),
                std::cmp::Ordering::Equal => {}
            }
            let (new_first, new_edges) = (ops.len() as u32, edges.len() as u32);
            let old_edges = self.ops[first as usize].edges;
            let block = self.ops[first as usize..end as usize].iter();
            ops.extend(block.map(|op| Op { edges: op.edges - old_edges + new_edges, ..*op }));
            let block = self.edges[old_edges as usize..self.ops[end as usize].edges as usize].iter();
            edges.extend(block.map(|edge| edge - first + new_first));
            self.blocks[expected] = (rank, new_first);
        }
        ops.push(self.ops[self.ops.len() - 1]);
        (self.ops, self.edges) = (ops, edges);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(count: usize, edges: &[(u32, u32)]) -> Result<Schedule, BuildError> {
        let mut builder = Builder::new(1);
        builder.begin_rank(0);
        for ns in 0..count {
            builder.add(Action::Calc(ns as u64), 0, 0)?;
        }
        for &(later, earlier) in edges {
            builder.depend(later, earlier, Wait::Done);
        }
        builder.end_rank()?;
        builder.finish()
    }

    #[test]
    fn dependents_keep_the_order_of_their_statements_behind_those_of_starts() {
        let mut builder = Builder::new(1);
        builder.begin_rank(0);
        for _ in 0..5 {
            builder.add(Action::Calc(1), 0, 0).unwrap();
        }
        for (later, wait) in [(4, Wait::Done), (2, Wait::Started), (1, Wait::Done), (3, Wait::Started)] {
            builder.depend(later, 0, wait);
        }
        builder.end_rank().unwrap();
        let schedule = builder.finish().unwrap();
        let all: Vec<_> = schedule.dependents(0).collect();
        assert_eq!(all, [(2, Wait::Started), (3, Wait::Started), (4, Wait::Done), (1, Wait::Done)]);
        assert_eq!(schedule.dependents(1).count(), 0);
    }

    #[test]
    fn a_cycle_is_named_and_what_hangs_on_it_is_not() {
        assert!(with(3, &[(0, 2), (1, 2), (0, 1)]).is_ok());
        let error = with(5, &[(1, 0), (0, 3), (4, 1), (3, 1), (2, 4)]).unwrap_err();
        let BuildError::Cycle { rank: 0, mut operations, dependency: 3 } = error else { panic!("{error:?}") };
        operations.sort_unstable();
        assert_eq!(operations, [1, 2, 4]);
        let error = with(1, &[(0, 0)]).unwrap_err();
        assert_eq!(error.to_string(), "rank 0: cycle of dependencies: operation 1 waits for itself");
    }

    #[test]
    fn blocks_come_in_any_order() {
        let mut builder = Builder::new(2);
        for (rank, count) in [(1, 2), (0, 3)] {
            builder.begin_rank(rank);
            let first = builder.add(Action::Calc(u64::from(rank)), 0, 0).unwrap();
            for _ in 1..count {
                let next = builder.add(Action::Calc(7), 0, 0).unwrap();
                builder.depend(next, first, Wait::Done);
            }
            builder.end_rank().unwrap();
        }
        let schedule = builder.finish().unwrap();
        assert_eq!((schedule.of_rank(0), schedule.of_rank(1)), (0..3, 3..5));
        assert_eq!((schedule.action(0), schedule.action(3)), (Action::Calc(0), Action::Calc(1)));
        assert_eq!(schedule.dependents(0).map(|(op, _)| op).collect::<Vec<_>>(), [1, 2]);
        assert_eq!(schedule.dependents(3).map(|(op, _)| op).collect::<Vec<_>>(), [4]);
    }

    #[test]
    fn ranks_come_once() {
        for (blocks, error) in [
            (&[0, 0, 1][..], BuildError::RankTwice(0)),
            (&[0, 2], BuildError::RankMissing(1, 3)),
            (&[0, 1], BuildError::RankMissing(2, 3)),
        ] {
            let mut builder = Builder::new(3);
            for &rank in blocks {
                builder.begin_rank(rank);
                builder.end_rank().unwrap();
            }
            assert_eq!(builder.finish().unwrap_err(), error);
        }
    }
}
