// SPDX-License-Identifier: Apache-2.0
//! Credit-based flow control.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::{Index, IndexMut, Range};

use sim::Time;
use sim::memory::{HugePageSlice, prefetch};

/// Credits of all channels.
#[derive(Debug)]
pub(crate) struct Credits {
    all: HugePageSlice<Credit>,
    /// Overflow of returning credits, for channels whose own slots are full.
    later: Vec<BinaryHeap<Reverse<(Time, u32)>>>,
}

/// Credit of a virtual channel of a link: free space in the buffer at its far end, and the packets that wait for it.
///
/// The return time of credit is known in advance, so it needs no event while no packet waits: the next packet checks
/// it.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(crate) struct Credit {
    /// Occupied bytes of the buffer, including returning credit.
    taken: u64,
    /// Time of the next check of the waiting packets; [`Time::MAX`] if none waits.
    wake: Time,
    /// Times at which bytes become free again, and the bytes of one packet each; 0 marks an unused slot. These slots
    /// nearly always suffice.
    back_at: [Time; BACK],
    back_bytes: [u32; BACK],
    /// Index in `later` of the bytes of further packets, or [`NONE`].
    later: u32,
    /// First and last waiting packet; each links to the next. The first is [`NONE`] if none waits.
    first: u32,
    last: u32,
}

const NONE: u32 = u32::MAX;
/// Number of slots that fit into a cache line.
const BACK: usize = 3;

impl Credits {
    /// Returns the credits of `channels` channels with free buffers, of which only these ranges are used.
    pub fn new(channels: usize, used: &[Range<usize>]) -> Credits {
        let (back_at, back_bytes) = ([Time::ZERO; BACK], [0; BACK]);
        let credit = Credit { taken: 0, wake: Time::MAX, back_at, back_bytes, later: NONE, first: NONE, last: NONE };
        // SAFETY: a credit of zero bytes is valid.
        let all = unsafe { HugePageSlice::partly_filled(credit, channels, used) };
        Credits { all, later: Vec::new() }
    }

    #[inline]
    pub fn prefetch(&self, channel: u32) {
        prefetch(self.all.as_ptr().wrapping_add(channel as usize));
    }

    /// Takes credit for a packet; returns false if there is not enough.
    #[inline]
    pub fn take(&mut self, channel: u32, now: Time, bytes: u32, buffer: u64) -> bool {
        let credit = &mut self.all[channel as usize];
        credit.settle(now);
        if credit.taken + u64::from(bytes) > buffer
            && let Some(later) = self.later.get_mut(credit.later as usize)
        {
            while let Some(&Reverse((at, bytes))) = later.peek() {
                if at > now {
                    break;
                }
                later.pop();
                credit.taken -= u64::from(bytes);
            }
        }
        let is_enough = credit.taken + u64::from(bytes) <= buffer;
        credit.taken += if is_enough { u64::from(bytes) } else { 0 };
        is_enough
    }

    /// Schedules the return of credit at a future time.
    #[inline]
    pub fn give(&mut self, channel: u32, now: Time, at: Time, bytes: u32) {
        let credit = &mut self.all[channel as usize];
        credit.settle(now);
        if let Some(place) = credit.back_bytes.iter().position(|&bytes| bytes == 0) {
            (credit.back_at[place], credit.back_bytes[place]) = (at, bytes);
            return;
        }
        if credit.later == NONE {
            credit.later = self.later.len() as u32;
            self.later.push(BinaryHeap::new());
        }
        self.later[credit.later as usize].push(Reverse((at, bytes)));
    }

    /// Returns the time for the next check of the waiting packets, unless none waits or an earlier check is scheduled.
    #[inline]
    pub fn next_wake(&mut self, channel: u32) -> Option<Time> {
        let credit = &mut self.all[channel as usize];
        if !credit.is_waited_for() {
            return None;
        }
        let back = credit.back_at.into_iter().zip(credit.back_bytes).filter(|back| back.1 > 0).map(|back| back.0);
        let later = self.later.get(credit.later as usize).and_then(|later| later.peek()).map(|entry| entry.0.0);
        let at = back.chain(later).min()?;
        if credit.wake <= at {
            return None;
        }
        credit.wake = at;
        Some(at)
    }
}

impl Index<u32> for Credits {
    type Output = Credit;

    #[inline]
    fn index(&self, channel: u32) -> &Credit {
        &self.all[channel as usize]
    }
}

impl IndexMut<u32> for Credits {
    #[inline]
    fn index_mut(&mut self, channel: u32) -> &mut Credit {
        &mut self.all[channel as usize]
    }
}

impl Credit {
    /// Counts the credit that has returned.
    #[inline]
    fn settle(&mut self, now: Time) {
        for (at, bytes) in self.back_at.iter().zip(&mut self.back_bytes) {
            if *at <= now {
                self.taken -= u64::from(std::mem::take(bytes));
            }
        }
    }

    #[inline]
    pub fn is_waited_for(&self) -> bool {
        self.first != NONE
    }

    /// Appends a waiting packet. Returns the one before it, if any, which must link to it.
    pub fn wait(&mut self, packet: u32) -> Option<u32> {
        let before = std::mem::replace(&mut self.last, packet);
        if self.is_waited_for() {
            return Some(before);
        }
        self.first = packet;
        None
    }

    /// Returns the packet that has waited longest.
    #[inline]
    pub fn first(&self) -> Option<u32> {
        self.is_waited_for().then_some(self.first)
    }

    /// Removes the first packet; `next` is the one after it, if any.
    pub fn stop_waiting(&mut self, next: u32) {
        self.first = if self.first == self.last { NONE } else { next };
    }

    /// Records a check of the waiting packets.
    pub fn woken(&mut self, now: Time) {
        if self.wake == now {
            self.wake = Time::MAX;
        }
    }
}
