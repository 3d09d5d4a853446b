use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use sim::memory::{Large, prefetch};

use super::number::Number;
use crate::schedule::Schedule;

/// What an event needs of its rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// A CPU
    Calc,
    /// A CPU and the sending side of a NIC
    Send,
    /// A CPU and the receiving side of a NIC
    Message,
}

/// A resource class: who needs the same CPU and the same side of the same NIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub rank: u32,
    pub cpu: usize,
    pub nic: usize,
    pub side: Side,
}

/// Who goes first of those who wait at a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct First<N> {
    pub at: u64,
    pub number: N,
    pub op: u32,
    /// Whether it is the message of the operation.
    pub is_message: bool,
    /// Where it waits, for [`Resources::take`].
    pub list: usize,
}

/// When the CPUs and NICs of all ranks are free, in picoseconds, and who waits for them.
///
/// All of a class become free to go at the same time, so only the one with the smallest number is of interest.
pub(super) trait Resources<N: Number> {
    fn new(schedule: &Schedule) -> Self;
    /// When all that the place needs is free.
    fn free(&self, place: Place) -> u64;
    /// When a CPU is free.
    fn cpu_free(&self, rank: u32, cpu: usize) -> u64;
    fn occupy(&mut self, place: Place, cpu_until: u64, nic_until: u64);
    /// Has the place not be free before.
    fn raise(&mut self, place: Place, at: u64);
    /// Whether nobody waits for the same.
    fn is_idle(&self, place: Place) -> bool;
    /// Lets an operation or message wait. `words` has a word for each operation, which is its own while it waits.
    fn add(&mut self, place: Place, number: N, op: u32, words: &mut [u32]);
    fn first(&self, rank: u32) -> Option<First<N>>;
    /// Takes out the first of a list.
    fn take(&mut self, rank: u32, list: usize, words: &[u32]);
    /// The number with which the queue of events will come back to the rank.
    fn wake(&mut self, rank: u32) -> &mut N;
    /// When the last CPU of a rank is free.
    fn end(&self, rank: u32) -> u64;
    fn prefetch(&self, rank: u32);
}

/// One CPU and one NIC a rank: a cache line each.
///
/// Nearly always, whoever comes to wait has a greater number than those who wait in the same list: most operations wait
/// from the moment that gives them their number, and messages arrive in the order of their sending.
#[derive(Debug)]
pub(super) struct One<N> {
    ranks: Large<Line<N>>,
    /// The numbers of those that are not first in their list.
    numbers: Large<N>,
}

#[repr(C, align(64))]
#[derive(Clone, Copy, Debug)]
struct Line<N> {
    /// Of the CPU, and of the NIC's sending and receiving side.
    free: [u64; 3],
    /// Of calculations, sends and messages. In a list, an operation's word is the next.
    lists: [List<N>; 3],
    wake: N,
}

#[derive(Clone, Copy, Debug)]
struct List<N> {
    /// [`NOBODY`] if the list is empty.
    first: u32,
    last: u32,
    number: N,
}

const NOBODY: u32 = u32::MAX;

impl<N: Number> Resources<N> for One<N> {
    fn new(schedule: &Schedule) -> One<N> {
        let empty = List { first: NOBODY, last: NOBODY, number: N::NONE };
        let line = Line { free: [0; 3], lists: [empty; 3], wake: N::NONE };
        One { ranks: Large::filled(line, schedule.ranks() as usize), numbers: Large::zeroed(schedule.len()) }
    }

    #[inline]
    fn free(&self, place: Place) -> u64 {
        let free = &self.ranks[place.rank as usize].free;
        free[0].max(free[place.side as usize])
    }

    #[inline]
    fn cpu_free(&self, rank: u32, _: usize) -> u64 {
        self.ranks[rank as usize].free[0]
    }

    #[inline]
    fn occupy(&mut self, place: Place, cpu_until: u64, nic_until: u64) {
        let free = &mut self.ranks[place.rank as usize].free;
        free[place.side as usize] = nic_until;
        free[0] = cpu_until;
    }

    fn raise(&mut self, place: Place, at: u64) {
        let free = &mut self.ranks[place.rank as usize].free;
        for need in [0, place.side as usize] {
            free[need] = free[need].max(at);
        }
    }

    #[inline]
    fn is_idle(&self, place: Place) -> bool {
        self.ranks[place.rank as usize].lists[place.side as usize].first == NOBODY
    }

    #[inline]
    fn add(&mut self, place: Place, number: N, op: u32, words: &mut [u32]) {
        let list = &mut self.ranks[place.rank as usize].lists[place.side as usize];
        if list.first == NOBODY {
            *list = List { first: op, last: op, number };
            return;
        }
        if number < list.number {
            words[op as usize] = list.first;
            self.numbers[list.first as usize] = list.number;
            (list.first, list.number) = (op, number);
            return;
        }
        self.numbers[op as usize] = number;
        let mut before = list.last;
        if before != list.first && number < self.numbers[before as usize] {
            before = list.first;
            while self.numbers[words[before as usize] as usize] < number {
                before = words[before as usize];
            }
            words[op as usize] = words[before as usize];
        } else {
            list.last = op;
        }
        words[before as usize] = op;
    }

    #[inline]
    fn first(&self, rank: u32) -> Option<First<N>> {
        let Line { free, lists, .. } = &self.ranks[rank as usize];
        if lists.iter().all(|list| list.first == NOBODY) {
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
    fn take(&mut self, rank: u32, list: usize, words: &[u32]) {
        let list = &mut self.ranks[rank as usize].lists[list];
        if list.first == list.last {
            list.first = NOBODY;
            list.number = N::NONE;
        } else {
            list.first = words[list.first as usize];
            list.number = self.numbers[list.first as usize];
        }
    }

    #[inline]
    fn wake(&mut self, rank: u32) -> &mut N {
        &mut self.ranks[rank as usize].wake
    }

    fn end(&self, rank: u32) -> u64 {
        self.ranks[rank as usize].free[0]
    }

    #[inline]
    fn prefetch(&self, rank: u32) {
        prefetch(&raw const self.ranks[rank as usize]);
    }
}

/// Any number of CPUs and NICs.
#[derive(Debug)]
pub(super) struct Many<N> {
    cpus: usize,
    nics: usize,
    /// For each rank: of its CPUs, then of the sending, then of the receiving sides of its NICs.
    free: Vec<u64>,
    ranks: Vec<Rank<N>>,
}

#[derive(Clone, Debug)]
struct Rank<N> {
    classes: Vec<Class<N>>,
    wake: N,
}

/// Those with the same needs.
#[derive(Clone, Debug)]
struct Class<N> {
    place: Place,
    /// Came in the order of their numbers, as most do.
    in_turn: VecDeque<(N, u32)>,
    /// All others.
    out_of_turn: BinaryHeap<Reverse<(N, u32)>>,
}

impl<N: Number> Class<N> {
    fn first(&self) -> Option<(N, u32)> {
        let (one, other) = (self.in_turn.front().copied(), self.out_of_turn.peek().map(|other| other.0));
        one.into_iter().chain(other).min()
    }
}

impl<N> Many<N> {
    /// Where in `free` the two that a place needs are.
    fn needs(&self, place: Place) -> [usize; 2] {
        let base = place.rank as usize * (self.cpus + 2 * self.nics);
        let cpu = base + place.cpu;
        let side = base + self.cpus + place.nic;
        match place.side {
            Side::Calc => [cpu, cpu],
            Side::Send => [cpu, side],
            Side::Message => [cpu, side + self.nics],
        }
    }

    fn cpus_of(&self, rank: u32) -> &[u64] {
        let base = rank as usize * (self.cpus + 2 * self.nics);
        &self.free[base..base + self.cpus]
    }
}

impl<N: Number> Resources<N> for Many<N> {
    fn new(schedule: &Schedule) -> Many<N> {
        let (cpus, nics, ranks) = (schedule.cpus, schedule.nics, schedule.ranks() as usize);
        let free = vec![0; ranks * (cpus + 2 * nics)];
        Many { cpus, nics, free, ranks: vec![Rank { classes: Vec::new(), wake: N::NONE }; ranks] }
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
        let mut classes = self.ranks[place.rank as usize].classes.iter();
        classes.find(|class| class.place == place).is_none_or(|class| class.first().is_none())
    }

    fn add(&mut self, place: Place, number: N, op: u32, _: &mut [u32]) {
        let classes = &mut self.ranks[place.rank as usize].classes;
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

    fn first(&self, rank: u32) -> Option<First<N>> {
        let heads = self.ranks[rank as usize].classes.iter().enumerate().filter_map(|(list, class)| {
            let (number, op) = class.first()?;
            let is_message = class.place.side == Side::Message;
            Some(First { at: self.free(class.place), number, op, is_message, list })
        });
        heads.min_by_key(|first| (first.at, first.number))
    }

    fn take(&mut self, rank: u32, list: usize, _: &[u32]) {
        // The class stays: its needs come again.
        let class = &mut self.ranks[rank as usize].classes[list];
        if class.in_turn.front().copied() == class.first() {
            class.in_turn.pop_front();
        } else {
            class.out_of_turn.pop();
        }
    }

    fn wake(&mut self, rank: u32) -> &mut N {
        &mut self.ranks[rank as usize].wake
    }

    fn end(&self, rank: u32) -> u64 {
        self.cpus_of(rank).iter().copied().max().unwrap_or(0)
    }

    fn prefetch(&self, rank: u32) {
        prefetch(&raw const self.ranks[rank as usize]);
    }
}
