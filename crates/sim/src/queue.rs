use std::collections::VecDeque;

use crate::Time;

/// Bits of a time that one level of the wheel tells apart.
const BITS: u32 = 6;
/// Slots of a level, one for each value of its bits; one machine word says which are in use.
const SLOTS: usize = 1 << BITS;
/// Levels for all bits of a time.
const LEVELS: usize = u64::BITS.div_ceil(BITS) as usize;
/// Entries that an empty slot keeps room for. What a burst needed beyond is given back.
const KEPT: usize = 256;

/// A queue of events that gives them back by time, and among equal times by order of insertion.
///
/// A hierarchical timing wheel (Varghese and Lauck, SOSP'87) over the bits of a time, as a monotone radix heap uses it:
/// an event waits at the level of the highest bit in which its time differs from now, in the slot of its time's bits
/// there. The first event is in the first used slot of the lowest used level. When time reaches a slot its events move
/// to lower levels, a few moves each, however many events there are. Events of equal time are always in the same slot
/// and move together, so their order stays that of their insertion.
#[derive(Clone, Debug)]
pub struct EventQueue<E> {
    now: Time,
    /// Events of this very moment.
    due: VecDeque<E>,
    /// Level by level.
    slots: Vec<Slot<E>>,
    /// For each level, which slots are not empty.
    used: [u64; LEVELS],
    /// Which levels are not empty.
    used_levels: u32,
    len: usize,
    inserted: u64,
}

#[derive(Clone, Debug)]
struct Slot<E> {
    entries: Vec<(Time, E)>,
    /// Of the entries.
    earliest: Time,
}

impl<E> Default for EventQueue<E> {
    fn default() -> Self {
        let slot = || Slot { entries: Vec::new(), earliest: Time::MAX };
        EventQueue {
            now: Time::ZERO,
            due: VecDeque::new(),
            slots: std::iter::repeat_with(slot).take(LEVELS * SLOTS).collect(),
            used: [0; LEVELS],
            used_levels: 0,
            len: 0,
            inserted: 0,
        }
    }
}

impl<E> EventQueue<E> {
    /// Adds an event.
    ///
    /// # Panics
    /// When `at` is before the last event that was taken out: the past cannot change.
    #[inline]
    pub fn push(&mut self, at: Time, event: E) {
        assert!(at >= self.now, "event at {at} pushed at {}", self.now);
        self.len += 1;
        self.inserted += 1;
        self.place(at, event);
    }

    /// Takes out the first event.
    #[inline]
    pub fn pop(&mut self) -> Option<(Time, E)> {
        let event = match self.due.pop_front() {
            Some(event) => event,
            None => self.advance()?,
        };
        self.len -= 1;
        Some((self.now, event))
    }

    /// When the first event is due.
    pub fn peek_time(&self) -> Option<Time> {
        if self.due.is_empty() { self.first().map(|index| self.slots[index].earliest) } else { Some(self.now) }
    }

    /// The time of the last event that was taken out.
    pub fn now(&self) -> Time {
        self.now
    }

    /// Number of events in the queue.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether no event is left.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Number of events ever inserted.
    pub fn inserted(&self) -> u64 {
        self.inserted
    }

    #[inline]
    fn place(&mut self, at: Time, event: E) {
        let differs = at.as_ps() ^ self.now.as_ps();
        if differs == 0 {
            self.due.push_back(event);
            return;
        }
        let level = (differs.ilog2() / BITS) as usize;
        let number = (at.as_ps() >> (level as u32 * BITS)) as usize % SLOTS;
        self.used[level] |= 1 << number;
        self.used_levels |= 1 << level;
        let slot = &mut self.slots[level * SLOTS + number];
        slot.earliest = slot.earliest.min(at);
        slot.entries.push((at, event));
    }

    /// The slot of the first event that is not due.
    #[inline]
    fn first(&self) -> Option<usize> {
        let level = self.used_levels.trailing_zeros() as usize;
        self.used.get(level).map(|used| level * SLOTS + used.trailing_zeros() as usize)
    }

    /// Moves time to the first event, when none is due, and takes it out.
    fn advance(&mut self) -> Option<E> {
        let index = self.first()?;
        let level = index / SLOTS;
        self.used[level] &= self.used[level] - 1;
        if self.used[level] == 0 {
            self.used_levels &= self.used_levels - 1;
        }
        let slot = &mut self.slots[index];
        self.now = std::mem::replace(&mut slot.earliest, Time::MAX);
        if slot.entries.len() == 1 {
            return slot.entries.pop().map(|(_, event)| event);
        }
        let mut entries = std::mem::take(&mut slot.entries);
        for (at, event) in entries.drain(..) {
            self.place(at, event);
        }
        entries.shrink_to(KEPT);
        self.slots[index].entries = entries;
        self.due.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn equal_times_keep_their_order() {
        let mut queue = EventQueue::default();
        for (at, name) in [(5, 'a'), (3, 'b'), (5, 'c'), (3, 'd'), (0, 'e')] {
            queue.push(Time::from_ps(at), name);
        }
        let order: String = std::iter::from_fn(|| queue.pop()).map(|(_, name)| name).collect();
        assert_eq!(order, "ebdac");
    }

    #[test]
    #[should_panic = "event at 0.004 ns pushed at 0.005 ns"]
    fn the_past_cannot_change() {
        let mut queue = EventQueue::default();
        queue.push(Time::from_ps(5), ());
        queue.pop();
        queue.push(Time::from_ps(4), ());
    }

    #[test]
    fn the_end_of_time_is_a_time() {
        let mut queue = EventQueue::default();
        queue.push(Time::MAX, 'b');
        queue.push(Time::ZERO, 'a');
        assert_eq!(queue.pop(), Some((Time::ZERO, 'a')));
        assert_eq!(queue.peek_time(), Some(Time::MAX));
        assert_eq!(queue.pop(), Some((Time::MAX, 'b')));
        assert_eq!((queue.pop(), queue.peek_time(), queue.now()), (None, None, Time::MAX));
    }

    proptest! {
        /// Against a list that is searched for the least (time, number).
        #[test]
        fn events_come_by_time_and_then_by_insertion(
            // None takes an event out; a push is this far ahead, in small and in large steps.
            steps in prop::collection::vec(prop::option::of((0u64..8, 0u32..50)), 1..200),
        ) {
            let (mut queue, mut list, mut now) = (EventQueue::default(), Vec::new(), 0);
            let mut inserted = 0;
            for step in steps.into_iter().chain(std::iter::repeat_n(None, 200)) {
                match step {
                    Some((ahead, shift)) => {
                        let at = now + (ahead << shift);
                        queue.push(Time::from_ps(at), inserted);
                        list.push((at, inserted));
                        inserted += 1;
                    }
                    None => {
                        let first = list.iter().copied().min();
                        prop_assert_eq!(queue.peek_time(), first.map(|(at, _)| Time::from_ps(at)));
                        prop_assert_eq!(queue.pop(), first.map(|(at, number)| (Time::from_ps(at), number)));
                        list.retain(|entry| Some(*entry) != first);
                        now = first.map_or(now, |(at, _)| at);
                        prop_assert_eq!(queue.now(), Time::from_ps(now));
                    }
                }
                prop_assert_eq!((queue.len(), queue.inserted()), (list.len(), inserted));
            }
            prop_assert!(queue.is_empty());
        }
    }
}
