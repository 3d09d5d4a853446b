// SPDX-License-Identifier: Apache-2.0
//! Links with a time per byte.

use sim::{Clock, TimePerByte};

use crate::cycle::Cycle;

/// Units of the link's time in a cycle: 1 fs × 1 kHz is 10^-12 of a cycle.
const CYCLE: u128 = 1_000_000_000_000;

/// A link that serializes pieces at a rate. It carries the fraction of a cycle over between back-to-back pieces.
#[derive(Clone, Debug)]
pub struct Rate {
    per_byte: u128,
    free: Cycle,
    rest: u128,
}

impl Rate {
    /// Creates an idle link; a `gap` of 0 means unlimited bandwidth.
    pub fn new(gap: TimePerByte, clock: Clock) -> Rate {
        let per_byte = u128::from(gap.as_fs_per_byte()) * u128::from(clock.as_khz());
        Rate { per_byte, free: Cycle::ZERO, rest: 0 }
    }

    /// Returns the first cycle in which the link is free.
    pub fn free(&self) -> Cycle {
        self.free
    }

    /// Transfers a piece that is ready in cycle `at`. Returns the cycle in which its transfer begins.
    pub fn take(&mut self, at: Cycle, bytes: u32) -> Cycle {
        let start = at.max(self.free);
        if start > self.free {
            self.rest = 0;
        }
        let owed = self.rest + self.per_byte * u128::from(bytes);
        self.free = start + u64::try_from(owed / CYCLE).unwrap_or(u64::MAX);
        self.rest = owed % CYCLE;
        start
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_train_keeps_the_remainder() {
        // 20 ps/B at 1 GHz: 64 B take 1.28 cycles.
        let mut rate = Rate::new(TimePerByte::from_fs_per_byte(20_000), Clock::from_khz(1_000_000));
        let starts: Vec<u64> = (0..6).map(|_| rate.take(Cycle(10), 64).0).collect();
        assert_eq!(starts, [10, 11, 12, 13, 15, 16]);
        assert_eq!(rate.take(Cycle(1000), 64), Cycle(1000));
        assert_eq!(rate.free(), Cycle(1001));
        let mut unlimited = Rate::new(TimePerByte::from_fs_per_byte(0), Clock::from_khz(1_000_000));
        assert_eq!((unlimited.take(Cycle(5), 9000), unlimited.take(Cycle(5), 9000)), (Cycle(5), Cycle(5)));
    }
}
