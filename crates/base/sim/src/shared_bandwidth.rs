// SPDX-License-Identifier: Apache-2.0
//! Memory bandwidth shared by CPUs and devices.

use crate::{Time, TimePerByte};

/// A load of 1: a requester that uses the whole bandwidth when alone.
const FULL: u128 = 1 << 32;

/// A memory whose bandwidth CPUs and devices share.
///
/// Each requester has a load: the share of the bandwidth that it uses when alone. While the sum f of all loads exceeds
/// 1, every requester is slowed by f; otherwise no requester is delayed. This models a memory controller that serves
/// requests line by line in arrival order, with a fixed number of lines in flight for each requester (Little's law):
/// shares are in proportion to these numbers, and no requester waits for the whole of another's transfer.
///
/// CPU work ([`begin`](SharedBandwidth::begin)) has no fixed end: later loads delay it. A device transfer
/// ([`reserve`](SharedBandwidth::reserve)) is slowed only by the loads known at its reservation, and slows current and
/// future CPU work.
///
/// Computations are in integer femtoseconds and in loads of 2^-32, so that they are the same on every machine.
#[derive(Clone, Debug)]
pub struct SharedBandwidth {
    rate_fs: u128,
    flow: Flow,
    transfers: Vec<Transfer>,
    works: u64,
}

/// Identifier of CPU work that accesses memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkId(u64);

/// State of the work in progress at a time.
#[derive(Clone, Debug, Default)]
struct Flow {
    now_fs: u128,
    works: Vec<Work>,
}

#[derive(Clone, Debug)]
struct Work {
    id: u64,
    start_fs: u128,
    /// Remaining time when alone.
    left_fs: u128,
    load: u128,
}

/// A transfer with a fixed end.
#[derive(Clone, Debug)]
struct Transfer {
    start_fs: u128,
    end_fs: u128,
    load: u128,
}

impl SharedBandwidth {
    /// Creates an idle memory with this inverse bandwidth.
    pub fn new(rate: TimePerByte) -> SharedBandwidth {
        let rate_fs = rate.as_fs_per_byte().into();
        SharedBandwidth { rate_fs, flow: Flow::default(), transfers: Vec::new(), works: 0 }
    }

    /// Starts CPU work at `start` that reads and writes `bytes` bytes and takes `span` when alone.
    pub fn begin(&mut self, now: Time, start: Time, span: Time, bytes: u64) -> WorkId {
        self.advance(now);
        let span_fs = fs(span);
        let load = (self.rate_fs * u128::from(bytes)).min(span_fs) * FULL / span_fs.max(1);
        self.works += 1;
        self.flow.works.push(Work { id: self.works, start_fs: fs(start), left_fs: span_fs, load });
        WorkId(self.works)
    }

    /// Returns the end of `work` as predicted at `now`; `None` if it is over.
    pub fn end(&mut self, now: Time, work: WorkId) -> Option<Time> {
        self.advance(now);
        let mut flow = self.flow.clone();
        while flow.works.iter().any(|one| one.id == work.0) {
            flow.step(&self.transfers, u128::MAX);
        }
        Some(Time::from_ps(flow.now_fs.div_ceil(1000).try_into().unwrap_or(u64::MAX))).filter(|end| *end > now)
    }

    /// Reserves bandwidth for a device transfer that starts at `start` and takes `rate` for each byte when alone.
    /// Returns its actual time per byte.
    pub fn reserve(&mut self, now: Time, start: Time, bytes: u64, rate: TimePerByte) -> TimePerByte {
        self.advance(now);
        let alone_fs = u128::from(rate.as_fs_per_byte()).max(self.rate_fs);
        if bytes == 0 || alone_fs == 0 {
            return rate;
        }
        let left_fs = (alone_fs * u128::from(bytes)).min(fs(Time::MAX));
        let load = self.rate_fs * FULL / alone_fs;
        // A continuing engine starts when its last transfer ends, which `start` has rounded to a picosecond.
        let continued = self.transfers.iter().map(|last| last.end_fs).find(|end| end.abs_diff(fs(start)) < 1000);
        let start_fs = continued.unwrap_or(fs(start));
        let end_fs = if self.flow.works.is_empty() && self.transfers.iter().all(|other| other.end_fs <= start_fs) {
            start_fs + left_fs
        } else {
            let mut flow = self.flow.clone();
            flow.works.push(Work { id: 0, start_fs, left_fs, load });
            while flow.works.iter().any(|one| one.id == 0) {
                flow.step(&self.transfers, u128::MAX);
            }
            flow.now_fs
        };
        let slowed_fs = (end_fs - start_fs).div_ceil(u128::from(bytes));
        let end_fs = start_fs + slowed_fs * u128::from(bytes);
        match self.transfers.iter_mut().find(|last| last.load == load && last.end_fs == start_fs) {
            Some(last) => last.end_fs = end_fs,
            None => self.transfers.push(Transfer { start_fs, end_fs, load }),
        }
        TimePerByte::from_fs_per_byte(slowed_fs.try_into().unwrap_or(u64::MAX))
    }

    /// Advances all work to `now`.
    fn advance(&mut self, now: Time) {
        let now_fs = fs(now);
        while self.flow.now_fs < now_fs {
            self.flow.step(&self.transfers, now_fs);
        }
        self.transfers.retain(|transfer| transfer.end_fs > now_fs);
    }
}

impl Flow {
    /// Advances to the next start or end, at most to `limit`.
    fn step(&mut self, transfers: &[Transfer], limit: u128) {
        let now = self.now_fs;
        let current = transfers.iter().filter(|transfer| transfer.start_fs <= now && now < transfer.end_fs);
        let working = self.works.iter().filter(|work| work.start_fs <= now);
        let load = current.map(|transfer| transfer.load).chain(working.clone().map(|work| work.load)).sum::<u128>();
        let slowdown = load.max(FULL);
        let ends = working.map(|work| now + (work.left_fs * slowdown).div_ceil(FULL));
        let starts = self.works.iter().map(|work| work.start_fs).filter(|start| *start > now);
        let edges =
            transfers.iter().flat_map(|transfer| [transfer.start_fs, transfer.end_fs]).filter(|edge| *edge > now);
        let next = ends.chain(starts).chain(edges).min().unwrap_or(limit).min(limit);
        self.works.retain_mut(|work| {
            if work.start_fs <= now {
                work.left_fs = work.left_fs.saturating_sub((next - now) * FULL / slowdown);
            }
            work.start_fs > now || work.left_fs > 0
        });
        self.now_fs = next;
    }
}

fn fs(time: Time) -> u128 {
    u128::from(time.as_ps()) * 1000
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SerialResource;

    /// 150 GiB/s (sPIN §4.3).
    const RATE: TimePerByte = TimePerByte::from_fs_per_byte(6_700);
    /// PCI Express (sPIN §4.3).
    const PCIE: TimePerByte = TimePerByte::from_fs_per_byte(15_600);
    /// Duration of 10,000 bytes alone: 67 ns.
    const ALONE: Time = Time::from_ps(67_000);

    fn ps(ps: u64) -> Time {
        Time::from_ps(ps)
    }

    #[test]
    fn who_is_alone_is_not_delayed() {
        let mut memory = SharedBandwidth::new(RATE);
        assert_eq!(memory.reserve(ps(0), ps(5), 4096, RATE), RATE);
        assert_eq!(memory.reserve(ps(0), ps(1_000_000), 4096, PCIE), PCIE);
        let work = memory.begin(ps(2_000_000), ps(2_000_100), ALONE, 10_000);
        assert_eq!(memory.end(ps(2_000_000), work), Some(ps(2_067_100)));
        assert_eq!(memory.end(ps(2_067_100), work), None);
        // Without contention, a transfer starts the moment the work ends.
        assert_eq!(memory.reserve(ps(2_067_100), ps(2_067_100), 4096, RATE), RATE);
    }

    #[test]
    fn a_device_that_is_never_idle_does_not_delay_itself() {
        let mut memory = SharedBandwidth::new(RATE);
        let mut engine = SerialResource::default();
        for now in (0..1_000).map(|now| ps(now * 20)) {
            let rate = memory.reserve(now, engine.next_start(now), 4_095, RATE);
            assert_eq!(rate, RATE);
            engine.reserve(now, 4_095, rate, Time::ZERO);
        }
        assert_eq!(memory.transfers.len(), 1);
    }

    #[test]
    fn two_equal_requesters_take_twice_as_long() {
        let mut memory = SharedBandwidth::new(RATE);
        let first = memory.begin(ps(0), ps(0), ALONE, 10_000);
        let second = memory.begin(ps(0), ps(0), ALONE, 10_000);
        assert_eq!([memory.end(ps(0), first), memory.end(ps(0), second)], [Some(ps(134_000)); 2]);
        let mut memory = SharedBandwidth::new(RATE);
        memory.begin(ps(0), ps(0), ALONE, 10_000);
        assert_eq!(memory.reserve(ps(0), ps(0), 1_000, RATE), TimePerByte::from_fs_per_byte(13_400));
    }

    /// The second work starts when the first has 33.5 ns left, which take 67 ns. Then the second has 33.5 ns left,
    /// alone.
    #[test]
    fn work_that_begins_later_delays_what_goes_on() {
        let mut memory = SharedBandwidth::new(RATE);
        let first = memory.begin(ps(0), ps(0), ALONE, 10_000);
        assert_eq!(memory.end(ps(0), first), Some(ps(67_000)));
        let second = memory.begin(ps(33_500), ps(33_500), ALONE, 10_000);
        assert_eq!(memory.end(ps(67_000), first), Some(ps(100_500)));
        assert_eq!(memory.end(ps(100_500), first), None);
        assert_eq!(memory.end(ps(100_500), second), Some(ps(134_000)));
    }

    /// A packet does not wait for a 334 µs copy, and the copy loses just the packet's share: 4,096 bytes at 6.7 ps take
    /// 54,886.4 ps instead of 27,443.2, and the copy 27,443.2 ps longer.
    #[test]
    fn a_long_copy_lets_a_packet_through() {
        let mut memory = SharedBandwidth::new(RATE);
        let copy = memory.begin(ps(0), ps(0), ps(334_000_000), 334_000_000 * 10);
        let packet = memory.reserve(ps(1_000_000), ps(1_000_000), 4_096, RATE);
        assert_eq!(packet.time(4_096), ps(54_887));
        assert_eq!(memory.end(ps(334_000_000), copy), Some(ps(334_027_444)));
    }

    /// One core reads 64 bytes in 5.1 ns (ten lines in 51 ns), a load of 64 * 6.7 / 5,100 = 0.084078; the load of PCI
    /// Express is 6.7 / 15.6 = 0.429487. They do not disturb each other: the load of six such cores and PCI Express is
    /// 0.933958, that of seven 1.018038.
    #[test]
    fn requesters_that_leave_room_do_not_disturb_each_other() {
        let mut memory = SharedBandwidth::new(RATE);
        for core in 1..=7 {
            let work = memory.begin(ps(0), ps(0), ps(5_100_000), 64_000);
            assert_eq!(memory.end(ps(0), work), Some(ps(5_100_000)));
            let rate = memory.clone().reserve(ps(0), ps(0), 4_096, PCIE).as_fs_per_byte();
            assert_eq!(rate, if core < 7 { 15_600 } else { 15_882 }, "{core} cores");
        }
    }

    /// From 30 ns to 90 ns a transfer has load 1: the work progresses at half speed for the 60 ns after its first 30
    /// ns.
    #[test]
    fn transfers_delay_work_while_they_last() {
        let mut memory = SharedBandwidth::new(RATE);
        memory.reserve(ps(0), ps(30_000), 10_000 * 60 / 67 + 1, RATE);
        let work = memory.begin(ps(0), ps(0), ALONE, 10_000);
        // The transfer takes 8,956 bytes * 6.7 ps = 60,005.2 ps; 30,002.6 of the work's 67,000 ps pass meanwhile.
        assert_eq!(memory.end(ps(0), work), Some(ps(97_003)));
    }

    #[test]
    fn nothing_overflows() {
        let slow = TimePerByte::from_fs_per_byte(1_000_000_000_000);
        let mut memory = SharedBandwidth::new(slow);
        let work = memory.begin(ps(0), ps(0), Time::MAX, u64::MAX);
        memory.begin(ps(0), ps(0), Time::ZERO, 0);
        memory.reserve(ps(0), ps(0), u64::MAX, RATE);
        assert_eq!(memory.end(ps(1), work), Some(Time::MAX));
        let mut endless = SharedBandwidth::new(TimePerByte::INFINITE);
        endless.begin(ps(0), ps(0), ALONE, 10_000);
        assert_eq!(endless.reserve(ps(0), ps(0), 4_096, RATE), RATE);
        assert_eq!(endless.reserve(ps(0), ps(0), 4_096, TimePerByte::INFINITE), TimePerByte::INFINITE);
    }
}
