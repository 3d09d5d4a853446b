use crate::{EventQueue, Time};

/// The number of delays that have a list of their own at a time.
const LANES: usize = 8;
/// One of so many events without a lane makes its delay get one, so that rare delays seldom have lanes.
const SAMPLE: u64 = 16;

/// A queue of events in the order of an [`EventQueue`], by time and then by insertion, for simulations in which most events
/// come after one of a few delays, such as the latency of a wire or the time that a CPU takes for a message.
///
/// Events that are added with the same delay come in the order in which they were added. So each of the most recent delays
/// has a *lane*, a list to which its events are appended, and only events of other delays have to be sorted.
#[derive(Clone, Debug)]
pub struct DelayQueue<E> {
    now: Time,
    /// The delay of each lane.
    delays: [Time; LANES],
    lanes: [Lane<E>; LANES],
    /// The first event of each lane that has one, and the lane, in the order of the events.
    firsts: [(Key, usize); LANES],
    /// The number of lanes that have an event.
    used: usize,
    /// For each lane, the number of the event after which it was empty.
    idle: [u64; LANES],
    /// The events without a lane, with their numbers.
    others: EventQueue<(u64, E)>,
    /// The lane from which the last event was taken, or [`LANES`] if it had none.
    last: usize,
    inserted: u64,
}

/// The time of an event, and its number in the order of the insertions.
type Key = (Time, u64);

/// A list to whose end events are added and from whose beginning they are taken. Its room, a power of two, is used in a circle.
#[derive(Clone, Debug)]
struct Lane<E> {
    room: Vec<(Key, E)>,
    /// The number of events that were ever taken, and that were ever added.
    taken: usize,
    added: usize,
}

impl<E: Copy> Lane<E> {
    /// The room for the first events.
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

    /// Doubles the room.
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
    /// When `at` is before the last event that was taken out.
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

    /// Gives the lane that has been empty for the longest time to another delay, if one is empty.
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

    /// Notes the first event of a lane that was empty.
    fn begin(&mut self, key: Key, lane: usize) {
        let mut place = self.used;
        self.used += 1;
        while place > 0 && key < self.firsts[place - 1].0 {
            self.firsts[place] = self.firsts[place - 1];
            place -= 1;
        }
        self.firsts[place] = (key, lane);
    }

    /// Removes the first event and returns it.
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

    /// Whether the first event has no lane.
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

    /// Returns events that will probably come soon.
    #[inline]
    pub fn soon(&self) -> Soon<'_, E> {
        match self.lanes.get(self.last) {
            Some(lane) => Soon(Source::Lane(lane)),
            None => Soon(Source::Others(&self.others)),
        }
    }
}

/// Events that will probably come soon: those of the delay of the event that was taken out last.
#[derive(Clone, Copy, Debug)]
pub struct Soon<'a, E>(Source<'a, E>);

#[derive(Clone, Copy, Debug)]
enum Source<'a, E> {
    Lane(&'a Lane<E>),
    Others(&'a EventQueue<(u64, E)>),
}

impl<'a, E: Copy> Soon<'a, E> {
    /// Returns the event that is `ahead` places after the next one, if it is known.
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
        // More than the first room of a lane, which is used in a circle.
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
        // There is no lane for another.
        push(&mut queue, 20 * SAMPLE, 90);
        assert_eq!((queue.others.len(), queue.used), (1, LANES));
        assert!((1..=3).all(|at| queue.pop() == Some((Time::from_ps(at), at))));
        // There is one, for one of several.
        push(&mut queue, 20 * SAMPLE + 1, 91);
        assert!(queue.others.len() == 2 && queue.delays.contains(&Time::from_ps(1)));
        push(&mut queue, 21 * SAMPLE, 92);
        assert!(queue.delays.contains(&Time::from_ps(92)) && !queue.delays.contains(&Time::from_ps(1)));
        assert!(queue.delays.contains(&Time::from_ps(2)) && queue.delays.contains(&Time::from_ps(3)));
        assert_eq!(std::iter::from_fn(|| queue.pop()).count(), LANES - 3 + 3);
    }

    proptest! {
        /// Compares with the queue that sorts all events.
        #[test]
        fn the_order_is_that_of_an_event_queue(
            // `None` takes an event out. Up to twenty delays, in small and in large steps, and many of the first.
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
