use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::ops::Range;

use sim::memory::{HugePageSlice, prefetch};

use crate::schedule::Schedule;
use crate::words::OperationWords;

/// The resources of a rank that an event needs.
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

/// A number that no operation or message has.
pub(super) const NO_NUMBER: u32 = u32::MAX;

/// The first of the operations and messages that wait at a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct First {
    pub at: u64,
    pub number: u32,
    pub op: u32,
    /// Whether the message of the operation waits, not the operation itself.
    pub is_message: bool,
    /// The list in which it waits, for [`Resources::take`].
    pub list: usize,
}

/// The CPUs and NICs of all ranks: when they become free, in picoseconds, and which operations and messages wait for them.
///
/// All that wait in a class can start at the same time, so only the one with the smallest number matters.
pub(super) trait Resources {
    /// Whether [`Resources::keep_number`] keeps numbers.
    const KEEPS_NUMBERS: bool;
    /// Creates the resources of `ranks`, all of them free.
    fn new(schedule: &Schedule, ranks: Range<u32>) -> Self;
    /// Returns when all resources of a class are free.
    fn free(&self, place: Place) -> u64;
    /// Returns when a CPU is free.
    fn cpu_free(&self, rank: u32, cpu: usize) -> u64;
    /// Occupies the resources of a class.
    fn occupy(&mut self, place: Place, cpu_until: u64, nic_until: u64);
    /// Occupies the resources of a class at least until `at`.
    fn raise(&mut self, place: Place, at: u64);
    /// Returns whether nothing waits in a class.
    fn is_idle(&self, place: Place) -> bool;
    /// Returns whether nothing waits at a rank.
    fn none_waits(&self, rank: u32) -> bool;
    /// Makes an operation or message wait. Lists are linked through `words`.
    fn add(&mut self, place: Place, number: u32, op: u32, words: &mut OperationWords);
    /// Returns the first operation or message that waits at a rank.
    fn first(&self, rank: u32) -> Option<First>;
    /// Changes the number of an operation that may be waiting from `from` to `to`, which does not change its place among
    /// others. Returns whether it may be the first.
    fn renumber(&mut self, place: Place, op: u32, from: u32, to: u32) -> bool;
    /// Removes the first member of a list.
    fn take(&mut self, rank: u32, list: usize, words: &OperationWords);
    /// Returns the number of the wake-up that is in the queue of events for a rank.
    fn wake(&mut self, rank: u32) -> &mut u32;
    /// Keeps the number of a receive, which never waits for resources.
    fn keep_number(&mut self, receive: u32, number: u32);
    /// Returns a number that was kept.
    fn kept_number(&self, receive: u32) -> u32;
    /// Returns when the last CPU of a rank is free.
    fn end(&self, rank: u32) -> u64;
    /// Prefetches the resources of a rank.
    fn prefetch(&self, rank: u32);
    /// Prefetches what is kept of an operation that waits. Any number is allowed.
    fn prefetch_member(&self, op: usize);
}

/// One CPU and one NIC a rank: one cache line for each rank.
///
/// Nearly always, a new member of a list has a greater number than all others: most operations wait from the moment when
/// they get their number, and messages arrive in the order in which they were sent.
#[derive(Debug)]
pub(super) struct One {
    first_rank: u32,
    ranks: HugePageSlice<Line>,
    /// The numbers of the members that are not the first of their list, and of receives whose posting is delayed.
    numbers: HugePageSlice<u32>,
}

#[repr(C, align(64))]
#[derive(Clone, Copy, Debug)]
struct Line {
    /// When the CPU, the sending side and the receiving side of the NIC become free.
    free: [u64; 3],
    /// The lists of waiting calculations, sends and messages, linked through the words of the operations.
    lists: [List; 3],
    wake: u32,
}

#[derive(Clone, Copy, Debug)]
struct List {
    /// [`NOBODY`] if the list is empty.
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
    fn add(&mut self, place: Place, number: u32, op: u32, words: &mut OperationWords) {
        let list = &mut self.ranks[(place.rank - self.first_rank) as usize].lists[place.side as usize];
        if list.first == NOBODY {
            *list = List { first: op, last: op, number };
            return;
        }
        if number < list.number {
            words.set_next(op, list.first);
            self.numbers[list.first as usize] = list.number;
            (list.first, list.number) = (op, number);
            return;
        }
        self.numbers[op as usize] = number;
        let mut before = list.last;
        if before != list.first && number < self.numbers[before as usize] {
            before = list.first;
            while self.numbers[words.next(before) as usize] < number {
                before = words.next(before);
            }
            words.set_next(op, words.next(before));
        } else {
            list.last = op;
        }
        words.set_next(before, op);
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
    fn take(&mut self, rank: u32, list: usize, words: &OperationWords) {
        let list = &mut self.ranks[(rank - self.first_rank) as usize].lists[list];
        if list.first == list.last {
            list.first = NOBODY;
            list.number = NO_NUMBER;
        } else {
            list.first = words.next(list.first);
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
    /// When each resource becomes free. For each rank: its CPUs, then the sending sides and then the receiving sides of its
    /// NICs.
    free: Vec<u64>,
    ranks: Vec<Rank>,
}

#[derive(Clone, Debug)]
struct Rank {
    classes: Vec<Class>,
    wake: u32,
}

/// The operations and messages of one class that wait.
#[derive(Clone, Debug)]
struct Class {
    place: Place,
    /// Numbers and operations that came in the order of their numbers, as most do.
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

    fn add(&mut self, place: Place, number: u32, op: u32, _: &mut OperationWords) {
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

    fn take(&mut self, rank: u32, list: usize, _: &OperationWords) {
        // The class is kept, as it will be needed again.
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
