// SPDX-License-Identifier: Apache-2.0
//! Barriers of all ranks. Arriving and leaving take no simulated time: the arrival of the last rank resumes all others.

use ranks::Caller;

/// Kind of a barrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BarrierKind {
    /// `spin_barrier`.
    Spin,
    /// PMI barrier.
    Pmi,
}

impl BarrierKind {
    /// Returns its name for deadlock reports.
    pub fn name(self) -> &'static str {
        match self {
            BarrierKind::Spin => "spin_barrier",
            BarrierKind::Pmi => "a PMI barrier",
        }
    }
}

/// The present round of a barrier, with one arrival per rank, and the threads that wait for later rounds.
pub struct Barrier {
    /// First thread of each arrived rank, in order of arrival.
    arrived: Vec<Caller>,
    /// For each rank, true if one of its threads has arrived.
    present: Vec<bool>,
    /// Further threads of these ranks, in order of arrival.
    later: Vec<Caller>,
    /// Number of participating ranks.
    members: usize,
}

impl Barrier {
    /// Creates a barrier of `members` of `ranks` ranks.
    pub fn new(ranks: usize, members: usize) -> Barrier {
        Barrier { arrived: Vec::new(), present: vec![false; ranks], later: Vec::new(), members }
    }

    /// Returns the number of participating ranks.
    pub fn members(&self) -> usize {
        self.members
    }

    /// Returns the number of ranks that have arrived in this round.
    pub fn arrived(&self) -> usize {
        self.arrived.len()
    }

    /// Records the arrival of a thread. The last rank's arrival releases all threads of the round, which are returned,
    /// and starts the next round with the threads that already wait for it.
    pub fn arrive(&mut self, caller: Caller) -> Vec<Caller> {
        self.admit(caller);
        self.next_round()
    }

    /// Removes a participating rank. Returns the threads released by its absence.
    pub fn leave(&mut self, rank: u32) -> Vec<Caller> {
        self.members -= 1;
        for callers in [&mut self.arrived, &mut self.later] {
            callers.retain(|caller| caller.rank != rank);
        }
        self.next_round()
    }

    fn next_round(&mut self) -> Vec<Caller> {
        if self.arrived.len() < self.members {
            return Vec::new();
        }
        let free = std::mem::take(&mut self.arrived);
        self.present.fill(false);
        std::mem::take(&mut self.later).into_iter().for_each(|caller| self.admit(caller));
        free
    }

    fn admit(&mut self, caller: Caller) {
        let present = std::mem::replace(&mut self.present[caller.rank as usize], true);
        if present { self.later.push(caller) } else { self.arrived.push(caller) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thread(rank: u32, slot: u32) -> Caller {
        Caller { rank, slot }
    }

    #[test]
    fn a_rank_arrives_once_a_round() {
        let mut barrier = Barrier::new(2, 2);
        let (a, b, c) = (thread(0, 0), thread(0, 1), thread(0, 2));
        for (come, arrived) in [(a, 1), (b, 1), (c, 1)] {
            assert_eq!((barrier.arrive(come), barrier.arrived()), (vec![], arrived));
        }
        let other = thread(1, 5);
        for next in [a, b, c] {
            assert_eq!(barrier.arrive(other), [next, other]);
        }
        assert_eq!(barrier.arrived(), 0);
        assert_eq!(barrier.arrive(other), []);
        assert_eq!(barrier.arrive(b), [other, b]);
    }

    #[test]
    fn barriers_do_not_wait_for_ranks_that_left() {
        let mut barrier = Barrier::new(3, 3);
        assert_eq!(barrier.arrive(thread(0, 0)), []);
        assert_eq!(barrier.arrive(thread(2, 0)), []);
        assert_eq!(barrier.leave(2), []);
        assert_eq!((barrier.arrived(), barrier.arrive(thread(1, 0))), (1, vec![thread(0, 0), thread(1, 0)]));
        assert_eq!(barrier.arrive(thread(1, 1)), []);
        assert_eq!(barrier.leave(0), [thread(1, 1)]);
        assert_eq!(barrier.arrive(thread(1, 2)), [thread(1, 2)]);
    }

    #[test]
    fn threads_pair_up_in_order_of_arrival() {
        let mut barrier = Barrier::new(3, 3);
        let order = [(2, 0), (2, 1), (0, 0), (0, 1), (1, 1)].map(|(rank, slot)| thread(rank, slot));
        let free = order.map(|caller| barrier.arrive(caller));
        assert_eq!(free[4], [order[0], order[2], order[4]]);
        assert!(free[..4].iter().all(Vec::is_empty));
        assert_eq!(barrier.arrive(thread(1, 0)), [order[1], order[3], thread(1, 0)]);
    }
}
