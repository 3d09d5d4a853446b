use crate::{Rate, Time};

/// A serial resource with a rate: a link, a DMA engine. Requests are served in the order of their reservation.
///
/// Occupancy is kept in femtoseconds, so a long train of transfers does not drift by the rounding of each.
#[derive(Clone, Debug, Default)]
pub struct Pipe {
    free_fs: u128,
    busy_fs: u128,
}

impl Pipe {
    /// Reserves the pipe for `bytes` from `now` on, and for at least `gap` in all. Returns when the transfer starts and
    /// when its last byte is through (rounded up to a picosecond).
    pub fn reserve(&mut self, now: Time, bytes: u64, rate: Rate, gap: Time) -> (Time, Time) {
        let start = self.free_fs.max(u128::from(now.as_ps()) * 1000);
        let transfer = u128::from(rate.as_fs_per_byte()) * u128::from(bytes);
        let occupied = transfer.max(u128::from(gap.as_ps()) * 1000);
        self.free_fs = start + occupied;
        self.busy_fs += occupied;
        (ps_up(start), ps_up(start + transfer))
    }

    /// When the next reservation could start.
    pub fn free_at(&self) -> Time {
        ps_up(self.free_fs)
    }

    /// How long the pipe was, or is already bound to be, occupied.
    pub fn busy(&self) -> Time {
        ps_up(self.busy_fs)
    }
}

fn ps_up(fs: u128) -> Time {
    Time::from_ps(fs.div_ceil(1000).try_into().unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn back_to_back_transfers_do_not_drift() {
        let mut pipe = Pipe::default();
        let rate = Rate::from_fs_per_byte(6_700);
        for _ in 0..999 {
            pipe.reserve(Time::ZERO, 8, rate, Time::ZERO);
        }
        assert_eq!(pipe.reserve(Time::ZERO, 8, rate, Time::ZERO).1, rate.time(8000));
    }

    #[test]
    fn a_gap_separates_short_transfers() {
        let (mut pipe, rate, gap) = (Pipe::default(), Rate::from_fs_per_byte(20_000), Time::from_ps(6_700));
        assert_eq!(pipe.reserve(Time::ZERO, 8, rate, gap), (Time::ZERO, Time::from_ps(160)));
        assert_eq!(pipe.reserve(Time::ZERO, 8, rate, gap), (Time::from_ps(6_700), Time::from_ps(6_860)));
        assert_eq!(pipe.busy(), Time::from_ps(13_400));
    }
}
