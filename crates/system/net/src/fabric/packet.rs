use sim::Time;

use crate::slab::Linked;
use crate::topology::RouteState;

/// The absence of a channel: the packet is still in its host.
pub(crate) const NOWHERE: u32 = u32::MAX;

/// A packet to send.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NewPacket {
    /// The sending host.
    pub from: u32,
    /// The receiving host, which is another one.
    pub to: u32,
    pub bytes: u32,
    /// Number that identifies it at the [`Edge`](super::Edge).
    pub token: u32,
}

/// A packet in flight. A hop needs only a few lines of the processor's cache: a packet, a link and a credit have one
/// each.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(crate) struct Packet {
    pub token: u32,
    pub from: u32,
    pub to: u32,
    pub bytes: u32,
    pub hash: Hash,
    /// The channel through which it came and whose buffer it occupies, or [`NOWHERE`].
    pub channel: u32,
    /// The kind of that link.
    pub kind: u32,
    /// The vertex at which it is.
    pub at: u32,
    /// The next packet that waits for the same credit, or in the same host.
    pub next: u32,
    /// How it will leave its present switch, if that does not depend on queues.
    pub way: Way,
    pub state: RouteState,
    pub losses: u8,
    pub marks: Marks,
    /// When it joined its present queue.
    pub joined: Time,
    /// When it left its host.
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

/// What a packet is for. All but data are sent by the network's ends themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Data,
    /// Says that the packet of data with this token has arrived.
    Ack,
    /// Notifies the sender of a flow that its packets meet long queues (CNP).
    Notification,
    /// Says that the packet of data with this token has arrived without its data (NACK).
    Refusal,
    /// Asks for one more packet of data.
    Pull,
}

/// What a packet is for, and what has happened to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Marks(u8);

/// Something that has happened to a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Mark {
    /// The link on which it is has damaged it.
    Damaged = 1 << 3,
    /// It has met a long queue (ECN).
    Congested = 1 << 4,
    /// It has arrived, and its sender does not know.
    Delivered = 1 << 5,
    /// A switch has removed its data.
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

    /// Whether it is a packet of data that its receiver does not have yet.
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

/// How a packet leaves a switch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Way {
    pub link: u32,
    /// Virtual channel of the link.
    pub vc: u8,
    pub class: u8,
}

/// A hash that decides a packet's choices, apart from queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hash(u32);

impl Hash {
    pub const NONE: Hash = Hash(0);

    /// The hash of a pair of hosts and the number of a packet.
    pub fn new(seed: u64, from: u32, to: u32, packet: u64) -> Hash {
        Hash((mix(mix(seed ^ packet) ^ (u64::from(from) << 32 | u64::from(to))) >> 32) as u32)
    }

    /// One of `count` choices at this switch. The switch is part of the hash, as packets that meet would otherwise make
    /// the same choices at all later switches.
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
