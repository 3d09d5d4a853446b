// SPDX-License-Identifier: Apache-2.0
//! State and counters of links.

use sim::{Time, TimePerByte};

/// State of a link, in one cache line.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(crate) struct LinkState {
    /// Time until which the link is occupied.
    pub free: Time,
    /// Time for which the packets that wait for credit will occupy the link.
    pub blocked: Time,
    /// Vertex at its end.
    pub to: u32,
    /// Index of its [`Kind`].
    pub kind: u32,
    pub counts: Counts,
}

impl LinkState {
    pub const UNUSED: LinkState =
        LinkState { free: Time::ZERO, blocked: Time::ZERO, to: 0, kind: 0, counts: Counts::NONE };

    /// Returns the waiting time of a new packet.
    #[inline]
    pub fn queue(&self, now: Time) -> Time {
        self.free.saturating_sub(now) + self.blocked
    }
}

/// Time per byte and latency, common to many links.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Kind {
    pub gap_per_byte: TimePerByte,
    pub latency: Time,
    /// Femtoseconds added before a time is truncated to picoseconds: 999 rounds up, 0 down.
    pub rounding: u64,
}

impl Kind {
    /// Returns the transmission time of `bytes` bytes.
    #[inline]
    pub fn transmission(&self, bytes: u32) -> Time {
        // 64 bits suffice for all rates and packets that the parameter check accepts.
        match self.gap_per_byte.as_fs_per_byte().checked_mul(u64::from(bytes)) {
            Some(fs) => Time::from_ps((fs + self.rounding) / 1000),
            None => self.gap_per_byte.time(u64::from(bytes)),
        }
    }

    /// Returns the bytes that a link transmits in this time.
    pub fn bytes_in(&self, time: Time) -> u64 {
        let rate = self.gap_per_byte.as_fs_per_byte();
        if rate == 0 { 0 } else { (u128::from(time.as_ps()) * 1000 / u128::from(rate)).try_into().unwrap_or(u64::MAX) }
    }
}

/// Counters of a link.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counts {
    pub packets: u64,
    pub bytes: u64,
    pub busy: Time,
    /// Maximum transmission time of the queue, including the packet being transmitted.
    pub longest: Time,
    /// Twice the integral of the bytes in the queue over time, in ps.
    pub area: f64,
}

impl Counts {
    pub const NONE: Counts = Counts { packets: 0, bytes: 0, busy: Time::ZERO, longest: Time::ZERO, area: 0.0 };

    /// Counts a packet that had to wait for the link.
    #[inline]
    pub fn add(&mut self, wait: Time, transmission: Time, bytes: u32) {
        self.packets += 1;
        self.bytes += u64::from(bytes);
        self.busy += transmission;
        // During its transmission, half of a packet's bytes are still queued on average.
        self.area += (2 * wait.as_ps() + transmission.as_ps()) as f64 * f64::from(bytes);
    }

    /// Updates the maximum queue, as a time, including a new packet.
    #[inline]
    pub fn see(&mut self, backlog: Time) {
        self.longest = self.longest.max(backlog);
    }
}
