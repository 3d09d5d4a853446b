//! Time inside the unit: cycles of its clock.

use std::ops::{Add, AddAssign, Sub};

/// A cycle of the unit's clock (`hpu.clock_ghz`), counted from the start of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cycle(pub u64);

impl Cycle {
    /// The first cycle.
    pub const ZERO: Cycle = Cycle(0);
    /// A cycle that never comes.
    pub const NEVER: Cycle = Cycle(u64::MAX);
}

impl Add<u64> for Cycle {
    type Output = Cycle;

    /// A later cycle; one that never comes stays so.
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

/// The number of cycles from an earlier cycle to this one.
impl Sub for Cycle {
    type Output = u64;

    #[inline]
    fn sub(self, earlier: Cycle) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}
