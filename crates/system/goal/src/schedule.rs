// SPDX-License-Identifier: Apache-2.0
//! Schedules in memory or mapped from a file.

use std::ops::{Deref, Range};
use std::sync::{Arc, OnceLock};

use bytemuck::Pod;

use crate::nic::NicOp;
use crate::op::{ANY, Action, Kind, ON_START, Op};

/// A schedule: operations of each rank, and their dependencies.
///
/// Operations are numbered consecutively, rank by rank, in the order of the text. A schedule is built by a
/// [`Builder`](crate::Builder), by [`text::read`](crate::text::read()), or mapped from a binary file; dependencies are
/// acyclic and stay within a rank.
#[derive(Debug)]
pub struct Schedule {
    /// Operations, and one more record whose `edges` is the number of edges.
    pub(crate) ops: Table<Op>,
    /// For each operation, the numbers of its dependents; those of `irequires` come first and are marked with
    /// [`ON_START`].
    pub(crate) edges: Table<u32>,
    /// First operation of each rank, followed by the number of all operations.
    pub(crate) ranks: Table<u32>,
    /// Sizes of messages that do not fit into 32 bits.
    pub(crate) wide: Table<u64>,
    pub(crate) nic_ops: Vec<NicOp>,
    pub(crate) cpus: usize,
    pub(crate) nics: usize,
    /// True if any receive has a wildcard as source or tag.
    pub(crate) has_wildcards: bool,
    /// See [`Schedule::largest_message`].
    pub(crate) largest: OnceLock<u64>,
}

/// Event of an operation that a dependent waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// End (`requires`)
    Done,
    /// Start (`irequires`)
    Started,
}

impl Schedule {
    /// Returns the number of ranks.
    pub fn ranks(&self) -> u32 {
        (self.ranks.len() - 1) as u32
    }

    /// Returns the number of operations.
    pub fn len(&self) -> usize {
        self.ops.len() - 1
    }

    /// Returns true if the schedule has no operations.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the size in bytes of the largest message. The first call scans all operations.
    pub(crate) fn largest_message(&self) -> u64 {
        let sends = || self.ops[..self.len()].iter().filter(|record| record.kind() == Kind::Send);
        *self.largest.get_or_init(|| sends().map(|record| self.bytes(record)).max().unwrap_or(0))
    }

    /// Returns the number of dependencies.
    pub fn dependencies(&self) -> usize {
        self.edges.len()
    }

    /// Returns the highest CPU number of an operation, plus one.
    #[inline]
    pub fn cpus(&self) -> usize {
        self.cpus
    }

    /// Returns the highest NIC number of an operation, plus one.
    pub fn nics(&self) -> usize {
        self.nics
    }

    /// Returns the operations of a rank.
    #[inline]
    pub fn of_rank(&self, rank: u32) -> Range<u32> {
        self.ranks[rank as usize]..self.ranks[rank as usize + 1]
    }

    /// Returns the action of operation `op`.
    #[inline]
    pub fn action(&self, op: u32) -> Action<'_> {
        let record = &self.ops[op as usize];
        let space = record.space() as u16;
        match record.kind() {
            Kind::Calc => Action::Calc(record.calc_ns()),
            Kind::Send => Action::Send { bytes: self.bytes(record), to: record.peer, tag: record.tag, space },
            Kind::Recv => Action::Recv {
                bytes: self.bytes(record),
                from: (record.peer != ANY).then_some(record.peer),
                tag: (record.tag != ANY).then_some(record.tag),
                space,
            },
            Kind::Nic => Action::Nic(&self.nic_ops[record.size as usize]),
        }
    }

    /// Returns the rank of an operation.
    #[inline]
    pub fn rank(&self, op: u32) -> u32 {
        self.ops[op as usize].rank
    }

    /// Returns the operation's index within its rank, from 1.
    pub fn ordinal(&self, op: u32) -> u32 {
        op - self.ranks[self.rank(op) as usize] + 1
    }

    /// Returns the CPU and NIC numbers of an operation.
    #[inline]
    pub fn resources(&self, op: u32) -> (usize, usize) {
        let record = &self.ops[op as usize];
        (record.cpu(), record.nic())
    }

    /// Returns the operations that depend on `op`, and the event that each waits for.
    pub fn dependents(&self, op: u32) -> impl Iterator<Item = (u32, Wait)> {
        self.edges_of(op).iter().map(|edge| {
            let wait = if edge & ON_START != 0 { Wait::Started } else { Wait::Done };
            (edge & !ON_START, wait)
        })
    }

    #[inline]
    pub(crate) fn edges_of(&self, op: u32) -> &[u32] {
        let op = op as usize;
        &self.edges[self.ops[op].edges as usize..self.ops[op + 1].edges as usize]
    }

    /// Returns the first operation of a Portals or sPIN card, if any.
    pub(crate) fn first_of_card(&self) -> Option<u32> {
        if self.nic_ops.is_empty() {
            return None;
        }
        self.ops[..self.len()].iter().position(|record| record.kind() == Kind::Nic).map(|op| op as u32)
    }

    /// Returns the size of a message in bytes.
    #[inline]
    pub(crate) fn bytes(&self, record: &Op) -> u64 {
        if record.is_wide() { self.wide[record.size as usize] } else { u64::from(record.size) }
    }

    /// Describes an operation in a message: `rank 3, operation 5 (send 8b to 1 tag 0)`.
    pub fn describe(&self, op: u32) -> String {
        format!("rank {}, operation {} ({})", self.rank(op), self.ordinal(op), self.action(op))
    }
}

/// A table in memory or in a mapped file.
#[derive(Debug)]
pub(crate) enum Table<T> {
    Owned(Vec<T>),
    /// A part of a file, checked to be in bounds and aligned.
    Mapped(Arc<Bytes>, Range<usize>),
}

/// Bytes of a file.
#[derive(Debug)]
pub(crate) enum Bytes {
    Mapped(memmap2::Mmap),
    /// Words, for alignment, and the number of bytes in them.
    Read(Vec<u64>, usize),
}

impl Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Bytes::Mapped(map) => map,
            Bytes::Read(words, len) => &bytemuck::cast_slice(words)[..*len],
        }
    }
}

impl<T: Pod> Deref for Table<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        match self {
            Table::Owned(all) => all,
            Table::Mapped(bytes, range) => bytemuck::cast_slice(&bytes[range.clone()]),
        }
    }
}
