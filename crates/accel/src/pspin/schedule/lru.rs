//! Which message queue may have been idle for longest (§III-B3).

use machine::pspin::Lru;

use crate::pspin::cycle::Cycle;

/// Finds the active queue that has been accessed least recently, exactly or by a tree.
///
/// Each node of the tree has a bit that points away from the half that was accessed last, and the number of active queues
/// below, so that the path from the root ends at an active queue. The tree only approximates the order of accesses: an idle
/// queue may be the candidate only after many others have been.
pub struct IdleOrder {
    kind: Lru,
    leaves: usize,
    /// Whether the least recent half of a node is the second one.
    second: Vec<bool>,
    active: Vec<u32>,
    touched: Vec<Cycle>,
}

impl IdleOrder {
    /// No queue is active.
    pub fn new(kind: Lru, queues: u32) -> IdleOrder {
        let leaves = (queues as usize).next_power_of_two();
        IdleOrder {
            kind,
            leaves,
            second: vec![false; leaves],
            active: vec![0; 2 * leaves],
            touched: vec![Cycle::NEVER; queues as usize],
        }
    }

    /// When a queue was accessed last; [`Cycle::NEVER`] if it is not active.
    pub fn touched(&self, queue: u32) -> Cycle {
        self.touched[queue as usize]
    }

    /// Notes an access to a queue, which makes it active.
    pub fn touch(&mut self, queue: u32, now: Cycle) {
        let is_new = self.touched[queue as usize] == Cycle::NEVER;
        self.touched[queue as usize] = now;
        if is_new {
            self.add(queue, 1);
        }
        self.point_away(queue);
    }

    fn point_away(&mut self, queue: u32) {
        let mut node = self.leaves + queue as usize;
        while node > 1 {
            let parent = node / 2;
            self.second[parent] = node.is_multiple_of(2);
            node = parent;
        }
    }

    /// Notes that a queue is no longer active.
    pub fn retire(&mut self, queue: u32) {
        if self.touched[queue as usize] != Cycle::NEVER {
            self.touched[queue as usize] = Cycle::NEVER;
            self.add(queue, u32::MAX);
        }
    }

    fn add(&mut self, queue: u32, change: u32) {
        let mut node = self.leaves + queue as usize;
        while node > 0 {
            self.active[node] = self.active[node].wrapping_add(change);
            node /= 2;
        }
    }

    /// The queue whose age is compared next, when `first` is the one that is due first. The tree then points away from it, so
    /// that each queue is compared in turn however the others are accessed.
    pub fn candidate(&mut self, first: u32) -> u32 {
        if self.kind == Lru::Exact {
            return first;
        }
        let mut node = 1;
        while node < self.leaves {
            let second = 2 * node + 1;
            let goes_second = if self.second[node] { self.active[second] > 0 } else { self.active[second - 1] == 0 };
            node = if goes_second { second } else { second - 1 };
        }
        let queue = (node - self.leaves) as u32;
        self.point_away(queue);
        queue
    }

    /// The active queues.
    pub fn active(&self) -> impl Iterator<Item = (u32, Cycle)> {
        let queues = self.touched.iter().enumerate().map(|(queue, touched)| (queue as u32, *touched));
        queues.filter(|(_, touched)| *touched != Cycle::NEVER)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tree_points_at_an_active_queue_that_was_not_used_last() {
        let mut order = IdleOrder::new(Lru::Tree, 6);
        for (at, queue) in [3, 5, 0, 4].into_iter().enumerate() {
            order.touch(queue, Cycle(at as u64));
        }
        assert_eq!((order.touched(5), order.touched(1)), (Cycle(1), Cycle::NEVER));
        // {0 … 3} is the half that was not used last, and {2, 3} the quarter. Each candidate turns the tree away from itself.
        assert_eq!([0; 4].map(|_| order.candidate(0)), [3, 5, 0, 4]);
        order.retire(3);
        assert_eq!([0; 3].map(|_| order.candidate(0)), [0, 5, 0]);
        [5, 0, 4].into_iter().for_each(|queue| order.retire(queue));
        assert_eq!(order.active().count(), 0);
        assert_eq!(IdleOrder::new(Lru::Exact, 6).candidate(2), 2);
    }

    /// While the others are accessed in turn, which keeps the tree away from queue 100 by itself, every queue becomes the
    /// candidate.
    #[test]
    fn an_idle_queue_is_found() {
        let mut order = IdleOrder::new(Lru::Tree, 256);
        (0..256).for_each(|queue| order.touch(queue, Cycle(u64::from(queue))));
        let others = (0..256).filter(|queue| *queue != 100).cycle();
        let found = others.take(1024).position(|queue| {
            order.touch(queue, Cycle(1000));
            order.candidate(0) == 100
        });
        assert!(found.is_some());
    }
}
