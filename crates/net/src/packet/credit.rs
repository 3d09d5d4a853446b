use std::cmp::Reverse;
use std::collections::BinaryHeap;

use sim::Time;

/// The credit of a lane of a link: room in the buffer at its far end, and who waits for some.
///
/// When credit will be back is known before that time, so it needs no event as long as nobody waits: it is looked for when
/// the next packet comes.
#[derive(Debug)]
#[repr(align(64))]
pub(super) struct Credit {
    /// Bytes of the buffer that are taken, those that are on their way back included.
    taken: u64,
    /// When so many bytes, of one packet, will be free again; of a link in little use that is all. None if 0.
    back_at: Time,
    back_bytes: u32,
    /// How many packets wait, the first and the last of them; each knows the next.
    waiting: u32,
    first: u32,
    last: u32,
    /// When somebody will look, if anybody waits; else [`Time::MAX`].
    wake: Time,
    /// As above, of other packets.
    later: BinaryHeap<Reverse<(Time, u32)>>,
}

impl Default for Credit {
    fn default() -> Credit {
        let (taken, back_at, back_bytes) = (0, Time::ZERO, 0);
        let (waiting, first, last) = (0, 0, 0);
        Credit { taken, back_at, back_bytes, waiting, first, last, wake: Time::MAX, later: BinaryHeap::new() }
    }
}

impl Credit {
    #[inline]
    pub fn is_waited_for(&self) -> bool {
        self.waiting > 0
    }

    /// Takes credit for a packet, if there is enough.
    #[inline]
    pub fn take(&mut self, now: Time, bytes: u32, buffer: u64) -> bool {
        if self.back_at <= now {
            self.taken -= u64::from(self.back_bytes);
            self.back_bytes = 0;
        }
        if self.taken + u64::from(bytes) > buffer {
            while let Some(&Reverse((at, bytes))) = self.later.peek() {
                if at > now {
                    break;
                }
                self.later.pop();
                self.taken -= u64::from(bytes);
            }
        }
        let is_enough = self.taken + u64::from(bytes) <= buffer;
        self.taken += if is_enough { u64::from(bytes) } else { 0 };
        is_enough
    }

    /// Gives credit back at a time to come.
    #[inline]
    pub fn give(&mut self, at: Time, bytes: u32) {
        if self.back_bytes == 0 {
            (self.back_at, self.back_bytes) = (at, bytes);
        } else {
            self.later.push(Reverse((at, bytes)));
        }
    }

    /// Lets a packet wait. Returns the one before, which must know of it.
    pub fn wait(&mut self, packet: u32) -> Option<u32> {
        let before = std::mem::replace(&mut self.last, packet);
        self.waiting += 1;
        if self.waiting > 1 {
            return Some(before);
        }
        self.first = packet;
        None
    }

    /// Who waits longest.
    pub fn first(&self) -> Option<u32> {
        self.is_waited_for().then_some(self.first)
    }

    /// Lets the first go; `next` is the next, if there is one.
    pub fn stop_waiting(&mut self, next: u32) {
        self.waiting -= 1;
        self.first = next;
    }

    /// When to look, if there is a reason to and nobody will earlier.
    #[inline]
    pub fn next_wake(&mut self) -> Option<Time> {
        if !self.is_waited_for() {
            return None;
        }
        let back = (self.back_bytes > 0).then_some(self.back_at);
        let later = self.later.peek().map(|entry| entry.0.0);
        let at = back.into_iter().chain(later).min()?;
        if self.wake <= at {
            return None;
        }
        self.wake = at;
        Some(at)
    }

    /// Somebody looks.
    pub fn woken(&mut self, now: Time) {
        if self.wake == now {
            self.wake = Time::MAX;
        }
    }
}
