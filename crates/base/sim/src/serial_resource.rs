// SPDX-License-Identifier: Apache-2.0
//! Resource with a rate that serves one transfer at a time.

use crate::{Time, TimePerByte};

/// A resource that serves one transfer at a time, in the order of their reservations: a link, a DMA engine.
///
/// Occupancy is in femtoseconds, so that rounding errors do not accumulate over many transfers.
#[derive(Clone, Debug, Default)]
pub struct SerialResource {
    free_fs: u128,
    busy_fs: u128,
}

impl SerialResource {
    /// Returns the start of a transfer that is ready at `now`, rounded up to a picosecond.
    #[inline]
    pub fn next_start(&self, now: Time) -> Time {
        now.max(ps_up(self.free_fs))
    }

    /// Reserves the resource for a transfer of `bytes` bytes that is ready at `now`. The reservation lasts at least
    /// `gap`. Returns the start of the transfer and the time at which its last byte has passed, rounded up to a
    /// picosecond.
    #[inline]
    pub fn reserve(&mut self, now: Time, bytes: u64, rate: TimePerByte, gap: Time) -> (Time, Time) {
        let start = self.free_fs.max(u128::from(now.as_ps()) * 1000);
        let transfer = u128::from(rate.as_fs_per_byte()) * u128::from(bytes);
        let occupied = transfer.max(u128::from(gap.as_ps()) * 1000);
        self.free_fs = start + occupied;
        self.busy_fs += occupied;
        (ps_up(start), ps_up(start + transfer))
    }

    /// Reserves the resource for several back-to-back transfers of `bytes` bytes in total, like
    /// [`reserve`](SerialResource::reserve) without a gap.
    #[inline]
    pub fn reserve_train(&mut self, now: Time, bytes: u64, rate: TimePerByte) -> Train {
        let start_fs = self.free_fs.max(u128::from(now.as_ps()) * 1000);
        let train = Train::new(start_fs, rate);
        self.free_fs = train.passed_fs(bytes);
        self.busy_fs += self.free_fs - start_fs;
        train
    }

    /// Becomes free when `other` does, which accounts for another user of the same resource.
    pub fn follow(&mut self, other: &SerialResource) {
        self.free_fs = other.free_fs;
    }

    /// Returns the total time of all reservations, past and future.
    pub fn busy(&self) -> Time {
        ps_up(self.busy_fs)
    }
}

/// Back-to-back transfers through a serial resource.
///
/// The start is kept in 64-bit words, since allocations with 16-byte alignment are slow.
#[derive(Clone, Copy, Debug, Default)]
pub struct Train {
    /// Start, rounded down to a picosecond.
    start: Time,
    /// Remainder of the rounding, in femtoseconds.
    rest_fs: u32,
    rate: TimePerByte,
}

impl Train {
    fn new(start_fs: u128, rate: TimePerByte) -> Train {
        let (ps, rest_fs) = match u64::try_from(start_fs) {
            Ok(fs) => (fs / 1000, fs % 1000),
            Err(_) => ((start_fs / 1000) as u64, (start_fs % 1000) as u64),
        };
        Train { start: Time::from_ps(ps), rest_fs: rest_fs as u32, rate }
    }

    /// Returns the time at which the first `bytes` bytes have passed, rounded up to a picosecond; the start for 0
    /// bytes.
    #[inline]
    pub fn passed(&self, bytes: u64) -> Time {
        ps_up(self.passed_fs(bytes))
    }

    fn passed_fs(&self, bytes: u64) -> u128 {
        let start_fs = u128::from(self.start.as_ps()) * 1000 + u128::from(self.rest_fs);
        start_fs + u128::from(self.rate.as_fs_per_byte()) * u128::from(bytes)
    }
}

/// Rounds up to a picosecond. Times of up to five hours fit into one word, whose division is ten times faster than that
/// of two.
#[inline]
fn ps_up(fs: u128) -> Time {
    match u64::try_from(fs) {
        Ok(fs) => Time::from_ps(fs.div_ceil(1000)),
        Err(_) => Time::from_ps(fs.div_ceil(1000).try_into().unwrap_or(u64::MAX)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn back_to_back_transfers_do_not_drift() {
        let mut pipe = SerialResource::default();
        let rate = TimePerByte::from_fs_per_byte(6_700);
        for _ in 0..999 {
            pipe.reserve(Time::ZERO, 8, rate, Time::ZERO);
        }
        assert_eq!(pipe.reserve(Time::ZERO, 8, rate, Time::ZERO).1, rate.time(8000));
    }

    #[test]
    fn a_train_is_its_transfers_one_after_the_other() {
        let rate = TimePerByte::from_fs_per_byte(6_731);
        for earlier in [0, 3, 1000] {
            let (mut single, mut whole) = (SerialResource::default(), SerialResource::default());
            single.reserve(Time::ZERO, earlier, rate, Time::ZERO);
            whole.reserve(Time::ZERO, earlier, rate, Time::ZERO);
            let now = Time::from_ps(5_001);
            let train = whole.reserve_train(now, 4096 * 9 + 5, rate);
            for packet in 0..10 {
                let bytes = if packet < 9 { 4096 } else { 5 };
                let (start, end) = single.reserve(now, bytes, rate, Time::ZERO);
                let offset = packet * 4096;
                assert_eq!((start, end), (train.passed(offset), train.passed(offset + bytes)), "{earlier} {packet}");
            }
            assert_eq!((single.free_fs, single.busy()), (whole.free_fs, whole.busy()));
        }
    }

    #[test]
    fn a_gap_separates_short_transfers() {
        let (mut pipe, rate, gap) =
            (SerialResource::default(), TimePerByte::from_fs_per_byte(20_000), Time::from_ps(6_700));
        assert_eq!(pipe.reserve(Time::ZERO, 8, rate, gap), (Time::ZERO, Time::from_ps(160)));
        assert_eq!(pipe.reserve(Time::ZERO, 8, rate, gap), (Time::from_ps(6_700), Time::from_ps(6_860)));
        assert_eq!(pipe.busy(), Time::from_ps(13_400));
    }
}
