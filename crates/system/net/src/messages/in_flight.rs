// SPDX-License-Identifier: Apache-2.0
//! Messages in flight.

use sim::Time;

use crate::slab::{Linked, NOBODY};

/// A message in flight.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(super) struct InFlightMessage {
    pub from: u32,
    pub to: u32,
    pub token: u32,
    /// Next message in the queue of its host.
    pub next: u32,
    pub tell_sent: bool,
    /// True while it must still delay the next message, which it does once.
    pub pays_gap: bool,
    /// True once its first packet is created.
    pub is_begun: bool,
    /// Earliest start.
    pub at: Time,
    /// Bytes not yet split into packets.
    pub left: u64,
    /// Number of its packets with unknown arrival.
    pub on_the_way: u32,
    /// Its number in the simulation of its sender, if that is another.
    pub origin: u32,
    /// Latest known arrival of its packets.
    pub latest: Time,
}

impl InFlightMessage {
    pub const NEW: InFlightMessage = InFlightMessage {
        from: 0,
        to: 0,
        token: 0,
        next: NOBODY,
        tell_sent: false,
        pays_gap: false,
        is_begun: false,
        at: Time::ZERO,
        left: 0,
        on_the_way: 0,
        origin: NOBODY,
        latest: Time::ZERO,
    };

    /// Returns a message of another simulation that arrives in this one.
    pub fn announced(announcement: &Announcement) -> InFlightMessage {
        let &Announcement { from, to, token, packets, origin } = announcement;
        InFlightMessage { from, to, token, on_the_way: packets, origin, is_begun: true, ..InFlightMessage::NEW }
    }

    /// Returns its earliest departure; a host's next message starts at `next`.
    #[inline]
    pub fn may_begin(&self, next: Time) -> Time {
        if self.is_begun { Time::ZERO } else { self.at.max(next) }
    }

    /// Returns true if all of it is split into packets.
    pub fn is_sent(&self) -> bool {
        self.left == 0
    }
}

impl Linked for InFlightMessage {
    fn next(&mut self) -> &mut u32 {
        &mut self.next
    }
}

/// A message that arrives in another part than it was sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Announcement {
    pub from: u32,
    pub to: u32,
    pub token: u32,
    /// Number of its packets.
    pub packets: u32,
    /// Its number in the simulation of its sender.
    pub origin: u32,
}
