// SPDX-License-Identifier: Apache-2.0
//! Simulated time, rates and clocks in exact integers.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Mul, Sub};

/// A point in simulated time or a duration, in integer picoseconds.
///
/// Sums and products saturate at [`Time::MAX`], so time never wraps around. A simulation ends at [`Time::LIMIT`], well
/// before that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(u64);

impl Time {
    /// The start of the simulation, or a duration of zero.
    pub const ZERO: Time = Time(0);
    /// The largest time, later than every event.
    pub const MAX: Time = Time(u64::MAX);

    /// End of simulated time: 2^63 ps, which is 106 days and 18 hours.
    pub const LIMIT: Time = Time(1 << 63);

    /// Makes a time from picoseconds.
    pub const fn from_ps(ps: u64) -> Time {
        Time(ps)
    }

    /// Makes a time from nanoseconds.
    pub const fn from_ns(ns: u64) -> Time {
        Time(ns.saturating_mul(1000))
    }

    /// Returns the time in picoseconds.
    pub const fn as_ps(self) -> u64 {
        self.0
    }

    /// Returns the time in nanoseconds, for display.
    pub fn as_ns_f64(self) -> f64 {
        self.0 as f64 / 1e3
    }

    /// Returns the difference, or zero if `earlier` is later.
    pub fn saturating_sub(self, earlier: Time) -> Time {
        Time(self.0.saturating_sub(earlier.0))
    }

    /// Returns the sum, at most [`Time::MAX`].
    pub fn saturating_add(self, span: Time) -> Time {
        Time(self.0.saturating_add(span.0))
    }
}

impl Add for Time {
    type Output = Time;

    fn add(self, span: Time) -> Time {
        self.saturating_add(span)
    }
}

impl AddAssign for Time {
    fn add_assign(&mut self, span: Time) {
        *self = *self + span;
    }
}

impl Sub for Time {
    type Output = Time;

    fn sub(self, earlier: Time) -> Time {
        Time(self.0 - earlier.0)
    }
}

impl Mul<u64> for Time {
    type Output = Time;

    fn mul(self, count: u64) -> Time {
        Time(self.0.saturating_mul(count))
    }
}

impl Sum for Time {
    fn sum<I: Iterator<Item = Time>>(spans: I) -> Time {
        spans.fold(Time::ZERO, Add::add)
    }
}

impl fmt::Display for Time {
    /// Writes nanoseconds with three decimals: `1234.567 ns`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:03} ns", self.0 / 1000, self.0 % 1000)
    }
}

/// Inverse bandwidth (LogGP's G) in integer femtoseconds per byte, which represents every G of the papers (2.5, 6.7,
/// 15.6, 20 ps/B) exactly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct TimePerByte(u64);

impl TimePerByte {
    /// Infinite bandwidth: any number of bytes takes no time.
    pub const INFINITE: TimePerByte = TimePerByte(0);

    /// Makes a rate from femtoseconds per byte.
    pub const fn from_fs_per_byte(fs: u64) -> TimePerByte {
        TimePerByte(fs)
    }

    /// Returns the rate in femtoseconds per byte.
    pub const fn as_fs_per_byte(self) -> u64 {
        self.0
    }

    /// Returns the duration of `bytes` bytes, rounded up to a picosecond.
    #[inline]
    pub fn time(self, bytes: u64) -> Time {
        if let Some(fs) = self.0.checked_mul(bytes) {
            return Time(fs.div_ceil(1000));
        }
        Time((u128::from(self.0) * u128::from(bytes)).div_ceil(1000).try_into().unwrap_or(u64::MAX))
    }
}

/// Clock of a core, stored as its frequency so that the period is not rounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Clock(u64);

impl Clock {
    /// Makes a clock from a frequency in kilohertz, at least 1.
    pub const fn from_khz(khz: u64) -> Clock {
        assert!(khz > 0);
        Clock(khz)
    }

    /// Returns the frequency in kilohertz.
    pub const fn as_khz(self) -> u64 {
        self.0
    }

    /// Returns the duration of `cycles` cycles, rounded up to a picosecond.
    pub fn time(self, cycles: u64) -> Time {
        Time((u128::from(cycles) * 1_000_000_000).div_ceil(u128::from(self.0)).try_into().unwrap_or(u64::MAX))
    }

    /// Returns the number of whole cycles in `span`.
    pub fn cycles(self, span: Time) -> u64 {
        (u128::from(span.0) * u128::from(self.0) / 1_000_000_000).try_into().unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_of_the_papers_are_exact() {
        assert_eq!(TimePerByte::from_fs_per_byte(2_500).time(4096), Time::from_ps(10_240));
        assert_eq!(TimePerByte::from_fs_per_byte(6_700).time(1000), Time::from_ps(6_700));
        assert_eq!(TimePerByte::from_fs_per_byte(6_700).time(8), Time::from_ps(54)); // 53.6
        assert_eq!(TimePerByte::INFINITE.time(u64::MAX), Time::ZERO);
    }

    #[test]
    fn clocks_do_not_drift() {
        let clock = Clock::from_khz(3_000_000);
        assert_eq!(clock.time(1), Time::from_ps(334));
        assert_eq!(clock.time(3_000_000), Time::from_ps(1_000_000_000));
        assert_eq!(Clock::from_khz(2_500_000).time(1), Time::from_ps(400));
        assert_eq!(clock.cycles(Time::from_ns(1)), 3);
    }

    #[test]
    fn large_times_do_not_wrap() {
        let long = Time::from_ps(u64::MAX - 1);
        assert_eq!(long + Time::from_ps(1), Time::MAX);
        assert_eq!(long + Time::from_ps(2), Time::MAX);
        assert_eq!(Time::MAX + Time::MAX, Time::MAX);
        assert_eq!(Time::LIMIT * 1, Time::LIMIT);
        assert_eq!(Time::LIMIT * 2, Time::MAX);
        assert_eq!(Time::from_ns(u64::MAX / 1000), Time::from_ps(u64::MAX / 1000 * 1000));
        assert_eq!(Time::from_ns(u64::MAX / 1000 + 1), Time::MAX);
        assert_eq!([Time::LIMIT; 3].into_iter().sum::<Time>(), Time::MAX);
        let mut sum = Time::LIMIT;
        sum += Time::LIMIT;
        assert_eq!(sum, Time::MAX);
    }

    #[test]
    fn times_print_as_nanoseconds() {
        assert_eq!(Time::from_ps(65_007).to_string(), "65.007 ns");
    }
}
