// SPDX-License-Identifier: Apache-2.0
//! CPUs and NICs, and the operations and messages that wait for them.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::ops::Range;

use sim::memory::{HugePageSlice, prefetch};

use crate::operation_table::OperationTable;
use crate::schedule::Schedule;

/// Resources of a rank that an event needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// A CPU
    Calc,
    /// A CPU and the sending side of a NIC
    Send,
    /// A CPU and the receiving side of a NIC
    Message,
}

/// A class of operations and messages that need the same CPU and the same side of the same NIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub rank: u32,
    pub cpu: usize,
    pub nic: usize,
    pub side: Side,
}

/// A number of no operation or message.
pub(super) const NO_NUMBER: u32 = u32::MAX;

/// First waiting operation or message of a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct First {
    pub at: u64,
    pub number: u32,
    pub op: u32,
    /// True if the message of the operation waits, false for the operation itself.
    pub is_message: bool,
    /// List in which it waits, for [`Resources::take`].
    pub list: usize,
}

/// CPUs and NICs of all ranks: the times at which they become free, in picoseconds, and the operations and messages
/// that wait for them.
///
/// All members of a class can start at the same time, so only the one with the smallest number matters.
pub(super) trait Resources {
    /// True if [`Resources::keep_number`] stores numbers.
    const KEEPS_NUMBERS: bool;
    /// Creates the resources of `ranks`, all free.
    fn new(schedule: &Schedule, ranks: Range<u32>) -> Self;
    /// Returns the time at which all resources of a class are free.
    fn free(&self, place: Place) -> u64;
    /// Returns the time at which a CPU is free.
    fn cpu_free(&self, rank: u32, cpu: usize) -> u64;
    /// Occupies the resources of a class.
    fn occupy(&mut self, place: Place, cpu_until: u64, nic_until: u64);
    /// Occupies the resources of a class at least until `at`.
    fn raise(&mut self, place: Place, at: u64);
    /// Returns true if no member of the class waits.
    fn is_idle(&self, place: Place) -> bool;
    /// Returns true if no operation or message of the rank waits.
    fn none_waits(&self, rank: u32) -> bool;
    /// Adds a waiting operation or message. Lists are linked through `words`.
    fn add(&mut self, place: Place, number: u32, op: u32, operations: &mut OperationTable);
    /// Returns the first waiting operation or message of a rank.
    fn first(&self, rank: u32) -> Option<First>;
    /// Changes the number of an operation that may be waiting from `from` to `to`, without changing its position among
    /// others. Returns true if it may be the first.
    fn renumber(&mut self, place: Place, op: u32, from: u32, to: u32) -> bool;
    /// Removes the first member of a list.
    fn take(&mut self, rank: u32, list: usize, operations: &OperationTable);
    /// Returns the number of the rank's wake-up in the event queue.
    fn wake(&mut self, rank: u32) -> &mut u32;
    /// Stores the number of a receive, which never waits for resources.
    fn keep_number(&mut self, receive: u32, number: u32);
    /// Returns a stored number.
    fn kept_number(&self, receive: u32) -> u32;
    /// Returns the time at which the last CPU of a rank is free.
    fn end(&self, rank: u32) -> u64;
    /// Prefetches the resources of a rank.
    fn prefetch(&self, rank: u32);
    /// Prefetches the data of a waiting operation. Any number is allowed.
    fn prefetch_member(&self, op: usize);
}

/// One CPU and one NIC per rank: one cache line for each rank.
///
/// A new member of a list nearly always has a greater number than all others: most operations start to wait when they
/// get their number, and messages arrive in sending order.
#[derive(Debug)]
pub(super) struct One {
    first_rank: u32,
    ranks: HugePageSlice<Line>,
    /// Numbers of the members that are not the first of their list, and of receives with delayed posting.
    numbers: HugePageSlice<u32>,
}

#[repr(C, align(64))]
#[derive(Clone, Copy, Debug)]
struct Line {
    /// Times at which the CPU, the sending side and the receiving side of the NIC become free.
    free: [u64; 3],
    /// Lists of waiting calculations, sends and messages, linked through the words of the operations.
    lists: [List; 3],
    wake: u32,
}

#[derive(Clone, Copy, Debug)]
struct List {
    /// First member, or [`NOBODY`] if the list is empty.
    first: u32,
    last: u32,
    number: u32,
}

const NOBODY: u32 = u32::MAX;

impl One {
    #[inline(always)]
    fn of(&self, rank: u32) -> &Line {
        &self.ranks[(rank - self.first_rank) as usize]
    }

    #[inline(always)]
    fn of_mut(&mut self, rank: u32) -> &mut Line {
        &mut self.ranks[(rank - self.first_rank) as usize]
    }
}

impl Resources for One {
    const KEEPS_NUMBERS: bool = true;

    fn new(schedule: &Schedule, ranks: Range<u32>) -> One {
        let empty = List { first: NOBODY, last: NOBODY, number: NO_NUMBER };
        let line = Line { free: [0; 3], lists: [empty; 3], wake: NO_NUMBER };
        let numbers = HugePageSlice::zeroed(schedule.len());
        One { first_rank: ranks.start, ranks: HugePageSlice::filled(line, ranks.len()), numbers }
    }

    #[inline]
    fn free(&self, place: Place) -> u64 {
        let free = &self.of(place.rank).free;
        free[0].max(free[place.side as usize])
    }

    #[inline]
    fn cpu_free(&self, rank: u32, _: usize) -> u64 {
        self.of(rank).free[0]
    }

    #[inline]
    fn occupy(&mut self, place: Place, cpu_until: u64, nic_until: u64) {
        let free = &mut self.of_mut(place.rank).free;
        free[place.side as usize] = nic_until;
        free[0] = cpu_until;
    }

    fn raise(&mut self, place: Place, at: u64) {
        let free = &mut self.of_mut(place.rank).free;
        for need in [0, place.side as usize] {
            free[need] = free[need].max(at);
        }
    }

    #[inline]
    fn is_idle(&self, place: Place) -> bool {
        self.of(place.rank).lists[place.side as usize].first == NOBODY
    }

    #[inline]
    fn none_waits(&self, rank: u32) -> bool {
        self.of(rank).lists.iter().all(|list| list.first == NOBODY)
    }

    #[inline]
    fn add(&mut self, place: Place, number: u32, op: u32, operations: &mut OperationTable) {
        let list = &mut self.ranks[(place.rank - self.first_rank) as usize].lists[place.side as usize];
        if list.first == NOBODY {
            *list = List { first: op, last: op, number };
            return;
        }
        if number < list.number {
            operations.set_next(op, list.first);
            self.numbers[list.first as usize] = list.number;
            (list.first, list.number) = (op, number);
            return;
        }
        self.numbers[op as usize] = number;
        let mut before = list.last;
        if before != list.first && number < self.numbers[before as usize] {
            before = list.first;
            while self.numbers[operations.next(before) as usize] < number {
                before = operations.next(before);
            }
            operations.set_next(op, operations.next(before));
        } else {
            list.last = op;
        }
        operations.set_next(before, op);
    }

    #[inline]
    fn first(&self, rank: u32) -> Option<First> {
        let Line { free, lists, .. } = self.of(rank);
        if self.none_waits(rank) {
            return None;
        }
        let at = |side: usize| if lists[side].first == NOBODY { u64::MAX } else { free[0].max(free[side]) };
        let key = |side: usize| (at(side), lists[side].number);
        let mut side = if key(1) < key(0) { 1 } else { 0 };
        if key(2) < key(side) {
            side = 2;
        }
        let list = &lists[side];
        Some(First { at: at(side), number: list.number, op: list.first, is_message: side == 2, list: side })
    }

    #[inline]
    fn renumber(&mut self, place: Place, op: u32, from: u32, to: u32) -> bool {
        let list = &mut self.of_mut(place.rank).lists[place.side as usize];
        let is_first = (list.first, list.number) == (op, from);
        if is_first {
            list.number = to;
        } else if list.number < from && list.first != NOBODY && self.numbers[op as usize] == from {
            self.numbers[op as usize] = to;
        }
        is_first
    }

    #[inline]
    fn take(&mut self, rank: u32, list: usize, operations: &OperationTable) {
        let list = &mut self.ranks[(rank - self.first_rank) as usize].lists[list];
        if list.first == list.last {
            list.first = NOBODY;
            list.number = NO_NUMBER;
        } else {
            list.first = operations.next(list.first);
            list.number = self.numbers[list.first as usize];
        }
    }

    #[inline]
    fn wake(&mut self, rank: u32) -> &mut u32 {
        &mut self.of_mut(rank).wake
    }

    #[inline(always)]
    fn keep_number(&mut self, receive: u32, number: u32) {
        self.numbers[receive as usize] = number;
    }

    #[inline(always)]
    fn kept_number(&self, receive: u32) -> u32 {
        self.numbers[receive as usize]
    }

    fn end(&self, rank: u32) -> u64 {
        self.of(rank).free[0]
    }

    #[inline]
    fn prefetch(&self, rank: u32) {
        prefetch(self.ranks.as_ptr().wrapping_add(rank.wrapping_sub(self.first_rank) as usize));
    }

    #[inline(always)]
    fn prefetch_member(&self, op: usize) {
        prefetch(self.numbers.as_ptr().wrapping_add(op));
    }
}

/// Any number of CPUs and NICs.
#[derive(Debug)]
pub(super) struct Many {
    first_rank: u32,
    cpus: usize,
    nics: usize,
    /// Time at which each resource becomes free. For each rank: its CPUs, then the sending sides and then the receiving
    /// sides of its NICs.
    free: Vec<u64>,
    ranks: Vec<Rank>,
}

#[derive(Clone, Debug)]
struct Rank {
    classes: Vec<Class>,
    wake: u32,
}

/// Waiting operations and messages of one class.
#[derive(Clone, Debug)]
struct Class {
    place: Place,
    /// Numbers and operations that arrived in number order, as most do.
    in_turn: VecDeque<(u32, u32)>,
    /// All other numbers and operations.
    out_of_turn: BinaryHeap<Reverse<(u32, u32)>>,
}

impl Class {
    fn first(&self) -> Option<(u32, u32)> {
        let (one, other) = (self.in_turn.front().copied(), self.out_of_turn.peek().map(|other| other.0));
        one.into_iter().chain(other).min()
    }
}

impl Many {
    #[inline]
    fn index(&self, rank: u32) -> usize {
        (rank - self.first_rank) as usize
    }

    /// Returns the two resources of a class as indices of `free`.
    fn needs(&self, place: Place) -> [usize; 2] {
        let base = self.index(place.rank) * (self.cpus + 2 * self.nics);
        let cpu = base + place.cpu;
        let side = base + self.cpus + place.nic;
        match place.side {
            Side::Calc => [cpu, cpu],
            Side::Send => [cpu, side],
            Side::Message => [cpu, side + self.nics],
        }
    }

    fn cpus_of(&self, rank: u32) -> &[u64] {
        let base = self.index(rank) * (self.cpus + 2 * self.nics);
        &self.free[base..base + self.cpus]
    }
}

impl Resources for Many {
    const KEEPS_NUMBERS: bool = false;

    fn new(schedule: &Schedule, ranks: Range<u32>) -> Many {
        let (cpus, nics) = (schedule.cpus, schedule.nics);
        let free = vec![0; ranks.len() * (cpus + 2 * nics)];
        let idle = Rank { classes: Vec::new(), wake: NO_NUMBER };
        Many { first_rank: ranks.start, cpus, nics, free, ranks: vec![idle; ranks.len()] }
    }

    fn free(&self, place: Place) -> u64 {
        let [cpu, nic] = self.needs(place).map(|need| self.free[need]);
        cpu.max(nic)
    }

    fn cpu_free(&self, rank: u32, cpu: usize) -> u64 {
        self.cpus_of(rank)[cpu]
    }

    fn occupy(&mut self, place: Place, cpu_until: u64, nic_until: u64) {
        let [cpu, nic] = self.needs(place);
        self.free[nic] = nic_until;
        self.free[cpu] = cpu_until;
    }

    fn raise(&mut self, place: Place, at: u64) {
        for need in self.needs(place) {
            self.free[need] = self.free[need].max(at);
        }
    }

    fn is_idle(&self, place: Place) -> bool {
        let mut classes = self.ranks[self.index(place.rank)].classes.iter();
        classes.find(|class| class.place == place).is_none_or(|class| class.first().is_none())
    }

    fn none_waits(&self, rank: u32) -> bool {
        self.ranks[self.index(rank)].classes.iter().all(|class| class.first().is_none())
    }

    fn add(&mut self, place: Place, number: u32, op: u32, _: &mut OperationTable) {
        let rank = self.index(place.rank);
        let classes = &mut self.ranks[rank].classes;
        let index = classes.iter().position(|class| class.place == place).unwrap_or_else(|| {
            classes.push(Class { place, in_turn: VecDeque::new(), out_of_turn: BinaryHeap::new() });
            classes.len() - 1
        });
        let class = &mut classes[index];
        if class.in_turn.back().is_none_or(|&(last, _)| last < number) {
            class.in_turn.push_back((number, op));
        } else {
            class.out_of_turn.push(Reverse((number, op)));
        }
    }

    fn first(&self, rank: u32) -> Option<First> {
        let heads = self.ranks[self.index(rank)].classes.iter().enumerate().filter_map(|(list, class)| {
            let (number, op) = class.first()?;
            let is_message = class.place.side == Side::Message;
            Some(First { at: self.free(class.place), number, op, is_message, list })
        });
        heads.min_by_key(|first| (first.at, first.number))
    }

    fn renumber(&mut self, place: Place, op: u32, from: u32, to: u32) -> bool {
        let rank = self.index(place.rank);
        for Class { in_turn, out_of_turn, .. } in &mut self.ranks[rank].classes {
            if let Ok(index) = in_turn.binary_search(&(from, op)) {
                in_turn[index].0 = to;
            }
            if out_of_turn.iter().any(|one| one.0 == (from, op)) {
                out_of_turn.retain(|one| one.0 != (from, op));
                out_of_turn.push(Reverse((to, op)));
            }
        }
        true
    }

    fn take(&mut self, rank: u32, list: usize, _: &OperationTable) {
        // The class is kept for reuse.
        let rank = self.index(rank);
        let class = &mut self.ranks[rank].classes[list];
        if class.in_turn.front().copied() == class.first() {
            class.in_turn.pop_front();
        } else {
            class.out_of_turn.pop();
        }
    }

    fn wake(&mut self, rank: u32) -> &mut u32 {
        let rank = self.index(rank);
        &mut self.ranks[rank].wake
    }

    fn keep_number(&mut self, _: u32, _: u32) {}

    fn kept_number(&self, _: u32) -> u32 {
        NO_NUMBER
    }

    fn end(&self, rank: u32) -> u64 {
        self.cpus_of(rank).iter().copied().max().unwrap_or(0)
    }

    fn prefetch(&self, rank: u32) {
        prefetch(self.ranks.as_ptr().wrapping_add(rank.wrapping_sub(self.first_rank) as usize));
    }

    fn prefetch_member(&self, _: usize) {}
}
