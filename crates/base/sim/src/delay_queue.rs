// SPDX-License-Identifier: Apache-2.0
//! Event queue for simulations whose events mostly have one of a few delays.

use crate::{EventQueue, Time};

/// Number of lanes, each for one delay.
const LANES: usize = 8;
/// Sampling interval: every `SAMPLE`th insertion may assign a lane to its delay, so that rare delays seldom get lanes.
const SAMPLE: u64 = 16;

/// A queue with the event order of an [`EventQueue`], by time and then by insertion, for simulations whose events
/// mostly have one of a few delays, such as the latency of a wire or a CPU's overhead for a message.
///
/// Events inserted with the same delay are already in order. So each of the most recent delays has a *lane*, a list to
/// which its events are appended, and only events of other delays must be sorted.
#[derive(Clone, Debug)]
pub struct DelayQueue<E> {
    now: Time,
    /// Delay of each lane.
    delays: [Time; LANES],
    lanes: [Lane<E>; LANES],
    /// First event of each non-empty lane, and the lane, sorted by event.
    firsts: [(Key, usize); LANES],
    /// Number of non-empty lanes.
    used: usize,
    /// For each lane, the number of the event that emptied it.
    idle: [u64; LANES],
    /// Events without a lane, and their insertion numbers.
    others: EventQueue<(u64, E)>,
    /// Lane of the last event removed, or [`LANES`] if it had none.
    last: usize,
    inserted: u64,
}

/// Time and insertion number of an event.
type Key = (Time, u64);

/// A FIFO in a ring buffer, whose capacity is a power of two.
#[derive(Clone, Debug)]
struct Lane<E> {
    room: Vec<(Key, E)>,
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
    fn get(&self, ahead: usize) -> Option<&(Key, E)> {
        let place = self.taken.wrapping_add(ahead) & self.room.len().wrapping_sub(1);
        if ahead < self.added.wrapping_sub(self.taken) { self.room.get(place) } else { None }
    }

    #[inline]
    fn push(&mut self, entry: (Key, E)) {
        if self.added.wrapping_sub(self.taken) == self.room.len() {
            self.widen(entry);
        }
        let place = self.added & (self.room.len() - 1);
        self.room[place] = entry;
        self.added = self.added.wrapping_add(1);
    }

    /// Doubles the capacity.
    #[cold]
    fn widen(&mut self, filler: (Key, E)) {
        let count = self.room.len();
        if count > 0 {
            let first = self.taken & (count - 1);
            self.room.rotate_left(first);
        }
        self.room.resize((2 * count).max(Self::LEAST), filler);
        (self.taken, self.added) = (0, count);
    }
}

impl<E> Default for DelayQueue<E> {
    fn default() -> DelayQueue<E> {
        DelayQueue {
            now: Time::ZERO,
            delays: [Time::MAX; LANES],
            lanes: std::array::from_fn(|_| Lane { room: Vec::new(), taken: 0, added: 0 }),
            firsts: [((Time::MAX, u64::MAX), 0); LANES],
            used: 0,
            idle: [0; LANES],
            others: EventQueue::default(),
            last: LANES,
            inserted: 0,
        }
    }
}

impl<E: Copy> DelayQueue<E> {
    /// Adds an event.
    ///
    /// # Panics
    /// If `at` is before the last event removed.
    #[inline]
    pub fn push(&mut self, at: Time, event: E) {
        assert!(at >= self.now, "event at {at} pushed at {}", self.now);
        let (delay, number) = (at - self.now, self.inserted);
        self.inserted += 1;
        let Some(lane) = self.delays.iter().position(|other| *other == delay).or_else(|| self.claim(delay)) else {
            return self.others.push(at, (number, event));
        };
        let is_first = self.lanes[lane].is_empty();
        self.lanes[lane].push(((at, number), event));
        if is_first {
            self.begin((at, number), lane);
        }
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
    fn begin(&mut self, key: Key, lane: usize) {
        let mut place = self.used;
        self.used += 1;
        while place > 0 && key < self.firsts[place - 1].0 {
            self.firsts[place] = self.firsts[place - 1];
            place -= 1;
        }
        self.firsts[place] = (key, lane);
    }

    /// Removes and returns the first event.
    #[inline]
    pub fn pop(&mut self) -> Option<(Time, E)> {
        if !self.others.is_empty() && self.is_other_first() {
            return self.pop_other();
        }
        let (first, lane) = self.firsts[0];
        if self.used == 0 {
            return None;
        }
        let events = &mut self.lanes[lane];
        let event = events.get(0)?.1;
        events.taken = events.taken.wrapping_add(1);
        (self.now, self.last) = (first.0, lane);
        match events.get(0) {
            Some(&(next, _)) => {
                let mut place = 1;
                while place < self.used && self.firsts[place].0 < next {
                    self.firsts[place - 1] = self.firsts[place];
                    place += 1;
                }
                self.firsts[place - 1] = (next, lane);
            }
            None => {
                self.idle[lane] = first.1;
                self.firsts.copy_within(1..self.used, 0);
                self.used -= 1;
            }
        }
        Some((first.0, event))
    }

    /// Returns true if the first event has no lane.
    fn is_other_first(&mut self) -> bool {
        let first = if self.used > 0 { self.firsts[0].0 } else { (Time::MAX, u64::MAX) };
        self.others.peek_time().is_some_and(|at| at <= first.0)
            && self.others.peek().is_some_and(|(at, other)| (at, other.0) < first)
    }

    fn pop_other(&mut self) -> Option<(Time, E)> {
        let (at, (_, event)) = self.others.pop()?;
        (self.now, self.last) = (at, LANES);
        Some((at, event))
    }

    /// Returns a view of the likely next events.
    #[inline]
    pub fn soon(&self) -> Soon<'_, E> {
        match self.lanes.get(self.last) {
            Some(lane) => Soon(Source::Lane(lane)),
            None => Soon(Source::Others(&self.others)),
        }
    }
}

/// Likely next events: those with the delay of the last event removed.
#[derive(Clone, Copy, Debug)]
pub struct Soon<'a, E>(Source<'a, E>);

#[derive(Clone, Copy, Debug)]
enum Source<'a, E> {
    Lane(&'a Lane<E>),
    Others(&'a EventQueue<(u64, E)>),
}

impl<'a, E: Copy> Soon<'a, E> {
    /// Returns the event `ahead` places after the next one, if known.
    #[inline]
    pub fn get(self, ahead: usize) -> Option<&'a E> {
        match self.0 {
            Source::Lane(lane) => lane.get(ahead).map(|entry| &entry.1),
            Source::Others(queue) => queue.soon(ahead).map(|entry| &entry.1),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn events_of_one_delay_are_not_sorted() {
        let mut queue = DelayQueue::default();
        // Exceeds the initial capacity of a lane's ring buffer.
        for step in 0..1_000u32 {
            for event in 0..3 {
                queue.push(queue.now + Time::from_ps(7), 3 * step + event);
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
        assert_eq!((queue.pop(), queue.soon().get(0)), (None, None));
    }

    #[test]
    #[should_panic = "event at 0.004 ns pushed at 0.005 ns"]
    fn the_past_cannot_change() {
        let mut queue = DelayQueue::default();
        queue.push(Time::from_ps(5), ());
        queue.pop();
        queue.push(Time::from_ps(4), ());
    }

    #[test]
    fn the_end_of_time_is_a_time() {
        let mut queue = DelayQueue::default();
        for lane in 0..=LANES as u64 {
            queue.inserted = lane * SAMPLE;
            queue.push(Time::from_ps(u64::MAX - lane), lane);
        }
        let order: Vec<_> = std::iter::from_fn(|| queue.pop()).map(|(_, lane)| lane).collect();
        assert_eq!(order, (0..=LANES as u64).rev().collect::<Vec<_>>());
    }

    #[test]
    fn some_new_delays_get_the_lane_that_has_been_empty_longest() {
        let mut queue = DelayQueue::default();
        let push = |queue: &mut DelayQueue<u64>, number: u64, delay: u64| {
            queue.inserted = number;
            queue.push(queue.now + Time::from_ps(delay), delay);
        };
        for delay in 1..=LANES as u64 {
            push(&mut queue, delay * SAMPLE, delay);
        }
        // All lanes are in use.
        push(&mut queue, 20 * SAMPLE, 90);
        assert_eq!((queue.others.len(), queue.used), (1, LANES));
        assert!((1..=3).all(|at| queue.pop() == Some((Time::from_ps(at), at))));
        // One lane is free, and one of several delays gets it.
        push(&mut queue, 20 * SAMPLE + 1, 91);
        assert!(queue.others.len() == 2 && queue.delays.contains(&Time::from_ps(1)));
        push(&mut queue, 21 * SAMPLE, 92);
        assert!(queue.delays.contains(&Time::from_ps(92)) && !queue.delays.contains(&Time::from_ps(1)));
        assert!(queue.delays.contains(&Time::from_ps(2)) && queue.delays.contains(&Time::from_ps(3)));
        assert_eq!(std::iter::from_fn(|| queue.pop()).count(), LANES - 3 + 3);
    }

    proptest! {
        /// Compares with a fully sorted queue.
        #[test]
        fn the_order_is_that_of_an_event_queue(
            // `None` removes an event. Up to twenty delays, in small and in large steps, with many of the first.
            steps in prop::collection::vec(prop::option::of((0usize..30, 0u32..3)), 1..600),
        ) {
            let (mut queue, mut sorted, mut now) = (DelayQueue::default(), EventQueue::default(), Time::ZERO);
            for (number, step) in steps.into_iter().chain(std::iter::repeat_n(None, 600)).enumerate() {
                match step {
                    Some((delay, shift)) => {
                        let at = now + Time::from_ps((delay.saturating_sub(10) as u64) << (3 * shift));
                        queue.push(at, number);
                        sorted.push(at, number);
                    }
                    None => {
                        let first = sorted.pop();
                        prop_assert_eq!(queue.pop(), first);
                        now = first.map_or(now, |first| first.0);
                    }
                }
            }
            prop_assert!(queue.others.is_empty() && queue.used == 0);
        }
    }
}
