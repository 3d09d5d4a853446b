// SPDX-License-Identifier: Apache-2.0
//! Event queue of the LogGOPS engine, ordered by time and number.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt;

use sim::Pool;

/// Number of time bits of one level of the wheel.
const BITS: u32 = 6;
const SLOTS: usize = 1 << BITS;
const LEVELS: usize = u64::BITS.div_ceil(BITS) as usize;
/// Maximum number of entries of a slot that is sorted instead of distributed further.
const BATCH: usize = 16;
/// Maximum number of ranks for which that number is halved, so that a slot does not hold nearly all entries: each new
/// one would be inserted among them.
const FEW_RANKS: usize = 64;

/// An event at a time in picoseconds. Events of equal time are ordered by number.
//
// Time, number and event from the highest bit on, so that entries are compared without branches and passed in
// registers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Entry(u128);

impl Entry {
    #[inline(always)]
    pub fn new(at: u64, number: u32, event: u32) -> Entry {
        Entry(u128::from(at) << 64 | u128::from(u64::from(number) << 32 | u64::from(event)))
    }

    #[inline(always)]
    pub fn at(self) -> u64 {
        (self.0 >> 64) as u64
    }

    #[inline(always)]
    pub fn number(self) -> u32 {
        (self.0 >> 32) as u32
    }

    #[inline(always)]
    pub fn event(self) -> u32 {
        self.0 as u32
    }
}

impl fmt::Debug for Entry {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (at, number, event) = (self.at(), self.number(), self.event());
        formatter.debug_struct("Entry").field("at", &at).field("number", &number).field("event", &event).finish()
    }
}

/// A queue in the order of (time, number).
///
/// This is the timing wheel of [`sim::EventQueue`] with three differences. Numbers are assigned by the caller, so a
/// delayed event keeps its number and precedes others inserted earlier. A slot with few entries is sorted as a whole,
/// so that the engine can look ahead and prefetch. And an entry may lie in the past (see [`Options`](super::Options)).
#[derive(Debug)]
pub(super) struct Queue {
    /// The wheel holds all entries after this time; earlier ones are in `due` or `late`.
    horizon: u64,
    /// Sorted entries; those before `next` are already removed.
    due: Vec<Entry>,
    next: usize,
    /// Entries that would be inserted far before the end of `due`.
    late: BinaryHeap<Reverse<Entry>>,
    /// Slots of all levels, level by level.
    slots: Vec<Vec<Entry>>,
    /// For each level, a bitmap of the non-empty slots.
    used: [u64; LEVELS],
    /// Bitmap of the non-empty levels.
    used_levels: u32,
    pool: Pool<Entry>,
    /// Maximum number of entries of a slot that is sorted instead of distributed further.
    batch: usize,
}

impl Queue {
    /// Creates an empty queue for the events of `ranks` ranks.
    pub fn new(ranks: usize) -> Queue {
        Queue {
            batch: if ranks <= FEW_RANKS { BATCH / 2 } else { BATCH },
            horizon: 0,
            due: Vec::new(),
            next: 0,
            late: BinaryHeap::new(),
            slots: vec![Vec::new(); LEVELS * SLOTS],
            used: [0; LEVELS],
            used_levels: 0,
            pool: Pool::default(),
        }
    }

    #[inline(always)]
    pub fn push(&mut self, entry: Entry) {
        if entry.at() > self.horizon {
            self.place(entry);
        } else if self.due.last().is_none_or(|last| *last < entry) {
            self.due.push(entry);
        } else {
            self.insert(entry);
        }
    }

    fn insert(&mut self, entry: Entry) {
        let due = &self.due[self.next..];
        if due.len() > 2 * self.batch {
            self.late.push(Reverse(entry));
        } else {
            self.due.push(entry);
            let due = &mut self.due[self.next..];
            let mut place = due.len() - 1;
            while place > 0 && entry < due[place - 1] {
                due[place] = due[place - 1];
                place -= 1;
            }
            due[place] = entry;
        }
    }

    /// Removes and returns the first entry, if it precedes `limit`.
    #[inline(always)]
    pub fn pop(&mut self, limit: u64) -> Option<Entry> {
        if !self.late.is_empty() {
            return self.pop_of_both(limit);
        }
        if self.next == self.due.len() {
            self.advance(limit)?;
        }
        let entry = self.due[self.next];
        if entry.at() >= limit {
            return None;
        }
        self.next += 1;
        Some(entry)
    }

    fn pop_of_both(&mut self, limit: u64) -> Option<Entry> {
        let (due, late) = (self.due.get(self.next).copied(), self.late.peek()?.0);
        let is_due = due.is_some_and(|due| due < late);
        let first = due.filter(|_| is_due).unwrap_or(late);
        if first.at() >= limit {
            return None;
        }
        if is_due {
            self.next += 1;
        } else {
            self.late.pop();
        }
        Some(first)
    }

    /// Returns the time of the first entry.
    pub fn next_at(&self) -> Option<u64> {
        let (due, late) = (self.due.get(self.next), self.late.peek().map(|late| &late.0));
        let known = due.into_iter().chain(late).map(|entry| entry.at()).min();
        known.or_else(|| self.slots[self.first_slot()?].iter().map(|entry| entry.at()).min())
    }

    /// Returns the slot with the earliest entries.
    #[inline]
    fn first_slot(&self) -> Option<usize> {
        let level = self.used_levels.trailing_zeros() as usize;
        let used = self.used.get(level)?;
        Some(level * SLOTS + used.trailing_zeros() as usize)
    }

    /// Returns the event `ahead` entries after the next one, if already known.
    #[inline]
    pub fn soon(&self, ahead: usize) -> Option<u32> {
        self.due.get(self.next + ahead).map(|entry| entry.event())
    }

    /// Puts an entry into the slot of the highest bits in which its time differs from the horizon.
    #[inline]
    fn place(&mut self, entry: Entry) {
        let level = ((entry.at() ^ self.horizon).ilog2() / BITS) as usize;
        let number = (entry.at() >> (level as u32 * BITS)) as usize % SLOTS;
        self.used[level] |= 1 << number;
        self.used_levels |= 1 << level;
        let slot = &mut self.slots[level * SLOTS + number];
        self.pool.widen(slot);
        slot.push(entry);
    }

    /// Advances the horizon when no entry is before it. It stays before `limit` if possible, as other threads may still
    /// insert entries from there on.
    fn advance(&mut self, limit: u64) -> Option<()> {
        let slot = self.first_slot()?;
        if limit < u64::MAX && self.slots[slot].iter().all(|entry| entry.at() >= limit) {
            return None;
        }
        self.due.clear();
        self.next = 0;
        let level = slot / SLOTS;
        let used = &mut self.used[level];
        *used &= *used - 1;
        if *used == 0 {
            self.used_levels &= self.used_levels - 1;
        }
        let mut entries = std::mem::take(&mut self.slots[slot]);
        let last_moment = entries[0].at() | ((1 << (level as u32 * BITS)) - 1);
        if level == 0 || (entries.len() <= self.batch && last_moment < limit) {
            self.horizon = last_moment;
            std::mem::swap(&mut self.due, &mut entries);
        } else {
            self.horizon = entries.iter().map(|entry| entry.at()).min()?;
            for entry in entries.drain(..) {
                if entry.at() == self.horizon {
                    self.due.push(entry);
                } else {
                    self.place(entry);
                }
            }
        }
        self.slots[slot] = self.pool.keep(entries);
        if !self.due.is_sorted() {
            self.due.sort_unstable();
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Compares with a linear search for the smallest (time, number).
        #[test]
        fn entries_come_by_time_and_then_by_number(
            // `None` removes an entry. A push is this far ahead, and has the number of an earlier entry or a new one.
            steps in prop::collection::vec(prop::option::weighted(0.6, (0u64..8, 0u32..40, any::<bool>())), 1..400),
            ranks in prop::sample::select(vec![FEW_RANKS, FEW_RANKS + 1]),
        ) {
            let (mut queue, mut list, mut now) = (Queue::new(ranks), Vec::new(), 0);
            let mut numbers: Vec<u32> = (0..200).collect();
            let mut fresh = 200;
            for step in steps.into_iter().chain(std::iter::repeat_n(None, 400)) {
                match step {
                    Some((ahead, shift, old)) => {
                        let number = if old { numbers.pop().unwrap_or(fresh) } else { fresh };
                        fresh += u32::from(number == fresh);
                        let entry = Entry::new(now + (ahead << shift), number, number);
                        queue.push(entry);
                        list.push(entry);
                    }
                    None => {
                        let first = list.iter().copied().min();
                        prop_assert_eq!(queue.pop(u64::MAX), first);
                        list.retain(|entry| Some(*entry) != first);
                        now = first.map_or(now, |entry| entry.at());
                    }
                }
            }
        }
    }

    #[test]
    fn the_past_comes_first() {
        let mut queue = Queue::new(1);
        let entry = |at, number: u32| Entry::new(at, number, 0);
        queue.push(entry(100, 0));
        queue.push(entry(100, 1));
        assert_eq!(queue.pop(u64::MAX), Some(entry(100, 0)));
        queue.push(entry(50, 2));
        queue.push(entry(70, 3));
        assert_eq!(
            [queue.pop(u64::MAX), queue.pop(u64::MAX), queue.pop(u64::MAX)],
            [Some(entry(50, 2)), Some(entry(70, 3)), Some(entry(100, 1))]
        );
        assert_eq!(queue.pop(u64::MAX), None);
    }
}
