use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use sim::Time;

/// The credit of a lane of a link: room in the buffer at its far end, and who waits for some.
///
/// When credit will be back is known before that time, so it needs no event as long as nobody waits: it is looked for when
/// the buffer seems full.
#[derive(Debug, Default)]
pub(super) struct Credit {
    /// Bytes of the buffer that are taken, those of `returns` included.
    taken: u64,
    /// When how many bytes will be free again.
    returns: BinaryHeap<Reverse<(Time, u32)>>,
    /// Packets in their order.
    waiting: VecDeque<u32>,
    /// When somebody will look, if anybody waits.
    wake: Option<Time>,
}

impl Credit {
    #[inline]
    pub fn is_waited_for(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Takes credit for a packet, if there is enough.
    #[inline]
    pub fn take(&mut self, now: Time, bytes: u32, buffer: u64) -> bool {
        let wanted = self.taken + u64::from(bytes);
        if wanted > buffer {
            while let Some(&Reverse((at, bytes))) = self.returns.peek() {
                if at > now {
                    break;
                }
                self.returns.pop();
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
        self.returns.push(Reverse((at, bytes)));
    }

    pub fn wait(&mut self, packet: u32) {
        self.waiting.push_back(packet);
    }

    /// Who waits longest.
    pub fn first(&self) -> Option<u32> {
        self.waiting.front().copied()
    }

    /// Lets the first go.
    pub fn stop_waiting(&mut self) {
        self.waiting.pop_front();
    }

    /// When to look, if there is a reason to and nobody will earlier.
    #[inline]
    pub fn next_wake(&mut self) -> Option<Time> {
        if self.waiting.is_empty() {
            return None;
        }
        let at = self.returns.peek()?.0.0;
        if self.wake.is_some_and(|wake| wake <= at) {
            return None;
        }
        self.wake = Some(at);
        Some(at)
    }

    /// Somebody looks.
    pub fn woken(&mut self, now: Time) {
        if self.wake == Some(now) {
            self.wake = None;
        }
    }
}
