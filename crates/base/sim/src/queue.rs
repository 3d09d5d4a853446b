// SPDX-License-Identifier: Apache-2.0
//! Event queue ordered by time and then by insertion: a hierarchical timing wheel.

use std::collections::VecDeque;

use crate::{Pool, Time};

/// Number of time bits of one level of the wheel.
const BITS: u32 = 6;
/// Number of slots of a level: one for each value of its bits. One machine word records the used ones.
const SLOTS: usize = 1 << BITS;
/// Number of levels, enough for all bits of a time.
const LEVELS: usize = u64::BITS.div_ceil(BITS) as usize;
/// Number of queued events from which the next few are sorted in advance: the state of so large a simulation exceeds
/// the processor's cache, so handlers prefetch for the next events.
const MANY: usize = 1 << 12;
/// Number of events sorted in advance, if their slots have few entries.
const AHEAD: usize = 16;
/// Maximum number of entries of a slot that is sorted instead of distributed to lower levels.
const FEW: usize = 16;
/// Length from which the list accepts no insertions.
const LONG: usize = 64;

/// A queue of events, ordered by time and then by insertion.
///
/// The queue is a hierarchical timing wheel (Varghese and Lauck, SOSP'87) over the bits of a time, as in a monotone
/// radix heap: an event waits at the level of the highest bit in which its time differs from the horizon, in the slot
/// of its time's bits there. The first event is in the first used slot of the lowest used level. When the wheel reaches
/// that slot, its events move to lower levels; each event moves a few times, for any number of events. Events of equal
/// time are always in the same slot and move together, so they stay in insertion order.
///
/// With many events, the next few are kept in a sorted list. Handlers whose state exceeds the processor's cache can
/// look at the [next events](EventQueue::soon) and prefetch for them. A push before the end of a long list moves part
/// of the list back to the wheel and redistributes part of the wheel. The list then stops growing until as many events
/// are removed as were moved, so that an event moves a constant number of times on average, for any times.
#[derive(Clone, Debug)]
pub struct EventQueue<E> {
    now: Time,
    /// Next events, in order.
    due: VecDeque<(Time, E)>,
    /// Latest time of the list; the wheel holds the events after it.
    horizon: Time,
    /// Slots of all levels, level by level.
    slots: Vec<Slot<E>>,
    /// For each level, a bitmap of the non-empty slots.
    used: [u64; LEVELS],
    /// Bitmap of the non-empty levels.
    used_levels: u32,
    /// Number of events to remove before the list grows again.
    pause: usize,
    /// Number of insertions into slots.
    #[cfg(test)]
    placed: u64,
    pool: Pool<(Time, E)>,
    len: usize,
    inserted: u64,
}

#[derive(Clone, Debug)]
struct Slot<E> {
    /// Events. Those of equal time are in insertion order.
    entries: Vec<(Time, E)>,
    /// Earliest time of the entries.
    earliest: Time,
}

impl<E> Default for Slot<E> {
    fn default() -> Slot<E> {
        Slot { entries: Vec::new(), earliest: Time::MAX }
    }
}

impl<E> Default for EventQueue<E> {
    fn default() -> Self {
        EventQueue {
            now: Time::ZERO,
            due: VecDeque::new(),
            horizon: Time::ZERO,
            slots: std::iter::repeat_with(Slot::default).take(LEVELS * SLOTS).collect(),
            used: [0; LEVELS],
            used_levels: 0,
            pause: 0,
            #[cfg(test)]
            placed: 0,
            pool: Pool::default(),
            len: 0,
            inserted: 0,
        }
    }
}

impl<E> EventQueue<E> {
    /// Adds an event.
    ///
    /// # Panics
    /// If `at` is before the last event removed.
    #[inline]
    pub fn push(&mut self, at: Time, event: E) {
        assert!(at >= self.now, "event at {at} pushed at {}", self.now);
        self.len += 1;
        self.inserted += 1;
        if at > self.horizon {
            self.place(at, event);
        } else if self.due.back().is_none_or(|last| last.0 <= at) {
            self.due.push_back((at, event));
        } else {
            self.insert(at, event);
        }
    }

    /// Removes and returns the first event.
    #[inline]
    pub fn pop(&mut self) -> Option<(Time, E)> {
        if self.len >= MANY && self.due.len() < AHEAD {
            match self.pause.checked_sub(1) {
                Some(left) => self.pause = left,
                None => self.refill(),
            }
        }
        let first = match self.due.pop_front() {
            Some(first) => first,
            None => self.advance()?,
        };
        self.now = first.0;
        self.len -= 1;
        Some(first)
    }

    /// Rewinds to `now` after the caller cancels the last removed event. Events may then be added from `now` on.
    ///
    /// # Panics
    /// If `now` is after the last event removed.
    pub fn set_back(&mut self, now: Time) {
        assert!(now <= self.now, "the event at {now} has not been taken out at {}", self.now);
        self.now = now;
    }

    /// Returns the event `ahead` places after the next one, if known. Events pushed later may still precede it.
    #[inline]
    pub fn soon(&self, ahead: usize) -> Option<&E> {
        self.due.get(ahead).map(|entry| &entry.1)
    }

    /// Returns the time of the first event.
    pub fn peek_time(&self) -> Option<Time> {
        match self.due.front() {
            Some(first) => Some(first.0),
            None => self.first().map(|index| self.slots[index].earliest),
        }
    }

    /// Returns the first event and its time.
    #[inline]
    pub fn peek(&mut self) -> Option<(Time, &E)> {
        if self.due.is_empty() {
            let first = self.advance()?;
            self.due.push_front(first);
        }
        self.due.front().map(|(at, event)| (*at, event))
    }

    /// Returns the time of the last event removed.
    pub fn now(&self) -> Time {
        self.now
    }

    /// Returns the number of events in the queue.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns true if the queue is empty.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the total number of insertions.
    pub fn inserted(&self) -> u64 {
        self.inserted
    }

    /// Returns the slot index for a time after the horizon. The level is that of the highest bit in which the two
    /// differ.
    #[inline]
    fn index(&self, at: Time) -> usize {
        let level = (at.as_ps() ^ self.horizon.as_ps()).ilog2() / BITS;
        level as usize * SLOTS + (at.as_ps() >> (level * BITS)) as usize % SLOTS
    }

    #[inline]
    fn place(&mut self, at: Time, event: E) {
        #[cfg(test)]
        {
            self.placed += 1;
        }
        let index = self.index(at);
        self.used[index / SLOTS] |= 1 << (index % SLOTS);
        self.used_levels |= 1 << (index / SLOTS);
        let slot = &mut self.slots[index];
        self.pool.widen(&mut slot.entries);
        slot.earliest = slot.earliest.min(at);
        slot.entries.push((at, event));
    }

    /// Returns the slot of the wheel's first event.
    #[inline]
    fn first(&self) -> Option<usize> {
        let level = self.used_levels.trailing_zeros() as usize;
        self.used.get(level).map(|used| level * SLOTS + used.trailing_zeros() as usize)
    }

    /// Marks a slot as empty.
    #[inline]
    fn clear(&mut self, index: usize) {
        let level = index / SLOTS;
        self.used[level] &= !(1 << (index % SLOTS));
        if self.used[level] == 0 {
            self.used_levels &= !(1 << level);
        }
    }

    /// Removes and returns the first event of the wheel.
    fn advance(&mut self) -> Option<(Time, E)> {
        let index = self.first()?;
        let slot = &mut self.slots[index];
        if slot.entries.len() > 1 {
            self.spread(index);
            return self.due.pop_front();
        }
        let first = slot.entries.pop()?;
        slot.earliest = Time::MAX;
        self.clear(index);
        self.horizon = first.0;
        Some(first)
    }

    /// Moves the next events from the wheel to the list.
    #[inline(never)]
    fn refill(&mut self) {
        while self.due.len() < AHEAD
            && let Some(index) = self.first()
        {
            let slot = &mut self.slots[index];
            if slot.entries.len() > FEW {
                if index < SLOTS && !self.due.is_empty() {
                    // The slot has many events of one time. Events pushed before them are cheaper to put into the
                    // wheel.
                    return;
                }
                self.spread(index);
                continue;
            }
            if !slot.entries.is_sorted_by_key(|entry| entry.0) {
                slot.entries.sort_by_key(|entry| entry.0);
            }
            self.horizon = slot.entries.last().map_or(self.horizon, |last| last.0);
            slot.earliest = Time::MAX;
            self.due.extend(slot.entries.drain(..));
            self.clear(index);
        }
    }

    /// Moves the first events of the first slot to the list, and the others to lower levels.
    fn spread(&mut self, index: usize) {
        self.clear(index);
        let slot = &mut self.slots[index];
        let earliest = std::mem::replace(&mut slot.earliest, Time::MAX);
        let mut entries = std::mem::take(&mut slot.entries);
        self.horizon = earliest;
        for (at, event) in entries.drain(..) {
            if at == earliest {
                self.due.push_back((at, event));
            } else {
                self.place(at, event);
            }
        }
        self.slots[index].entries = self.pool.keep(entries);
    }

    /// Adds an event before the end of the list.
    fn insert(&mut self, at: Time, event: E) {
        let place = self.due.partition_point(|other| other.0 <= at);
        if self.due.len() < LONG {
            self.due.insert(place, (at, event));
        } else {
            self.put_back(place, at);
            self.due.push_back((at, event));
        }
    }

    /// Moves the list's entries from `place` on back to the wheel, and lowers the horizon.
    fn put_back(&mut self, place: usize, horizon: Time) {
        let tail = self.due.split_off(place);
        let before = std::mem::replace(&mut self.horizon, horizon);
        // Relative to the new horizon, all events on lower levels belong to one slot.
        let index = self.index(before);
        let mut later = Vec::new();
        while let Some(lower) = self.first().filter(|lower| lower / SLOTS < index / SLOTS) {
            later.append(&mut std::mem::take(&mut self.slots[lower]).entries);
            self.clear(lower);
        }
        self.pause += tail.len() + later.len();
        for (at, event) in tail.into_iter().chain(later) {
            self.place(at, event);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cmp::Reverse;
    use std::collections::BinaryHeap;

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
    fn what_does_not_happen_takes_no_time() {
        let mut queue = EventQueue::default();
        for at in [5, 1_000_000, 2_000_000] {
            queue.push(Time::from_ps(at), at);
        }
        assert_eq!(
            (queue.pop(), queue.pop()),
            (Some((Time::from_ps(5), 5)), Some((Time::from_ps(1_000_000), 1_000_000)))
        );
        queue.set_back(Time::from_ps(5));
        for at in [999_999, 5, 1_000_001] {
            queue.push(Time::from_ps(at), at);
        }
        let rest: Vec<u64> = std::iter::from_fn(|| queue.pop()).map(|(_, at)| at).collect();
        assert_eq!(rest, [5, 999_999, 1_000_001, 2_000_000]);
    }

    #[test]
    #[should_panic = "the event at 0.006 ns has not been taken out at 0.005 ns"]
    fn time_is_not_set_forward() {
        let mut queue = EventQueue::default();
        queue.push(Time::from_ps(5), ());
        queue.pop();
        queue.set_back(Time::from_ps(6));
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

    /// Compares with a heap: thousands of events in bursts at one time, close together, and at the end of time.
    #[test]
    fn many_events_come_in_order_and_the_next_are_seen() {
        for (seed, spread) in [(1, 4), (2, 12), (3, 24), (4, 50)] {
            let (mut queue, mut heap, mut state) = (EventQueue::default(), BinaryHeap::new(), seed);
            let mut random = |bits: u32| {
                state = u64::wrapping_mul(state, 6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                state >> 32 >> (32 - bits)
            };
            let (mut now, mut inserted, mut seen) = (0u64, 0u32, 0);
            for step in 0..30_000 {
                let count = match step {
                    0 => 6_000,
                    _ if random(10) == 0 => 500,
                    _ if step < 20_000 => 1,
                    _ => 0,
                };
                let (bits, shift) = (1 + random(4) as u32, random(6) * spread / 64);
                let ahead = if random(3) == 0 { 0 } else { random(bits) << shift };
                for number in 0..count {
                    let at = match random(6) {
                        0 if step % 100 == 0 => u64::MAX,
                        1..20 => now.saturating_add(ahead),
                        _ => now.saturating_add(ahead + number % 90),
                    };
                    queue.push(Time::from_ps(at), inserted);
                    heap.push(Reverse((at, inserted)));
                    inserted += 1;
                }
                let soon = queue.soon(0).copied();
                let first = heap.pop().map(|first| first.0);
                assert_eq!(queue.pop(), first.map(|(at, number)| (Time::from_ps(at), number)), "{seed} {step}");
                let Some((at, number)) = first else { break };
                assert_eq!(soon.unwrap_or(number), number);
                seen += usize::from(queue.soon(8).is_some());
                now = at.min(u64::MAX - 1);
                if now == u64::MAX - 1 {
                    break;
                }
            }
            assert!(seen > 5_000, "{seen}");
            assert_eq!(queue.len(), heap.len());
            while let Some(Reverse((at, number))) = heap.pop() {
                assert_eq!(queue.pop(), Some((Time::from_ps(at), number)));
            }
            assert!(queue.is_empty());
        }
    }

    /// Thousands of far events, such as time limits and watchdogs, and repeated bursts of near ones.
    #[test]
    fn far_events_are_not_moved_for_each_burst_of_near_ones() {
        let (mut queue, mut heap) = (EventQueue::default(), BinaryHeap::new());
        let push = |queue: &mut EventQueue<u64>, heap: &mut BinaryHeap<_>, at: u64| {
            let number = queue.inserted();
            queue.push(Time::from_ps(at), number);
            heap.push(Reverse((at, number)));
        };
        for number in 0..6_000 {
            push(&mut queue, &mut heap, 1_000_000_000 + number * 70_001);
        }
        for burst in 0..2_000 {
            for number in 0..100 {
                push(&mut queue, &mut heap, burst * 100_000 + (number * 37 % 100) * 900 + 1);
            }
            for _ in 0..100 {
                let Reverse((at, number)) = heap.pop().unwrap();
                assert_eq!(queue.pop(), Some((Time::from_ps(at), number)));
            }
        }
        let most = queue.inserted() * LEVELS as u64;
        assert!(queue.placed < most, "{} of {most}", queue.placed);
    }

    proptest! {
        /// Compares with a linear search for the smallest (time, number).
        #[test]
        fn events_come_by_time_and_then_by_insertion(
            // `None` removes an event. A push is this far ahead, in small and in large steps.
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
                        if inserted % 2 == 0 {
                            prop_assert_eq!(queue.peek(), first.as_ref().map(|(at, number)| (Time::from_ps(*at), number)));
                        }
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
