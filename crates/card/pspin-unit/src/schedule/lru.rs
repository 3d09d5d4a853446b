//! Which message queue may have been idle for longest (§III-B3).

use std::ops::Range;

use machine::pspin::Lru;

use crate::cycle::Cycle;

/// Finds the active queue that has been accessed least recently, exactly or by a tree.
///
/// Each node of the tree has a bit that points away from the half that was accessed last, unless no queue of the other half is
/// active, so that the path from the root ends at an active queue. The tree only approximates the order of accesses: an idle
/// queue may be the candidate only after many others have been.
///
/// The bits are not kept but found when a candidate is needed, which is far less often than a queue is accessed.
pub struct IdleOrder {
    kind: Lru,
    touched: Vec<Cycle>,
    /// The number of the latest access to each queue: by a request, or as a candidate.
    accessed: Vec<u64>,
    accesses: u64,
}

impl IdleOrder {
    /// No queue is active.
    pub fn new(kind: Lru, queues: u32) -> IdleOrder {
        let (touched, accessed) = (vec![Cycle::NEVER; queues as usize], vec![0; queues as usize]);
        IdleOrder { kind, touched, accessed, accesses: 0 }
    }

    /// When a queue was accessed last; [`Cycle::NEVER`] if it is not active.
    pub fn touched(&self, queue: u32) -> Cycle {
        self.touched[queue as usize]
    }

    /// Notes an access to a queue, which makes it active.
    #[inline]
    pub fn touch(&mut self, queue: u32, now: Cycle) {
        self.touched[queue as usize] = now;
        self.point_away(queue);
    }

    #[inline]
    fn point_away(&mut self, queue: u32) {
        self.accesses += 1;
        self.accessed[queue as usize] = self.accesses;
    }

    /// Notes that a queue is no longer active.
    pub fn retire(&mut self, queue: u32) {
        self.touched[queue as usize] = Cycle::NEVER;
    }

    /// The queue whose age is compared next, when `first` is the one that is due first. The tree then points away from it, so
    /// that each queue is compared in turn however the others are accessed.
    pub fn candidate(&mut self, first: u32) -> u32 {
        if self.kind == Lru::Exact {
            return first;
        }
        // The queues below a node, which has as many places as a full tree.
        let (mut start, mut places) = (0, self.touched.len().next_power_of_two());
        while places > 1 {
            places /= 2;
            let middle = (start + places).min(self.touched.len());
            let (one, two) = (start..middle, middle..(middle + places).min(self.touched.len()));
            let is_active = |half: Range<usize>| self.touched[half].iter().any(|touched| *touched != Cycle::NEVER);
            let latest = |half: Range<usize>| self.accessed[half].iter().max().copied().unwrap_or_default();
            let points_at_two = latest(one.clone()) > latest(two.clone());
            if if points_at_two { is_active(two) } else { !is_active(one) } {
                start = middle;
            }
        }
        self.point_away(start as u32);
        start as u32
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
