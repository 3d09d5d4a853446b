// SPDX-License-Identifier: Apache-2.0
//! Matching of receives and messages.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;
use sim::memory::HugePageSlice;

use crate::op::{ANY, Kind, Op};
use crate::operation_table::OperationTable;
use crate::schedule::Schedule;

/// Posted receives and unexpected messages of all ranks. A message is identified by its send operation.
///
/// Matching itself takes no time: an executor decides when a message arrives and a receive is posted.
//
// Receives or messages with the same receiver, source, tag and space form a list in the order of their posting or
// arrival. It holds either receives or messages, as a pair of both would have matched. A hash table finds the list.
// Receives with wildcards have separate lists; only schedules with wildcards pay for the order across lists.
//
// The words of the operations link the members of a list: each holds the next, and the last holds the first.
#[derive(Debug)]
pub struct Matching<'a> {
    ops: &'a [Op],
    /// Upper half: hash of a list. Lower half: its last member plus one, or 0 if empty.
    slots: HugePageSlice<u64>,
    lists: usize,
    wildcards: Option<Wildcards>,
}

/// Receives with wildcards, and the messages that they may take. The key of a list contains [`ANY`], so a search never
/// visits members that do not match.
#[derive(Debug)]
struct Wildcards {
    /// Sequence number with which an operation joined a list, or [`GONE`] after it left.
    order: Vec<u32>,
    joined: u32,
    /// Combinations of wildcards in the schedule.
    combinations: Vec<Combination>,
    posted: FxHashMap<Key, VecDeque<u32>>,
    /// Unexpected messages, each in a list for every combination. A message taken from another list stays here until it
    /// is the first of its list, or until most messages here are taken.
    arrived: FxHashMap<Key, VecDeque<u32>>,
    /// Number of members of `arrived`, and number of taken ones among them.
    members: usize,
    gone: usize,
}

/// Wildcard parts of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Combination {
    source: bool,
    tag: bool,
}

const GONE: u32 = u32::MAX;
/// Maximum number of taken members that do not justify a sweep.
const FEW: usize = 1024;

/// Receiver, source, tag, and space.
type Key = (u32, u32, u32, u32);

#[inline]
fn key(record: &Op) -> Key {
    if record.kind() == Kind::Recv {
        (record.rank, record.peer, record.tag, record.space())
    } else {
        (record.peer, record.rank, record.tag, record.space())
    }
}

#[inline]
fn hash((receiver, source, tag, space): Key) -> u32 {
    let one = (u64::from(receiver) << 32 | u64::from(source)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let two = (u64::from(tag) << 12 | u64::from(space)).wrapping_add(1).wrapping_mul(0xd6e8_feb8_6659_fd93);
    let mixed = (one ^ two.rotate_left(29)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    (mixed >> 32) as u32
}

impl<'a> Matching<'a> {
    /// Creates an empty state.
    pub fn new(schedule: &'a Schedule) -> Matching<'a> {
        let ranks = schedule.ranks() as usize;
        let wildcards = schedule.has_wildcards.then(|| Wildcards::new(schedule));
        let slots = HugePageSlice::zeroed((2 * ranks.min(schedule.len())).next_power_of_two().max(512));
        slots.populate(0..slots.len());
        Matching { ops: &schedule.ops, slots, lists: 0, wildcards }
    }

    /// Returns the first matching message that has arrived, or else posts the receive.
    #[inline]
    pub fn post(&mut self, receive: u32, operations: &mut OperationTable) -> Option<u32> {
        let record = &self.ops[receive as usize];
        if record.peer == ANY || record.tag == ANY {
            return self.post_wildcard(receive, operations);
        }
        let slot = self.find(key(record));
        if let Ok(slot) = slot
            && self.holds(slot) == Kind::Send
        {
            let message = self.pop(slot, operations);
            if let Some(wildcards) = &mut self.wildcards {
                wildcards.leave(message);
            }
            return Some(message);
        }
        self.join(receive, slot, operations);
        None
    }

    /// Returns the first posted receive that matches the message of a send, or else stores the message as unexpected.
    #[inline]
    pub fn arrive(&mut self, message: u32, operations: &mut OperationTable) -> Option<u32> {
        let record = &self.ops[message as usize];
        let slot = self.find(key(record));
        let exact = slot.ok().filter(|&slot| self.holds(slot) == Kind::Recv);
        if let Some(wildcards) = &mut self.wildcards {
            let before = exact.map_or(GONE, |slot| {
                let last = self.slots[slot] as u32 - 1;
                wildcards.order[operations.next(last) as usize]
            });
            if let Some(receive) = wildcards.take_receive(key(record), before) {
                return Some(receive);
            }
            if exact.is_none() {
                wildcards.keep_message(key(record), message);
            }
        }
        if let Some(slot) = exact {
            return Some(self.pop(slot, operations));
        }
        self.join(message, slot, operations);
        None
    }

    #[cold]
    fn post_wildcard(&mut self, receive: u32, operations: &mut OperationTable) -> Option<u32> {
        let wildcards = self.wildcards.as_mut().expect("the schedule has wildcards");
        let wanted = key(&self.ops[receive as usize]);
        let Some(message) = wildcards.first_message(wanted) else {
            wildcards.posted.entry(wanted).or_default().push_back(receive);
            wildcards.join(receive);
            return None;
        };
        wildcards.leave(message);
        // The first of all matching messages is the first of its own list.
        let slot = self.find(key(&self.ops[message as usize])).expect("an unexpected message is in a list");
        let first = self.pop(slot, operations);
        debug_assert_eq!(first, message);
        Some(message)
    }

    /// Returns all posted receives and unexpected messages, in ascending order.
    pub fn unmatched(&self, operations: &OperationTable) -> Vec<u32> {
        let mut all = Vec::new();
        for slot in self.slots.iter().filter(|&&slot| slot != 0) {
            let last = *slot as u32 - 1;
            let members = std::iter::successors(Some(last), |&op| Some(operations.next(op)).filter(|&op| op != last));
            all.extend(members);
        }
        if let Some(wildcards) = &self.wildcards {
            all.extend(wildcards.posted.values().flatten());
        }
        all.sort_unstable();
        all
    }

    /// Returns the slot of the list of a key, or else the free slot for a new list.
    #[inline]
    fn find(&self, wanted: Key) -> Result<usize, usize> {
        let hash = hash(wanted);
        let mask = self.slots.len() - 1;
        let mut slot = hash as usize & mask;
        loop {
            let value = self.slots[slot];
            if value == 0 {
                return Err(slot);
            }
            if (value >> 32) as u32 == hash && key(&self.ops[value as u32 as usize - 1]) == wanted {
                return Ok(slot);
            }
            slot = (slot + 1) & mask;
        }
    }

    /// Returns the first probed slot for an operation's list, for prefetching.
    #[inline]
    pub(crate) fn slot_of(&self, record: &Op) -> &u64 {
        &self.slots[hash(key(record)) as usize & (self.slots.len() - 1)]
    }

    /// Returns the number of 8-byte slots.
    #[inline]
    pub(crate) fn slots(&self) -> usize {
        self.slots.len()
    }

    /// Returns the kind of a list's members: sends or receives.
    #[inline]
    fn holds(&self, slot: usize) -> Kind {
        self.ops[self.slots[slot] as u32 as usize - 1].kind()
    }

    /// Adds an operation to the end of the list at `slot`, or creates a list there.
    #[inline]
    fn join(&mut self, op: u32, slot: Result<usize, usize>, operations: &mut OperationTable) {
        if let Some(wildcards) = &mut self.wildcards {
            wildcards.join(op);
        }
        match slot {
            Ok(slot) => {
                let last = self.slots[slot] as u32 - 1;
                operations.set_next(op, operations.next(last));
                operations.set_next(last, op);
                self.slots[slot] = self.slots[slot] >> 32 << 32 | u64::from(op + 1);
            }
            Err(slot) => {
                operations.set_next(op, op);
                self.slots[slot] = u64::from(hash(key(&self.ops[op as usize]))) << 32 | u64::from(op + 1);
                self.lists += 1;
                if self.lists * 4 > self.slots.len() * 3 {
                    self.resize(self.slots.len() * 2);
                }
            }
        }
    }

    /// Takes the first member of a list.
    #[inline]
    fn pop(&mut self, slot: usize, operations: &mut OperationTable) -> u32 {
        let last = self.slots[slot] as u32 - 1;
        let first = operations.next(last);
        if first == last {
            self.delete(slot);
        } else {
            operations.set_next(last, operations.next(first));
        }
        first
    }

    /// Empties a slot and moves up the displaced slots after it.
    #[inline]
    fn delete(&mut self, mut hole: usize) {
        self.lists -= 1;
        let mask = self.slots.len() - 1;
        let mut slot = hole;
        loop {
            slot = (slot + 1) & mask;
            let value = self.slots[slot];
            if value == 0 {
                break;
            }
            let home = (value >> 32) as usize & mask;
            if (slot.wrapping_sub(home) & mask) >= (slot.wrapping_sub(hole) & mask) {
                self.slots[hole] = value;
                hole = slot;
            }
        }
        self.slots[hole] = 0;
    }

    /// Reserves `lists` lists at once, instead of growing step by step.
    pub(crate) fn reserve(&mut self, lists: usize) {
        let size = (lists * 4).div_ceil(3).next_power_of_two();
        if size > self.slots.len() {
            self.resize(size);
        }
    }

    #[cold]
    fn resize(&mut self, size: usize) {
        let old = std::mem::replace(&mut self.slots, HugePageSlice::zeroed(size));
        self.slots.populate(0..size);
        for &value in &*old {
            if value != 0 {
                let mut slot = (value >> 32) as usize & (size - 1);
                while self.slots[slot] != 0 {
                    slot = (slot + 1) & (size - 1);
                }
                self.slots[slot] = value;
            }
        }
    }
}

impl Combination {
    /// Returns the key of the list of receives with these wildcards that match a message with this key.
    fn of((receiver, source, tag, space): Key, wildcards: Combination) -> Key {
        let source = if wildcards.source { ANY } else { source };
        let tag = if wildcards.tag { ANY } else { tag };
        (receiver, source, tag, space)
    }
}

impl Wildcards {
    fn new(schedule: &Schedule) -> Wildcards {
        let mut combinations = Vec::new();
        for record in schedule.ops.iter().filter(|record| record.kind() == Kind::Recv) {
            let combination = Combination { source: record.peer == ANY, tag: record.tag == ANY };
            if (combination.source || combination.tag) && !combinations.contains(&combination) {
                combinations.push(combination);
            }
        }
        Wildcards {
            order: vec![GONE; schedule.len()],
            joined: 0,
            combinations,
            posted: FxHashMap::default(),
            arrived: FxHashMap::default(),
            members: 0,
            gone: 0,
        }
    }

    fn join(&mut self, op: u32) {
        self.order[op as usize] = self.joined;
        self.joined += 1;
    }

    /// Takes the first wildcard receive that matches a message, if its sequence number is below `before`.
    fn take_receive(&mut self, message: Key, before: u32) -> Option<u32> {
        let first = |&wildcards: &Combination| {
            let key = Combination::of(message, wildcards);
            let receive = *self.posted.get(&key)?.front()?;
            Some((self.order[receive as usize], key))
        };
        let (_, key) = self.combinations.iter().filter_map(first).min().filter(|&(order, _)| order < before)?;
        let list = self.posted.get_mut(&key)?;
        let receive = list.pop_front();
        if list.is_empty() {
            self.posted.remove(&key);
        }
        receive
    }

    fn keep_message(&mut self, key: Key, message: u32) {
        for &wildcards in &self.combinations {
            self.arrived.entry(Combination::of(key, wildcards)).or_default().push_back(message);
        }
        self.members += self.combinations.len();
    }

    /// Returns the first unexpected message that matches a wildcard receive, without taking it.
    fn first_message(&mut self, receive: Key) -> Option<u32> {
        let list = self.arrived.get_mut(&receive)?;
        while list.front().is_some_and(|&message| self.order[message as usize] == GONE) {
            list.pop_front();
            self.members -= 1;
            self.gone -= 1;
        }
        let first = list.front().copied();
        if first.is_none() {
            self.arrived.remove(&receive);
        }
        first
    }

    /// Marks an unexpected message as taken.
    fn leave(&mut self, message: u32) {
        self.order[message as usize] = GONE;
        self.gone += self.combinations.len();
        if self.gone > FEW && self.gone > self.members / 2 {
            self.arrived.retain(|_, list| {
                list.retain(|&message| self.order[message as usize] != GONE);
                !list.is_empty()
            });
            self.members -= self.gone;
            self.gone = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{Action, Builder};

    fn fits(receive: &Op, message: &Op) -> bool {
        (receive.peer == message.rank || receive.peer == ANY)
            && (receive.tag == message.tag || receive.tag == ANY)
            && receive.space() == message.space()
    }

    proptest! {
        /// Compares with linear searches of lists.
        #[test]
        fn the_first_that_fits_is_taken(
            // True for a receive; source, tag and space. Source or tag 3 is the wildcard.
            all in prop::collection::vec((any::<bool>(), 0u32..4, 0u32..4, 0u16..2), 1..120),
            with_wildcards: bool,
        ) {
            let all: Vec<_> = all.into_iter().filter(|&(is_receive, from, tag, _)| {
                (with_wildcards && is_receive) || (from < 3 && tag < 3)
            }).collect();
            let mut builder = Builder::new(3);
            let mut ops = vec![0; all.len()];
            for rank in 0..3 {
                builder.begin_rank(rank);
                for (op, &(is_receive, from, tag, space)) in ops.iter_mut().zip(&all) {
                    let some = |number: u32| (number < 3).then_some(number);
                    if is_receive && rank == 0 {
                        let action = Action::Recv { bytes: 1, from: some(from), tag: some(tag), space };
                        *op = builder.add(action, 0, 0).unwrap();
                    } else if !is_receive && rank == from {
                        *op = builder.add(Action::Send { bytes: 1, to: 0, tag, space }, 0, 0).unwrap();
                    }
                }
                builder.end_rank().unwrap();
            }
            let schedule = builder.finish().unwrap();
            let mut matching = Matching::new(&schedule);
            let mut operations = OperationTable::new(schedule.len(), 0..0);
            let (mut posted, mut arrived) = (Vec::new(), Vec::new());
            for (&op, &(is_receive, ..)) in ops.iter().zip(&all) {
                let record = &schedule.ops[op as usize];
                let (others, own) = if is_receive { (&mut arrived, &mut posted) } else { (&mut posted, &mut arrived) };
                let place = others.iter().position(|&other: &u32| {
                    let other = &schedule.ops[other as usize];
                    if is_receive { fits(record, other) } else { fits(other, record) }
                });
                let expected = place.map(|place| others.remove(place));
                if expected.is_none() {
                    own.push(op);
                }
                let found =
                    if is_receive { matching.post(op, &mut operations) } else { matching.arrive(op, &mut operations) };
                prop_assert_eq!(found, expected);
            }
        }
    }

    /// Wildcard receives posted in reverse order of the arrivals: a linear search would take ten thousand million
    /// steps.
    #[test]
    fn many_wildcards_in_reverse_order_are_found_without_a_search() {
        const MANY: u32 = 100_000;
        for is_posted_first in [true, false] {
            let mut builder = Builder::new(2);
            builder.begin_rank(0);
            let receive = |tag| Action::Recv { bytes: 1, from: None, tag: Some(tag), space: 0 };
            let receives: Vec<_> = (0..MANY).map(|tag| builder.add(receive(tag), 0, 0).unwrap()).collect();
            builder.end_rank().unwrap();
            builder.begin_rank(1);
            let send = |tag| Action::Send { bytes: 1, to: 0, tag, space: 0 };
            let sends: Vec<_> = (0..MANY).map(|tag| builder.add(send(tag), 0, 0).unwrap()).collect();
            builder.end_rank().unwrap();
            let schedule = builder.finish().unwrap();
            let (mut matching, mut operations) = (Matching::new(&schedule), OperationTable::new(schedule.len(), 0..0));
            if is_posted_first {
                assert!(receives.iter().all(|&receive| matching.post(receive, &mut operations).is_none()));
                for (&send, &receive) in sends.iter().zip(&receives).rev() {
                    assert_eq!(matching.arrive(send, &mut operations), Some(receive));
                }
            } else {
                assert!(sends.iter().all(|&send| matching.arrive(send, &mut operations).is_none()));
                for (&send, &receive) in sends.iter().zip(&receives).rev() {
                    assert_eq!(matching.post(receive, &mut operations), Some(send));
                }
            }
            assert!(matching.unmatched(&operations).is_empty());
        }
    }
}
