use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Bits of a time that one level of the wheel tells apart.
const BITS: u32 = 6;
const SLOTS: usize = 1 << BITS;
const LEVELS: usize = u64::BITS.div_ceil(BITS) as usize;
/// Entries that an empty slot keeps room for. What a burst needed beyond is given back.
const KEPT: usize = 256;

/// Something that happens at a time in picoseconds; of those at one time, the one with the smallest number comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Entry {
    pub at: u64,
    pub number: u32,
    pub event: u32,
}

/// A queue in the order of (time, number).
///
/// The same timing wheel as [`sim::EventQueue`], with numbers that are given from outside: what had to wait keeps its
/// number and so comes before what was inserted earlier. Numbers mostly ascend, so that sorting those of one time costs
/// little more than a look. Unlike there, an entry may lie in the past (see [`Options`](super::Options)).
#[derive(Debug)]
pub(super) struct Queue {
    now: u64,
    /// Entries of this very moment in the order of their numbers, from `next` on.
    due: Vec<Entry>,
    next: usize,
    /// Entries of this moment, or of the past, with numbers out of turn.
    late: BinaryHeap<Reverse<Entry>>,
    /// Level by level.
    slots: Vec<Vec<Entry>>,
    /// For each level, which slots are not empty.
    used: [u64; LEVELS],
    /// Which levels are not empty.
    used_levels: u32,
}

impl Queue {
    pub fn new() -> Queue {
        Queue {
            now: 0,
            due: Vec::new(),
            next: 0,
            late: BinaryHeap::new(),
            slots: vec![Vec::new(); LEVELS * SLOTS],
            used: [0; LEVELS],
            used_levels: 0,
        }
    }

    #[inline]
    pub fn push(&mut self, entry: Entry) {
        if entry.at <= self.now {
            let is_last = self.due.last().is_none_or(|last| last.number < entry.number);
            if entry.at == self.now && is_last {
                self.due.push(entry);
            } else {
                self.late.push(Reverse(entry));
            }
        } else {
            self.place(entry);
        }
    }

    #[inline]
    pub fn pop(&mut self) -> Option<Entry> {
        if self.next == self.due.len() && self.late.is_empty() {
            self.advance()?;
        }
        let due = self.due.get(self.next).copied();
        if let Some(&Reverse(late)) = self.late.peek()
            && due.is_none_or(|due| late < due)
        {
            self.late.pop();
            return Some(late);
        }
        self.next += 1;
        due
    }

    /// The event that comes `ahead` entries after the next, if that is already known.
    #[inline]
    pub fn soon(&self, ahead: usize) -> Option<u32> {
        self.due.get(self.next + ahead).map(|entry| entry.event)
    }

    /// Puts an entry of the future in the slot of the highest bits in which its time differs from now.
    #[inline]
    fn place(&mut self, entry: Entry) {
        let level = ((entry.at ^ self.now).ilog2() / BITS) as usize;
        let number = (entry.at >> (level as u32 * BITS)) as usize % SLOTS;
        self.used[level] |= 1 << number;
        self.used_levels |= 1 << level;
        self.slots[level * SLOTS + number].push(entry);
    }

    /// Moves time to the first entry, when none is due.
    fn advance(&mut self) -> Option<()> {
        self.due.clear();
        self.next = 0;
        let level = self.used_levels.trailing_zeros() as usize;
        let used = self.used.get_mut(level)?;
        let slot = level * SLOTS + used.trailing_zeros() as usize;
        *used &= *used - 1;
        if *used == 0 {
            self.used_levels &= self.used_levels - 1;
        }
        let mut entries = std::mem::take(&mut self.slots[slot]);
        if level == 0 {
            // All of one time.
            self.now = entries[0].at;
            std::mem::swap(&mut self.due, &mut entries);
        } else {
            self.now = entries.iter().map(|entry| entry.at).min()?;
            for entry in entries.drain(..) {
                if entry.at == self.now {
                    self.due.push(entry);
                } else {
                    self.place(entry);
                }
            }
        }
        entries.shrink_to(KEPT);
        self.slots[slot] = entries;
        if !self.due.is_sorted_by_key(|entry| entry.number) {
            self.due.sort_unstable_by_key(|entry| entry.number);
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Against a list that is searched for the least (time, number).
        #[test]
        fn entries_come_by_time_and_then_by_number(
            // None takes an entry out; a push is this far ahead, and takes a number of before or a fresh one.
            steps in prop::collection::vec(prop::option::weighted(0.6, (0u64..8, 0u32..40, any::<bool>())), 1..200),
        ) {
            let (mut queue, mut list, mut now) = (Queue::new(), Vec::new(), 0);
            let mut numbers: Vec<u32> = (0..100).collect();
            let mut fresh = 100;
            for step in steps.into_iter().chain(std::iter::repeat_n(None, 200)) {
                match step {
                    Some((ahead, shift, old)) => {
                        let number = if old { numbers.pop().unwrap_or(fresh) } else { fresh };
                        fresh += u32::from(number == fresh);
                        let entry = Entry { at: now + (ahead << shift), number, event: number };
                        queue.push(entry);
                        list.push(entry);
                    }
                    None => {
                        let first = list.iter().copied().min();
                        prop_assert_eq!(queue.pop(), first);
                        list.retain(|entry| Some(*entry) != first);
                        now = first.map_or(now, |entry| entry.at);
                    }
                }
            }
        }
    }

    #[test]
    fn the_past_comes_first() {
        let mut queue = Queue::new();
        let entry = |at, number| Entry { at, number, event: 0 };
        queue.push(entry(100, 0));
        queue.push(entry(100, 1));
        assert_eq!(queue.pop(), Some(entry(100, 0)));
        queue.push(entry(50, 2));
        queue.push(entry(70, 3));
        assert_eq!(
            [queue.pop(), queue.pop(), queue.pop()],
            [Some(entry(50, 2)), Some(entry(70, 3)), Some(entry(100, 1))]
        );
        assert_eq!(queue.pop(), None);
    }
}
