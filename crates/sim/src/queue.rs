use crate::Time;

/// Children of a node: a wide, shallow heap touches fewer cache lines than a binary one.
const ARITY: usize = 4;

/// A queue of events that gives them back by time, and among equal times by order of insertion.
///
/// A 4-ary heap of (time, insertion number) keys with the payloads beside them.
#[derive(Clone, Debug)]
pub struct EventQueue<E> {
    heap: Vec<Entry<E>>,
    inserted: u64,
    now: Time,
}

#[derive(Clone, Debug)]
struct Entry<E> {
    at: Time,
    number: u64,
    event: E,
}

impl<E> Entry<E> {
    fn before(&self, other: &Entry<E>) -> bool {
        (self.at, self.number) < (other.at, other.number)
    }
}

impl<E> Default for EventQueue<E> {
    fn default() -> Self {
        EventQueue { heap: Vec::new(), inserted: 0, now: Time::ZERO }
    }
}

impl<E> EventQueue<E> {
    /// Adds an event.
    ///
    /// # Panics
    /// In debug builds, when `at` is before the last event that was taken out: the past cannot change.
    pub fn push(&mut self, at: Time, event: E) {
        debug_assert!(at >= self.now, "event at {at} pushed at {}", self.now);
        self.heap.push(Entry { at, number: self.inserted, event });
        self.inserted += 1;
        self.sift_up(self.heap.len() - 1);
    }

    /// Takes out the first event.
    pub fn pop(&mut self) -> Option<(Time, E)> {
        let last = self.heap.len().checked_sub(1)?;
        self.heap.swap(0, last);
        let entry = self.heap.pop()?;
        self.sift_down();
        self.now = entry.at;
        Some((entry.at, entry.event))
    }

    /// When the first event is due.
    pub fn peek_time(&self) -> Option<Time> {
        self.heap.first().map(|entry| entry.at)
    }

    /// The time of the last event that was taken out.
    pub fn now(&self) -> Time {
        self.now
    }

    /// Number of events in the queue.
    pub fn len(&self) -> usize {
        self.heap.len()
    }

    /// Whether no event is left.
    pub fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }

    /// Number of events ever inserted.
    pub fn inserted(&self) -> u64 {
        self.inserted
    }

    fn sift_up(&mut self, mut child: usize) {
        while child > 0 {
            let parent = (child - 1) / ARITY;
            if !self.heap[child].before(&self.heap[parent]) {
                break;
            }
            self.heap.swap(child, parent);
            child = parent;
        }
    }

    fn sift_down(&mut self) {
        let mut parent = 0;
        loop {
            let first = parent * ARITY + 1;
            if first >= self.heap.len() {
                break;
            }
            let end = (first + ARITY).min(self.heap.len());
            let mut least = first;
            for child in first + 1..end {
                if self.heap[child].before(&self.heap[least]) {
                    least = child;
                }
            }
            if !self.heap[least].before(&self.heap[parent]) {
                break;
            }
            self.heap.swap(least, parent);
            parent = least;
        }
    }
}

#[cfg(test)]
mod tests {
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
}
