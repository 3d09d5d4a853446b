// SPDX-License-Identifier: Apache-2.0
//! Time inside the unit: cycles of its clock.

use std::ops::{Add, AddAssign, Sub};

/// A cycle of the unit's clock (`hpu.clock_ghz`), counted from the start of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cycle(pub u64);

impl Cycle {
    /// Cycle 0.
    pub const ZERO: Cycle = Cycle(0);
    /// Sentinel after all cycles, for events that never happen.
    pub const NEVER: Cycle = Cycle(u64::MAX);
}

impl Add<u64> for Cycle {
    type Output = Cycle;

    /// Returns the cycle `cycles` later; saturates at [`Cycle::NEVER`].
    #[inline]
    fn add(self, cycles: u64) -> Cycle {
        Cycle(self.0.saturating_add(cycles))
    }
}

impl Add<u32> for Cycle {
    type Output = Cycle;

    #[inline]
    fn add(self, cycles: u32) -> Cycle {
        self + u64::from(cycles)
    }
}

impl AddAssign<u64> for Cycle {
    #[inline]
    fn add_assign(&mut self, cycles: u64) {
        *self = *self + cycles;
    }
}

/// Number of cycles between an earlier cycle and this one; 0 if it is not earlier.
impl Sub for Cycle {
    type Output = u64;

    #[inline]
    fn sub(self, earlier: Cycle) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}
