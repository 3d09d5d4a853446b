// SPDX-License-Identifier: Apache-2.0
//! Candidates for the message queue that is idle for longest (§III-B3).

use std::ops::Range;

use machine::pspin::Lru;

use crate::cycle::Cycle;

/// Finds the least recently accessed active queue, exactly or with a pseudo-LRU tree.
///
/// Each tree node has a bit that points away from the half accessed last, unless the other half has no active queue. So
/// the path from the root ends at an active queue. The tree only approximates the order of accesses: an idle queue may
/// become the candidate only after many others.
///
/// The bits are not stored but computed when a candidate is needed, which is far rarer than an access to a queue.
pub struct IdleOrder {
    kind: Lru,
    touched: Vec<Cycle>,
    /// Sequence number of the latest access to each queue, by a request or as a candidate.
    accessed: Vec<u64>,
    accesses: u64,
}

impl IdleOrder {
    /// Creates an order without active queues.
    pub fn new(kind: Lru, queues: u32) -> IdleOrder {
        let (touched, accessed) = (vec![Cycle::NEVER; queues as usize], vec![0; queues as usize]);
        IdleOrder { kind, touched, accessed, accesses: 0 }
    }

    /// Returns the cycle of a queue's latest access; [`Cycle::NEVER`] if it is not active.
    pub fn touched(&self, queue: u32) -> Cycle {
        self.touched[queue as usize]
    }

    /// Records an access to a queue, which makes it active.
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

    /// Makes a queue inactive.
    pub fn retire(&mut self, queue: u32) {
        self.touched[queue as usize] = Cycle::NEVER;
    }

    /// Returns the queue whose age is compared next; `first` is the one due first. The tree then points away from the
    /// candidate, so every queue becomes one in turn, whatever the accesses to others.
    pub fn candidate(&mut self, first: u32) -> u32 {
        if self.kind == Lru::Exact {
            return first;
        }
        // Queues below a node of a tree padded to a power of two.
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

    /// Iterates over the active queues and the cycles of their latest accesses.
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
        // {0 … 3} is the half not used last, and {2, 3} its quarter. Each candidate turns the tree away from itself.
        assert_eq!([0; 4].map(|_| order.candidate(0)), [3, 5, 0, 4]);
        order.retire(3);
        assert_eq!([0; 3].map(|_| order.candidate(0)), [0, 5, 0]);
        [5, 0, 4].into_iter().for_each(|queue| order.retire(queue));
        assert_eq!(order.active().count(), 0);
        assert_eq!(IdleOrder::new(Lru::Exact, 6).candidate(2), 2);
    }

    /// Accesses to the other queues, one after the other, keep the tree away from queue 100. It still becomes the
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
