// SPDX-License-Identifier: Apache-2.0
//! Packets in flight: roles, marks and routing choices.

use sim::Time;

use crate::slab::Linked;
use crate::topology::RouteState;

/// Channel of a packet that is still in its host.
pub(crate) const NOWHERE: u32 = u32::MAX;

/// A packet to send.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NewPacket {
    /// Sending host.
    pub from: u32,
    /// Receiving host, different from the sender.
    pub to: u32,
    pub bytes: u32,
    /// Token that identifies the packet at the [`Edge`](super::Edge).
    pub token: u32,
}

/// A packet in flight. A hop touches only a few cache lines: one each for packet, link and credit.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(crate) struct Packet {
    pub token: u32,
    pub from: u32,
    pub to: u32,
    pub bytes: u32,
    pub hash: Hash,
    /// Channel of its last link, whose buffer it occupies, or [`NOWHERE`].
    pub channel: u32,
    /// Kind of that link.
    pub kind: u32,
    /// Current vertex.
    pub at: u32,
    /// Next packet that waits for the same credit, or in the same host.
    pub next: u32,
    /// Way out of its current switch, if independent of queues.
    pub way: Way,
    pub state: RouteState,
    pub losses: u8,
    pub marks: Marks,
    /// Time at which it joined its current queue.
    pub joined: Time,
    /// Time at which it left its host.
    pub sent: Time,
}

impl Packet {
    pub const NEW: Packet = Packet {
        token: 0,
        from: 0,
        to: 0,
        bytes: 0,
        hash: Hash::NONE,
        channel: NOWHERE,
        kind: 0,
        at: 0,
        next: 0,
        way: Way { link: 0, vc: 0, class: 0 },
        state: RouteState { hops: 0, class: 0 },
        losses: 0,
        marks: Marks::of(Role::Data),
        joined: Time::ZERO,
        sent: Time::ZERO,
    };
}

/// Role of a packet. Roles other than data are control packets of the network's ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Data,
    /// Acknowledges the data packet with this token.
    Ack,
    /// Notifies the sender of a flow that its packets meet long queues (CNP).
    Notification,
    /// Reports that the data packet with this token arrived without its data (NACK).
    Refusal,
    /// Requests one more data packet.
    Pull,
}

/// Role and marks of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Marks(u8);

/// A mark of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Mark {
    /// Damaged by its current link.
    Damaged = 1 << 3,
    /// Has met a long queue (ECN).
    Congested = 1 << 4,
    /// Arrived, but not yet acknowledged to its sender.
    Delivered = 1 << 5,
    /// Trimmed: a switch removed its data.
    Trimmed = 1 << 6,
}

impl Marks {
    pub const fn of(role: Role) -> Marks {
        Marks(role as u8)
    }

    #[inline]
    pub fn role(self) -> Role {
        match self.0 & 7 {
            0 => Role::Data,
            1 => Role::Ack,
            2 => Role::Notification,
            3 => Role::Refusal,
            _ => Role::Pull,
        }
    }

    #[inline]
    pub fn has(self, mark: Mark) -> bool {
        self.0 & mark as u8 != 0
    }

    #[inline]
    pub fn set(&mut self, mark: Mark, is_set: bool) {
        self.0 = if is_set { self.0 | mark as u8 } else { self.0 & !(mark as u8) };
    }

    /// Returns true for an answer whose token is another packet.
    #[inline]
    pub fn has_subject(self) -> bool {
        matches!(self.role(), Role::Ack | Role::Refusal)
    }

    /// Returns true for a data packet that its receiver does not have yet.
    #[inline]
    pub fn is_news(self) -> bool {
        self.0 & (7 | Mark::Delivered as u8) == 0
    }
}

impl From<Role> for Marks {
    fn from(role: Role) -> Marks {
        Marks::of(role)
    }
}

impl Linked for Packet {
    fn next(&mut self) -> &mut u32 {
        &mut self.next
    }
}

/// Way of a packet out of a switch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Way {
    pub link: u32,
    /// Virtual channel of the link.
    pub vc: u8,
    pub class: u8,
}

/// A hash that determines a packet's queue-independent choices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hash(u32);

impl Hash {
    pub const NONE: Hash = Hash(0);

    /// Hashes a pair of hosts and a packet number.
    pub fn new(seed: u64, from: u32, to: u32, packet: u64) -> Hash {
        Hash((mix(mix(seed ^ packet) ^ (u64::from(from) << 32 | u64::from(to))) >> 32) as u32)
    }

    /// Returns one of `count` choices at this switch. The switch is part of the hash, as packets that meet would
    /// otherwise make the same choices at all later switches.
    #[inline]
    pub fn pick(self, switch: u32, count: usize) -> usize {
        let mixed = mix(u64::from(switch) << 32 | u64::from(self.0)) >> 32;
        ((mixed * count as u64) >> 32) as usize
    }
}

/// Mixes the bits (the finalizer of MurmurHash3 after an odd constant).
#[inline]
fn mix(bits: u64) -> u64 {
    let bits = bits.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let bits = (bits ^ bits >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
    let bits = (bits ^ bits >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    bits ^ bits >> 33
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_fills_a_cache_line() {
        assert_eq!(size_of::<Packet>(), 64);
    }
}
