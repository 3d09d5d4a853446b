// SPDX-License-Identifier: Apache-2.0
//! Event queue for simulations whose events mostly have one of a few delays.

use crate::memory::prefetch;
use crate::{EventQueue, Time};

/// Number of lanes, each for one delay.
const LANES: usize = 8;
/// Sampling interval: every `SAMPLE`th insertion may assign a lane to its delay, so that rare delays seldom get lanes.
const SAMPLE: u64 = 16;
/// Number of bits of a key.
const KEY_BITS: u32 = 56;

/// A queue of events, ordered by time, then by a *key* that the caller assigns, and then by insertion, for simulations
/// whose events mostly have one of a few delays, such as the latency of a wire or a CPU's overhead for a message.
///
/// Keys make the order of simultaneous events independent of the rest of the simulation: if the key names the place of
/// the event, a simulation of some of the places has their events in the same order as a simulation of all. An event
/// that is inserted for the present time follows all events that were there before.
///
/// Events inserted with the same delay are already in the order of their times. So each of the most recent delays has a
/// *lane*, a list to which its events are appended, and only events of other delays must be sorted by time. Events of
/// one time leave their lanes together, and are sorted by key then.
#[derive(Clone, Debug)]
pub struct DelayQueue<E> {
    now: Time,
    /// Events of the present time, in order, from `place` on.
    due: Vec<Due<E>>,
    place: usize,
    /// Memory for sorting them.
    room: Vec<Due<E>>,
    /// Delay of each lane.
    delays: [Time; LANES],
    lanes: [Lane<E>; LANES],
    /// Time of the first event of each non-empty lane, and the lane, sorted by time.
    firsts: [(Time, usize); LANES],
    /// Number of non-empty lanes.
    used: usize,
    /// For each lane, the number of insertions when it became empty.
    idle: [u64; LANES],
    /// Events without a lane, with the keys and the times of their insertion.
    others: EventQueue<(u64, Time, E)>,
    /// Lane of the last event removed, or [`LANES`] if it had none.
    last: usize,
    inserted: u64,
}

/// An event of the present time.
#[derive(Clone, Copy, Debug)]
struct Due<E> {
    /// The key, and in the bits above it the event's lane, or [`LANES`].
    key_and_lane: u64,
    event: E,
}

impl<E> Due<E> {
    #[inline]
    fn new(key: u64, lane: usize, event: E) -> Due<E> {
        debug_assert!(key >> KEY_BITS == 0, "{key:#x}");
        Due { key_and_lane: key | (lane as u64) << KEY_BITS, event }
    }

    #[inline]
    fn key(&self) -> u64 {
        self.key_and_lane & ((1 << KEY_BITS) - 1)
    }

    #[inline]
    fn lane(&self) -> usize {
        (self.key_and_lane >> KEY_BITS) as usize
    }
}

/// Number of events from which a radix sort is faster than a comparison sort.
const MANY: usize = 128;
/// Number of key bits that one pass of the radix sort covers: for [`MANY`] events and for thousands.
const DIGIT: u32 = 8;
const LONG_DIGIT: u32 = 11;

/// Sorts events by key and keeps the order of those with the same key. `room` is memory for this function.
fn sort<E: Copy>(events: &mut Vec<Due<E>>, room: &mut Vec<Due<E>>) {
    if events.len() < MANY {
        events.sort_by_key(Due::key);
        return;
    }
    // Keys of one time usually differ in few bits.
    let first = events[0];
    let mut differing = events.iter().fold(0, |bits, due| bits | (due.key() ^ first.key()));
    let bits = if events.len() < 1 << 12 { DIGIT } else { LONG_DIGIT };
    let mut done = 0;
    while differing >> done != 0 {
        done += (differing >> done).trailing_zeros();
        let digit = |due: &Due<E>| (due.key() >> done) as usize % (1 << bits);
        let mut starts = [0u32; 1 << LONG_DIGIT];
        for due in &*events {
            starts[digit(due)] += 1;
        }
        let mut next = 0;
        for start in &mut starts[..1 << bits] {
            next += std::mem::replace(start, next);
        }
        room.resize(events.len(), first);
        for due in &*events {
            let place = &mut starts[digit(due)];
            room[*place as usize] = *due;
            *place += 1;
        }
        std::mem::swap(events, room);
        differing &= (u64::MAX << done) << bits;
    }
}

/// A FIFO in a ring buffer, whose capacity is a power of two.
#[derive(Clone, Debug)]
struct Lane<E> {
    /// Times, keys and events.
    room: Vec<(Time, u64, E)>,
    /// Total numbers of events removed and added.
    taken: usize,
    added: usize,
}

impl<E: Copy> Lane<E> {
    /// Initial capacity.
    const LEAST: usize = 16;

    #[inline]
    fn is_empty(&self) -> bool {
        self.taken == self.added
    }

    /// Returns the event behind `ahead` others.
    #[inline]
    fn get(&self, ahead: usize) -> Option<&(Time, u64, E)> {
        let place = self.taken.wrapping_add(ahead) & self.room.len().wrapping_sub(1);
        if ahead < self.added.wrapping_sub(self.taken) { self.room.get(place) } else { None }
    }

    /// Appends an event. The parameters stay in registers: a tuple on the stack is read before its stores have finished.
    #[inline]
    fn push(&mut self, at: Time, key: u64, event: E) {
        if self.added.wrapping_sub(self.taken) == self.room.len() {
            self.widen(at, key, event);
        }
        let place = self.added & (self.room.len() - 1);
        self.room[place] = (at, key, event);
        self.added = self.added.wrapping_add(1);
    }

    /// Doubles the capacity.
    #[cold]
    fn widen(&mut self, at: Time, key: u64, event: E) {
        let count = self.room.len();
        if count > 0 {
            let first = self.taken & (count - 1);
            self.room.rotate_left(first);
        }
        self.room.resize((2 * count).max(Self::LEAST), (at, key, event));
        (self.taken, self.added) = (0, count);
    }
}

impl<E> Default for DelayQueue<E> {
    fn default() -> DelayQueue<E> {
        DelayQueue {
            now: Time::ZERO,
            due: Vec::new(),
            place: 0,
            room: Vec::new(),
            delays: [Time::MAX; LANES],
            lanes: std::array::from_fn(|_| Lane { room: Vec::new(), taken: 0, added: 0 }),
            firsts: [(Time::MAX, 0); LANES],
            used: 0,
            idle: [0; LANES],
            others: EventQueue::default(),
            last: LANES,
            inserted: 0,
        }
    }
}

impl<E: Copy> DelayQueue<E> {
    /// Adds an event. Its key has at most 56 bits.
    ///
    /// # Panics
    /// If `at` is before the last event removed.
    #[inline]
    pub fn push(&mut self, at: Time, key: u64, event: E) {
        assert!(at >= self.now, "event at {at} pushed at {}", self.now);
        let delay = at - self.now;
        self.inserted += 1;
        let Some(lane) = self.delays.iter().position(|other| *other == delay).or_else(|| self.claim(delay)) else {
            return self.others.push(at, (key, self.now, event));
        };
        let is_first = self.lanes[lane].is_empty();
        self.lanes[lane].push(at, key, event);
        if is_first {
            self.begin(at, lane);
        }
    }

    /// Adds an event with a delay that has no meaning, such as one from another queue.
    ///
    /// # Panics
    /// If `at` is before the last event removed.
    pub fn push_apart(&mut self, at: Time, key: u64, event: E) {
        assert!(at >= self.now, "event at {at} pushed at {}", self.now);
        self.others.push(at, (key, self.now, event));
    }

    /// Reassigns the lane that has been empty the longest to another delay, if any lane is empty.
    #[inline]
    fn claim(&mut self, delay: Time) -> Option<usize> {
        if !(self.inserted - 1).is_multiple_of(SAMPLE) {
            return None;
        }
        let empty = (0..LANES).filter(|&lane| self.lanes[lane].is_empty());
        let lane = empty.min_by_key(|&lane| self.idle[lane])?;
        self.delays[lane] = delay;
        Some(lane)
    }

    /// Inserts the first event of a lane that was empty.
    fn begin(&mut self, at: Time, lane: usize) {
        let mut place = self.used;
        self.used += 1;
        while place > 0 && at < self.firsts[place - 1].0 {
            self.firsts[place] = self.firsts[place - 1];
            place -= 1;
        }
        self.firsts[place] = (at, lane);
    }

    /// Returns the time of the first event.
    #[inline]
    pub fn next_at(&self) -> Option<Time> {
        if self.place < self.due.len() {
            return Some(self.now);
        }
        let of_lanes = (self.used > 0).then_some(self.firsts[0].0);
        let others = if self.others.is_empty() { None } else { self.others.peek_time() };
        of_lanes.into_iter().chain(others).min()
    }

    /// Removes and returns the first event.
    #[inline]
    pub fn pop(&mut self) -> Option<(Time, E)> {
        self.pop_due().or_else(|| self.advance())
    }

    /// Removes and returns the first event if its time is before `limit`.
    #[inline]
    pub fn pop_before(&mut self, limit: Time) -> Option<(Time, E)> {
        if let Some(due) = self.pop_due() {
            return Some(due);
        }
        if self.next_at()? < limit { self.advance() } else { None }
    }

    /// Removes and returns the first event of the present time.
    #[inline]
    fn pop_due(&mut self) -> Option<(Time, E)> {
        let due = self.due.get(self.place)?;
        self.place += 1;
        self.last = due.lane();
        Some((self.now, due.event))
    }

    /// Removes and returns the first event of a later time.
    #[inline]
    fn advance(&mut self) -> Option<(Time, E)> {
        let other = if self.others.is_empty() { None } else { self.others.peek_time() };
        if self.used == 0 {
            return self.gather(other?);
        }
        let (at, lane) = self.firsts[0];
        if other.is_some_and(|other| other <= at) || (self.used > 1 && self.firsts[1].0 == at) {
            return self.gather(other.map_or(at, |other| other.min(at)));
        }
        let events = &mut self.lanes[lane];
        if let Some(&(next, ..)) = events.get(1)
            && next == at
        {
            return self.gather(at);
        }
        // Only one event has this time.
        let event = events.get(0)?.2;
        events.taken = events.taken.wrapping_add(1);
        (self.now, self.last) = (at, lane);
        self.replace_first();
        Some((at, event))
    }

    /// Updates the order of the lanes after the first one lost events.
    #[inline]
    fn replace_first(&mut self) {
        let lane = self.firsts[0].1;
        match self.lanes[lane].get(0) {
            Some(&(next, ..)) => {
                let mut place = 1;
                while place < self.used && self.firsts[place].0 < next {
                    self.firsts[place - 1] = self.firsts[place];
                    place += 1;
                }
                self.firsts[place - 1] = (next, lane);
            }
            None => {
                self.idle[lane] = self.inserted;
                self.firsts.copy_within(1..self.used, 0);
                self.used -= 1;
            }
        }
    }

    /// Makes all events of the time `at` due. Removes and returns the first of them.
    #[inline(never)]
    fn gather(&mut self, at: Time) -> Option<(Time, E)> {
        self.due.clear();
        let mut is_sorted = true;
        // A longer delay means an earlier insertion. Events without a lane, of a delay that has one now, were inserted
        // before it had.
        let mut here = 0;
        while here < self.used && self.firsts[here].0 == at {
            here += 1;
        }
        self.firsts[..here].sort_unstable_by_key(|&(_, lane)| at - self.delays[lane]);
        for _ in 0..here {
            let lane = self.firsts[0].1;
            is_sorted &= self.gather_others(at, at - self.delays[lane]);
            let mut last = self.due.last().map_or(0, Due::key);
            let events = &mut self.lanes[lane];
            while let Some(&(time, key, event)) = events.get(0)
                && time == at
            {
                is_sorted &= last <= key;
                last = key;
                self.due.push(Due::new(key, lane, event));
                events.taken = events.taken.wrapping_add(1);
            }
            self.replace_first();
        }
        is_sorted &= self.gather_others(at, Time::MAX);
        if !is_sorted {
            sort(&mut self.due, &mut self.room);
        }
        (self.now, self.place) = (at, 0);
        self.pop_due()
    }

    /// Makes the events of the time `at` due that have no lane and were inserted until `until`. Returns true if their keys
    /// ascend from the last one.
    fn gather_others(&mut self, at: Time, until: Time) -> bool {
        let mut is_sorted = true;
        while !self.others.is_empty()
            && self.others.peek_time() == Some(at)
            && let Some((_, &(key, inserted, event))) = self.others.peek()
            && inserted <= until
        {
            is_sorted &= self.due.last().is_none_or(|last| last.key() <= key);
            self.due.push(Due::new(key, LANES, event));
            self.others.pop();
        }
        is_sorted
    }

    /// Returns the total number of insertions. As a key, it orders simultaneous events by insertion.
    #[inline]
    pub fn inserted(&self) -> u64 {
        self.inserted
    }

    /// Returns a view of the likely next events.
    #[inline]
    pub fn soon(&self) -> Soon<'_, E> {
        let later = match self.lanes.get(self.last) {
            Some(lane) => Source::Lane(lane),
            None => Source::Others(&self.others),
        };
        Soon { due: self.due.get(self.place..).unwrap_or_default(), later }
    }
}

/// Likely next events: those of the present time, and then those with the delay of the last event removed.
#[derive(Clone, Copy, Debug)]
pub struct Soon<'a, E> {
    due: &'a [Due<E>],
    later: Source<'a, E>,
}

#[derive(Clone, Copy, Debug)]
enum Source<'a, E> {
    Lane(&'a Lane<E>),
    Others(&'a EventQueue<(u64, Time, E)>),
}

impl<'a, E: Copy> Soon<'a, E> {
    /// Prefetches the event `ahead` places after the next one, so that [`Soon::get`] finds it later.
    #[inline]
    pub fn prefetch(self, ahead: usize) {
        if let Source::Lane(lane) = self.later {
            let place = lane.taken.wrapping_add(ahead).wrapping_sub(self.due.len()) & lane.room.len().wrapping_sub(1);
            prefetch(lane.room.as_ptr().wrapping_add(place));
        }
    }

    /// Returns the event `ahead` places after the next one, if known.
    #[inline]
    pub fn get(self, ahead: usize) -> Option<&'a E> {
        if let Some(due) = self.due.get(ahead) {
            return Some(&due.event);
        }
        let ahead = ahead - self.due.len();
        match self.later {
            Source::Lane(lane) => lane.get(ahead).map(|entry| &entry.2),
            Source::Others(queue) => queue.soon(ahead).map(|entry| &entry.2),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn events_of_one_delay_are_not_sorted_by_time() {
        let mut queue = DelayQueue::default();
        // Exceeds the initial capacity of a lane's ring buffer.
        for step in 0..1_000u32 {
            for event in 0..3 {
                queue.push(queue.now + Time::from_ps(7), 0, 3 * step + event);
            }
            let taken = if step < 20 { 1 } else { 3 };
            let events: Vec<_> = (0..taken).map(|_| queue.pop().unwrap().1).collect();
            let first = if step < 20 { step } else { 20 + 3 * (step - 20) };
            assert_eq!(events, (first..first + taken).collect::<Vec<_>>());
            assert_eq!(queue.soon().get(2), Some(&(first + taken + 2)).filter(|_| step > 0), "{step}");
        }
        assert!(queue.others.is_empty());
        assert_eq!(queue.lanes.iter().filter(|lane| !lane.room.is_empty()).count(), 1);
        assert_eq!(std::iter::from_fn(|| queue.pop()).count(), 40);
        assert_eq!((queue.pop(), queue.soon().get(0), queue.next_at()), (None, None, None));
    }

    #[test]
    #[should_panic = "event at 0.004 ns pushed at 0.005 ns"]
    fn the_past_cannot_change() {
        let mut queue = DelayQueue::default();
        queue.push(Time::from_ps(5), 0, ());
        queue.pop();
        queue.push(Time::from_ps(4), 0, ());
    }

    #[test]
    fn the_end_of_time_is_a_time() {
        let mut queue = DelayQueue::default();
        for lane in 0..=LANES as u64 {
            queue.inserted = lane * SAMPLE;
            queue.push(Time::from_ps(u64::MAX - lane), 0, lane);
        }
        let order: Vec<_> = std::iter::from_fn(|| queue.pop()).map(|(_, lane)| lane).collect();
        assert_eq!(order, (0..=LANES as u64).rev().collect::<Vec<_>>());
    }

    #[test]
    fn some_new_delays_get_the_lane_that_has_been_empty_longest() {
        let mut queue = DelayQueue::default();
        let push = |queue: &mut DelayQueue<u64>, number: u64, delay: u64| {
            queue.inserted = number;
            queue.push(queue.now + Time::from_ps(delay), 0, delay);
        };
        for delay in 1..=LANES as u64 {
            push(&mut queue, delay * SAMPLE, delay);
        }
        // All lanes are in use.
        push(&mut queue, 20 * SAMPLE, 90);
        assert_eq!((queue.others.len(), queue.used), (1, LANES));
        for at in 1..=3 {
            queue.inserted += 1;
            assert_eq!(queue.pop(), Some((Time::from_ps(at), at)));
        }
        // One lane is free, and one of several delays gets it.
        push(&mut queue, 20 * SAMPLE + 1, 91);
        assert!(queue.others.len() == 2 && queue.delays.contains(&Time::from_ps(1)));
        push(&mut queue, 21 * SAMPLE, 92);
        assert!(queue.delays.contains(&Time::from_ps(92)) && !queue.delays.contains(&Time::from_ps(1)));
        assert!(queue.delays.contains(&Time::from_ps(2)) && queue.delays.contains(&Time::from_ps(3)));
        assert_eq!(std::iter::from_fn(|| queue.pop()).count(), LANES - 3 + 3);
    }

    #[test]
    fn keys_order_simultaneous_events_and_those_of_the_present_follow() {
        let mut queue = DelayQueue::default();
        for (key, name) in [(3, 'd'), (1, 'b'), (1, 'c'), (0, 'a')] {
            queue.push(Time::from_ps(9), key, name);
        }
        assert_eq!((queue.next_at(), queue.pop_before(Time::from_ps(9))), (Some(Time::from_ps(9)), None));
        assert_eq!(queue.pop_before(Time::from_ps(10)).unwrap().1, 'a');
        queue.push(Time::from_ps(9), 0, 'e');
        assert_eq!((queue.next_at(), queue.soon().get(1)), (Some(Time::from_ps(9)), Some(&'c')));
        assert_eq!(std::iter::from_fn(|| queue.pop()).map(|(_, name)| name).collect::<String>(), "bcde");
    }

    #[test]
    fn many_keys_are_sorted_and_equal_ones_keep_their_order() {
        for (count, bits) in [(10, 56), (MANY - 1, 3), (MANY, 3), (5_000, 1), (5_000, 12), (5_000, 30), (5_000, 56)] {
            let mut state = 7;
            let mut key = || crate::random::next(&mut state) >> (64 - bits) << ((56 - bits) / 2);
            let mut events: Vec<_> = (0..count).map(|event| Due::new(key(), event % LANES, event)).collect();
            let mut expected: Vec<_> = events.iter().map(|due| (due.key(), due.event)).collect();
            expected.sort_unstable();
            sort(&mut events, &mut Vec::new());
            assert_eq!(events.iter().map(|due| (due.key(), due.event)).collect::<Vec<_>>(), expected, "{count} {bits}");
        }
    }

    /// Adds and removes events as in the other test. Returns the order of those with these keys.
    fn order_of(steps: &[Option<(usize, u32, u64)>], keys: std::ops::Range<u64>) -> Vec<(Time, usize)> {
        let (mut queue, mut order, mut now) = (DelayQueue::default(), Vec::new(), Time::ZERO);
        for (number, step) in steps.iter().enumerate() {
            match *step {
                Some((delay, shift, key)) if keys.contains(&key) => {
                    queue.push(now + Time::from_ps((delay as u64) << (3 * shift)), key, number);
                }
                Some(_) => {}
                // Both queues reach the same time.
                None => {
                    now += Time::from_ps(7);
                    while queue.next_at().is_some_and(|at| at <= now) {
                        order.extend(queue.pop());
                    }
                }
            }
        }
        order.extend(std::iter::from_fn(|| queue.pop()));
        order
    }

    proptest! {
        /// Compares with a fully sorted list.
        #[test]
        fn the_order_is_that_of_time_key_and_insertion(
            // `None` removes an event. Up to twenty delays, in small and in large steps, with many of the first.
            steps in prop::collection::vec(prop::option::of((0usize..30, 0u32..3, 0u64..3)), 1..600),
        ) {
            let (mut queue, mut sorted, mut now) = (DelayQueue::default(), Vec::new(), Time::ZERO);
            let mut round = 0;
            for (number, step) in steps.into_iter().chain(std::iter::repeat_n(None, 600)).enumerate() {
                match step {
                    Some((delay, shift, key)) => {
                        let at = now + Time::from_ps((delay.saturating_sub(10) as u64) << (3 * shift));
                        queue.push(at, key, number);
                        // Events of the present time are in the next round.
                        sorted.push((at, if at == now { round + 1 } else { 0 }, key, number));
                    }
                    None => {
                        sorted.sort_unstable();
                        let first = if sorted.is_empty() { None } else { Some(sorted.remove(0)) };
                        prop_assert_eq!(queue.next_at(), first.map(|first| first.0));
                        prop_assert_eq!(queue.pop(), first.map(|(at, _, _, number)| (at, number)));
                        if let Some((at, of, ..)) = first {
                            (now, round) = (at, of);
                        }
                    }
                }
            }
            prop_assert!(queue.others.is_empty() && queue.used == 0);
        }

        /// A queue with a part of the events has them in the order of a queue with all.
        #[test]
        fn the_order_of_a_part_is_that_of_all(
            steps in prop::collection::vec(prop::option::of((0usize..30, 0u32..3, 0u64..4)), 1..400),
        ) {
            let of_all = order_of(&steps, 0..4);
            for part in [0..2, 2..4] {
                let is_of_part = |(_, number): &(Time, usize)| {
                    steps[*number].is_some_and(|(_, _, key)| part.contains(&key))
                };
                let expected: Vec<_> = of_all.iter().copied().filter(is_of_part).collect();
                prop_assert_eq!(order_of(&steps, part.clone()), expected);
            }
        }
    }
}
