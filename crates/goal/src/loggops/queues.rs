use std::ops::Range;

use sim::memory::{HugePageSlice, prefetch};

/// Lengths of the queues of posted receives and of unexpected messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Queues {
    /// Largest number of posted receives of a rank at a time
    pub longest_posted: u32,
    /// Largest number of unexpected messages of a rank at a time
    pub longest_unexpected: u32,
    /// Number of messages that looked for a posted receive
    pub posted_searches: u64,
    /// Sum of the lengths that they found
    pub posted_lengths: u64,
    /// Number of receives that looked for an unexpected message
    pub unexpected_searches: u64,
    /// Sum of the lengths that they found
    pub unexpected_lengths: u64,
}

impl Queues {
    /// Combines the figures of two sets of ranks.
    pub(super) fn and(self, other: Queues) -> Queues {
        Queues {
            longest_posted: self.longest_posted.max(other.longest_posted),
            longest_unexpected: self.longest_unexpected.max(other.longest_unexpected),
            posted_searches: self.posted_searches + other.posted_searches,
            posted_lengths: self.posted_lengths + other.posted_lengths,
            unexpected_searches: self.unexpected_searches + other.unexpected_searches,
            unexpected_lengths: self.unexpected_lengths + other.unexpected_lengths,
        }
    }
}

/// The present lengths of both queues of each rank.
#[derive(Debug)]
pub(super) struct Lengths {
    first_rank: u32,
    ranks: HugePageSlice<[u32; 2]>,
    pub all: Queues,
}

impl Lengths {
    pub fn new(ranks: Range<u32>) -> Lengths {
        let lengths = HugePageSlice::zeroed(ranks.len());
        lengths.populate(0..ranks.len());
        Lengths { first_rank: ranks.start, ranks: lengths, all: Queues::default() }
    }

    #[inline(always)]
    pub fn prefetch(&self, rank: u32) {
        prefetch(self.ranks.as_ptr().wrapping_add(rank.wrapping_sub(self.first_rank) as usize));
    }

    /// Counts a receive that found its message, or was posted.
    #[inline(always)]
    pub fn posted(&mut self, rank: u32, found: bool) {
        let [posted, unexpected] = &mut self.ranks[(rank - self.first_rank) as usize];
        self.all.unexpected_searches += 1;
        self.all.unexpected_lengths += u64::from(*unexpected);
        if found {
            *unexpected -= 1;
        } else {
            *posted += 1;
            self.all.longest_posted = self.all.longest_posted.max(*posted);
        }
    }

    /// Counts a message that found its receive, or became unexpected.
    #[inline(always)]
    pub fn arrived(&mut self, rank: u32, found: bool) {
        let [posted, unexpected] = &mut self.ranks[(rank - self.first_rank) as usize];
        self.all.posted_searches += 1;
        self.all.posted_lengths += u64::from(*posted);
        if found {
            *posted -= 1;
        } else {
            *unexpected += 1;
            self.all.longest_unexpected = self.all.longest_unexpected.max(*unexpected);
        }
    }
}
