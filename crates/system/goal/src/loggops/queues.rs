// SPDX-License-Identifier: Apache-2.0
//! Statistics of posted receives and unexpected messages, and delayed posting.

use std::ops::Range;

use sim::memory::{HugePageSlice, prefetch};

/// Lengths of the queues of posted receives and of unexpected messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Queues {
    /// Maximum number of posted receives of a rank at any time
    pub longest_posted: u32,
    /// Maximum number of unexpected messages of a rank at any time
    pub longest_unexpected: u32,
    /// Number of searches of posted receives by messages
    pub posted_searches: u64,
    /// Sum of the queue lengths at these searches
    pub posted_lengths: u64,
    /// Number of searches of unexpected messages by receives
    pub unexpected_searches: u64,
    /// Sum of the queue lengths at these searches
    pub unexpected_lengths: u64,
}

impl Queues {
    /// Combines the statistics of two sets of ranks.
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

/// Flag that replaces a zero count of unexpected messages; the other bits are the first receive with delayed posting.
const DELAYED: u32 = 1 << 31;

/// Current lengths of both queues of each rank, and the receives with delayed posting, for which no message waits.
#[derive(Debug)]
pub(super) struct Lengths {
    first_rank: u32,
    /// Numbers of posted receives and of unexpected messages.
    ranks: HugePageSlice<[u32; 2]>,
    /// Posting time of the delayed receives.
    at: HugePageSlice<u64>,
    pub all: Queues,
}

impl Lengths {
    pub fn new(ranks: Range<u32>) -> Lengths {
        let lengths = HugePageSlice::zeroed(ranks.len());
        lengths.populate(0..ranks.len());
        let at = HugePageSlice::zeroed(ranks.len());
        Lengths { first_rank: ranks.start, ranks: lengths, at, all: Queues::default() }
    }

    #[inline(always)]
    pub fn prefetch(&self, rank: u32) {
        prefetch(self.ranks.as_ptr().wrapping_add(rank.wrapping_sub(self.first_rank) as usize));
    }

    /// Delays the posting of receives at the time `at`. Returns false if a message waits for them. No receive of the
    /// rank may be delayed yet.
    #[inline(always)]
    pub fn delay(&mut self, rank: u32, at: u64, first: u32) -> bool {
        let rank = (rank - self.first_rank) as usize;
        let [_, unexpected] = &mut self.ranks[rank];
        if *unexpected != 0 {
            return false;
        }
        *unexpected = first | DELAYED;
        self.at[rank] = at;
        true
    }

    /// Returns the posting time of the delayed receives, and the first of them.
    #[inline(always)]
    pub fn delayed(&self, rank: u32) -> Option<(u64, u32)> {
        let rank = (rank - self.first_rank) as usize;
        let [_, unexpected] = self.ranks[rank];
        if unexpected & DELAYED == 0 {
            return None;
        }
        Some((self.at[rank], unexpected & !DELAYED))
    }

    /// Ends the delay of the receives of a rank.
    #[inline(always)]
    pub fn end_delay(&mut self, rank: u32) {
        self.ranks[(rank - self.first_rank) as usize][1] = 0;
    }

    /// Counts a receive that found its message, or was posted.
    #[inline(always)]
    pub fn posted(&mut self, rank: u32, found: bool) {
        let [posted, unexpected] = &mut self.ranks[(rank - self.first_rank) as usize];
        self.all.unexpected_searches += 1;
        self.all.unexpected_lengths += u64::from(if *unexpected & DELAYED == 0 { *unexpected } else { 0 });
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
